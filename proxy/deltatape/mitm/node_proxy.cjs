// Leads Node.js before 22.21 and 24 through HTTPS_PROXY, as NODE_USE_ENV_PROXY does from there on.
//
// Loaded by NODE_OPTIONS=--require. `fetch` is undici inside of Node.js, whose dispatcher stands
// under a well-known symbol; its class takes a function that opens connections. `https` gets a
// default agent that does the same. An app that brings an agent or a dispatcher of its own keeps it.
// `http2`, over which AWS's SDK talks to Bedrock, reads the variable in no version: it is led always.
//
// Source: https://undici.nodejs.org/#/docs/api/Agent, https://nodejs.org/api/https.html,
// https://nodejs.org/api/http2.html#http2connectauthority-options-listener.
"use strict";

const net = require("node:net");
const tls = require("node:tls");
const http2 = require("node:http2");
const https = require("node:https");
const { syncBuiltinESMExports } = require("node:module");
const { Duplex } = require("node:stream");

const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
const PATIENCE_MS = 30000;

function readsEnvironment() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major >= 24 || (major === 22 && minor >= 21);
}

function goesDirect(host) {
  const rules = (process.env.NO_PROXY || process.env.no_proxy || "").toLowerCase();
  const name = host.toLowerCase();
  return rules.split(/[\s,]+/).some((rule) => {
    const bare = rule.replace(/:\d+$/, "").replace(/^\*?\./, "");
    return rule === "*" || (bare !== "" && (name === bare || name.endsWith("." + bare)));
  });
}

// Calls back once: with a plain connection to host:port through the proxy, or with an error.
function tunnel(proxy, host, port, callback) {
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const login = proxy.username
    ? `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
    : "";
  const secret = login
    ? `Proxy-Authorization: Basic ${Buffer.from(login).toString("base64")}\r\n`
    : "";
  const socket = net.connect(Number(proxy.port || 80), proxy.hostname.replace(/^\[|\]$/g, ""));
  let head = Buffer.alloc(0);
  const end = (error) => {
    socket.removeAllListeners();
    socket.setTimeout(0);
    if (error) socket.destroy();
    callback(error, error ? null : socket);
  };
  socket.setTimeout(PATIENCE_MS, () => end(new Error(`the proxy ${proxy.host} does not answer`)));
  socket.once("error", end);
  socket.once("close", () => end(new Error(`the proxy ${proxy.host} closed the connection`)));
  socket.once("connect", () => {
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${secret}\r\n`);
  });
  socket.on("data", (data) => {
    head = Buffer.concat([head, data]);
    const at = head.indexOf("\r\n\r\n");
    if (at < 0) return;
    const status = head.toString("latin1", 0, at).split("\r\n")[0];
    if (!/^HTTP\/1\.[01] 2/.test(status)) {
      end(new Error(`the proxy ${proxy.host} refused ${target}: ${status}`));
      return;
    }
    socket.pause();
    if (head.length > at + 4) socket.unshift(head.subarray(at + 4));
    end(null);
  });
}

function secured(proxy, options, callback) {
  tunnel(proxy, options.host, options.port, (error, socket) => {
    if (error) {
      callback(error);
      return;
    }
    const name = options.servername || options.host;
    const secure = tls.connect({
      ...options,
      socket,
      servername: net.isIP(name) ? undefined : name,
    });
    secure.once("error", callback);
    secure.once("secureConnect", () => {
      secure.removeListener("error", callback);
      callback(null, secure);
    });
  });
}

class TunnelAgent extends https.Agent {
  createConnection(options, callback) {
    if (goesDirect(options.host)) return super.createConnection(options, callback);
    secured(this.options.tunnel, options, callback);
    return undefined;
  }
}

// `http2` wants a connection at once: this one holds back what is written until the tunnel is there.
class Tunnel extends Duplex {
  #open;
  #socket = null;
  #held = true;

  constructor(proxy, host, port) {
    super();
    this.#open = (callback) => tunnel(proxy, host, port, callback);
  }

  _construct(callback) {
    this.#open((error, socket) => {
      if (!error) this.#join(socket);
      callback(error);
    });
  }

  #join(socket) {
    this.#socket = socket;
    socket.on("data", (data) => this.push(data) || socket.pause());
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    this.hold(this.#held);
  }

  // Whether it keeps the process from ending.
  hold(held) {
    this.#held = held;
    if (this.#socket) held ? this.#socket.ref() : this.#socket.unref();
  }

  _read() {
    this.#socket.resume();
  }

  _write(data, encoding, callback) {
    this.#socket.write(data, encoding, callback);
  }

  _final(callback) {
    this.#socket.end(callback);
  }

  _destroy(error, callback) {
    if (this.#socket) this.#socket.destroy();
    callback(error);
  }
}

function secureTunnel(proxy, url, options) {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const socket = new Tunnel(proxy, host, Number(url.port) || 443);
  const servername = options.servername || (net.isIP(host) ? undefined : host);
  const secure = tls.connect({ ALPNProtocols: ["h2"], ...options, socket, host, servername });
  for (const [name, held] of [["ref", true], ["unref", false]]) {
    secure[name] = () => {
      socket.hold(held);
      return tls.TLSSocket.prototype[name].call(secure);
    };
  }
  return secure;
}

// A GOAWAY lets streams end, but mitmproxy cuts them when a client says it: it gets to hear it last.
function closeLast(session) {
  const { request, close } = session;
  let open = 0;
  let closing = false;
  session.request = (...parameters) => {
    const stream = request.apply(session, parameters);
    open += 1;
    stream.once("close", () => {
      open -= 1;
      if (closing && open === 0) close.call(session);
    });
    return stream;
  };
  session.close = (callback) => {
    if (typeof callback === "function") session.once("close", callback);
    closing = true;
    if (open === 0) close.call(session);
  };
  return session;
}

function leadHttp2(proxy) {
  const { connect } = http2;
  http2.connect = (authority, options, listener) => {
    const [own, heard] = typeof options === "function" ? [{}, options] : [{ ...options }, listener];
    const url = typeof authority === "string" ? new URL(authority) : authority;
    const led = url instanceof URL && url.protocol === "https:" && !goesDirect(url.hostname);
    if (!led || own.createConnection) return connect(authority, own, heard);
    own.createConnection = () => secureTunnel(proxy, url, own);
    return closeLast(connect(authority, own, heard));
  };
  syncBuiltinESMExports();
}

function install(proxy) {
  https.globalAgent = new TunnelAgent({ keepAlive: true, timeout: 5000, tunnel: proxy });
  void globalThis.Request; // loads undici, which sets its dispatcher
  const dispatcher = globalThis[DISPATCHER];
  if (!dispatcher || typeof dispatcher.constructor !== "function") return;
  const connect = (options, callback) => {
    const { hostname, protocol, port, servername } = options;
    const host = hostname.replace(/^\[|\]$/g, "");
    const secure = protocol === "https:";
    const where = { host, port: Number(port) || (secure ? 443 : 80) };
    if (secure && !goesDirect(host)) {
      secured(proxy, { ...where, servername, ALPNProtocols: ["http/1.1"] }, callback);
      return;
    }
    const socket = secure
      ? tls.connect({ ...where, servername: servername || (net.isIP(host) ? undefined : host) })
      : net.connect(where);
    socket.once("error", callback);
    socket.once(secure ? "secureConnect" : "connect", () => {
      socket.removeListener("error", callback);
      callback(null, socket);
    });
  };
  globalThis[DISPATCHER] = new dispatcher.constructor({ connect });
}

const configured = process.env.HTTPS_PROXY || process.env.https_proxy;
if (configured) {
  try {
    const proxy = new URL(configured);
    leadHttp2(proxy);
    if (!readsEnvironment()) install(proxy);
  } catch (error) {
    process.emitWarning(`not led through ${configured}: ${error.message}`, "deltatape");
  }
}

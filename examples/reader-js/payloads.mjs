// What the lines of a tape hold: a type for each part, and from them one for each code.
//
// A type is a function that takes a JSON value and returns what it means, or throws `Damage`. Bytes
// become Buffers, integers stay BigInts. Keys that are not named here are ignored.

import { Damage } from "./damage.mjs";

const LARGEST = 2n ** 63n - 1n;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

// Parts.

function expected(what, value) {
  const seen = typeof value === "bigint" ? String(value) : (JSON.stringify(value, long) ?? "nothing");
  return new Damage(`${seen.slice(0, 60)} where ${what} is expected`);
}

const long = (_, value) => (typeof value === "bigint" ? String(value) : value);

const text = (value) => {
  if (typeof value !== "string") throw expected("a string", value);
  return value.toWellFormed(); // U+FFFD for a lone surrogate
};

const integer = (value) => {
  if (typeof value !== "bigint" || value < -LARGEST || value > LARGEST) {
    throw expected("an integer", value);
  }
  return value;
};

export const count = (value) => {
  if (integer(value) < 0n) throw expected("an integer from 0", value);
  return value;
};

const upTo = (most) => (value) => {
  if (count(value) > most) throw expected(`an integer from 0 to ${most}`, value);
  return value;
};

const flag = (value) => {
  if (typeof value !== "boolean") throw expected("true or false", value);
  return value;
};

const oneOf = (...words) => (value) => {
  if (!words.includes(value)) throw expected(`one of ${words.join(", ")}`, value);
  return value;
};

const hexDigits = (value) => {
  if (typeof value !== "string" || !/^[0-9a-f]{8}$/.test(value)) {
    throw expected("8 hexadecimal digits", value);
  }
  return value;
};

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const anyObject = (value) => {
  if (!isObject(value)) throw expected("an object", value);
  return value;
};

const object = (required, optional = {}) => (value) => {
  anyObject(value);
  const read = {};
  for (const [key, type] of Object.entries(required)) read[key] = within(key, type, value[key]);
  for (const [key, type] of Object.entries(optional)) {
    if (key in value) read[key] = within(key, type, value[key]);
  }
  return read;
};

function within(key, type, value) {
  try {
    return type(value);
  } catch (error) {
    if (error instanceof Damage) error.message = `"${key}": ${error.message}`;
    throw error;
  }
}

const list = (type) => (value) => {
  if (!Array.isArray(value)) throw expected("a list", value);
  return value.map(type);
};

const tuple = (...types) => (value) => {
  if (!Array.isArray(value) || value.length !== types.length) {
    throw expected(`a list of ${types.length}`, value);
  }
  return types.map((type, at) => type(value[at]));
};

const bytes = (value) => {
  if (typeof value === "string" && value.isWellFormed()) return Buffer.from(value);
  if (isObject(value) && typeof value.b64 === "string" && BASE64.test(value.b64)) {
    return Buffer.from(value.b64, "base64");
  }
  throw expected('a string or {"b64": ...}', value);
};

const oneLine = (type) => (value) => {
  const read = type(value);
  if (Buffer.isBuffer(read) && [0x00, 0x0a, 0x0d].some((byte) => read.includes(byte))) {
    throw expected("one line without NUL", value);
  }
  return read;
};

const masked = object({ masked: object({ length: count, hash: hexDigits }) });

const maskable = (value) => (isObject(value) && "masked" in value ? masked(value) : bytes(value));

const headers = list(tuple(oneLine(bytes), oneLine(maskable)));

const target = (value) => (Array.isArray(value) ? value : [value]).map(oneLine(maskable));

const spans = (value) => {
  let last = 0n;
  return list(tuple(count, count, hexDigits))(value).map((span) => {
    const [start, end] = span;
    if (start < last || end <= start) throw expected("ascending spans", value);
    last = end;
    return span;
  });
};

const boundaries = (value) => {
  const ends = list(count)(value);
  if (ends.some((end, at) => at > 0 && end <= ends[at - 1])) {
    throw expected("ascending offsets", value);
  }
  return ends;
};

// The header.

const shard = (value) => {
  const read = object(
    { recording: text, index: count, count, begun_ns: count },
    { name: text },
  )(value);
  if (read.index < 1n || read.index > read.count) throw expected("an index up to the count", value);
  return read;
};

const version = (value) => {
  if (value !== 1n) throw expected("version 1", value);
  return value;
};

export const header = object(
  { deltatape: version, id: text, recorded_at: text, source: oneOf("gateway", "mitm", "import") },
  { tool: text, shard, volatile: list(text) },
);

// Payloads.

const head = { status: count, reason: oneLine(bytes), http: text, headers };
const empty = object({});

const frame = (value) => {
  const read = object(
    { side: oneOf("client", "server"), data: bytes },
    {
      raw: flag,
      opcode: upTo(15n),
      fin: flag,
      rsv: upTo(7n),
      mask: hexDigits,
      length: count,
      wide: count,
      at: count,
      more: flag,
      wire: bytes,
    },
  )(value);
  if (!read.raw && read.opcode === undefined) throw expected("an opcode", value);
  const length = read.length ?? BigInt((read.wire ?? read.data).length);
  if (read.wide && ![2n, 8n].some((wide) => wide === read.wide && wide > bytesFor(length))) {
    throw expected("a wide that is wider than needed", value);
  }
  return { ...read, length };
};

// In how many bytes RFC 6455 writes a length, beside the seven bits that every frame has for it.
const bytesFor = (length) => (length < 126n ? 0n : length < 65536n ? 2n : 8n);

export const PAYLOADS = {
  request: object(
    { id: text, method: text, target, upstream: text, http: text, headers },
    {
      tap: oneOf("provider", "app"),
      watched: object({ until_ns: count }, { reason: text, code: integer }),
    },
  ),
  "request-body": bytes,
  "request-end": empty,
  sent: object({ connect_ns: count, tls_ns: count, reused: flag }),
  informational: object(head),
  response: object({ ...head, framing: oneOf("chunked", "length", "close", "none") }),
  masked: object({ spans }, { decoded: spans }),
  boundaries,
  frame,
  read: bytes,
  trailers: object({ headers }),
  delivered: object({ bytes: count }),
  idle: empty,
  note: object({ text }),
  end: object(
    {
      reason: oneOf(
        "complete",
        "upstream_closed",
        "upstream_reset",
        "client_closed",
        "timeout",
        "refused",
        "stopped",
      ),
      bytes: count,
      sha256: text,
    },
    {
      detail: text,
      recorder: anyObject,
      frames: object({ records: count, bytes: count, sha256: text }),
    },
  ),
  parsed: object(
    { tool: text, dialect: text, events: count, calls: count, form: count, sha256: text },
    { finish: text },
  ),
  client: object({ connection: count, state: oneOf("opened", "closed") }),
  log: object({ stream: oneOf("stdout", "stderr", "output"), line: bytes }),
  stop: object({ reason: text }, { code: integer }),
};

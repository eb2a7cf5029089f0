// Reads a tape, which may be damaged anywhere, and says what is on it and what is wrong with it.
//
// The format is in recordings/README.md, the result in recordings/conformance/README.md.

import { Checker } from "./check.mjs";
import { Damage } from "./damage.mjs";
import { Exchange } from "./exchange.mjs";
import { decodeUtf8, parse } from "./json.mjs";
import { count, header, PAYLOADS } from "./payloads.mjs";

const LONGEST_LINE = 16 * 1024 * 1024;
const LONGEST_HEADER = 64 * 1024;
const NO_PART = ["parsed", "client", "log", "stop"]; // these tell of no exchange
const LINE_FEED = 0x0a;

// What is on a tape: a Buffer with all of the file.
export function readTape(file) {
  const lines = linesOf(file);
  const tape = new Tape();
  try {
    tape.header = readHeader(lines.next().value);
  } catch (error) {
    return tape.refuse("tape", 1, error);
  }
  const checker = new Checker(tape.header);
  for (const line of lines) {
    try {
      const record = readRecord(line);
      tape.take(record);
      checker.take(record);
    } catch (error) {
      if (line.isTorn && error instanceof Damage) tape.torn = line.bytes.length;
      else return tape.refuse("line", line.number, error, checker.lines());
    }
  }
  return tape.toResult(checker.lines());
}

// The lines of a file. One without a line feed is the last one, which a crash may have torn.
function* linesOf(file) {
  let number = 1;
  for (let start = 0; start < file.length; number++) {
    const feed = file.indexOf(LINE_FEED, start);
    const end = feed < 0 ? file.length : feed + 1;
    yield { number, bytes: file.subarray(start, end), isTorn: feed < 0 };
    start = end;
  }
}

function readHeader(line) {
  if (!line) throw new Damage("an empty file");
  if (line.bytes.length > LONGEST_HEADER) throw new Damage("a header of more than 64 KiB");
  const { tool = "", shard = null, volatile = [], ...rest } = header(parseLine(line.bytes));
  delete rest.deltatape;
  return { tool, shard, volatile, ...rest };
}

function readRecord({ number, bytes }) {
  if (bytes.length > LONGEST_LINE) throw new Damage("a line of more than 16 MiB");
  const value = parseLine(bytes);
  if (!Array.isArray(value) || value.length !== 4) throw new Damage("no list of four");
  const [t, exchange, code, payload] = value;
  if (typeof code !== "string") throw new Damage("a code that is no string");
  const known = Object.hasOwn(PAYLOADS, code);
  return {
    line: number,
    t: count(t),
    exchange: count(exchange),
    code,
    payload: known ? PAYLOADS[code](payload) : undefined,
  };
}

function parseLine(bytes) {
  let text;
  try {
    text = decodeUtf8(bytes);
  } catch {
    throw new Damage("no UTF-8");
  }
  return parse(text);
}

class Tape {
  header = null;
  torn = 0;
  #exchanges = new Map();
  #clients = [];
  #logs = [];
  #notes = [];
  #stop = null;
  #masked = [];

  take(record) {
    this.#stop = null; // only the last record is one
    if (record.exchange === 0n) this.#takeOwn(record);
    else this.#takeOfExchange(record);
  }

  #takeOwn({ t, code, payload }) {
    switch (code) {
      case "client":
        this.#clients.push({ t, ...payload });
        return;
      case "masked":
        if (payload.spans.length) this.#masked = payload.spans;
        return;
      case "log": {
        const masked = this.#masked.filter(([, end]) => end <= payload.line.length);
        this.#logs.push({ t, ...payload, masked });
        this.#masked = [];
        return;
      }
      case "note":
        this.#notes.push({ t, ...payload });
        return;
      case "stop":
        this.#stop = { t, code: null, ...payload };
    }
  }

  #takeOfExchange(record) {
    const { exchange: number, code, payload } = record;
    if (payload === undefined || NO_PART.includes(code)) return;
    if (!this.#exchanges.has(number)) this.#exchanges.set(number, new Exchange(number));
    const exchange = this.#exchanges.get(number);
    if (!exchange.end) exchange.take(record); // what comes after the end is ignored
  }

  toResult(reported, refused = null) {
    const exchanges = [...this.#exchanges.values()]
      .filter((exchange) => !refused || exchange.end)
      .sort((one, other) => (one.number < other.number ? -1 : 1));
    return {
      refused,
      reported,
      header: this.header,
      exchanges: exchanges.map((exchange) => exchange.toResult()),
      clients: this.#clients,
      logs: this.#logs,
      notes: this.#notes,
      stop: refused ? null : this.#stop,
      torn: this.torn,
    };
  }

  // The result up to damage in a line; anything else than damage is a mistake in this program.
  refuse(what, line, error, reported = []) {
    if (!(error instanceof Damage)) throw error;
    return this.toResult(reported, { what, line });
  }
}

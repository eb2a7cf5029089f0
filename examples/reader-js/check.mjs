// What a checker reports: the lines of records that contradict each other, though each is one.

import { createHash } from "node:crypto";
import { PAYLOADS } from "./payloads.mjs";

const OF_TAPE = ["client", "log", "stop"];
const OF_BOTH = ["masked", "note", "idle"];
const OF_EXCHANGE = Object.keys(PAYLOADS).filter(
  (code) => !OF_TAPE.includes(code) && !OF_BOTH.includes(code),
);
const ONCE = ["request", "request-end", "sent", "response", "trailers"];
const OF_RESPONSE = ["boundaries", "read", "frame", "trailers"];
const INSTANT = new RegExp(
  "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])" +
    "T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)\\.[0-9]{9}Z$",
);
const LOSS = "the recorder lost records before this one: ";

export class Checker {
  #header;
  #lines = [];
  #exchanges = new Map();
  #stopped = false;
  #requested = 0n;

  constructor(header) {
    this.#header = header;
    if (!INSTANT.test(header.recorded_at)) this.#lines.push(1);
  }

  take(record) {
    const { line, exchange, code } = record;
    if (this.#stopped) this.#lines.push(line);
    if (!Object.hasOwn(PAYLOADS, code)) return;
    const misplaced = exchange ? OF_TAPE : OF_EXCHANGE;
    if (misplaced.includes(code)) {
      this.#lines.push(line);
      return;
    }
    if (exchange) {
      if (!this.#exchanges.has(exchange)) this.#exchanges.set(exchange, new ExchangeChecker());
      this.#exchanges.get(exchange).take(record);
    }
    if (code === "stop") this.#stopped = true;
    if (code === "request") {
      if (exchange < this.#requested) this.#lines.push(line);
      else this.#requested = exchange;
    }
  }

  // The lines to report, ascending.
  lines() {
    const found = new Set(this.#lines);
    for (const exchange of this.#exchanges.values()) {
      if (exchange.lost && this.#header.source !== "import") continue; // losses explain it
      for (const line of exchange.lines) found.add(line);
    }
    return [...found].sort((one, other) => one - other);
  }
}

class ExchangeChecker {
  lines = [];
  #seen = new Set();
  #last = 0n;
  #framing = null;
  #boundaries = null;
  #masked = null;
  #lossNoted = false;
  #end = null;
  #body = new Total();
  #frames = new Total();

  get lost() {
    if (this.#lossNoted) return true;
    return this.#end ? Object.keys(this.#end.recorder ?? {}).length > 0 : !this.#seen.has("request");
  }

  take({ line, t, code, payload }) {
    if (code === "parsed") return;
    if (this.#end) {
      this.lines.push(line);
      return;
    }
    const isOutOfOrder = this.#isOutOfOrder(t, code);
    const contradicts = this.#contradicts(code, payload);
    if (isOutOfOrder || contradicts) this.lines.push(line);
    if (t > this.#last) this.#last = t;
    this.#seen.add(code);
  }

  #isOutOfOrder(t, code) {
    const seen = (other) => this.#seen.has(other);
    return (
      t < this.#last ||
      (!this.#seen.size && code !== "request") ||
      (ONCE.includes(code) && seen(code)) ||
      (code === "request-body" && seen("request-end")) ||
      (code === "informational" && seen("response")) ||
      (code === "trailers" && !seen("response")) ||
      (code === "response" && OF_RESPONSE.some(seen))
    );
  }

  #contradicts(code, payload) {
    switch (code) {
      case "response":
        this.#framing ??= payload.framing;
        return false;
      case "note":
        this.#lossNoted ||= payload.text.startsWith(LOSS);
        return false;
      case "masked":
        this.#masked = payload.spans.at(-1)?.[1] ?? this.#masked;
        return false;
      case "request-body":
        return this.#isBeyond(payload) || !payload.length;
      case "frame":
        this.#frames.add(payload.data);
        return this.#isBeyond(payload.data);
      case "boundaries":
        return this.#takeBoundaries(payload);
      case "read": {
        this.#body.add(payload);
        const lastEnd = this.#boundaries?.at(-1) ?? 0n;
        this.#boundaries = null;
        return this.#isBeyond(payload) || lastEnd > payload.length || !payload.length;
      }
      case "end":
        this.#end = payload;
        return (
          this.#boundaries !== null ||
          !this.#body.equals(payload) ||
          !this.#frames.equals(payload.frames ?? NO_FRAMES)
        );
      default:
        return false;
    }
  }

  #takeBoundaries(ends) {
    const isSecond = this.#boundaries !== null;
    this.#boundaries = ends;
    return isSecond || (this.#framing !== null && this.#framing !== "chunked");
  }

  // Whether the spans before a piece reach beyond it.
  #isBeyond(data) {
    const end = this.#masked ?? 0n;
    this.#masked = null;
    return end > data.length;
  }
}

// How many pieces there are of something, of how many bytes, and their hash.
class Total {
  records = 0n;
  bytes = 0n;
  #hash = createHash("sha256");

  add(data) {
    this.records++;
    this.bytes += BigInt(data.length);
    this.#hash.update(data);
  }

  equals({ records = this.records, bytes, sha256 }) {
    const hash = this.#hash.copy().digest("hex");
    return records === this.records && bytes === this.bytes && sha256 === hash;
  }
}

const NO_FRAMES = { records: 0n, bytes: 0n, sha256: createHash("sha256").digest("hex") };

// An exchange, put together from its records. Records may be missing anywhere, and nothing is
// assumed about their order; of what comes once, the first record counts.

import { createHash } from "node:crypto";

export class Exchange {
  #bodyPieces = [];
  #bodySize = 0n;
  #masked = [];
  #decoded = [];
  #boundaries = null;

  constructor(number) {
    this.number = number;
    this.id = "";
    this.tap = "provider";
    this.watched = null;
    this.request = { head: null, masked: [], decoded: [], ended: null };
    this.sent = null;
    this.informational = [];
    this.response = null;
    this.reads = [];
    this.frames = [];
    this.trailers = [];
    this.delivered = [];
    this.idle = [];
    this.notes = [];
    this.end = null;
  }

  take({ t, code, payload }) {
    switch (code) {
      case "request":
        return this.#takeRequest(t, payload);
      case "request-body":
        return this.#takeRequestBody(payload);
      case "request-end":
        this.request.ended ??= t;
        return;
      case "sent":
        this.sent ??= { t, ...payload };
        return;
      case "informational":
        this.informational.push({ t, ...payload });
        return;
      case "response":
        this.response ??= { t, ...payload };
        return;
      case "masked":
        if (payload.spans.length) this.#masked = payload.spans;
        this.#decoded.push(...(payload.decoded ?? []));
        return;
      case "boundaries":
        this.#boundaries = payload;
        return;
      case "read":
        return this.#takeRead(t, payload);
      case "frame":
        return this.#takeFrame(t, payload);
      case "trailers":
        if (!this.trailers.length) this.trailers = payload.headers;
        return;
      case "delivered":
        this.delivered.push({ t, ...payload });
        return;
      case "idle":
        this.idle.push(t);
        return;
      case "note":
        this.notes.push({ t, ...payload });
        return;
      case "end":
        this.end = { t, detail: "", recorder: {}, frames: null, ...payload };
    }
  }

  #takeRequest(t, { id, tap = "provider", watched = null, ...head }) {
    if (this.request.head) return;
    this.request.head = { t, ...head };
    Object.assign(this, { id, tap, watched });
  }

  #takeRequestBody(data) {
    for (const [start, end, hash] of this.#maskedIn(data)) {
      this.request.masked.push([this.#bodySize + start, this.#bodySize + end, hash]);
    }
    this.request.decoded.push(...this.#decoded.splice(0));
    this.#bodyPieces.push(data);
    this.#bodySize += BigInt(data.length);
  }

  #takeRead(t, data) {
    // Left out, `boundaries` stand for one chunk that ends with the read.
    const one = this.response?.framing === "chunked" ? [BigInt(data.length)] : null;
    const chunk_ends = this.#boundaries?.filter((end) => end <= data.length) ?? one;
    this.#boundaries = null;
    const masked = this.#maskedIn(data);
    this.reads.push({ t, data, chunk_ends, masked, decoded: this.#decoded.splice(0) });
  }

  #takeFrame(t, { side, raw = false, opcode = 0n, data, at, more = false, wire = null, ...rest }) {
    const { fin = true, rsv = 0n, mask = "", length, wide = 0n } = rest;
    const begins = !raw && at === undefined;
    this.frames.push({
      t,
      side,
      raw,
      opcode,
      head: begins ? { fin, rsv, mask, length, wide } : null,
      at: at ?? 0n,
      more,
      data,
      wire,
      masked: this.#maskedIn(data),
    });
  }

  // What `masked` said about the piece that has come now. A span beyond its end is about another
  // piece, which is missing.
  #maskedIn(data) {
    const masked = this.#masked.filter(([, end]) => end <= data.length);
    this.#masked = [];
    return masked;
  }

  toResult() {
    const body = Buffer.concat(this.reads.map(({ data }) => data));
    const sha256 = createHash("sha256").update(body).digest("hex");
    return {
      ...this,
      request: { ...this.request, body: Buffer.concat(this.#bodyPieces) },
      body: { bytes: body.length, sha256 },
    };
  }
}

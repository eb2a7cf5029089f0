// JSON with exact integers. JSON.parse makes a number of 9007199254740993 that is one too small, and
// one of 1.0 that looks like an integer; on a tape the first is a time and the second is damage.

import { Damage } from "./damage.mjs";

const DEEPEST = 64;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const WORDS = Object.entries({ true: true, false: false, null: null });

// The value of a text. Integers are BigInts; what has a fraction or an exponent is a number.
export function parse(text) {
  const parser = new Parser(text);
  const value = parser.value(1);
  parser.skipSpace();
  if (parser.at < text.length) parser.fail();
  return value;
}

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  value(depth) {
    if (depth > DEEPEST) throw new Damage("JSON nested too deep");
    this.skipSpace();
    switch (this.text[this.at]) {
      case "[":
        return this.list(depth);
      case "{":
        return this.object(depth);
      case '"':
        return this.string();
      default:
        return this.wordOrNumber();
    }
  }

  list(depth) {
    const items = [];
    this.at++;
    if (this.take("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.take(","));
    this.expect("]");
    return items;
  }

  object(depth) {
    const object = Object.create(null); // "__proto__" is a key like any other
    this.at++;
    if (this.take("}")) return object;
    do {
      this.skipSpace();
      if (this.text[this.at] !== '"') this.fail();
      const key = this.string();
      this.expect(":");
      object[key] = this.value(depth + 1); // of a key that stands twice the last one counts
    } while (this.take(","));
    this.expect("}");
    return object;
  }

  string() {
    const start = this.at;
    do {
      this.at = this.text.indexOf('"', this.at + 1);
      if (this.at < 0) throw new Damage("a string without an end");
    } while (this.isEscaped());
    this.at++;
    try {
      return JSON.parse(this.text.slice(start, this.at));
    } catch {
      throw new Damage(`no string at character ${start}`);
    }
  }

  isEscaped() {
    let backslashes = 0;
    while (this.text[this.at - 1 - backslashes] === "\\") backslashes++;
    return backslashes % 2 === 1;
  }

  wordOrNumber() {
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (!found) this.fail();
    this.at = NUMBER.lastIndex;
    const [number, fraction, exponent] = found;
    return fraction || exponent ? Number(number) : BigInt(number);
  }

  take(character) {
    this.skipSpace();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  expect(character) {
    if (!this.take(character)) this.fail();
  }

  skipSpace() {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at++;
  }

  fail() {
    throw new Damage(`no JSON at character ${this.at}`);
  }
}

// A value as JSON: BigInts with all their digits, and bytes as a tape has them.
export function print(value) {
  if (typeof value === "bigint") return String(value);
  if (Buffer.isBuffer(value)) return print(bytesToJson(value));
  if (Array.isArray(value)) return `[${value.map(print).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${print(each)}`);
  return `{${members.join(",")}}`;
}

function bytesToJson(bytes) {
  try {
    return decodeUtf8(bytes);
  } catch {
    return { b64: bytes.toString("base64") };
  }
}

// The text of bytes; throws a TypeError where they are none. A byte order mark is kept.
export function decodeUtf8(bytes) {
  return UTF8.decode(bytes);
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

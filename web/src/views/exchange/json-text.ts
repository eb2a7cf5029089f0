// Other ways to look at a text: JSON with line breaks, bytes.

/** A larger text is shown as it is. */
const MOST = 2_000_000;

/** JSON with line breaks and indentation, each of its tokens as it was; other text unchanged. */
export function indented(text: string): string {
  if (text.length > MOST || !/^\s*[[{]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  // JSON.parse would lose double keys and the digits of numbers: the tokens themselves are set.
  const parts: string[] = [];
  let depth = 0;
  const line = () => parts.push(`\n${"  ".repeat(depth)}`);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? [];
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token === "{" || token === "[") {
      parts.push(token);
      if (next === "}" || next === "]") return;
      depth++;
      line();
    } else if (token === "}" || token === "]") {
      const before = tokens[index - 1];
      if (before !== "{" && before !== "[") {
        depth--;
        line();
      }
      parts.push(token);
    } else if (token === ",") {
      parts.push(token);
      line();
    } else if (token === ":") {
      parts.push(": ");
    } else {
      parts.push(token);
    }
  });
  return parts.join("");
}

/** Bytes that are dumped of one text. */
const DUMPED = 65_536;

export const hex = (byte: number) => byte.toString(16).padStart(2, "0");
export const printable = (byte: number) =>
  byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·";

/** The UTF-8 of a text: offset, hexadecimal, ASCII. */
export function hexDump(text: string): string {
  const data = new TextEncoder().encode(text.slice(0, DUMPED));
  const rows = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.subarray(at, at + 16)];
    const left = row.map(hex).join(" ").padEnd(47);
    rows.push(`${at.toString(16).padStart(6, "0")}  ${left}  ${row.map(printable).join("")}`);
  }
  if (text.length > DUMPED) rows.push("…");
  return rows.join("\n");
}

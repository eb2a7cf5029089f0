// Text of a tape: always shown as text, with what one would not see made visible.
import { Fragment } from "preact";

/** Control characters but line ends and tabs, bidi marks, zero-width and tag characters. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;

/** How a hidden character is shown. */
export const named = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

export const isHidden = (character: string) => character.search(HIDDEN) >= 0;

/** `text` as children: hidden characters become visible escapes. */
export function SafeText({ text }: { text: string }) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    parts.push(text.slice(from, match.index));
    parts.push(
      <span key={match.index} class="hidden-character">
        {named(match[0])}
      </span>,
    );
    from = match.index + match[0].length;
  }
  parts.push(text.slice(from));
  return <Fragment>{parts}</Fragment>;
}

/** The same as a string, for attributes and titles. */
export const safe = (text: string) => text.replace(HIDDEN, named);

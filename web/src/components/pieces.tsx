// Text in pieces that are marked: by the call that they came for, by how they differ.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { SafeText } from "./text";

/** A piece of a text; `as` says how it differs, `title` where it came from. */
export interface Piece {
  text: string;
  class?: string | undefined;
  title?: string | undefined;
  as?: "ins" | "del" | "mark" | undefined;
}

const SHOWN = 3000; // characters that are drawn before one asks for more
const MORE = 60_000;

/** The first `most` characters, and those after them. */
function split(pieces: readonly Piece[], most: number): [Piece[], Piece[]] {
  const front: Piece[] = [];
  const rest: Piece[] = [];
  let left = most;
  for (const piece of pieces) {
    const { text } = piece;
    if (left >= text.length) front.push(piece);
    else if (left <= 0) rest.push(piece);
    else {
      front.push({ ...piece, text: text.slice(0, left) });
      rest.push({ ...piece, text: text.slice(left) });
    }
    left -= text.length;
  }
  return [front, rest];
}

/** `pieces` in a row; of a long text its beginning and its end, and a button for more. */
export function Pieces(props: { pieces: readonly Piece[]; none?: string }) {
  const [most, setMost] = useState(SHOWN);
  const whole = props.pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  if (whole === 0 && !props.pieces.some((piece) => piece.as)) {
    return <span class="muted">{props.none ?? "(nothing)"}</span>;
  }
  if (whole <= most) return <Row pieces={props.pieces} />;
  const end = Math.floor(most / 3);
  const [front, rest] = split(props.pieces, most - end);
  const [, tail] = split(rest, whole - most);
  return (
    <>
      <Row pieces={front} />{" "}
      <button type="button" class="more" onClick={() => setMost(most + MORE)}>
        {(whole - most).toLocaleString("en")} more characters
      </button>{" "}
      <Row pieces={tail} />
    </>
  );
}

function Row({ pieces }: { pieces: readonly Piece[] }) {
  return (
    <code class="pieces">
      {pieces.map((piece, at) => (
        <Marked key={`${at}`} piece={piece} />
      ))}
    </code>
  );
}

function Marked({ piece }: { piece: Piece }) {
  const Tag = piece.as ?? "span";
  return (
    <Tag class={piece.class} title={piece.title}>
      <SafeText text={piece.text} />
    </Tag>
  );
}

/** `text` by code points, as the ranges of the documents count. */
export const points = (text: string) => Array.from(text);

const MANY = 50; // items that are drawn before one asks for more
const MORE_ITEMS = 200;

/**
 * Of a few items all, of many the first, and a button for more; those that are `telling` come
 * before others. They stay in their order.
 */
export function Many<T>(props: {
  of: readonly T[];
  what: string;
  telling?: (item: T, at: number) => boolean;
  children: (item: T, at: number) => ComponentChildren;
}) {
  const { of, telling, children } = props;
  const [most, setMost] = useState(MANY);
  if (of.length <= most) return <>{of.map(children)}</>;
  const places = of.map((_, at) => at);
  const tells = (at: number) => telling?.(of[at] as T, at) ?? false;
  const first = [...places.filter(tells), ...places.filter((at) => !tells(at))].slice(0, most);
  first.sort((one, other) => one - other);
  return (
    <>
      {first.map((at) => children(of[at] as T, at))}
      <p>
        <button type="button" class="more" onClick={() => setMost(most + MORE_ITEMS)}>
          {(of.length - most).toLocaleString("en")} more {props.what}
        </button>
      </p>
    </>
  );
}

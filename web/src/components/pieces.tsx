// Text in pieces that are marked: by the call that they came for, by how they differ.
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

/** What `pieces` hold of the first `most` characters. */
function front(pieces: readonly Piece[], most: number): Piece[] {
  const shown = [];
  let left = most;
  for (const piece of pieces) {
    if (left <= 0) break;
    shown.push(piece.text.length > left ? { ...piece, text: piece.text.slice(0, left) } : piece);
    left -= piece.text.length;
  }
  return shown;
}

/** `pieces` in a row; of a long text its beginning, and a button for more. */
export function Pieces(props: { pieces: readonly Piece[]; none?: string }) {
  const [most, setMost] = useState(SHOWN);
  const whole = props.pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  if (whole === 0 && !props.pieces.some((piece) => piece.as)) {
    return <span class="muted">{props.none ?? "(nothing)"}</span>;
  }
  const shown = whole > most ? front(props.pieces, most) : props.pieces;
  return (
    <>
      <code class="pieces">
        {shown.map((piece, at) => {
          const key = `${at}`;
          const text = <SafeText text={piece.text} />;
          const own = { class: piece.class, title: piece.title };
          if (piece.as === "ins") {
            return (
              <ins key={key} {...own}>
                {text}
              </ins>
            );
          }
          if (piece.as === "del") {
            return (
              <del key={key} {...own}>
                {text}
              </del>
            );
          }
          if (piece.as === "mark") {
            return (
              <mark key={key} {...own}>
                {text}
              </mark>
            );
          }
          return (
            <span key={key} {...own}>
              {text}
            </span>
          );
        })}
      </code>
      {whole > most && (
        <button type="button" class="more" onClick={() => setMost(most + MORE)}>
          {(whole - most).toLocaleString("en")} more characters
        </button>
      )}
    </>
  );
}

/** `text` by code points, as the ranges of the documents count. */
export const points = (text: string) => Array.from(text);

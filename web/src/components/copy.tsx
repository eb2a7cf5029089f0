import { useState } from "preact/hooks";
import { safe } from "./text";

/** A command, and a button that copies it. */
export function Command({ text }: { text: string }) {
  const [told, tell] = useState("Copy");
  return (
    <span class="command">
      <code>{safe(text)}</code>
      <button
        type="button"
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => tell("Copied"),
            () => tell("Select it and copy"),
          );
        }}
      >
        <span role="status">{told}</span>
      </button>
    </span>
  );
}

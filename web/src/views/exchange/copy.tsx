// The exchange as something that runs elsewhere.
import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog";
import { SafeText } from "../../components/text";
import type { Ref } from "../../router";
import { source } from "../../source";

const KINDS = [
  ["curl", "curl"],
  ["pytest", "pytest"],
  ["command", "deltatape command"],
] as const;

export function CopyButtons({ of }: { of: Ref }) {
  const [told, setTold] = useState("");
  const [byHand, setByHand] = useState<string | null>(null);
  const copy = async (as: (typeof KINDS)[number][0], name: string) => {
    setTold("");
    let text = "";
    try {
      text = await source.copy(of, as);
      await navigator.clipboard.writeText(text);
      setTold(`Copied as ${name}.`);
    } catch (error) {
      if (text)
        setByHand(text); // the browser forbids the clipboard
      else setTold(String(error instanceof Error ? error.message : error));
    }
  };
  return (
    <fieldset class="copy choice" aria-label="Copy as">
      <span class="muted" role="status">
        {told}
      </span>
      <span aria-hidden="true">Copy as</span>
      {KINDS.map(([as, name]) => (
        <button
          type="button"
          key={as}
          aria-label={`Copy as ${name}`}
          onClick={() => void copy(as, name)}
        >
          {name}
        </button>
      ))}
      {byHand !== null && (
        <Dialog title="Copy this" close={() => setByHand(null)}>
          <pre>
            <SafeText text={byHand} />
          </pre>
        </Dialog>
      )}
    </fieldset>
  );
}

// The keyboard: one table of what keys do now, which its help is made from.
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

export interface Key {
  /** As `KeyboardEvent.key` names it. */
  key: string;
  does: string;
  run: () => void;
}

/** The keys of the views that are shown, the latest last: it wins. */
const layers: { keys: Key[] }[] = [];
export const helpShown = signal(false);

export function keysNow(): Key[] {
  const byKey = new Map<string, Key>();
  for (const layer of layers) for (const key of layer.keys) byKey.set(key.key, key);
  return [...byKey.values()];
}

/** Have these keys as long as the component is shown: at once, or the next press meets old ones. */
export function useKeys(keys: Key[]): void {
  useLayoutEffect(() => {
    const layer = { keys };
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  });
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && helpShown.value) {
    helpShown.value = false;
    return;
  }
  if (typing(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  if (event.key === "?") {
    helpShown.value = !helpShown.value;
    event.preventDefault();
    return;
  }
  // A focused button or link acts on Enter and Space by itself.
  const acts = event.target instanceof Element && event.target.closest("a, button, summary");
  if (acts && (event.key === "Enter" || event.key === " ")) return;
  const key = keysNow().find((each) => each.key === event.key);
  if (key) {
    event.preventDefault();
    key.run();
  }
});

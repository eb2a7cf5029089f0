// A document that comes later: asked for when its key changes, shown when it is there.
import { useEffect, useState } from "preact/hooks";

export type Loaded<T> =
  | { state: "loading"; value: T | null }
  | { state: "failed"; value: null; problem: string }
  | { state: "there"; value: T };

/** Load anew when `key` changes; until then what was there stays as `value`. */
export function useLoaded<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>({ state: "loading", value: null });
  useEffect(() => {
    let current = true;
    set((before) => ({ state: "loading", value: before.value }));
    load().then(
      (value) => current && set({ state: "there", value }),
      (error: unknown) =>
        current &&
        set({
          state: "failed",
          value: null,
          problem: String(error instanceof Error ? error.message : error),
        }),
    );
    return () => {
      current = false;
    };
  }, [key]);
  return loaded;
}

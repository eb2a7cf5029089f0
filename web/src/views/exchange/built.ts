// Calls as a client has them after each step: the changes of the document, put together.
import type { StepsDocument } from "../../schema/steps";

export type Step = StepsDocument["reference"]["steps"][number];

export interface BuiltCall {
  number: number;
  id: string | null;
  name: string | null;
  arguments: string;
  /** What each step added; in code points, with the event that brought it, if that is known. */
  parts: readonly BuiltPart[];
  /** What the last step added, in code points; null: nothing. */
  added: [number, number] | null;
}

export interface BuiltPart {
  range: [number, number];
  event: number | null;
}

interface Entry {
  step: number;
  id: string | null;
  name: string | null;
  /** The text that the arguments are the beginning of; -1: the call is dropped. */
  text: number;
  /** How much of it, in UTF-16 units, and in parts; then the same before the step. */
  length: number;
  parts: number;
  partsBefore: number;
}

const points = (text: string) => (/[\ud800-\udbff]/.test(text) ? [...text].length : text.length);

/** One client's way through the stream; each of its states is found without going through others. */
export class Track {
  private readonly entries = new Map<number, Entry[]>();
  private readonly texts: { text: string; parts: BuiltPart[] }[];

  constructor(
    readonly steps: readonly Step[],
    private readonly unit: "event" | "read",
  ) {
    const texts: { pieces: string[]; parts: BuiltPart[] }[] = [];
    steps.forEach((step, index) => {
      const event = unit === "event" ? this.placeOf(index) : null;
      for (const change of step.calls) {
        const all = this.entries.get(change.call) ?? [];
        this.entries.set(change.call, all);
        const last = all.at(-1);
        const added = change.arguments;
        let { text, length, parts } = last ?? { text: -1, length: 0, parts: 0 };
        let partsBefore = parts;
        if (text < 0 || (added?.from === 0 && length > 0)) {
          text = texts.push({ pieces: [], parts: [] }) - 1;
          [length, parts, partsBefore] = [0, 0, 0];
        }
        const own = texts[text];
        if (own && added?.add) {
          const from = own.parts.at(-1)?.range[1] ?? 0;
          own.pieces.push(added.add);
          own.parts.push({ range: [from, from + points(added.add)], event });
          length += added.add.length;
          parts++;
        }
        all.push({
          step: index,
          id: change.id !== undefined ? change.id : (last?.id ?? null),
          name: change.name !== undefined ? change.name : (last?.name ?? null),
          text,
          length,
          parts,
          partsBefore,
        });
      }
      for (const call of step.dropped ?? []) {
        const all = this.entries.get(call);
        const last = all?.at(-1);
        if (all && last) all.push({ ...last, step: index, text: -1 });
      }
    });
    this.texts = texts.map((each) => ({ text: each.pieces.join(""), parts: each.parts }));
  }

  /** The index of the last step that has been done at an event with its read; -1: none. */
  stepAt(event: number | null, read: number | null): number {
    const wanted = this.unit === "event" ? event : read;
    if (wanted === null) return -1;
    let found = -1;
    for (let low = 0, high = this.steps.length - 1; low <= high; ) {
      const middle = (low + high) >> 1;
      const at = this.placeOf(middle);
      if (at !== null && at <= wanted) {
        found = middle;
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return found;
  }

  /** The number of the event or read of a step; null: the end of the stream. */
  placeOf(index: number): number | null {
    const step = this.steps[index];
    return (this.unit === "event" ? step?.event : step?.read) ?? null;
  }

  after(index: number): BuiltCall[] {
    const calls: BuiltCall[] = [];
    for (const [number, all] of [...this.entries].sort(([one], [other]) => one - other)) {
      const entry = all.findLast((each) => each.step <= index);
      if (!entry || entry.text < 0) continue;
      const text = this.texts[entry.text];
      const parts = text?.parts.slice(0, entry.parts) ?? [];
      const first = parts[entry.partsBefore]?.range[0];
      const end = parts.at(-1)?.range[1];
      calls.push({
        number,
        id: entry.id,
        name: entry.name,
        arguments: text?.text.slice(0, entry.length) ?? "",
        parts,
        added:
          entry.step === index && first !== undefined && end !== undefined ? [first, end] : null,
      });
    }
    return calls;
  }
}

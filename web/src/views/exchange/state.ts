// What is selected in an exchange. It stands in the link, which follows a little later: browsers
// refuse an address that changes with every step of a held key.
import { type Signal, signal } from "@preact/signals";
import { go, type Ref, toExchange } from "../../router";

/** A character of a call's arguments. */
export interface CharacterPlace {
  /** The place of the call among all that are shown. */
  call: number;
  /** In code points of its raw arguments. */
  offset: number;
}

const numbered = (text: string | null) =>
  text !== null && /^\d+$/.test(text) ? Number(text) : null;

function character(text: string | null): CharacterPlace | null {
  const found = /^(\d+):(\d+)$/.exec(text ?? "");
  return found ? { call: Number(found[1]), offset: Number(found[2]) } : null;
}

const QUIET_MS = 250;

export class Selection {
  readonly event: Signal<number | null> = signal(null);
  readonly read: Signal<number | null> = signal(null);
  readonly line: Signal<number | null> = signal(null);
  readonly finding: Signal<string | null> = signal(null);
  readonly char: Signal<CharacterPlace | null> = signal(null);
  readonly tab: Signal<string | null> = signal(null);
  /** The mark of the axis that was selected there: from it the keys go on. */
  readonly mark: Signal<string | null> = signal(null);
  private written = "";
  private waiting: ReturnType<typeof setTimeout> | undefined;

  /** `at`: where the link leads; null: this selection stands in no link. */
  constructor(
    private readonly at: Ref | null,
    query: URLSearchParams,
  ) {
    this.follow(query);
  }

  /** Take what a link says. */
  follow(query: URLSearchParams): void {
    if (query.toString() === this.written) return; // it was written here
    this.written = query.toString();
    this.event.value = numbered(query.get("event"));
    this.read.value = numbered(query.get("read"));
    this.finding.value = query.get("finding");
    this.char.value = character(query.get("char"));
    this.tab.value = query.get("tab");
    this.line.value = null;
  }

  private changed(): void {
    if (!this.at) return;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.write(), QUIET_MS);
  }

  private write(): void {
    if (!this.at) return;
    const query = new URLSearchParams();
    const put = (name: string, value: string | number | null) =>
      value !== null && query.set(name, String(value));
    put("tab", this.tab.value);
    put("finding", this.finding.value);
    put("event", this.event.value);
    if (this.event.value === null) put("read", this.read.value);
    const char = this.char.value;
    if (char) put("char", `${char.call}:${char.offset}`);
    this.written = query.toString();
    go(toExchange(this.at, query), "replace");
  }

  /** Forget to write the link: another page is shown. */
  leave(): void {
    clearTimeout(this.waiting);
  }

  selectEvent(number: number, read: number | null): void {
    this.mark.value = null;
    this.event.value = number;
    this.read.value = read;
    this.line.value = null;
    this.char.value = null;
    this.changed();
  }

  selectRead(number: number, event: number | null): void {
    this.mark.value = null;
    this.read.value = number;
    this.event.value = event;
    this.line.value = null;
    this.char.value = null;
    this.changed();
  }

  selectLine(number: number): void {
    this.mark.value = null;
    this.line.value = number;
    this.changed();
  }

  selectFinding(key: string, event: number | null, read: number | null): void {
    this.mark.value = null;
    this.finding.value = key;
    if (event !== null) this.selectEvent(event, read);
    this.changed();
  }

  selectChar(call: number, offset: number, event: number | null, read: number | null): void {
    this.mark.value = null;
    this.event.value = event;
    this.read.value = read;
    this.line.value = null;
    this.char.value = { call, offset };
    this.changed();
  }

  open(tab: string): void {
    this.tab.value = tab;
    this.changed();
  }
}

// The rows of a list with any number of them: those near what is shown are held, the rest is asked for.
import { signal } from "@preact/signals";
import { type Exchanges, type Row, source } from "./source";
import { keyOf } from "./threads";

const PAGE = 100;
/** How far from what is shown rows are held. */
const NEAR = 3 * PAGE;
/** While rows change, they are asked for again at most this often. */
const PAUSE_MS = 500;

type About = Omit<Exchanges, "rows">;

interface Held {
  row: Row;
  revision: number;
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

export class Rows {
  /** Goes up with every change. */
  readonly changes = signal(0);
  private head: About | null = null;
  private failure: string | null = null;
  /** Told how many rows came in front of those that were there. */
  moved: (by: number) => void = () => {};
  private readonly held = new Map<number, Held>();
  private first = 0;
  private last = 0;
  /** The latest revision that was told. */
  private told = 0;
  /** Rows of older ones are asked for again. Not raised while that goes on: it would never end. */
  private revision = 0;
  private asking = false;
  private closed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly latestFirst: boolean;

  constructor(private readonly query: URLSearchParams) {
    this.latestFirst = query.get("order") === "-at";
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  /** What the latest answer says besides its rows; null: none came yet. */
  get about(): About | null {
    this.changes.value; // who reads it is drawn anew when it changes
    return this.head;
  }

  get problem(): string | null {
    this.changes.value;
    return this.failure;
  }

  at(index: number): Row | undefined {
    return this.held.get(index)?.row;
  }

  /** The held rows that follow each other around an index, and the index of the first. */
  around(index: number): { from: number; rows: Row[] } {
    let from = index;
    while (this.held.has(from - 1)) from--;
    const rows: Row[] = [];
    for (let held = this.held.get(from); held; held = this.held.get(from + rows.length)) {
      rows.push(held.row);
    }
    return { from, rows };
  }

  /** Say which rows are shown: first to last, both included. */
  want(first: number, last: number): void {
    this.first = first;
    this.last = last;
    void this.ask();
  }

  /** Say that rows of older revisions may have changed. */
  renew(revision: number): void {
    this.told = Math.max(this.told, revision);
    if (this.timer === undefined) void this.ask();
  }

  /** Ask for everything anew, such as of a server that was started again. */
  again(): void {
    for (const held of this.held.values()) held.revision = -1;
    this.told = 0;
    this.head = this.head && { ...this.head, revision: -1 };
    void this.ask();
  }

  /** Take rows that are told without being asked for. */
  replace(rows: readonly Row[]): void {
    if (!rows.length) return;
    const told = new Map(rows.map((row) => [keyOf(row), row]));
    let changed = false;
    for (const held of this.held.values()) {
      const row = told.get(keyOf(held.row));
      if (row) {
        held.row = row;
        changed = true;
      }
    }
    if (changed) this.tell();
  }

  /** The page that is asked for next; null: what is shown is there and fresh. */
  private next(): number | null {
    if (this.head === null) return Math.floor(this.first / PAGE);
    const last = Math.min(this.last, this.head.total - 1);
    let stale: number | null = this.head.revision < this.revision ? this.first : null;
    for (let i = this.first; i <= last; i++) {
      const held = this.held.get(i);
      if (!held) return Math.floor(i / PAGE);
      if (stale === null && held.revision < this.revision) stale = i;
    }
    return stale === null ? null : Math.floor(stale / PAGE);
  }

  /** Ask for pages, one after the other: who scrolls fast skips what has gone by. */
  private async ask(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.revision = this.told;
    let renewed = false;
    try {
      for (let page = this.next(); page !== null && !this.closed; page = this.next()) {
        const query = new URLSearchParams(this.query);
        query.set("offset", String(page * PAGE));
        query.set("limit", String(PAGE));
        const answer = await source.exchanges(query);
        if (this.closed) return;
        renewed = true;
        this.take(page * PAGE, answer);
      }
    } catch (error) {
      if (this.closed) return;
      this.failure = error instanceof Error ? error.message : String(error);
      this.tell();
    } finally {
      this.asking = false;
    }
    if (renewed && !this.closed) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        void this.ask();
      }, PAUSE_MS);
    }
  }

  private take(offset: number, answer: Exchanges): void {
    const { rows, ...about } = answer;
    if (this.head && same(this.head.facets, about.facets)) about.facets = this.head.facets;
    const more = this.head ? about.total - this.head.total : 0;
    this.head = about;
    this.failure = null;
    if (more !== 0 && this.latestFirst) this.shift(more);
    for (const index of [...this.held.keys()]) {
      const far = index < this.first - NEAR || index > this.last + NEAR;
      if (far || index >= about.total) this.held.delete(index);
    }
    rows.forEach((row, i) => {
      // What has not changed stays the same object, so that it is not drawn anew.
      const known = this.held.get(offset + i)?.row;
      const held = known && same(known, row) ? known : row;
      this.held.set(offset + i, { row: held, revision: about.revision });
    });
    this.tell();
  }

  private tell(): void {
    this.changes.value = this.changes.peek() + 1; // who tells does not listen
  }

  /** Have the held rows where they are now that others came in front of them. */
  private shift(by: number): void {
    const before = [...this.held];
    this.held.clear();
    for (const [index, held] of before) if (index + by >= 0) this.held.set(index + by, held);
    this.moved(by);
  }
}

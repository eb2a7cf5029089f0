// The rows of a list with any number of them: those near what is shown are held, the rest is asked for.
// Exchanges in progress are in no page: they come with the news, and stand where the latest are.
import { signal } from "@preact/signals";
import { type Exchanges, type LiveNews, type Row, source } from "./source";
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

interface Running {
  row: Row;
  /** It has ended: the revision from which pages have it. */
  until: number | null;
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
  private running: Running[] = [];
  /** How many run, those that the filter leaves out included. */
  private allRunning = 0;
  private readonly latestFirst: boolean;
  private readonly latestLast: boolean;

  constructor(private readonly query: URLSearchParams) {
    this.latestFirst = query.get("order") === "-at";
    this.latestLast = query.get("order") === "at";
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  /** What the latest answer says besides its rows; null: none came yet. */
  get about(): About | null {
    this.changes.value; // who reads it is drawn anew when it changes
    const head = this.head;
    if (head === null) return null;
    const total = head.total + this.running.length;
    return { ...head, total, all: head.all + Math.max(this.allRunning, this.running.length) };
  }

  get problem(): string | null {
    this.changes.value;
    return this.failure;
  }

  at(index: number): Row | undefined {
    const place = index - this.start;
    const running = this.latestLast ? place - (this.head?.total ?? 0) : index;
    return this.running[running]?.row ?? this.held.get(place)?.row;
  }

  /** Where the rows of the pages begin. */
  private get start(): number {
    return this.latestLast ? 0 : this.running.length;
  }

  /** The rows that follow each other around an index, and the index of the first. */
  around(index: number): { from: number; rows: Row[] } {
    let from = index;
    while (from > 0 && this.at(from - 1)) from--;
    const rows: Row[] = [];
    for (let row = this.at(from); row; row = this.at(from + rows.length)) rows.push(row);
    return { from, rows };
  }

  /** Say which rows are shown: first to last, both included. */
  want(first: number, last: number): void {
    this.first = Math.max(0, first - this.start);
    this.last = Math.max(0, last - this.start);
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

  /** Take what runs, as far as the filter leaves it. */
  follow({ running: rows, all_running, revision }: LiveNews): void {
    const keys = new Set(rows.map(keyOf));
    const running: Running[] = rows.map((row) => ({ row, until: null }));
    // What has ended stays until the pages have it: a line must not go and come again.
    for (const before of this.running) {
      if (keys.has(keyOf(before.row))) continue;
      const until = before.until ?? revision;
      if (this.head === null || this.head.revision < until) running.push({ ...before, until });
    }
    const counted = all_running === this.allRunning;
    this.allRunning = all_running;
    this.put(running);
    if (!counted) this.tell();
  }

  private put(running: Running[]): void {
    const order = this.latestLast ? 1 : -1;
    running.sort((a, b) => order * (a.row.at ?? "").localeCompare(b.row.at ?? ""));
    if (same(running, this.running)) return;
    const more = running.length - this.running.length;
    this.running = running;
    if (more !== 0 && !this.latestLast) this.moved(more);
    this.tell();
  }

  /** The page that is asked for next; null: what is shown is there and fresh. */
  private next(asked: ReadonlySet<number>): number | null {
    if (this.head === null) return Math.floor(this.first / PAGE);
    const last = Math.min(this.last, this.head.total - 1);
    const old = [];
    if (this.head.revision < this.revision) old.push(Math.floor(this.first / PAGE));
    for (let i = this.first; i <= last; i++) {
      const held = this.held.get(i);
      const page = Math.floor(i / PAGE);
      if (asked.has(page)) continue; // whatever came: not again before a pause
      if (!held) return page;
      if (held.revision < this.revision) old.push(page);
    }
    return old.find((page) => !asked.has(page)) ?? null;
  }

  /** Ask for pages, one after the other: who scrolls fast skips what has gone by. */
  private async ask(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.revision = this.told;
    const asked = new Set<number>();
    try {
      for (let page = this.next(asked); page !== null && !this.closed; page = this.next(asked)) {
        asked.add(page);
        const query = new URLSearchParams(this.query);
        query.set("offset", String(page * PAGE));
        query.set("limit", String(PAGE));
        const answer = await source.exchanges(query);
        if (this.closed) return;
        this.take(page * PAGE, answer);
      }
    } catch (error) {
      if (this.closed) return;
      this.failure = error instanceof Error ? error.message : String(error);
      this.tell();
      asked.clear(); // not tried again by itself
    } finally {
      this.asking = false;
    }
    if (asked.size && !this.closed) {
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
    const answered = new Set(rows.map(keyOf));
    const running = this.running.filter(
      ({ row, until }) => !answered.has(keyOf(row)) && (until === null || until > about.revision),
    );
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
    this.put(running);
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

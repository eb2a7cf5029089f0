// Where documents come from: the server, or the file that the report is.
import type { Ref } from "./router";
import type { DiffDocument } from "./schema/diff";
import type { ExchangesDocument } from "./schema/exchanges";
import type { LsDocument } from "./schema/ls";
import type { ExchangeDocument } from "./schema/show";
import type { StepsDocument } from "./schema/steps";
import type { TrendsDocument } from "./schema/trends";
import type { WhyDocument } from "./schema/why";

export type Row = ExchangesDocument["exchanges"][number];

/** Exchanges of a page of the overview. */
export interface Exchanges {
  total: number;
  all: number;
  indexed: Indexed;
  revision: number;
  rows: Row[];
  facets: { provider: Facet; model: Facet; code: Facet };
}
export type Facet = Record<string, number>;

/** How many tapes have been read, and how much of all of them. */
export interface Indexed {
  done: number;
  of: number;
  bytes: { done: number; of: number };
}

export interface LiveNews {
  revision: number;
  indexed: Indexed;
  /** Those that the filter leaves. */
  running: Row[];
  all_running: number;
}

export interface Source {
  /** Whether more than one exchange can be looked at. */
  readonly whole: boolean;
  tapes(): Promise<LsDocument>;
  exchanges(query: URLSearchParams): Promise<Exchanges>;
  thread(ref: Ref): Promise<Row[]>;
  trends(query: URLSearchParams): Promise<TrendsDocument>;
  show(ref: Ref, full?: boolean): Promise<ExchangeDocument>;
  why(ref: Ref): Promise<WhyDocument>;
  steps(ref: Ref): Promise<StepsDocument>;
  diff(one: Ref, other: Ref): Promise<DiffDocument>;
  raw(ref: Ref, side: "request" | "response", offset: number, limit: number): Promise<RawBytes>;
  copy(ref: Ref, as: "curl" | "pytest" | "command"): Promise<string>;
  /**
   * Call `take` with each piece of news, `is` with each change of the connection; until the
   * function that is returned is called.
   */
  live(
    filter: URLSearchParams,
    take: (news: LiveNews) => void,
    is: (state: Connection) => void,
  ): () => void;
}

/** refused: the server answers, but not to this page; such as after it was started again. */
export type Connection = "connecting" | "open" | "gone" | "refused";
/** How long to wait before a server is asked again that refused this page. */
const AGAIN_MS = 3000;

export interface RawBytes {
  bytes: Uint8Array;
  total: number;
}

/** What cannot be had, in words for the user. */
export class SourceError extends Error {}

const of = (ref: Ref) => ({ tape: ref.tape, exchange: String(ref.exchange) });

/** How long a document is given out again, unless there is news. */
const SHARED_MS = 500;

class HttpSource implements Source {
  readonly whole = true;
  private readonly asked = new Map<string, Promise<unknown>>();

  private async get(path: string, query: URLSearchParams | Record<string, string> = {}) {
    const search = new URLSearchParams(query).toString();
    let answer: Response;
    try {
      answer = await fetch(search ? `${path}?${search}` : path);
    } catch {
      throw new SourceError("deltatape open does not answer; was it ended? Start it again.");
    }
    if (!answer.ok) {
      const told = (await answer.json().catch(() => ({}))) as { error?: string };
      throw new SourceError(told.error ?? `The server answered with status ${answer.status}.`);
    }
    return answer;
  }

  private async json<T>(path: string, query?: URLSearchParams | Record<string, string>) {
    return (await (await this.get(path, query)).json()) as T;
  }

  /** Parts of one view that ask for the same document at once get the same one. */
  private shared<T>(path: string, query: Record<string, string>): Promise<T> {
    const key = `${path}?${new URLSearchParams(query)}`;
    const asked = this.asked.get(key) as Promise<T> | undefined;
    if (asked) return asked;
    const answer = this.json<T>(path, query);
    this.asked.set(key, answer);
    const forget = () => {
      if (this.asked.get(key) === answer) this.asked.delete(key);
    };
    const later = () => setTimeout(forget, SHARED_MS);
    answer.then(later, later);
    return answer;
  }

  tapes = () => this.json<LsDocument>("/api/tapes");
  exchanges = (query: URLSearchParams) => this.json<Exchanges>("/api/exchanges", query);
  /** The list may not have come to an exchange yet: nothing is known of its conversation. */
  thread = (ref: Ref) =>
    this.json<{ rows: Row[] }>("/api/thread", of(ref)).then(
      (answer) => answer.rows,
      () => [],
    );
  trends = (query: URLSearchParams) => this.json<TrendsDocument>("/api/trends", query);
  show = (ref: Ref, full = false) =>
    this.shared<ExchangeDocument>("/api/show", { ...of(ref), ...(full ? { full: "1" } : {}) });
  why = (ref: Ref) => this.shared<WhyDocument>("/api/why", of(ref));
  steps = (ref: Ref) => this.shared<StepsDocument>("/api/steps", of(ref));
  diff = (one: Ref, other: Ref) =>
    this.json<DiffDocument>("/api/diff", {
      ...of(one),
      other: `${other.tape}#${other.exchange}`,
    });

  async raw(ref: Ref, side: "request" | "response", offset: number, limit: number) {
    const answer = await this.get("/api/raw", {
      ...of(ref),
      side,
      offset: String(offset),
      limit: String(limit),
    });
    const total = Number(answer.headers.get("Content-Range")?.split("/")[1] ?? 0);
    return { bytes: new Uint8Array(await answer.arrayBuffer()), total };
  }

  copy = async (ref: Ref, as: string) => (await this.get("/api/copy", { ...of(ref), as })).text();

  live(
    filter: URLSearchParams,
    take: (news: LiveNews) => void,
    is: (state: Connection) => void,
  ): () => void {
    let events: EventSource;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const open = (query: string) => {
      events = new EventSource(query ? `/api/live?${query}` : "/api/live");
      events.onopen = () => is("open");
      events.onmessage = (event) => {
        const news = JSON.parse(event.data as string) as LiveNews;
        this.asked.clear(); // what was asked for before may be older
        // Without a filter that the server has refused: the list says what is wrong with it.
        take(query === filter.toString() ? news : { ...news, running: [] });
      };
      events.onerror = () => {
        // The browser tries again by itself where nothing answers, but not after a refusal.
        const refused = events.readyState === EventSource.CLOSED;
        if (refused && query) {
          open("");
          return;
        }
        is(refused ? "refused" : "gone");
        if (refused) timer = setTimeout(() => open(filter.toString()), AGAIN_MS);
      };
    };
    open(filter.toString());
    return () => {
      clearTimeout(timer);
      events.close();
    };
  }
}

/** What the report embeds: the documents of the one exchange that it is about. */
export interface Embedded {
  ref: Ref;
  /** Those of its conversation. */
  exchanges: ExchangesDocument;
  show: ExchangeDocument;
  /** The exchange behind it whose response the app read, where that is another one. */
  stream: ExchangeDocument | null;
  why: WhyDocument;
  steps: StepsDocument;
  copies: Record<string, string>;
}

class EmbeddedSource implements Source {
  readonly whole = false;
  constructor(private readonly data: Embedded) {}

  private only<T>(ref: Ref, value: T): Promise<T> {
    const own = this.data.ref;
    if (ref.tape === own.tape && ref.exchange === own.exchange) return Promise.resolve(value);
    return this.not(`This report is about ${own.tape}#${own.exchange} alone.`);
  }

  private not(what: string): Promise<never> {
    return Promise.reject(new SourceError(what));
  }

  tapes = () => this.not("A report has no list of tapes.");
  exchanges = () => this.not("A report is about one exchange.");
  thread = () => Promise.resolve(this.data.exchanges.exchanges);
  trends = () => this.not("A report has no trends.");
  show = (ref: Ref) => {
    const { stream } = this.data;
    const behind = ref.tape === this.data.ref.tape && ref.exchange === stream?.exchange.exchange;
    return stream && behind ? Promise.resolve(stream) : this.only(ref, this.data.show);
  };
  why = (ref: Ref) => this.only(ref, this.data.why);
  steps = (ref: Ref) => this.only(ref, this.data.steps);
  diff = () => this.not("A report holds one exchange; deltatape open compares two.");
  raw = () => this.not("A report holds no raw bytes; deltatape open shows them.");
  copy = (ref: Ref, as: string) => this.only(ref, this.data.copies[as] ?? "");
  live = () => () => {};
}

function made(): { source: Source; start: Ref | null } {
  const element = document.getElementById("deltatape-data");
  if (!element) return { source: new HttpSource(), start: null };
  const data = JSON.parse(element.textContent ?? "") as Embedded;
  return { source: new EmbeddedSource(data), start: data.ref };
}

export const { source, start } = made();

// Where one is: a hash, so that a link works from disk and from the server alike.
import { signal } from "@preact/signals";

/** An exchange: its tape, by the id that the server lists it under, and its number. */
export interface Ref {
  tape: string;
  exchange: number;
}

export type Route =
  | { view: "overview"; query: URLSearchParams }
  | { view: "trends"; query: URLSearchParams }
  | { view: "exchange"; ref: Ref; query: URLSearchParams }
  | { view: "diff"; ref: Ref; other: Ref; query: URLSearchParams }
  | { view: "lost"; hash: string; query: URLSearchParams };

function ref(tape: string | undefined, number: string | undefined): Ref | null {
  const exchange = Number(number);
  if (!tape || !Number.isInteger(exchange) || exchange < 1) return null;
  try {
    return { tape: decodeURIComponent(tape), exchange };
  } catch {
    return null; // not percent-encoded text
  }
}

export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const query = new URLSearchParams(search);
  const parts = path.split("/").filter(Boolean);
  if (parts.length === 0) return { view: "overview", query };
  if (parts[0] === "trends" && parts.length === 1) return { view: "trends", query };
  if (parts[0] === "x" && parts.length === 3) {
    const one = ref(parts[1], parts[2]);
    if (one) return { view: "exchange", ref: one, query };
  }
  if (parts[0] === "diff" && parts.length === 5) {
    const one = ref(parts[1], parts[2]);
    const other = ref(parts[3], parts[4]);
    if (one && other) return { view: "diff", ref: one, other, query };
  }
  return { view: "lost", hash, query };
}

function withQuery(path: string, query?: URLSearchParams | Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return text ? `${path}?${text}` : path;
}

type Query = URLSearchParams | Record<string, string>;

export const toOverview = (query?: Query) => withQuery("#/", query);
export const toTrends = (query?: Query) => withQuery("#/trends", query);
export const toExchange = (to: Ref, query?: Query) =>
  withQuery(`#/x/${encodeURIComponent(to.tape)}/${to.exchange}`, query);
export const toDiff = (one: Ref, other: Ref) =>
  `#/diff/${encodeURIComponent(one.tape)}/${one.exchange}/${encodeURIComponent(other.tape)}/${other.exchange}`;

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

/** Go to a hash, as a new step in the history, or in place of the present one. */
export function go(hash: string, how: "push" | "replace" = "push"): void {
  if (how === "push" && hash !== location.hash) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  route.value = parse(hash); // at once: a key that is pressed next goes on from here
}

// What is recorded at this moment, as the server tells it; one connection for all views.
import { computed, signal } from "@preact/signals";
import { type Connection, type LiveNews, source } from "./source";

/** With the filter that what runs has passed. */
export const news = signal<(LiveNews & { filter: string }) | null>(null);
export const connection = signal<Connection>("connecting");
/** Nothing can be had of the server: the top of the page says why, so that no view need. */
export const away = computed(() => connection.value === "gone" || connection.value === "refused");
/** Goes up each time the server is back, so that views ask anew for what they show. */
export const returns = signal(0);
/** Milliseconds since 1970, a few times a second while something runs. */
export const now = signal(Date.now());

let wasAway = false;
let asked = "";
let leave = listen(new URLSearchParams());

function listen(filter: URLSearchParams): () => void {
  const key = filter.toString();
  return source.live(
    filter,
    (told) => {
      news.value = { ...told, filter: key };
    },
    (state) => {
      connection.value = state;
      if (away.value) wasAway = true;
      if (state === "open" && wasAway) {
        wasAway = false;
        news.value = null; // of a server that counts otherwise
        returns.value += 1;
      }
    },
  );
}

/** Be told of what runs as far as a filter leaves it, as the server filters. */
export function follow(filter: URLSearchParams): void {
  if (filter.toString() === asked) return;
  asked = filter.toString();
  leave();
  leave = listen(filter);
}

setInterval(() => {
  if (news.value?.all_running && !document.hidden) now.value = Date.now();
}, 250);

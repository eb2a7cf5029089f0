// What is recorded at this moment, as the server tells it; one connection for all views.
import { signal } from "@preact/signals";
import { type Connection, type LiveNews, source } from "./source";

export const news = signal<LiveNews | null>(null);
export const connection = signal<Connection>("connecting");
/** Goes up each time the server is back, so that views ask anew for what they show. */
export const returns = signal(0);
/** Milliseconds since 1970, a few times a second while something runs. */
export const now = signal(Date.now());

let away = false;

source.live(
  (told) => {
    news.value = told;
  },
  (state) => {
    connection.value = state;
    if (state === "gone" || state === "refused") away = true;
    if (state === "open" && away) {
      away = false;
      news.value = null; // of a server that counts otherwise
      returns.value += 1;
    }
  },
);

setInterval(() => {
  if (news.value?.running.length && !document.hidden) now.value = Date.now();
}, 250);

import type { Ref } from "../router";

export function ExchangeView(_: { at: Ref; query: URLSearchParams }) {
  return <h1>Exchange</h1>;
}

import type { Ref } from "../router";

export function DiffView(_: { one: Ref; other: Ref }) {
  return <h1>Difference</h1>;
}

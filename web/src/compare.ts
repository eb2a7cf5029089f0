// Two exchanges beside each other: one is chosen on its page, the other in the list.
import { effect, signal } from "@preact/signals";
import { type Ref, route, toDiff, toExchange } from "./router";

/** The exchange that waits for another one; null: none does. */
export const compared = signal<Ref | null>(null);

/** Where choosing an exchange of the list leads. */
export const toChosen = (of: Ref): string =>
  compared.value ? toDiff(compared.value, of) : toExchange(of);

effect(() => {
  if (route.value.view === "diff") compared.value = null;
});

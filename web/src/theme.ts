// Light, dark, or as the system has it; the choice is kept where the browser lets one keep it.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const NAME = "deltatape-theme";

function kept(): Theme {
  try {
    const value = localStorage.getItem(NAME);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // a page from disk may have no storage
  }
}

export const theme = signal<Theme>(kept());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem(NAME, theme.value);
  } catch {
    // see kept()
  }
});

export function nextTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "system";
}

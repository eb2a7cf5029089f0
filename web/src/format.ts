// Numbers as people read them; the same words as in the terminal.

/** `0.000021 s`, `1.25 s`, `2 min 5 s`: a duration in nanoseconds. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "-";
  const s = ns / 1e9;
  if (Math.abs(s) < 0.001) return `${Math.round(ns / 1000)} µs`;
  if (Math.abs(s) < 1) return `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms`;
  if (s < 60) return `${s.toFixed(2)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(s % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** The index of a call's colour, of eight. */
export const hueOf = (index: number) => `call-${((index % 8) + 8) % 8}`;

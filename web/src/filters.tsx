// The filter of the overview and the trends: its state is the query of the hash, so that a link has it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { safe } from "./components/text";
import { useKeys } from "./keys";
import { go } from "./router";
import { CODES } from "./schema/codes";
import type { Exchanges, Facet } from "./source";

const NAMES = ["q", "code", "severity", "provider", "model", "tape", "from", "to"] as const;
export type FilterName = (typeof NAMES)[number];
type ToHash = (query: URLSearchParams) => string;

/** The part of a query that filters. */
export function filterOf(query: URLSearchParams): URLSearchParams {
  const filter = new URLSearchParams();
  for (const name of NAMES) {
    const value = query.get(name);
    if (value) filter.set(name, value);
  }
  return filter;
}

/** `query` with other values; empty ones are left out. */
export function changed(query: URLSearchParams, values: Record<string, string>): URLSearchParams {
  const result = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    if (value) result.set(name, value);
    else result.delete(name);
  }
  return result;
}

export const cleared = (query: URLSearchParams) =>
  changed(query, Object.fromEntries(NAMES.map((name) => [name, ""])));

/** A day of UTC as the two ends of a filter by time. */
export function dayFilter(day: string): { from: string; to: string } {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000);
  return { from: `${day}T00:00:00Z`, to: next.toISOString().replace(".000", "") };
}

const TYPING_MS = 150;

export function FilterBar(props: {
  query: URLSearchParams;
  to: ToHash;
  facets: Exchanges["facets"] | null;
  tapes: readonly string[];
  /** Where Enter in the search leads. */
  into: () => void;
  children?: ComponentChildren;
}) {
  const { query, to, facets } = props;
  const [open, setOpen] = useState(false);
  const first = useRef<HTMLSelectElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const set = (values: Record<string, string>) => go(to(changed(query, values)));
  const count = filterOf(query).size;
  const clear = () => go(to(cleared(query)));
  useKeys([
    { key: "/", does: "Search", run: () => search.current?.focus() },
    {
      key: "f",
      does: "Go to the filters",
      run: () => {
        setOpen(true);
        requestAnimationFrame(() => first.current?.focus());
      },
    },
    { key: "x", does: "Clear the filters", run: clear },
  ]);
  const select = (name: "provider" | "model", any: string) => (
    <Choice
      label={name === "provider" ? "Provider" : "Model"}
      any={any}
      value={query.get(name) ?? ""}
      choose={(value) => set({ [name]: value })}
      options={optionsOf(facets?.[name] ?? {})}
    />
  );
  return (
    <search class={open ? "filters open" : "filters"} aria-label="Filter">
      <div class="filter-line">
        <SearchText query={query} to={to} into={props.into} field={search} />
        <button
          type="button"
          class="filter-toggle"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          Filters{count ? ` (${count})` : ""}
        </button>
      </div>
      <div class="filter-choices">
        <CodeChoice
          field={first}
          value={query.get("code") ?? ""}
          facet={facets?.code ?? {}}
          choose={(code) => set({ code })}
        />
        <Choice
          label="Severity"
          any="Any severity"
          value={query.get("severity") ?? ""}
          choose={(severity) => set({ severity })}
          options={[
            ["error", "Errors"],
            ["warning", "Warnings and errors"],
            ["info", "With a finding"],
          ]}
        />
        {select("provider", "Any provider")}
        {select("model", "Any model")}
        <Choice
          label="Tape"
          any="Any tape"
          value={query.get("tape") ?? ""}
          choose={(tape) => set({ tape })}
          options={props.tapes.map((tape) => [tape, safe(tape)])}
        />
        <TimeChoice query={query} set={set} />
        {props.children}
      </div>
      {count > 0 && (
        <button type="button" onClick={clear}>
          Clear filters
        </button>
      )}
    </search>
  );
}

const optionsOf = (facet: Facet): [string, string][] =>
  Object.entries(facet).map(([value, number]) => [value, `${safe(value)} (${number})`]);

function SearchText(props: {
  query: URLSearchParams;
  to: ToHash;
  into: () => void;
  field: { current: HTMLInputElement | null };
}) {
  const q = props.query.get("q") ?? "";
  const [text, setText] = useState(q);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (timer.current === undefined) setText(q); // changed by a link, not by typing
  }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value: string) => {
    clearTimeout(timer.current);
    timer.current = undefined;
    if (value !== q) go(props.to(changed(props.query, { q: value })), "replace");
  };
  return (
    <input
      type="search"
      class="search-text"
      ref={props.field}
      value={text}
      placeholder="Search tape, model, path, finding, mark"
      aria-label="Search in tape, provider, model, path, finding, ending and mark"
      aria-keyshortcuts="/"
      onInput={(event) => {
        const value = event.currentTarget.value;
        setText(value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => apply(value), TYPING_MS);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter") return;
        apply(event.currentTarget.value);
        props.into();
      }}
    />
  );
}

function Choice(props: {
  label: string;
  any: string;
  value: string;
  options: [string, string][];
  choose: (value: string) => void;
}) {
  const { value, options } = props;
  return (
    <select
      aria-label={props.label}
      class={value ? "set" : undefined}
      value={value}
      onChange={(event) => props.choose(event.currentTarget.value)}
    >
      <option value="">{props.any}</option>
      {value && !options.some(([each]) => each === value) && (
        <option value={value}>{safe(value)}</option>
      )}
      {options.map(([each, label]) => (
        <option key={each} value={each}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** The codes that there are, by their groups; a letter alone chooses a group. */
function CodeChoice(props: {
  field: { current: HTMLSelectElement | null };
  value: string;
  facet: Facet;
  choose: (code: string) => void;
}) {
  const { value, facet } = props;
  const groups = new Map<string, string[]>();
  const shown = new Set([...Object.keys(facet), ...(value.length > 1 ? [value] : [])]);
  if (value.length === 1) groups.set(value, []);
  for (const code of [...shown].sort()) {
    const letter = code.slice(0, 1);
    groups.set(letter, [...(groups.get(letter) ?? []), code]);
  }
  return (
    <select
      ref={props.field}
      aria-label="Finding"
      class={value ? "set" : undefined}
      value={value}
      onChange={(event) => props.choose(event.currentTarget.value)}
    >
      <option value="">Any finding</option>
      {[...groups].map(([letter, codes]) => {
        const group = groupOf(letter);
        return (
          <optgroup key={letter} label={group}>
            <option value={letter}>
              {group}: all ({letter})
            </option>
            {codes.map((code) => (
              <option key={code} value={code}>
                {code} {CODES[code]?.name ?? ""} ({facet[code] ?? 0})
              </option>
            ))}
          </optgroup>
        );
      })}
    </select>
  );
}

const groupOf = (letter: string) =>
  Object.entries(CODES).find(([code]) => code.startsWith(letter))?.[1].group ?? letter;

const PRESETS: [string, string, () => Date][] = [
  ["15m", "The last 15 minutes", () => new Date(Date.now() - 900_000)],
  ["1h", "The last hour", () => new Date(Date.now() - 3_600_000)],
  ["today", "Today", () => new Date(new Date().setHours(0, 0, 0, 0))],
  ["7d", "The last 7 days", () => new Date(Date.now() - 7 * 86_400_000)],
];

function TimeChoice(props: {
  query: URLSearchParams;
  set: (values: Record<string, string>) => void;
}) {
  const from = props.query.get("from") ?? "";
  const to = props.query.get("to") ?? "";
  const [asked, setAsked] = useState(false);
  const shown = asked || Boolean(from || to);
  return (
    <>
      <select
        aria-label="Time"
        class={from || to ? "set" : undefined}
        value={shown ? "from" : ""}
        onChange={(event) => {
          const value = event.currentTarget.value;
          const start = PRESETS.find(([name]) => name === value)?.[2];
          setAsked(value === "from");
          if (start) props.set({ from: utc(start()), to: "" });
          else if (value === "") props.set({ from: "", to: "" });
        }}
      >
        <option value="">Any time</option>
        {PRESETS.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
        <option value="from">From ... to ...</option>
      </select>
      {shown && (
        <span class="times">
          <input
            type="datetime-local"
            step="1"
            aria-label="From"
            value={local(from)}
            onChange={(event) => props.set({ from: utcOf(event.currentTarget.value) })}
          />
          {" to "}
          <input
            type="datetime-local"
            step="1"
            aria-label="To"
            value={local(to)}
            onChange={(event) => props.set({ to: utcOf(event.currentTarget.value) })}
          />
        </span>
      )}
    </>
  );
}

const utc = (date: Date) => date.toISOString().replace(/\.\d+Z$/, "Z");
const utcOf = (value: string) => (value ? utc(new Date(value)) : "");

/** A time of UTC as the value of a field, which has no time zone. */
function local(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

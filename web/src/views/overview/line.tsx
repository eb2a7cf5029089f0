// A line of the list: what it shows of an exchange, and how a duration is drawn.

import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { SafeText, safe } from "../../components/text";
import { duration, plural } from "../../format";
import { now } from "../../live";
import { route, toExchange } from "../../router";
import { CODES } from "../../schema/codes";
import type { Row } from "../../source";
import { Gutter, Marks, type Place } from "../../threads";

export interface Column {
  name: string;
  label: string;
  title?: string;
  /** What the server can order by. */
  order?: string;
}
export const COLUMNS: Column[] = [
  { name: "exchange", label: "Exchange" },
  { name: "at", label: "Time", order: "at" },
  { name: "finding", label: "Worst finding", order: "severity" },
  { name: "model", label: "Model" },
  { name: "dialect", label: "Dialect" },
  { name: "first", label: "First event", title: "Time to the first event", order: "first_event" },
  {
    name: "duration",
    label: "Duration",
    title: "Grey until the first event, coloured from there to the end; a logarithmic scale",
    order: "duration",
  },
  { name: "tokens", label: "Tokens", title: "Tokens: input, output", order: "tokens" },
  { name: "calls", label: "Calls", title: "Tool calls", order: "calls" },
  { name: "ending", label: "Ending" },
];
// Durations on a logarithmic scale, the same for all rows: 10 ms to 10 minutes.
const SHORTEST_NS = 1e7;
const DECADES = Math.log10(6e11 / SHORTEST_NS);
const TICKS: [number, string][] = [
  [1e8, "0.1"],
  [1e9, "1"],
  [1e10, "10"],
  [1e11, "100 s"],
];

/** How far along the scale a duration is, in per cent. */
function along(ns: number): number {
  const part = Math.log10(Math.max(ns, SHORTEST_NS) / SHORTEST_NS) / DECADES;
  return Math.round(Math.min(part, 1) * 1000) / 10;
}

export function Scale() {
  return (
    <span class="scale" aria-hidden="true">
      {TICKS.map(([ns, label]) => (
        <span key={ns} style={{ left: `${along(ns)}%` }}>
          {label}
        </span>
      ))}
    </span>
  );
}

interface LineProps {
  row: Row | undefined;
  /** The row above, whose day need not be said again. */
  before: Row | undefined;
  place: Place | null;
  graph: number;
  down: boolean;
  index: number;
  top: number;
  height: number;
  active: boolean;
  lit: boolean;
  oneTape: boolean;
}

/** Whether nothing has to be drawn anew: the lines of a row are new objects with each page. */
function sameLine(one: LineProps, other: LineProps): boolean {
  for (const name of Object.keys(other) as (keyof LineProps)[]) {
    if (name !== "place" && one[name] !== other[name]) return false;
  }
  return one.place?.drawn === other.place?.drawn;
}

export const RowLine = memo(function RowLine(props: LineProps) {
  const { row, index, height } = props;
  const worst = row?.worst;
  const kind = `${worst ? `found-${worst.severity}` : ""}${row && isOdd(row) ? " odd" : ""}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div
      role="row"
      id={`row-${index}`}
      class={`line ${kind}${props.active ? " active" : ""}${row ? "" : " awaited"}`}
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={props.active}
      style={{ transform: `translateY(${props.top}px)`, height: `${height}px` }}
    >
      {row ? <Cells {...props} row={row} /> : <Cell at={0}>...</Cell>}
    </div>
  );
}, sameLine);

function Cell(props: { at: number; title?: string | undefined; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div
      role="gridcell"
      class={`cell c-${COLUMNS[props.at]?.name}`}
      aria-colindex={props.at + 1}
      title={props.title}
    >
      {props.children}
    </div>
  );
}

/** The name of a tape after its folders, which give way where there is no room. */
function TapeName({ tape }: { tape: string }) {
  const at = tape.lastIndexOf("/") + 1;
  return (
    <>
      {at > 0 && (
        <span class="folder">
          <SafeText text={tape.slice(0, at)} />
        </span>
      )}
      <span class="tape">
        <SafeText text={tape.slice(at).replace(/\.tape$/, "")} />
      </span>
    </>
  );
}

function Cells(props: LineProps & { row: Row }) {
  const { row } = props;
  const full = safe(`${row.tape}#${row.exchange}`);
  return (
    <>
      <Cell at={0} title={`${full}\n${safe(`${row.method} ${row.target}`)}`}>
        {props.place && (
          <Gutter
            row={row}
            place={props.place}
            height={props.height}
            width={props.graph}
            down={props.down}
            lit={props.lit}
          />
        )}
        <a class="name" href={toExchange(row)} tabIndex={-1}>
          {!props.oneTape && <TapeName tape={row.tape} />}
          <span>#{row.exchange}</span>
        </a>
        <Marks row={row} />
      </Cell>
      <Cell at={1} title={row.at ?? undefined}>
        <Time row={row} before={props.before} />
      </Cell>
      <Cell at={2} title={said(row)}>
        <Finding row={row} />
      </Cell>
      <Cell
        at={3}
        title={safe(`${row.provider ?? "unknown provider"}, ${row.model ?? "no model"}`)}
      >
        <SafeText text={row.model ?? "-"} />{" "}
        {row.provider && (
          <span class="provider">
            <SafeText text={row.provider} />
          </span>
        )}
      </Cell>
      <Cell at={4} title={row.dialect ?? undefined}>
        {row.dialect ?? "-"}
      </Cell>
      <Cell at={5}>{duration(row.first_event_ns)}</Cell>
      <Cell at={6} title={timesOf(row)}>
        <Duration row={row} />
      </Cell>
      <Cell at={7}>
        <Tokens tokens={row.tokens} />
      </Cell>
      <Cell at={8}>{row.calls || <span class="muted">0</span>}</Cell>
      <Cell at={9}>
        <Ending row={row} />
      </Cell>
    </>
  );
}

function timesOf(row: Row): string {
  const parts = [];
  if (row.first_event_ns !== null) parts.push(`first event after ${duration(row.first_event_ns)}`);
  if (row.duration_ns !== null) parts.push(`end after ${duration(row.duration_ns)}`);
  if (row.dead_zones) {
    parts.push(`${duration(row.dead_ns)} silent in ${plural(row.dead_zones, "dead zone")}`);
  }
  return parts.join(", ");
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "2-digit" });
const dayOf = (at: string | null | undefined) => (at ? new Date(at).toDateString() : "");

/** The local time; the day where it is another one than above. */
function Time({ row, before }: { row: Row; before: Row | undefined }) {
  if (row.at === null) return <span class="muted">-</span>;
  const at = new Date(row.at);
  const today = new Date();
  const day = at.toDateString();
  const shown = before ? dayOf(before.at) !== day : today.toDateString() !== day;
  const format = at.getFullYear() === today.getFullYear() ? DAY : YEAR;
  return (
    <time dateTime={row.at}>
      {shown && <span class="day">{format.format(at)} </span>}
      {CLOCK.format(at)}
    </time>
  );
}

const SIGNS: Record<string, string> = { error: "✖", warning: "▲", info: "●" };

function Finding({ row }: { row: Row }) {
  const { worst } = row;
  if (!worst) return <Shows row={row} />;
  // What is looked for stands in the line, also where another finding is worse.
  const wanted = route.value.query.get("code") ?? "";
  const also = wanted !== worst.code && row.codes.includes(wanted);
  return (
    <>
      <span class={`sign severity-${worst.severity}`}>
        <span aria-hidden="true">{SIGNS[worst.severity]}</span>
        <span class="unseen">{worst.severity}</span>
      </span>{" "}
      <code>{worst.code}</code> <span class="finding-name">{worst.name}</span>
      {worst.blame && <span class="blame">{worst.blame}</span>}
      {row.dead_ns > 0 && <span class="silent muted">{duration(row.dead_ns)} silent</span>}
      {row.findings > 1 && (
        <span class="muted" title={`${row.findings} findings: ${row.codes.join(", ")}`}>
          +{row.findings - 1}
        </span>
      )}
      {also && <code> {wanted}</code>}
    </>
  );
}

/** Without a finding of its own: what a request shows about an earlier reply, which counts there. */
function Shows({ row }: { row: Row }) {
  const shown = row.shows[0];
  if (!shown) return <span class="muted">{row.open ? "none so far" : "none"}</span>;
  const more = row.shows.length - 1;
  return (
    <>
      <span class="muted">
        shows <code>{shown.code}</code> of #{shown.exchange}
        {more > 0 && ` +${more}`}
      </span>
      {shown.blame && <span class="blame">{shown.blame}</span>}
    </>
  );
}

/** What a finding says; where it counts for another exchange, for which. */
function said(row: Row): string | undefined {
  if (row.worst) return CODES[row.worst.code]?.says;
  const shown = row.shows.map((each) => {
    const says = CODES[each.code]?.says ?? "";
    return `${each.code} ${each.name}, counted for #${each.exchange}: ${says}`;
  });
  return shown.join("\n") || undefined;
}

function Duration({ row }: { row: Row }) {
  const first = row.first_event_ns;
  if (row.open && row.at !== null) return <Elapsed row={row} since={Date.parse(row.at)} />;
  return (
    <>
      <span class="number">{duration(row.duration_ns)}</span>
      <Bar first={first} end={row.duration_ns ?? first} running={false} />
    </>
  );
}

/** An exchange that runs: what has passed by the clock of the page. */
function Elapsed({ row, since }: { row: Row; since: number }) {
  const passed = Math.max(0, now.value - since) * 1e6;
  return (
    <>
      <span class="number">{duration(passed)}</span>
      <Bar first={row.first_event_ns} end={passed} running />
    </>
  );
}

/** Until the first event, and from it to the end. */
function Bar(props: { first: number | null; end: number | null; running: boolean }) {
  if (props.end === null) return <span class="timing" />;
  const end = along(props.end);
  const first = props.first === null ? end : Math.min(along(props.first), end);
  return (
    <span class={props.running ? "timing running" : "timing"} aria-hidden="true">
      <span class="waited" style={{ width: `${first}%` }} />
      <span class="streamed" style={{ left: `${first}%`, width: `${end - first}%` }} />
      {props.first !== null && <span class="first-event" style={{ left: `${first}%` }} />}
    </span>
  );
}

function Tokens({ tokens }: { tokens: Row["tokens"] }) {
  if (!tokens) return <span class="muted">-</span>;
  return (
    <>
      {short(tokens.input)}
      <span aria-hidden="true"> → </span>
      <span class="unseen"> in, </span>
      {short(tokens.output)}
      <span class="unseen"> out</span>
    </>
  );
}

function short(count: number | null): string {
  if (count === null) return "?";
  if (count < 1000) return String(count);
  return count < 1e6
    ? `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`
    : `${(count / 1e6).toFixed(1)}M`;
}

const refusal = (row: Row) => (row.status !== null && row.status >= 400 ? row.status : null);
/** Whether the ending is worth a look by itself. */
const isOdd = (row: Row) => row.open || row.ending !== "complete" || refusal(row) !== null;

function Ending({ row }: { row: Row }) {
  if (row.open) {
    return (
      <span class="recording">
        <span class="pulse" aria-hidden="true" /> running
      </span>
    );
  }
  const odd = isOdd(row);
  const ending = row.ending?.replaceAll("_", " ") ?? "unknown";
  const status = refusal(row);
  return (
    <span class={odd ? "severity-warning" : "muted"} title={status === null ? ending : undefined}>
      {status !== null ? `HTTP ${status}` : odd ? ending : <Complete finish={row.finish} />}
    </span>
  );
}

/** What the provider says about a complete reply tells more than that it is complete. */
function Complete({ finish }: { finish: string | null }) {
  if (finish === null) return <>complete</>;
  return (
    <>
      <span aria-hidden="true">✓</span>
      <span class="unseen">complete,</span> <SafeText text={finish} />
    </>
  );
}

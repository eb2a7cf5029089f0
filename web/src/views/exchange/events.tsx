// All events of the response, and what one of them says.
import { useMemo, useRef, useState } from "preact/hooks";
import { Code, Severity } from "../../components/badge";
import { LongText } from "../../components/long-text";
import { SafeText, safe } from "../../components/text";
import { bytes, duration, plural } from "../../format";
import { useKeys } from "../../keys";
import { type Contribution, type Documents, type Event, phaseName } from "./documents";
import { type Column, Grid } from "./grid";
import { hexDump, indented } from "./json-text";
import type { Selection } from "./state";

export interface TabProps {
  docs: Documents;
  at: Selection;
}

const size = (event: Event) => event.span[1] - event.span[0];

/** How long after the previous event it came; null: unknown. */
function gap(docs: Documents, event: Event): number | null {
  const before = docs.event(event.event - 1);
  if (event.t_ns === null) return null;
  if (!before) return docs.show.axis.sent_ns === null ? null : event.t_ns - docs.show.axis.sent_ns;
  return before.t_ns === null ? null : event.t_ns - before.t_ns;
}

const LONG_NS = 1e9;

export function EventsTab({ docs, at }: TabProps) {
  const [wanted, setWanted] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useKeys([{ key: "/", does: "Search the events", run: () => field.current?.focus() }]);
  const { events } = docs.show;
  const rows = useMemo(() => {
    const low = wanted.toLowerCase();
    return low
      ? events.filter((each) =>
          `${each.type}\n${each.new}\n${each.data}`.toLowerCase().includes(low),
        )
      : events;
  }, [events, wanted]);
  const selected = at.event.value;
  const index = useMemo(() => rows.findIndex((each) => each.event === selected), [rows, selected]);
  const origin = docs.show.axis.request_ns;
  const typed = events.some((each) => each.type !== "message");
  const found = useMemo(() => {
    const own = docs.why.findings.filter((each) => each.exchange === docs.show.exchange.exchange);
    return new Map(own.toReversed().map((each) => [each.event, each])); // the worst one stays
  }, [docs]);
  const flag = (event: Event) => {
    const finding = found.get(event.event);
    if (!finding) return null;
    return (
      <strong class={`severity-${finding.severity}`} title={safe(finding.message)}>
        ⚑ {finding.code}{" "}
      </strong>
    );
  };
  const columns: Column<Event>[] = [
    { title: "event", width: "3.5rem", class: "number", cell: (each) => each.event },
    {
      title: "time",
      width: "5.5rem",
      class: "number",
      cell: (each) => (each.t_ns === null || origin === null ? "-" : duration(each.t_ns - origin)),
    },
    {
      title: "after",
      width: "5rem",
      from: 620,
      class: "number",
      cell: (each) => {
        const ns = gap(docs, each);
        if (ns === null) return "-";
        const text = duration(ns);
        return ns >= LONG_NS ? <strong class="severity-warning">{text}</strong> : text;
      },
    },
    {
      title: "read",
      width: "3.5rem",
      from: 740,
      class: "number",
      cell: (each) => each.read ?? "-",
    },
    { title: "bytes", width: "4.5rem", from: 740, class: "number", cell: size },
    ...(typed
      ? [
          {
            title: "type",
            width: "minmax(8rem, 16rem)",
            from: 860,
            cell: (each: Event) => <SafeText text={each.type} />,
          },
        ]
      : []),
    {
      title: "what is new",
      width: "minmax(8rem, 1fr)",
      cell: (each) => (
        <>
          {flag(each)}
          <span class={`mono ${docs.callOf(each)?.hue ?? ""}`}>
            <SafeText text={each.new.slice(0, 300)} />
          </span>
        </>
      ),
    },
  ];
  const shown = docs.event(selected);
  return (
    <div class="split">
      <div class="split-list">
        <label class="search">
          Search{" "}
          <input
            ref={field}
            type="search"
            value={wanted}
            onInput={(event) => setWanted(event.currentTarget.value)}
          />{" "}
          <span class="muted" role="status">
            {wanted ? `${rows.length} of ` : ""}
            {plural(events.length, "event")}
          </span>
        </label>
        <Grid
          label="Events"
          rows={rows}
          columns={columns}
          selected={index}
          none={
            wanted
              ? "No event contains this text."
              : "The response has no events: see Request and Raw."
          }
          onSelect={(row) => {
            const event = rows[row];
            if (event) at.selectEvent(event.event, event.read);
          }}
        />
      </div>
      <section class="split-detail" aria-label="The selected event" aria-live="polite">
        {shown ? (
          <EventDetail docs={docs} at={at} event={shown} />
        ) : (
          <p class="muted">
            Select an event: click it here or on the axis, or press <kbd>j</kbd>.
          </p>
        )}
      </section>
    </div>
  );
}

function EventDetail({ docs, at, event }: TabProps & { event: Event }) {
  const [as, setAs] = useState<"decoded" | "raw" | "hex">("decoded");
  const origin = docs.show.axis.request_ns;
  const after = gap(docs, event);
  const zone = docs.show.axis.dead_zones.find((each) => each.event === event.event);
  const findings = docs.why.findings.filter(
    (each) => each.event === event.event && each.exchange === docs.show.exchange.exchange,
  );
  const decoded = useMemo(() => indented(event.data), [event.data]);
  const text = as === "decoded" ? decoded : as === "hex" ? hexDump(event.data) : event.data;
  const cut = (event as { cut?: { data?: { bytes: number } } }).cut?.data;
  return (
    <>
      <h2>
        Event {event.event}{" "}
        <span class="muted mono">
          <SafeText text={event.type} />
        </span>
      </h2>
      <dl class="facts">
        <div>
          <dt>time</dt>
          <dd>
            {event.t_ns === null || origin === null
              ? "not recorded"
              : `${duration(event.t_ns - origin)} after the request`}
            {after !== null && event.event > 0 ? `, ${duration(after)} after the event before` : ""}
          </dd>
        </div>
        <div>
          <dt>read</dt>
          <dd>{readOf(event)}</dd>
        </div>
        <div>
          <dt>bytes</dt>
          <dd>
            {event.span[0].toLocaleString("en")} to {event.span[1].toLocaleString("en")} of the body
            ({bytes(size(event))})
          </dd>
        </div>
        {event.line !== null && (
          <div>
            <dt>tape line</dt>
            <dd>{event.line}</dd>
          </div>
        )}
        {event.id && (
          <div>
            <dt>event id</dt>
            <dd class="mono">
              <SafeText text={event.id} />
            </dd>
          </div>
        )}
      </dl>
      {zone && (
        <p class="severity-error">
          Then nothing came for {duration(zone.to_ns - zone.from_ns)}, {phaseName(zone.phase)}
          {zone.code ? ` (${zone.code})` : ""}.
        </p>
      )}
      {findings.map((each) => (
        <p key={each.code + each.message}>
          <Severity is={each.severity} /> <Code code={each.code} name={each.name} />:{" "}
          <SafeText text={each.message} />{" "}
          <button
            type="button"
            onClick={() => {
              at.selectFinding(docs.findingKey(each), each.event, event.read);
              at.open("findings");
            }}
          >
            Show the finding
          </button>
        </p>
      ))}
      <ul class="brings">
        {event.brings.map((each, index) => (
          <li key={index}>
            <Brought docs={docs} at={at} event={event} brings={each} />
          </li>
        ))}
        {event.brings.length === 0 && <li class="muted">It brings nothing of the reply.</li>}
      </ul>
      <fieldset class="choice" aria-label="Show the data as">
        {(["decoded", "raw", "hex"] as const).map((each) => (
          <button type="button" key={each} aria-pressed={as === each} onClick={() => setAs(each)}>
            {each}
          </button>
        ))}
      </fieldset>
      <LongText label={`Data of event ${event.event}, ${as}`} text={text} />
      {cut && (
        <p class="muted">The beginning of {bytes(cut.bytes)}; load the whole exchange above.</p>
      )}
    </>
  );
}

function readOf(event: Event): string {
  if (event.read === null) return "not known";
  if (event.first_read === null || event.first_read === event.read) return `read ${event.read}`;
  return `begins in read ${event.first_read}, complete with read ${event.read}`;
}

function Brought(props: TabProps & { event: Event; brings: Contribution }) {
  const { docs, at, event, brings } = props;
  const { call: reference, range } = brings;
  const call =
    reference &&
    docs.calls.find(
      (each) =>
        each.list === reference.list &&
        each.call.choice === reference.choice &&
        each.call.index === reference.index,
    );
  const text = (
    <code>
      <SafeText text={brings.text.slice(0, 400)} />
      {brings.text.length > 400 ? "…" : ""}
    </code>
  );
  if (!call) {
    return (
      <>
        {brings.what}: {text}
      </>
    );
  }
  return (
    <>
      <strong class={call.hue}>
        {call.label} <SafeText text={call.call.name ?? "(no name)"} />
      </strong>
      {": "}
      {brings.what} {text}{" "}
      {range && range[1] > range[0] && (
        <button
          type="button"
          onClick={() => {
            at.selectChar(call.place, range[0], event.event, event.read);
            at.open("calls");
          }}
        >
          {range[1] - range[0] === 1
            ? `Show character ${range[0]}`
            : `Show characters ${range[0]} to ${range[1] - 1}`}
        </button>
      )}
    </>
  );
}

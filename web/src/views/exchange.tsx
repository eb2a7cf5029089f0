// One exchange: when what happened, and every part of it.
import { effect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { compared } from "../compare";
import { Severity } from "../components/badge";
import { Progress, Shown } from "../components/states";
import { SafeText, safe } from "../components/text";
import { type Mark, TimeAxis } from "../components/time-axis";
import { bytes, duration, plural } from "../format";
import { useKeys } from "../keys";
import { news } from "../live";
import { useLoaded } from "../load";
import { go, type Ref, toExchange, toOverview } from "../router";
import { source } from "../source";
import { Also, BugView } from "./bug";
import { CallsTab } from "./exchange/calls";
import { CopyButtons } from "./exchange/copy";
import { type Documents, documents } from "./exchange/documents";
import { EventsTab } from "./exchange/events";
import { FindingsTab } from "./exchange/findings";
import { FramesTab } from "./exchange/frames";
import { LogTab } from "./exchange/log";
import { RawTab } from "./exchange/raw";
import { RequestTab } from "./exchange/request";
import { Selection } from "./exchange/state";
import { TravelTab } from "./exchange/travel";

export function ExchangeView({ at, query }: { at: Ref; query: URLSearchParams }) {
  // Another exchange is another page: nothing of the one before stays.
  return <OneExchange key={`${at.tape}#${at.exchange}`} of={at} query={query} />;
}

function OneExchange({ of, query }: { of: Ref; query: URLSearchParams }) {
  const [full, setFull] = useState(false);
  const [revision, setRevision] = useState(0);
  const loaded = useLoaded(`${full}:${revision}`, async () => {
    const [show, why] = await Promise.all([source.show(of, full), source.why(of)]);
    return documents(show, why);
  });
  const selection = useMemo(() => new Selection(of, query), []);
  useEffect(() => selection.follow(query), [query]);
  useEffect(() => () => selection.leave(), []);
  // An exchange that is still going on is drawn again when more of it is on the tape.
  const open = loaded.value?.show.exchange.open ?? false;
  useEffect(() => {
    if (open) return effect(() => setRevision(news.value?.revision ?? 0));
  }, [open]);
  return (
    <Shown of={loaded} what="the exchange">
      {(docs) => (
        <Parts
          docs={docs}
          at={selection}
          of={of}
          full={full}
          loading={loaded.state === "loading"}
          loadAll={() => setFull(true)}
        />
      )}
    </Shown>
  );
}

interface PartsProps {
  docs: Documents;
  at: Selection;
  of: Ref;
  full: boolean;
  loading: boolean;
  loadAll: () => void;
}

interface Tab {
  id: string;
  name: string;
  count?: number;
  draw: () => ComponentChildren;
}

function tabsOf({ docs, at, of }: PartsProps): Tab[] {
  const { show, why } = docs;
  const tabs: (Tab | false)[] = [
    {
      id: "bug",
      name: why.verdict.kind === "blamed" ? "Bug" : "Verdict",
      draw: () => <BugView at={of} show={show} why={why} />,
    },
    {
      id: "events",
      name: "Events",
      count: countOf(show, "events"),
      draw: () => <EventsTab docs={docs} at={at} />,
    },
    {
      id: "calls",
      name: "Calls and text",
      count: docs.calls.length,
      draw: () => <CallsTab docs={docs} at={at} />,
    },
    { id: "travel", name: "Time travel", draw: () => <TravelTab docs={docs} at={at} of={of} /> },
    source.whole &&
      show.frames.length === 0 && {
        id: "raw",
        name: "Raw",
        draw: () => <RawTab docs={docs} at={at} of={of} />,
      },
    show.frames.length > 0 && {
      id: "frames",
      name: "Frames",
      count: countOf(show, "frames"),
      draw: () => <FramesTab docs={docs} at={at} />,
    },
    { id: "request", name: "Request", draw: () => <RequestTab docs={docs} at={at} /> },
    {
      id: "log",
      name: "Log",
      count: show.log.length,
      draw: () => <LogTab docs={docs} at={at} />,
    },
    {
      id: "findings",
      name: "Findings",
      count: why.findings.length,
      draw: () => <FindingsTab docs={docs} at={at} of={of} />,
    },
  ];
  return tabs.filter((each): each is Tab => each !== false);
}

function Parts(props: PartsProps) {
  const { docs, at, of } = props;
  const tabs = tabsOf(props);
  const asked = at.tab.value ?? (at.finding.value ? "findings" : at.char.value ? "calls" : null);
  const fallback = at.event.value !== null ? "events" : (tabs[0]?.id ?? "events");
  const tab = tabs.find((each) => each.id === asked) ?? tabs.find((each) => each.id === fallback);
  const shown = tab ?? (tabs[0] as Tab);
  const index = tabs.indexOf(shown);
  const openAt = (place: number) => {
    const next = tabs[(place + tabs.length) % tabs.length];
    if (next) at.open(next.id);
  };
  useLinkedFinding(docs, at);

  const step = (by: number) => {
    if (shown.id === "frames") {
      const next = clamp((at.read.value ?? (by > 0 ? -1 : 1)) + by, docs.show.frames.length);
      at.selectRead(next, docs.completedBy(next).at(-1)?.event ?? null);
    } else if (shown.id === "log") {
      at.selectLine(clamp((at.line.value ?? (by > 0 ? -1 : 1)) + by, docs.show.log.length));
    } else if (shown.id === "findings") {
      stepFinding(docs, at, by);
    } else if (docs.show.events.length) {
      const { events } = docs.show;
      const now = events.findIndex((each) => each.event === at.event.value);
      const event = events[clamp(now < 0 && by < 0 ? 0 : now + by, events.length)];
      if (event) at.selectEvent(event.event, event.read);
    }
  };
  useKeys([
    { key: "j", does: "Select the next event, frame, line or finding", run: () => step(1) },
    { key: "k", does: "Select the previous one", run: () => step(-1) },
    { key: "n", does: "Show the next finding", run: () => stepFinding(docs, at, 1) },
    { key: "p", does: "Show the previous finding", run: () => stepFinding(docs, at, -1) },
    { key: "]", does: "Show the next part of the exchange", run: () => openAt(index + 1) },
    { key: "[", does: "Show the part before", run: () => openAt(index - 1) },
    { key: "c", does: "Compare it with another", run: () => source.whole && compareWith(of) },
    {
      key: "a",
      does: "Go to the time axis",
      run: () => document.querySelector<HTMLElement>(".axis-plot")?.focus(),
    },
  ]);
  const cut = useMemo(() => hasCut(docs.show), [docs]);
  return (
    <div class="exchange">
      <Head docs={docs} at={at} of={of} inBug={shown.id === "bug"} />
      {cut && props.full && props.loading && <Progress what="Loading all of the exchange" />}
      {cut && !props.full && (
        <p class="cut" role="status">
          This exchange is long: the page has the beginning of its longest texts and lists.{" "}
          {source.whole ? (
            <button type="button" onClick={props.loadAll}>
              Load all of it
            </button>
          ) : (
            "deltatape open shows all of it."
          )}
        </p>
      )}
      <TimeAxis
        label="Time axis"
        {...docs.axis}
        selected={selectedMarks(at)}
        onSelect={(mark) => selectMark(docs, at, mark)}
      />
      <Tabs tabs={tabs} shown={shown} open={(id) => at.open(id)} />
      <div
        role="tabpanel"
        id="exchange-part"
        aria-labelledby={`exchange-tab-${shown.id}`}
        tabIndex={-1}
        class="exchange-part"
      >
        {shown.draw()}
      </div>
    </div>
  );
}

const clamp = (index: number, length: number) =>
  Math.min(Math.max(0, index), Math.max(0, length - 1));

/** How many there are, also where the server left away the rest of them. */
function countOf(show: Documents["show"], list: "events" | "frames"): number {
  const { cut } = show as { cut?: Record<string, { items?: number }> };
  return cut?.[list]?.items ?? show[list].length;
}

/** Whether the server left the rest of anything away. */
const hasCut = (show: Documents["show"]): boolean => {
  const parts: unknown[] = [show, show.request, ...show.calls, ...show.server_calls];
  parts.push(...show.text_calls, ...show.text, ...show.events, ...show.request.messages);
  return parts.some((each) => each !== null && typeof each === "object" && "cut" in each);
};

/** A link to a finding alone also selects its event. */
function useLinkedFinding(docs: Documents, at: Selection) {
  useEffect(() => {
    const finding = docs.finding(at.finding.value);
    const here = finding?.exchange === docs.show.exchange.exchange;
    const event = here && at.event.value === null ? docs.event(finding?.event) : undefined;
    if (event) {
      at.event.value = event.event;
      at.read.value = event.read;
    }
    const char = at.char.value;
    if (char && at.event.value === null) {
      const parts =
        docs.calls[char.call]?.call.fragments ??
        docs.show.text[char.call - docs.calls.length]?.fragments ??
        [];
      const part = parts.find(
        (each) => char.offset >= each.range[0] && char.offset < each.range[1],
      );
      const brought = docs.event(part?.event);
      if (brought) {
        at.event.value = brought.event;
        at.read.value = brought.read;
      }
    }
    if (at.event.value !== null && at.read.value === null) {
      at.read.value = docs.event(at.event.value)?.read ?? null;
    }
  }, [docs]);
}

function stepFinding(docs: Documents, at: Selection, by: number) {
  const { findings } = docs.why;
  if (!findings.length) return;
  const now = findings.findIndex((each) => docs.findingKey(each) === at.finding.value);
  const finding = findings[(now + by + findings.length) % findings.length];
  if (!finding) return;
  const here = finding.exchange === docs.show.exchange.exchange;
  const event = here ? docs.event(finding.event) : undefined;
  at.selectFinding(docs.findingKey(finding), event?.event ?? null, event?.read ?? null);
  at.open("findings");
}

function selectedMarks(at: Selection): string[] {
  const marks = [];
  if (at.mark.value !== null) marks.push(at.mark.value);
  if (at.line.value !== null) marks.push(`log:${at.line.value}`);
  if (at.event.value !== null) marks.push(`event:${at.event.value}`);
  if (at.read.value !== null) marks.push(`read:${at.read.value}`, `frame:${at.read.value}`);
  if (at.finding.value !== null) marks.push(`finding:${at.finding.value}`);
  return [...new Set(marks)];
}

function selectMark(docs: Documents, at: Selection, mark: Mark) {
  const [kind, ...rest] = mark.key.split(":");
  const key = rest.join(":");
  const number = Number(key);
  if (kind === "event") {
    at.selectEvent(number, docs.event(number)?.read ?? null);
  } else if (kind === "read" || kind === "frame") {
    at.selectRead(number, docs.completedBy(number).at(-1)?.event ?? null);
  } else if (kind === "delivered") {
    const read = docs.show.delivered[number]?.read;
    if (read !== null && read !== undefined) {
      at.selectRead(read, docs.completedBy(read).at(-1)?.event ?? null);
    }
  } else if (kind === "log") {
    at.selectLine(number);
  } else if (kind === "finding") {
    const finding = docs.finding(key);
    const event = docs.event(finding?.event);
    at.selectFinding(key, event?.event ?? null, event?.read ?? null);
    at.open("findings");
  }
  at.mark.value = mark.key;
}

function Tabs(props: { tabs: Tab[]; shown: Tab; open: (id: string) => void }) {
  const { tabs, shown, open } = props;
  const list = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent) => {
    const now = tabs.indexOf(shown);
    const places: Record<string, number> = {
      ArrowLeft: (now - 1 + tabs.length) % tabs.length,
      ArrowRight: (now + 1) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    };
    const next = tabs[places[event.key] ?? -1];
    if (!next) return;
    event.preventDefault();
    open(next.id);
    list.current?.querySelector<HTMLElement>(`#exchange-tab-${next.id}`)?.focus();
  };
  return (
    <div
      ref={list}
      class="tabs"
      role="tablist"
      aria-label="Parts of the exchange"
      onKeyDown={press}
    >
      {tabs.map((each) => (
        <button
          type="button"
          key={each.id}
          id={`exchange-tab-${each.id}`}
          role="tab"
          aria-selected={each === shown}
          aria-controls="exchange-part"
          tabIndex={each === shown ? 0 : -1}
          onClick={() => open(each.id)}
        >
          {each.name}
          {each.count !== undefined && (
            <span class="muted"> {each.count.toLocaleString("en")}</span>
          )}
        </button>
      ))}
    </div>
  );
}

function Head(props: {
  docs: Documents;
  at: Selection;
  of: Ref;
  /** The view of the bug is shown, which begins with the verdict. */
  inBug: boolean;
}) {
  const { docs, at, of } = props;
  const { show, why } = docs;
  const { exchange, recording, response, reply } = show;
  const { verdict } = why;
  const worst = why.findings[0];
  const finish = reply.finishes
    .map((each) => each.reason)
    .filter((each): each is string => typeof each === "string");
  return (
    <header class="exchange-head">
      <div class="exchange-title">
        <h1>
          {source.whole && (
            <>
              <a href={toOverview({ tape: of.tape })}>
                <SafeText text={of.tape} />
              </a>
              #{of.exchange}
            </>
          )}
          {!source.whole && <SafeText text={`${of.tape}#${of.exchange}`} />}
        </h1>
        {!show.exchange.open && <Conversation of={of} />}
        <div class="exchange-tools">
          {source.whole && (
            <button type="button" onClick={() => compareWith(of)}>
              Compare with …
            </button>
          )}
          <CopyButtons of={of} />
        </div>
      </div>
      <dl class="facts facts-row">
        <Fact name="model">
          <SafeText text={exchange.model ?? "not named"} />
        </Fact>
        <Fact name="dialect">{reply.dialect}</Fact>
        <Fact name="status">
          {response ? (
            <span class={response.status >= 400 ? "severity-error" : ""}>{response.status}</span>
          ) : (
            "no response"
          )}
        </Fact>
        <Fact name="took">{exchange.open ? "still going on" : duration(exchange.duration_ns)}</Fact>
        <Fact name="first event after">{duration(exchange.first_event_ns)}</Fact>
        <Fact name="events">{countOf(show, "events").toLocaleString("en")}</Fact>
        <Fact name="body">{bytes(response?.bytes ?? 0)}</Fact>
        {finish.length > 0 && (
          <Fact name="finish">
            <SafeText text={finish.join(", ")} />
          </Fact>
        )}
        {exchange.tokens && (
          <Fact name="tokens">
            {exchange.tokens.input ?? "?"} in, {exchange.tokens.output ?? "?"} out
          </Fact>
        )}
        {exchange.ending !== "complete" && (
          <Fact name="ending">
            <SafeText text={recording.ended || "not on the tape"} />
          </Fact>
        )}
      </dl>
      {!props.inBug && (
        <div class={`verdict verdict-${verdict.kind} ${worst ? `severity-${worst.severity}` : ""}`}>
          <p class="verdict-text" title={safe(verdict.summary)}>
            {worst && verdict.kind !== "healthy" && (
              <>
                <Severity is={worst.severity} />{" "}
              </>
            )}
            <strong>
              <SafeText text={verdict.shown} />
              <Also why={why} />
            </strong>
            {": "}
            <SafeText text={why.conclusion.what.join("; ")} />
          </p>
          <button type="button" class="link" onClick={() => at.open("bug")}>
            {verdict.kind === "blamed" ? "See the bug" : "See why"}
          </button>
        </div>
      )}
    </header>
  );
}

/** Go to the list, where the exchange to compare with is chosen. */
function compareWith(of: Ref) {
  compared.value = of;
  go(toOverview());
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The other exchanges of the conversation: to the one before and the one after. */
function Conversation({ of }: { of: Ref }) {
  const [revision, setRevision] = useState(0);
  const loaded = useLoaded(`${of.tape}#${of.exchange} ${revision}`, () => source.thread(of));
  const missing = loaded.state === "failed"; // the list may not have come to it yet
  useEffect(() => {
    if (missing) return effect(() => setRevision(news.value?.revision ?? 0));
  }, [missing]);
  if (!source.whole || !loaded.value || loaded.value.length < 2) return null;
  const rows = loaded.value;
  const now = rows.findIndex((each) => each.exchange === of.exchange);
  const before = rows[now - 1];
  const after = rows[now + 1];
  return (
    <nav aria-label="Conversation" class="conversation">
      {before && (
        <a href={toExchange({ tape: before.tape, exchange: before.exchange })}>
          ← #{before.exchange}
        </a>
      )}
      <span class="muted">
        {now + 1} of {plural(rows.length, "exchange")} of this conversation
      </span>
      {after && (
        <a href={toExchange({ tape: after.tape, exchange: after.exchange })}>#{after.exchange} →</a>
      )}
    </nav>
  );
}

// What was delivered, what the app made of it, what it sent: three columns on one axis of events.
//
// A suspect is an algorithm that does what the app did. It reads the same fragments as a correct
// client, and one steps through both.
import { useEffect, useRef, useState } from "preact/hooks";
import { Many, type Piece, Pieces, points } from "../components/pieces";
import { SafeText, safe } from "../components/text";
import { duration, hueOf, plural } from "../format";
import { useKeys } from "../keys";
import type { ExchangeDocument as ShowDocument } from "../schema/show";
import type { StepsDocument } from "../schema/steps";
import type { WhyDocument } from "../schema/why";
import { type Bug, decisive, To } from "./bug";

type Step = StepsDocument["reference"]["steps"][number];
type Repeated = NonNullable<WhyDocument["repetition"]>;

// The wire, as rows: what each event brings of the calls, and what lies between.

/** What an event brings of a call. */
interface Part {
  /** The call's place in its list; its colour. */
  call: number;
  name: string;
  opens: boolean;
  text: string;
}

type WireRow =
  | { kind: "calls"; event: number; t_ns: number | null; parts: Part[] }
  | { kind: "says"; event: number; t_ns: number | null; text: string }
  | { kind: "others"; event: number; last: number; t_ns: number | null; text: string };

/** What events without a part of a call bring. */
const OTHERS: Record<string, string> = {
  text: "text",
  reasoning: "reasoning",
  refusal: "a refusal",
  result: "a result",
  unknown: "data",
};

function partsByEvent(show: ShowDocument): Map<number, Part[]> {
  const parts = new Map<number, Part[]>();
  const add = (event: number, part: Part) => {
    const there = parts.get(event);
    if (there) there.push(part);
    else parts.set(event, [part]);
  };
  const lists = [...show.calls, ...show.text_calls];
  for (const [at, call] of lists.entries()) {
    const name = call.name ?? "no name";
    const own = call.kind === "text" ? `text call ${call.index}` : `call ${call.index}`;
    add(call.start_event, { call: at, name: own, opens: true, text: name });
    for (const fragment of call.fragments) {
      add(fragment.event, { call: at, name: own, opens: false, text: fragment.text });
    }
  }
  return parts;
}

function wireRows(show: ShowDocument, parts: Map<number, Part[]>): WireRow[] {
  const rows: WireRow[] = [];
  for (const event of show.events) {
    const own = parts.get(event.event);
    const said = event.brings.find((each) => each.what === "finish" || each.what === "end");
    if (own) rows.push({ kind: "calls", event: event.event, t_ns: event.t_ns, parts: own });
    if (said) {
      const text = said.what === "finish" ? `finish: ${said.text}` : `end: ${said.text}`;
      rows.push({ kind: "says", event: event.event, t_ns: event.t_ns, text });
    }
    if (own || said) continue;
    const what = OTHERS[event.brings[0]?.what ?? ""] ?? "no part of a call";
    const last = rows.at(-1);
    if (last?.kind === "others" && last.text === what) last.last = event.event;
    else {
      const { event: number, t_ns } = event;
      rows.push({ kind: "others", event: number, last: number, t_ns, text: what });
    }
  }
  return rows;
}

// The clients, step by step.

interface CallThen {
  id: string | null;
  name: string | null;
  /** Of the arguments: they may be long, and are compared at each step. */
  digest: Digest;
  /** Those of later steps, too: the list grows. */
  pieces: readonly Piece[];
  /** How many of them it has. */
  count: number;
  /** The first that this step brought; `count` if it brought none. */
  fresh: number;
}

interface Digest {
  length: number;
  sum: number;
}

/** The digest of a text with `added` at its end. */
function grown({ length, sum }: Digest, added: string): Digest {
  let hash = sum;
  for (let at = 0; at < added.length; at++) {
    hash = Math.imul(hash ^ added.charCodeAt(at), 16777619); // FNV-1a
  }
  return { length: length + added.length, sum: hash };
}

const NO_TEXT: Digest = { length: 0, sum: -2128831035 };

interface ClientThen {
  calls: readonly CallThen[];
  errors: readonly string[];
  note: string;
}

const NOTHING: ClientThen = { calls: [], errors: [], note: "" };
const END = Number.MAX_SAFE_INTEGER;

/** A client's state after each of its steps; `when` is the event that the step had read. */
interface Reading {
  when: number[];
  states: ClientThen[];
}

function follow(
  steps: readonly Step[],
  unit: "event" | "read",
  show: ShowDocument,
  parts: Map<number, Part[]>,
): Reading {
  const when: number[] = [];
  const states: ClientThen[] = [];
  const growing = new Map<number, Piece[]>();
  const calls = new Map<number, CallThen>();
  let numbers: number[] = []; // of the calls, ascending
  let latest: number[] = []; // of those that the step before changed
  let from = 0; // the first event that the step may have read
  for (const step of steps) {
    const at = (unit === "event" ? step.event : step.read) ?? null;
    let until = at ?? END;
    const brought: Part[] = [];
    if (at !== null && unit === "read") {
      until = from - 1;
      while ((show.events[until + 1]?.read ?? END) <= at) until++;
      for (let event = from; event <= until; event++) brought.push(...(parts.get(event) ?? []));
      from = until + 1;
    } else brought.push(...(parts.get(until) ?? []));
    for (const number of latest) {
      const call = calls.get(number);
      if (call) calls.set(number, { ...call, fresh: call.count });
    }
    latest = step.calls.map((change) => change.call);
    for (const change of step.calls) {
      const before = calls.get(change.call);
      const added = change.arguments;
      const kept = added?.from === 0 ? undefined : before;
      const pieces = (kept && growing.get(change.call)) ?? [];
      growing.set(change.call, pieces);
      if (added?.add) pieces.push(...coloured(added.add, brought));
      calls.set(change.call, {
        id: change.id === undefined ? (before?.id ?? null) : change.id,
        name: change.name === undefined ? (before?.name ?? null) : change.name,
        digest: grown(kept?.digest ?? NO_TEXT, added?.add ?? ""),
        pieces,
        count: pieces.length,
        fresh: kept?.count ?? 0,
      });
    }
    for (const call of step.dropped ?? []) calls.delete(call);
    when.push(until);
    if (calls.size !== numbers.length || step.dropped) {
      numbers = [...calls.keys()].sort((one, other) => one - other);
    }
    states.push({
      calls: numbers.map((number) => calls.get(number) as CallThen),
      errors: step.errors ?? [],
      note: step.note,
    });
  }
  return { when, states };
}

/** What a step added, in the colours of the fragments that it is made of. */
function coloured(added: string, parts: readonly Part[]): Piece[] {
  const brought = parts.filter((each) => !each.opens && each.text);
  const pieces: Piece[] = [];
  let rest = added;
  for (const part of brought) {
    if (!rest.startsWith(part.text)) continue;
    pieces.push(from(part.text, part));
    rest = rest.slice(part.text.length);
  }
  if (rest) pieces.push(from(rest, brought.length === 1 ? brought[0] : undefined));
  return pieces;
}

const from = (text: string, part: Part | undefined): Piece => ({
  text,
  class: part && hueOf(part.call),
  title: part && `a fragment of ${part.name}`,
});

/** The pieces that a call has then; what the step brought is marked. */
const piecesThen = ({ pieces, count, fresh }: CallThen): Piece[] =>
  pieces.slice(0, count).map((each, at) => (at < fresh ? each : { ...each, as: "mark" }));

/** The state at each of `moments`, which are ascending. */
function during({ when, states }: Reading, moments: readonly number[]): ClientThen[] {
  let step = -1;
  return moments.map((event) => {
    while (step + 1 < when.length && (when[step + 1] ?? END) <= event) step++;
    return states[step] ?? NOTHING;
  });
}

const same = (one: ClientThen, other: ClientThen) =>
  one.errors.length === other.errors.length &&
  one.calls.length === other.calls.length &&
  one.calls.every((call, at) => {
    const its = other.calls[at];
    return (
      its &&
      call.id === its.id &&
      call.name === its.name &&
      call.digest.length === its.digest.length &&
      call.digest.sum === its.digest.sum
    );
  });

export interface Story {
  rows: WireRow[];
  /** Events at which a client changes, in order; the last is the end of the stream. */
  moments: number[];
  reference: ClientThen[];
  suspect: ClientThen[] | null;
  /** The first moment at which the suspect has something else than a correct client. */
  wrong: number | null;
  /** Its event; null: there is none, or it is the end of the stream. */
  mistake: number | null;
}

export function storyOf(bug: Bug, suspect: StepsDocument["suspects"][number] | undefined): Story {
  const { stream } = bug;
  const parts = partsByEvent(stream);
  const right = follow(bug.steps.reference.steps, "event", stream, parts);
  const wrong = suspect ? follow(suspect.steps, suspect.unit, stream, parts) : null;
  const moments = [...new Set([...right.when, ...(wrong?.when ?? [])])].sort((a, b) => a - b);
  const first = during(right, moments);
  const second = wrong && during(wrong, moments);
  const at = second?.findIndex((each, place) => !same(each, first[place] ?? NOTHING)) ?? -1;
  return {
    rows: wireRows(stream, parts),
    moments,
    reference: first,
    suspect: second,
    wrong: at < 0 ? null : at,
    mistake: at < 0 || moments[at] === END ? null : (moments[at] ?? null),
  };
}

// The picture.

interface PictureProps {
  bug: Bug;
  story: Story;
  /** Which of the suspects is shown. */
  chosen: number;
  choose: (suspect: number) => void;
}

export function CallsPicture({ bug, story, chosen, choose }: PictureProps) {
  const { suspects } = bug.steps;
  const suspect = story.suspect ? suspects[chosen] : undefined;
  const last = Math.max(0, story.moments.length - 1);
  const [at, setAt] = useState(story.wrong ?? last);
  useEffect(() => setAt(story.wrong ?? last), [story]);
  const [playing, play] = useState(false);
  const goTo = (moment: number) => setAt(Math.min(last, Math.max(0, moment)));
  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => (at < last ? goTo(at + 1) : play(false)), 500);
    return () => clearTimeout(timer);
  });
  const start = () => {
    if (!playing && at >= last) setAt(0);
    play(!playing);
  };
  const step = (by: number) => {
    play(false);
    goTo(at + by);
  };
  useKeys([
    { key: ",", does: "Step back through the fragments", run: () => step(-1) },
    { key: ".", does: "Step on through the fragments", run: () => step(1) },
    { key: "r", does: "Run or pause the fragments", run: start },
    { key: "m", does: "Go to the first mistake", run: () => goTo(story.wrong ?? last) },
  ]);
  const event = story.moments[at] ?? END;
  const right = story.reference[at] ?? NOTHING;
  const wrong = story.suspect?.[at] ?? null;
  return (
    <section class="calls-picture" aria-labelledby="picture">
      <header>
        <h2 id="picture">
          {story.suspect ? "The same fragments, read rightly and wrongly" : "How the calls arrived"}
        </h2>
        {story.moments.length > 1 && (
          <fieldset class="player">
            <legend class="sr-only">Step through the fragments</legend>
            <button type="button" onClick={() => step(-1)} disabled={at === 0}>
              Back <kbd>,</kbd>
            </button>
            <button type="button" onClick={start}>
              {playing ? "Pause" : "Run"} <kbd>r</kbd>
            </button>
            <button type="button" onClick={() => step(1)} disabled={at === last}>
              On <kbd>.</kbd>
            </button>
            <input
              type="range"
              min={0}
              max={last}
              value={at}
              aria-label="Step"
              aria-valuetext={momentOf(event)}
              onInput={(input) => {
                play(false);
                goTo(Number(input.currentTarget.value));
              }}
            />
            {story.wrong !== null && (
              <button
                type="button"
                class="mistake"
                aria-pressed={at === story.wrong}
                onClick={() => {
                  play(false);
                  goTo(story.wrong ?? 0);
                }}
              >
                First mistake: {momentOf(story.moments[story.wrong] ?? END)} <kbd>m</kbd>
              </button>
            )}
          </fieldset>
        )}
      </header>
      <div class="columns">
        <Delivered
          bug={bug}
          rows={story.rows}
          event={event}
          wrong={story.wrong === null ? null : (story.moments[story.wrong] ?? null)}
          pick={(picked) => {
            play(false);
            const moment = story.moments.findLastIndex((each) => each <= picked);
            goTo(moment);
          }}
        />
        <section class="column made" aria-label="What the app made of it">
          <h3>
            {story.suspect ? "What the app made of it" : "What a correct client makes of it"}
            <span class="muted"> {momentOf(event)}</span>
          </h3>
          {suspect && wrong && (
            <Client
              name={`The app, as ${suspect.name}`}
              hint={suspect.exact ? "explains what the app did" : "comes close to the app"}
              then={wrong}
              right={right}
            />
          )}
          {suspect && suspects.length > 1 && (
            <label class="suspects">
              Could also be{" "}
              <select
                value={chosen}
                onChange={(change) => choose(Number(change.currentTarget.value))}
              >
                {suspects.map((each, place) => (
                  <option key={each.name} value={place}>
                    {each.name}
                  </option>
                ))}
              </select>
            </label>
          )}
          <Client name="A correct client" hint="" then={right} right={null} />
        </section>
        {bug.stream === bug.show ? <Sent bug={bug} /> : <SentOn bug={bug} />}
      </div>
    </section>
  );
}

const momentOf = (event: number) => (event === END ? "at the end" : `event ${event}`);

const BEFORE = 60; // rows that are drawn around the present one
const AFTER = 100;

function Delivered(props: {
  bug: Bug;
  rows: WireRow[];
  event: number;
  wrong: number | null;
  pick: (event: number) => void;
}) {
  const { rows, event } = props;
  const list = useRef<HTMLOListElement>(null);
  const present = rows.findLastIndex((row) => row.event <= event);
  const first = Math.max(0, present - BEFORE);
  const to = Math.min(rows.length, present + AFTER);
  useEffect(() => {
    // Only the list scrolls, never the page.
    const row = list.current?.querySelector<HTMLElement>("[aria-current]");
    if (!row || !list.current) return;
    const top = row.offsetTop - list.current.offsetTop;
    const { scrollTop, clientHeight } = list.current;
    if (top < scrollTop || top + row.offsetHeight > scrollTop + clientHeight) {
      list.current.scrollTop = top - clientHeight / 3;
    }
  }, [present]);
  const began = props.bug.stream.axis.request_ns;
  return (
    <section class="column delivered" aria-labelledby="delivered">
      <h3 id="delivered">
        Delivered <span class="muted">by the wire, in #{props.bug.steps.stream}</span>
      </h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <ol ref={list} tabIndex={0} aria-label="Events">
        {first > 0 && <li class="muted">{plural(first, "row")} before</li>}
        {rows.slice(first, to).map((row, place) => (
          <WireLine
            key={`${row.kind}${row.event}`}
            row={row}
            before={rows[first + place - 1] ?? null}
            began={began}
            present={first + place === present}
            later={row.event > event}
            wrong={row.event === props.wrong}
            pick={() => props.pick(row.event)}
          />
        ))}
        {to < rows.length && <li class="muted">{plural(rows.length - to, "row")} after</li>}
      </ol>
    </section>
  );
}

const LONG_NS = 1e9; // a gap that is worth a line

function WireLine(props: {
  row: WireRow;
  before: WireRow | null;
  began: number | null;
  present: boolean;
  later: boolean;
  wrong: boolean;
  pick: () => void;
}) {
  const { row, before, began } = props;
  const gap = row.t_ns !== null && before?.t_ns != null ? row.t_ns - before.t_ns : 0;
  const number = row.kind === "others" && row.last > row.event ? `-${row.last}` : "";
  return (
    <li
      class={`wire-row${props.later ? " later" : ""}${props.wrong ? " wrong" : ""}`}
      aria-current={props.present ? "step" : undefined}
    >
      {gap >= LONG_NS && <p class="gap">{duration(gap)} of silence</p>}
      <button type="button" class="number" onClick={props.pick}>
        <span class="sr-only">Go to event </span>
        {row.event}
        {number}
      </button>
      <span class="time">
        {row.t_ns !== null && began !== null ? `+${duration(row.t_ns - began)}` : ""}
      </span>
      <span class="brings">
        {row.kind === "calls"
          ? row.parts.map((part, place) => <PartShown key={place} part={part} />)
          : null}
        {row.kind === "says" && <SafeText text={row.text} />}
        {row.kind === "others" && <span class="muted">{row.text}</span>}
        {props.wrong && <strong class="here">here it goes wrong</strong>}
      </span>
    </li>
  );
}

function PartShown({ part }: { part: Part }) {
  const piece: Piece = { text: part.text, class: part.opens ? "" : "fragment" };
  return (
    <span class={`part ${hueOf(part.call)}`}>
      <span class="of">{part.opens ? `${part.name} opens` : part.name}</span>{" "}
      {part.opens ? <SafeText text={part.text} /> : <Pieces pieces={[piece]} none="(empty)" />}
    </span>
  );
}

function Client(props: { name: string; hint: string; then: ClientThen; right: ClientThen | null }) {
  const { then: now, right } = props;
  const differs = right !== null && !same(now, right);
  return (
    <section class={`client${right ? " suspect" : ""}${differs ? " differs" : ""}`}>
      <h4>
        {safe(props.name)} {props.hint && <span class="muted">{props.hint}</span>}
        {right && (
          <span class={differs ? "wrong-word" : "right-word"}>
            {differs ? "✗ wrong now" : "✓ right so far"}
          </span>
        )}
      </h4>
      {now.note && (
        <p class="note">
          <SafeText text={now.note} />
        </p>
      )}
      {now.calls.length === 0 && <p class="muted">no call</p>}
      <Many of={now.calls} what="calls" telling={(call) => call.fresh < call.count}>
        {(call, at) => (
          <CallCard key={at} id={call.id} name={call.name} pieces={piecesThen(call)} />
        )}
      </Many>
      <Errors errors={now.errors} />
    </section>
  );
}

/** What a client throws; the same error has other words in other languages. */
function Errors({ errors }: { errors: readonly string[] }) {
  const [first, ...others] = errors;
  if (first === undefined) return null;
  return (
    <>
      <p class="throws">
        throws <code>{safe(first)}</code>
      </p>
      {others.length > 0 && (
        <details>
          <summary class="muted">or, in other parsers' words</summary>
          {others.map((each) => (
            <p key={each}>
              <code>{safe(each)}</code>
            </p>
          ))}
        </details>
      )}
    </>
  );
}

function CallCard(props: {
  id: string | null;
  name: string | null;
  pieces: readonly Piece[];
  label?: string;
  state?: "same" | "differs" | "missing" | "extra";
  hue?: string;
}) {
  const words = {
    same: "✓ as delivered",
    differs: "✗ differs",
    missing: "✗ missing",
    extra: "✗ never delivered",
  };
  return (
    <div class={`call-card ${props.state ?? ""}`}>
      <p>
        {props.label && <span class={`of ${props.hue ?? ""}`}>{props.label}</span>}{" "}
        <strong>{props.name === null ? "no name" : <SafeText text={props.name} />}</strong>{" "}
        <span class="muted">{props.id === null ? "no id" : <SafeText text={props.id} />}</span>{" "}
        {props.state && (
          <span class={props.state === "same" ? "right-word" : "wrong-word"}>
            {words[props.state]}
          </span>
        )}
      </p>
      {props.state !== "missing" && <Pieces pieces={props.pieces} none="(no arguments)" />}
      {props.state === "differs" && props.pieces.every((each) => each.as === "del") && (
        <span class="wrong-word"> nothing was sent</span>
      )}
    </div>
  );
}

// What it sent.

function Sent({ bug }: { bug: Bug }) {
  const { repetition } = bug.why;
  return (
    <section class="column sent" aria-labelledby="sent">
      <h3 id="sent">
        What it sent{" "}
        {repetition && (
          <span class="muted">
            in{" "}
            <To exchange={{ ...bug.at, exchange: repetition.exchange }}>
              request #{repetition.exchange}
            </To>
          </span>
        )}
      </h3>
      <Lacking bug={bug} />
      {repetition ? <SentCalls bug={bug} repetition={repetition} /> : <Unsent bug={bug} />}
      <Reported bug={bug} />
    </section>
  );
}

/** What the app sent on to its own page. */
function SentOn({ bug }: { bug: Bug }) {
  const { show } = bug;
  return (
    <section class="column sent" aria-labelledby="sent">
      <h3 id="sent">
        What it sent on <span class="muted">to its page, in #{bug.at.exchange}</span>
      </h3>
      {show.calls.length === 0 && <p class="muted">no call</p>}
      <Many of={show.calls} what="calls">
        {(call) => (
          <CallCard
            key={`${call.choice}.${call.index}`}
            label={`event ${call.start_event}`}
            id={call.id}
            name={call.name}
            pieces={[{ text: call.arguments_raw }]}
          />
        )}
      </Many>
    </section>
  );
}

const ERRORS = ["C009"]; // findings whose evidence is an error that the app reports

function Reported({ bug }: { bug: Bug }) {
  const reported = bug.why.findings.filter(
    (each) => ERRORS.includes(each.code) && each.exchange !== bug.at.exchange,
  );
  const told = bug.why.repetition?.results ?? [];
  const more = reported.filter(
    ({ evidence }) => evidence && !told.some((each) => each.text.includes(evidence)),
  );
  if (more.length === 0) return null;
  return (
    <>
      <p class="muted">The error that it reports:</p>
      {more.map((each) => (
        <p key={each.message} class="throws">
          <code>{safe(each.evidence)}</code>
        </p>
      ))}
    </>
  );
}

/** What else than its calls the app did not send as it was delivered, such as reasoning. */
function Lacking({ bug }: { bug: Bug }) {
  const { repetition } = bug.why;
  const decided = decisive(bug.why);
  if (!decided || decided.exchange !== repetition?.exchange) return null;
  if (repetition.extra.length > 0 || repetition.calls.some((each) => each.differs)) return null;
  if (ERRORS.includes(decided.code)) return null; // it stands below, as the app words it
  return (
    <p>
      <strong class="wrong-word">✗</strong> <SafeText text={decided.message} />
    </p>
  );
}

function SentCalls({ bug, repetition }: { bug: Bug; repetition: Repeated }) {
  return (
    <>
      {repetition.calls.some((each) => each.differs && each.sent) && (
        <p class="muted legend">
          <del>struck</del>: delivered, not sent. <ins>underlined</ins>: sent, not delivered there.
          Colours: the call that a fragment was for.
        </p>
      )}
      <Many of={repetition.calls} what="calls" telling={(pair) => pair.differs || !pair.sent}>
        {(pair, at) => {
          const { delivered, sent } = pair;
          const state = sent === null ? "missing" : pair.differs ? "differs" : "same";
          return (
            <CallCard
              key={at}
              label={`call ${at}`}
              hue={hueOf(at)}
              state={state}
              id={(sent ?? delivered).id}
              name={(sent ?? delivered).name}
              pieces={sent === null ? [] : sentPieces(pair, at)}
            />
          );
        }}
      </Many>
      <Many of={repetition.extra} what="calls that were never delivered">
        {(call, at) => (
          <CallCard
            key={at}
            state="extra"
            id={call.id}
            name={call.name}
            pieces={[{ text: call.arguments }]}
          />
        )}
      </Many>
      {repetition.calls.length + repetition.extra.length === 0 && (
        <p class="muted">
          {bug.stream.text_calls.length > 0
            ? "It repeats the reply's text, in which the call stands."
            : "It repeats the reply's text; there is no call on either side."}
        </p>
      )}
      <Many of={repetition.results} what="results">
        {(result) => (
          <div class="result" key={result.id}>
            <p class="muted">
              Result of <SafeText text={result.id} />
            </p>
            <Pieces pieces={[{ text: result.text }]} none="(empty)" />
          </div>
        )}
      </Many>
    </>
  );
}

type Segment = NonNullable<Repeated["calls"][number]["segments"]>[number];

const originOf = ({ call, event }: Segment) =>
  call === null ? "of unknown origin" : `event ${event}, of call ${call}`;

/** The arguments that were sent, coloured by the call they came for; what differs is marked. */
function sentPieces(pair: Repeated["calls"][number], at: number): Piece[] {
  const { delivered, sent } = pair;
  if (sent === null) return [];
  const was = points(delivered.arguments);
  const is = points(sent.arguments);
  const pieces: Piece[] = [];
  const segments = pair.segments ?? [];
  const textOf = (part: Segment) => is.slice(...part.range).join("");
  const own = segments.filter((part) => part.call === at).map(textOf);
  if (own.join("") === delivered.arguments) {
    // All of the call is there: what came for others is what does not belong.
    return segments.map((part) => ({
      text: textOf(part),
      as: part.call === at ? undefined : "ins",
      class: part.call === null ? undefined : hueOf(part.call),
      title: originOf(part),
    }));
  }
  for (const edit of pair.edits ?? []) {
    if (edit.op === "delete") {
      const text = was.slice(...edit.delivered).join("");
      pieces.push({ text, as: "del", class: hueOf(at), title: "delivered, and not sent" });
      continue;
    }
    const [from, to] = edit.sent;
    const as = edit.op === "insert" ? "ins" : undefined;
    for (const part of segments) {
      const [start, end] = [Math.max(from, part.range[0]), Math.min(to, part.range[1])];
      if (start >= end) continue;
      const strange = part.call !== null && part.call !== at;
      const of = originOf(part);
      pieces.push({
        text: is.slice(start, end).join(""),
        as: as ?? (strange ? "ins" : undefined),
        class: part.call === null ? undefined : hueOf(part.call),
        title: as ? `${of}: not delivered here` : of,
      });
    }
  }
  return pieces;
}

/** No request repeats the reply: what the app printed about it, if it did. */
function Unsent({ bug }: { bug: Bug }) {
  const printed = bug.why.timeline.filter((each) => each.source === "log" && each.codes.length > 0);
  const decided = decisive(bug.why);
  const next = decided && decided.exchange > bug.at.exchange ? decided.exchange : null;
  return (
    <>
      {next === null ? (
        <p class="muted">No later request on the tape repeats this reply.</p>
      ) : (
        <p>
          <To exchange={{ ...bug.at, exchange: next }} tab="request">
            Request #{next}
          </To>{" "}
          goes on from this reply, but has no message that repeats it.
          {decided?.evidence && decided.evidence !== decided.against?.evidence && (
            <>
              {" "}
              It has: <code>{safe(decided.evidence)}</code>
            </>
          )}
        </p>
      )}
      {printed.length > 0 && <p>What the app printed:</p>}
      {printed.map((each) => (
        <p key={`${each.t_ns}${each.what}`}>
          <code>{safe(each.what)}</code>
        </p>
      ))}
    </>
  );
}

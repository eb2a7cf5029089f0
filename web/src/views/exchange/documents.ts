// The documents of one exchange, and where the parts of them belong: an event to its call, its read
// and its characters, and back.
import type { Lane, Mark, TimeRange, Zone } from "../../components/time-axis";
import { bytes, duration, hueOf, plural } from "../../format";
import type { ExchangeDocument } from "../../schema/show";
import type { Finding, WhyDocument } from "../../schema/why";

export type Call = ExchangeDocument["calls"][number];
export type Event = ExchangeDocument["events"][number];
export type Contribution = Event["brings"][number];
export type Reading = ExchangeDocument["reads"][number];

/** A call of any list, with its colour and what links name it by. */
export interface ShownCall {
  call: Call;
  list: "calls" | "server_calls" | "text_calls";
  /** Its place among all calls that are shown: its colour, and its name in links. */
  place: number;
  hue: string;
  label: string;
}

/** A text of the reply: what it says, its reasoning, its refusal. */
export type ReplyText = ExchangeDocument["text"][number];

export interface Documents {
  show: ExchangeDocument;
  why: WhyDocument;
  calls: ShownCall[];
  callOf(event: Event): ShownCall | undefined;
  /** The index in `show.events`, which holds them in order but perhaps not all of them. */
  event(number: number | null | undefined): Event | undefined;
  /** The events that a read completes. */
  completedBy(read: number): Event[];
  /** What links name a finding by. */
  findingKey(finding: Finding): string;
  finding(key: string | null): Finding | undefined;
  axis: Axis;
}

export interface Axis {
  lanes: Lane[];
  zones: Zone[];
  range: TimeRange;
  /** What is shown at first, where most of the time nothing more came after the response. */
  first?: TimeRange | undefined;
  origin: number;
  unit: "time" | "order";
}

const listed = (name: string) =>
  ({ calls: "call", server_calls: "server call", text_calls: "text call" })[name] ?? name;

function shownCalls(show: ExchangeDocument): ShownCall[] {
  const all: ShownCall[] = [];
  for (const list of ["calls", "server_calls", "text_calls"] as const) {
    for (const call of show[list] as Call[]) {
      const choice = call.choice ? ` of choice ${call.choice}` : "";
      all.push({
        call,
        list,
        place: all.length,
        hue: hueOf(all.length),
        label: `${listed(list)} ${call.index}${choice}`,
      });
    }
  }
  return all;
}

export function documents(show: ExchangeDocument, why: WhyDocument): Documents {
  const calls = shownCalls(show);
  const byReference = new Map(
    calls.map((each) => [`${each.list}:${each.call.choice}:${each.call.index}`, each]),
  );
  const called = (one: Contribution) =>
    one.call && byReference.get(`${one.call.list}:${one.call.choice}:${one.call.index}`);
  const callOf = (event: Event) => {
    for (const one of event.brings) {
      const call = called(one);
      if (call) return call;
    }
    return undefined;
  };
  const first = show.events[0]?.event ?? 0;
  const event = (number: number | null | undefined) => {
    if (number === null || number === undefined) return undefined;
    const there = show.events[number - first];
    return there?.event === number ? there : show.events.find((each) => each.event === number);
  };
  const byRead = new Map<number, Event[]>();
  for (const each of show.events) {
    if (each.read === null) continue;
    const known = byRead.get(each.read);
    if (known) known.push(each);
    else byRead.set(each.read, [each]);
  }
  const key = (finding: Finding) =>
    finding.event === null ? finding.code : `${finding.code}.${finding.event}`;
  const shown = {
    show,
    why,
    calls,
    callOf,
    event,
    completedBy: (read: number) => byRead.get(read) ?? [],
    findingKey: key,
    finding: (wanted: string | null) =>
      why.findings.find((each) => key(each) === wanted) ??
      why.findings.find((each) => each.code === wanted),
  };
  return { ...shown, axis: axisOf(shown) };
}

/** What an event brings, in a few words. */
export function brief(event: Event): string {
  return event.new || (event.type === "message" ? "nothing new" : event.type);
}

const short = (text: string) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

function eventHue(docs: Pick<Documents, "callOf">, event: Event): string {
  const call = docs.callOf(event);
  if (call) return call.hue;
  return event.brings.length ? "axis-text" : "axis-quiet";
}

/** The places of everything that has one, by time; by the order of events if there are no times. */
function axisOf(docs: Omit<Documents, "axis">): Axis {
  const { show, why } = docs;
  const { axis } = show;
  const timed = axis.request_ns !== null && show.events.every((each) => each.t_ns !== null);
  const origin = timed ? (axis.request_ns ?? 0) : 0;
  const since = (at: number) => (timed ? ` at ${duration(at - origin)}` : "");
  const place = (event: Event) => (timed ? (event.t_ns ?? 0) : event.event);

  const events: Mark[] = show.events.map((each) => ({
    key: `event:${each.event}`,
    at: place(each),
    hue: eventHue(docs, each),
    weight: each.brings.length ? 1 : 0.4,
    says: () => `event ${each.event}${since(place(each))}: ${short(brief(each))}`,
  }));
  const websocket = show.frames.length > 0;
  const largest = Math.log2(2 + largestOf(websocket ? show.frames : show.reads));
  const readMark = (kind: "read" | "frame") => (each: Reading, index: number) => {
    const completed = docs.completedBy(index);
    const at = timed ? each.t_ns : (completed.at(-1)?.event ?? null);
    if (at === null) return null;
    return {
      key: `${kind}:${index}`,
      at,
      hue: each.side === "client" ? "axis-wire" : "axis-read",
      weight: Math.log2(2 + each.bytes) / largest,
      says: () =>
        kind === "frame"
          ? `frame ${index}${since(at)}: ${each.side} sent ${each.frame}, ${bytes(each.bytes)}`
          : `read ${index}${since(at)}: ${bytes(each.bytes)}, ${plural(completed.length, "event")} completed`,
    };
  };
  const present = (marks: (Mark | null)[]) => marks.filter((each): each is Mark => each !== null);
  const reads = present(show.reads.map(readMark("read")));
  const frames = present(show.frames.map(readMark("frame")));
  const received = Math.max(1, show.delivered.at(-1)?.bytes ?? 1);
  const delivered: Mark[] = timed
    ? show.delivered.map((each, index) => ({
        key: `delivered:${index}`,
        at: each.t_ns ?? origin,
        hue: "axis-wire",
        weight: each.bytes / received,
        says: () => {
          const late =
            each.late_ns === null ? "" : `, ${duration(each.late_ns)} after they arrived`;
          return `the app had taken ${bytes(each.bytes)}${since(each.t_ns ?? origin)}${late}`;
        },
      }))
    : [];

  const moments: [number | null, string][] = timed
    ? [
        [axis.request_ns, "request"],
        [axis.sent_ns, "sent"],
        [axis.head_ns, "head"],
        [axis.first_event_ns, "first event"],
        [axis.end_ns, "end"],
      ]
    : [];
  const wire: Mark[] = moments
    .filter((each): each is [number, string] => each[0] !== null)
    .sort((one, other) => one[0] - other[0])
    .map(([at, name]) => ({
      key: `moment:${name}`,
      at,
      hue: "axis-wire",
      label: name,
      says: () => `${name === "end" ? show.recording.ended || name : name}${since(at)}`,
    }));

  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  const cover = (at: number | undefined | null) => {
    if (at === undefined || at === null) return;
    from = Math.min(from, at);
    to = Math.max(to, at);
  };
  for (const lane of [wire, events, reads, frames, delivered]) {
    cover(lane[0]?.at);
    cover(lane.at(-1)?.at);
  }
  for (const zone of timed ? axis.dead_zones : []) {
    cover(zone.from_ns);
    cover(zone.to_ns);
  }
  if (!Number.isFinite(from)) [from, to] = [0, 1];
  // What the app printed soon after the end is about this exchange, too.
  const printed = timed
    ? show.log.filter((each) => each.t_ns >= from && each.t_ns <= to + (to - from) * 0.3)
    : [];
  const lines = new Map(show.log.map((each, index) => [each, index]));
  const log: Mark[] = printed.map((each) => ({
    key: `log:${lines.get(each)}`,
    at: each.t_ns,
    hue: each.stream === "stderr" ? "severity-error" : "axis-wire",
    says: () => `the app printed${since(each.t_ns)}: ${short(each.line ?? each.hex ?? "")}`,
  }));
  cover(log.at(-1)?.at);

  const findings: Mark[] = [];
  for (const each of why.findings) {
    const event = each.exchange === show.exchange.exchange ? docs.event(each.event) : undefined;
    const known = event ? place(event) : timed ? each.t_ns : null;
    const later = known !== null && known > to;
    const at = known === null ? to : Math.min(Math.max(known, from), to);
    findings.push({
      key: `finding:${docs.findingKey(each)}`,
      at,
      hue: `severity-${each.severity}`,
      label: each.code,
      leads: each.code === why.verdict.code,
      says: () =>
        `${each.severity} ${each.code} ${each.name}${later && timed ? ", seen later," : ""}${
          known === null ? "" : since(known)
        }: ${short(each.message)}`,
    });
  }
  findings.sort((one, other) => one.at - other.at);

  const pad = (to - from) * 0.015 || (timed ? 500 : 0.5);
  const lane = (id: string, name: string, shape: Lane["shape"], marks: Mark[]) =>
    marks.length ? [{ id, name, shape, marks }] : [];
  return {
    unit: timed ? "time" : "order",
    origin,
    range: { from: from - pad, to: to + pad },
    first: timed ? firstView(from, to, axis.end_ns) : undefined,
    lanes: [
      ...lane("moments", "exchange", "flag", wire),
      ...lane("events", "events", "tick", events),
      ...lane("reads", "reads", "tick", reads),
      ...lane("frames", "frames", "tick", frames),
      ...lane("delivered", "app took", "tick", delivered),
      ...lane("log", "app log", "tick", log),
      ...lane("findings", "findings", "flag", findings),
    ],
    zones: timed
      ? [
          ...axis.phases.map((each) => ({
            kind: "phase" as const,
            from: each.from_ns,
            to: each.to_ns,
            label: phaseName(each.name),
          })),
          ...axis.dead_zones.map((each) => ({
            kind: "dead" as const,
            from: each.from_ns,
            to: each.to_ns,
            label: phaseName(each.phase),
            code: each.code,
          })),
        ]
      : [],
  };
}

/** The share of the time below which an exchange is too narrow to be read. */
const NARROW = 0.2;

/** The exchange and some of the time after it, where that time would leave the exchange no room. */
function firstView(from: number, to: number, end: number | null): TimeRange | undefined {
  if (end === null || end <= from || end - from > NARROW * (to - from)) return undefined;
  const span = end - from;
  return { from: from - span * 0.015, to: end + span * 0.25 };
}

const largestOf = (reads: readonly Reading[]) =>
  reads.reduce((most, each) => Math.max(most, each.bytes), 0);

const PHASES: Record<string, string> = {
  sending: "connecting, sending",
  "before-first": "before the first event",
  "in-text": "within text",
  "in-arguments": "within arguments",
  "after-call": "after a call",
  "before-end": "before the end",
  unanswered: "calls not answered",
};
export const phaseName = (name: string) => PHASES[name] ?? name;

// Time travel: the reply as it had been built after each event, by a correct client and by others.
import { useEffect, useMemo, useState } from "preact/hooks";
import { LongText } from "../../components/long-text";
import { Shown } from "../../components/states";
import { SafeText } from "../../components/text";
import { duration } from "../../format";
import { useKeys } from "../../keys";
import { useLoaded } from "../../load";
import { type Ref, toExchange } from "../../router";
import type { StepsDocument } from "../../schema/steps";
import { source } from "../../source";
import { type BuiltCall, Track } from "./built";
import { brief, type Documents, documents } from "./documents";
import type { TabProps } from "./events";
import { Selection } from "./state";

type Suspect = StepsDocument["suspects"][number];

export function TravelTab(props: TabProps & { of: Ref }) {
  const { docs, of } = props;
  const loaded = useLoaded(`${of.tape}#${of.exchange}`, async () => {
    const steps = await source.steps(of);
    if (steps.stream === of.exchange) return { steps, stream: null };
    const stream = { tape: of.tape, exchange: steps.stream };
    return { steps, stream: documents(await source.show(stream), docs.why) };
  });
  return (
    <Shown of={loaded} what="the steps">
      {({ steps, stream }) =>
        stream ? (
          <Elsewhere of={of} steps={steps} stream={stream} />
        ) : (
          <Travel {...props} steps={steps} />
        )
      }
    </Shown>
  );
}

/** The page of an app shows what the app made of another response: that one is travelled. */
function Elsewhere(props: { of: Ref; steps: StepsDocument; stream: Documents }) {
  const { of, steps, stream } = props;
  const at = useMemo(() => new Selection(null, new URLSearchParams()), [steps]);
  const name = `exchange ${steps.stream}`;
  return (
    <>
      <p class="muted">
        The app built its calls from the response of{" "}
        {source.whole ? (
          <a href={toExchange({ tape: of.tape, exchange: steps.stream })}>{name}</a>
        ) : (
          name
        )}
        : these are its events.
      </p>
      <Travel docs={stream} at={at} steps={steps} />
    </>
  );
}

/** The longest pause between two events when the stream is played. */
const PAUSE_MS = 1000;
const LEAST_MS = 40;

function Travel({ docs, at, steps }: TabProps & { steps: StepsDocument }) {
  const { events } = docs.show;
  const reference = useMemo(() => new Track(steps.reference.steps, "event"), [steps]);
  const tracks = useMemo(
    () => steps.suspects.map((each) => new Track(each.steps, each.unit)),
    [steps],
  );
  const [chosen, setChosen] = useState<ReadonlySet<number>>(() => new Set([0, 1]));
  const [ended, setEnded] = useState(false);
  const [playing, setPlaying] = useState(false);

  const selected = at.event.value;
  const index = useMemo(
    () => (selected === null ? -1 : events.findIndex((each) => each.event === selected)),
    [events, selected],
  );
  // 0: nothing has come; then after each event; the last one: the stream has ended.
  const last = events.length + 1;
  const position = ended ? last : index + 1;
  const go = (to: number) => {
    const place = Math.min(last, Math.max(0, to));
    setEnded(place === last);
    const event = events[Math.min(place, events.length) - 1];
    if (event) at.selectEvent(event.event, event.read);
    else {
      at.event.value = null;
      at.read.value = null;
    }
  };
  useEffect(() => {
    if (index + 1 < events.length) setEnded(false); // another event was selected
  }, [index]);

  const moments = useMemo(() => {
    const found = new Set<number>();
    const places = new Map(events.map((each, place) => [each.event, place + 1]));
    for (const [number, step] of steps.reference.steps.entries()) {
      const event = reference.placeOf(number);
      if (step.calls.length && event !== null) found.add(places.get(event) ?? 0);
    }
    found.add(last);
    return [...found].sort((one, other) => one - other);
  }, [reference, events]);
  const nextChange = () => go(moments.find((each) => each > position) ?? last);
  const lastChange = () => go(moments.findLast((each) => each < position) ?? 0);
  useKeys([
    { key: ".", does: "Travel to the next change of a call", run: nextChange },
    { key: ",", does: "Travel to the change before", run: lastChange },
  ]);

  useEffect(() => {
    if (!playing) return;
    if (position >= last) {
      setPlaying(false);
      return;
    }
    const now = events[position - 1]?.t_ns ?? docs.show.axis.request_ns;
    const next = events[position]?.t_ns ?? null;
    const pause = now === null || next === null ? 0 : (next - now) / 1e6;
    const timer = setTimeout(() => go(position + 1), Math.min(PAUSE_MS, Math.max(LEAST_MS, pause)));
    return () => clearTimeout(timer);
  }, [playing, position]);

  const event = events[position - 1];
  const origin = docs.show.axis.request_ns;
  const time =
    event?.t_ns !== undefined && event.t_ns !== null && origin !== null
      ? ` at ${duration(event.t_ns - origin)}`
      : "";
  const says =
    position === 0
      ? "before the first event"
      : event
        ? `after event ${event.event}${time}`
        : "the stream has ended";
  const place = (track: Track) =>
    event ? track.stepAt(event.event, event.read) : position === 0 ? -1 : track.steps.length - 1;
  const done = place(reference);
  const built = reference.after(done);
  return (
    <div class="travel">
      <div class="travel-controls">
        <button
          type="button"
          onClick={() => {
            if (position >= last) go(0);
            setPlaying(!playing);
          }}
        >
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" disabled={position === 0} onClick={() => go(0)}>
          Start
        </button>
        <button type="button" disabled={position === 0} onClick={lastChange}>
          ← change
        </button>
        <input
          type="range"
          min={0}
          max={last}
          value={position}
          aria-label="Time travel: events so far"
          aria-valuetext={says}
          onInput={(change) => {
            setPlaying(false);
            go(Number(change.currentTarget.value));
          }}
        />
        <button type="button" disabled={position === last} onClick={nextChange}>
          change →
        </button>
        <button type="button" disabled={position === last} onClick={() => go(last)}>
          End
        </button>
      </div>
      <p class="origin" role="status" aria-live="polite">
        <strong>{says}</strong>
        {event && (
          <>
            {" "}
            of {events.length.toLocaleString("en")}:{" "}
            <span class={`mono ${docs.callOf(event)?.hue ?? ""}`}>
              <SafeText text={brief(event).slice(0, 300)} />
            </span>
          </>
        )}
      </p>
      {steps.suspects.length > 0 && (
        <fieldset class="choice" aria-label="Clients beside the correct one">
          <span class="muted">Other clients, to compare:</span>
          {steps.suspects.map((each, number) => (
            <button
              type="button"
              key={each.name}
              aria-pressed={chosen.has(number)}
              onClick={() => {
                const next = new Set(chosen);
                if (!next.delete(number)) next.add(number);
                setChosen(next);
              }}
            >
              <SafeText text={each.name} />
            </button>
          ))}
        </fieldset>
      )}
      <div class="tracks">
        <TrackPart
          docs={docs}
          title="A correct client"
          track={reference}
          step={done}
          built={built}
          reference={null}
        >
          <ReplySoFar docs={docs} at={at} upTo={position === last ? null : (event?.event ?? -1)} />
        </TrackPart>
        {steps.suspects.map((each, number) => {
          const track = tracks[number];
          if (!track || !chosen.has(number)) return null;
          return (
            <TrackPart
              key={each.name}
              docs={docs}
              title={each.name}
              suspect={each}
              track={track}
              step={place(track)}
              built={track.after(place(track))}
              reference={built}
            />
          );
        })}
      </div>
    </div>
  );
}

const same = (one: readonly BuiltCall[], other: readonly BuiltCall[]) =>
  one.length === other.length && one.every((each, index) => sameCall(each, other[index]));

const sameCall = (one: BuiltCall, other: BuiltCall | undefined) =>
  other !== undefined &&
  one.id === other.id &&
  one.name === other.name &&
  one.arguments === other.arguments;

interface TrackPartProps {
  docs: Documents;
  title: string;
  suspect?: Suspect;
  track: Track;
  step: number;
  built: BuiltCall[];
  /** What a correct client has; null: this is it. */
  reference: readonly BuiltCall[] | null;
  children?: preact.ComponentChildren;
}

function TrackPart(props: TrackPartProps) {
  const { docs, suspect, track, step, built, reference } = props;
  const now = track.steps[step];
  const alike = reference === null || same(built, reference);
  return (
    <section class={`track ${alike ? "" : "track-differs"}`} aria-label={props.title}>
      <h2>
        <SafeText text={props.title} />{" "}
        {reference !== null && (
          <span class={`badge ${alike ? "healthy" : "severity-error"}`}>
            {alike ? "the same so far" : "differs"}
          </span>
        )}{" "}
        {suspect?.exact && <span class="badge">explains what the app did</span>}
      </h2>
      {suspect && (
        <p class="muted">
          it <SafeText text={suspect.says} />
        </p>
      )}
      <p class="track-note">
        <SafeText text={now?.note || "nothing so far"} />
      </p>
      {built.map((call, index) => (
        <Building
          key={call.number}
          docs={docs}
          call={call}
          differs={reference !== null && !sameCall(call, reference[index])}
          of={props.title}
        />
      ))}
      {built.length === 0 && <p class="muted">no call</p>}
      {(now?.errors ?? []).slice(0, 3).map((each) => (
        <p key={each} class="severity-error mono">
          <SafeText text={each} />
        </p>
      ))}
      {props.children}
    </section>
  );
}

function Building(props: { docs: Documents; call: BuiltCall; differs: boolean; of: string }) {
  const { docs, call, differs } = props;
  const text = call.arguments;
  const own = docs.calls.find((each) => each.call.id === call.id && each.call.name === call.name);
  // Each part has the colour of the call that it came for, wherever the client put it.
  const parts = useMemo(
    () =>
      call.parts.map((each) => {
        const event = docs.event(each.event);
        return { ...each, hue: event ? docs.callOf(event)?.hue : undefined };
      }),
    [docs, call.parts.length, text],
  );
  return (
    <div class={`building ${differs ? "building-differs" : ""}`}>
      <h3>
        <span class={own?.hue}>
          <SafeText text={call.name ?? "(no name)"} />
        </span>{" "}
        <span class="muted mono">
          <SafeText text={call.id ?? "no id"} />
        </span>
      </h3>
      {text ? (
        <LongText
          label={`Arguments of ${call.name ?? "the call"}, as ${props.of} has them`}
          text={text}
          parts={parts}
          hue={own?.hue}
          marked={call.added}
        />
      ) : (
        <p class="muted">(no bytes)</p>
      )}
    </div>
  );
}

/** The texts of the reply up to an event; null: all of it. */
function ReplySoFar({ docs, upTo }: TabProps & { upTo: number | null }) {
  return (
    <>
      {docs.show.text.map((each) => {
        const last = upTo === null ? undefined : each.fragments.findLast((f) => f.event <= upTo);
        if (upTo !== null && !last) return null;
        const end = last ? last.range[1] : null;
        const text = end === null ? each.text : firstPoints(each.text, end);
        const marked = last?.event === upTo ? (last?.range ?? null) : null;
        return (
          <div class="building" key={`${each.choice}:${each.channel}`}>
            <h3>{each.channel}</h3>
            <LongText prose label={`The ${each.channel} so far`} text={text} marked={marked} />
          </div>
        );
      })}
    </>
  );
}

/** The first code points of a text. */
function firstPoints(text: string, count: number): string {
  if (!/[\ud800-\udbff]/.test(text)) return text.slice(0, count);
  let unit = 0;
  for (let point = 0; point < count && unit < text.length; point++) {
    unit += (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, unit);
}

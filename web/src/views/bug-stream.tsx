// The place in the stream where it went wrong: the events around it, with the waits between them and
// the cut to scale, and what had arrived by then.
import { useState } from "preact/hooks";
import { type Piece, Pieces } from "../components/pieces";
import { SafeText, safe } from "../components/text";
import { bytes, duration, hueOf, plural } from "../format";
import { toExchange } from "../router";
import { type Bug, decisive, inRequest, To } from "./bug";

export function StreamPicture({ bug }: { bug: Bug }) {
  const { show, why } = bug;
  const healthy = why.verdict.kind === "healthy";
  const decided = decisive(why);
  const asked = decided !== null && inRequest(bug, decided);
  const there = { ...bug.at, exchange: decided?.exchange ?? bug.at.exchange };
  return (
    <section class="stream-picture" aria-labelledby="picture">
      <h2 id="picture">
        {healthy || asked ? "What arrived" : "Where it went wrong in the stream"}
      </h2>
      {asked && (
        <p>
          The mistake is not in this response but in{" "}
          <To exchange={there} tab="request">
            what the app sent in request #{there.exchange}
          </To>
          .
        </p>
      )}
      <p class="muted">
        <SafeText text={told(bug)} />
      </p>
      {!healthy &&
        (show.events.length > 0 ? (
          <Around bug={bug} title={asked ? "Its last events" : "The events around it"} />
        ) : (
          <NoEvents bug={bug} />
        ))}
      <Arrived bug={bug} />
    </section>
  );
}

/** When what happened, in words; the time axis above shows it to scale. */
function told({ why, show }: Bug): string {
  const { axis } = why;
  const began = axis.request_ns ?? 0;
  const parts = [];
  if (axis.first_event_ns !== null) {
    parts.push(`the first event came after ${duration(axis.first_event_ns - began)}`);
  } else parts.push("no event came");
  for (const zone of axis.dead_zones) {
    const after = duration(zone.from_ns - began);
    parts.push(`${duration(zone.to_ns - zone.from_ns)} of silence after ${after}`);
  }
  if (axis.end_ns !== null) {
    parts.push(`it ended after ${duration(axis.end_ns - began)}: ${show.recording.ended}`);
  } else parts.push("it has not ended");
  return `${parts.join("; ")}.`.replace(/^./, (first) => first.toUpperCase());
}

// The events around the place.

const NEAR = 4;
const MORE = 30;
const DATA = 1200; // characters of an event that are shown here

function Around({ bug, title }: { bug: Bug; title: string }) {
  const { show, why } = bug;
  const decided = decisive(why);
  const last = show.events.length - 1;
  const own = decided?.exchange === bug.at.exchange ? decided.event : null;
  const zone = why.axis.dead_zones.find((each) => each.code === why.verdict.code);
  const place = own ?? zone?.event ?? last;
  const [near, setNear] = useState(NEAR);
  const from = Math.max(0, place - near);
  const to = Math.min(last, place + near);
  const shown = show.events.slice(from, to + 1);
  const waits = shown.map((event, at) => {
    const before = show.events[from + at - 1]?.t_ns ?? why.axis.sent_ns ?? why.axis.request_ns;
    return event.t_ns === null || before === null ? 0 : event.t_ns - before;
  });
  const end = to === last ? why.axis.end_ns : null;
  const lastAt = show.events[last]?.t_ns ?? null;
  const untilEnd = end !== null && lastAt !== null ? end - lastAt : 0;
  const longest = Math.max(1, untilEnd, ...waits);
  const began = why.axis.request_ns;
  return (
    <>
      <h3>{title}</h3>
      <ol class="around">
        {from > 0 && (
          <li>
            <button type="button" onClick={() => setNear(near + MORE)}>
              {plural(from, "event")} before
            </button>
          </li>
        )}
        {shown.map((event, at) => {
          const here = event.event === place && (own !== null || zone !== undefined);
          return (
            <li key={event.event} class={here ? "here" : ""} aria-current={here || undefined}>
              <Wait ns={waits[at] ?? 0} longest={longest} />
              <p class="head">
                <a href={toExchange(bug.at, { event: String(event.event) })}>event {event.event}</a>{" "}
                <span class="muted">
                  {event.t_ns !== null && began !== null && `+${duration(event.t_ns - began)}`}
                  {event.read !== null && ` read ${event.read}`}
                  {event.line !== null && ` tape line ${event.line}`} bytes {event.span[0]} to{" "}
                  {event.span[1]}
                </span>{" "}
                {here && <strong class="here-word">here</strong>}
              </p>
              {event.brings.length > 0 && (
                <p class="new">
                  <SafeText text={event.new} />
                </p>
              )}
              <Pieces pieces={data(event.data, here ? (decided?.evidence ?? "") : "")} />
            </li>
          );
        })}
        {to < last ? (
          <li>
            <button type="button" onClick={() => setNear(near + MORE)}>
              {plural(last - to, "event")} after
            </button>
          </li>
        ) : (
          <li class={show.exchange.ending === "complete" ? "end" : "end cut"}>
            <Wait ns={untilEnd} longest={longest} />
            <strong>{capital(safe(show.recording.ended))}</strong>
          </li>
        )}
      </ol>
    </>
  );
}

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

const LONG_NS = 1e9; // a wait that catches the eye

/** How long nothing came before an event, as a bar. */
function Wait({ ns, longest }: { ns: number; longest: number }) {
  if (ns <= 0 || longest < LONG_NS) return null; // such waits say nothing
  return (
    <span class={ns >= LONG_NS ? "wait long" : "wait"}>
      <span class="length" style={{ width: `${(ns / longest) * 100}%` }} />
      <span class="muted">{duration(ns)}</span>
    </span>
  );
}

/** An event's data; what a finding shows of it is marked. */
function data(text: string, evidence: string): Piece[] {
  const at = evidence ? text.indexOf(evidence) : -1;
  if (at < 0) return [{ text: text.length > DATA ? `${text.slice(0, DATA)} ...` : text }];
  const from = Math.max(0, at - DATA / 2);
  const to = at + evidence.length;
  return [
    { text: `${from > 0 ? "... " : ""}${text.slice(from, at)}` },
    { text: evidence, as: "mark" as const, class: "evidence" },
    { text: text.slice(to, to + DATA / 2) },
  ].filter((each) => each.text);
}

function NoEvents({ bug }: { bug: Bug }) {
  const { response, recording } = bug.show;
  return (
    <p>
      {response
        ? `Status ${response.status}, ${bytes(response.bytes)} of a body, and no event in it. `
        : "No response came. "}
      {capital(safe(recording.ended))}.
    </p>
  );
}

// What had arrived.

/** Whether an event is one of a call. */
const isAbout = (event: number | null, call: Bug["show"]["calls"][number]) =>
  event === call.start_event || call.fragments.some((each) => each.event === event);

const WHOLE = new Set(["complete", "empty_ok"]);

function Arrived({ bug }: { bug: Bug }) {
  const { show, why } = bug;
  const calls = [...show.calls, ...show.server_calls, ...show.text_calls];
  const texts = show.text.filter((each) => each.text);
  if (calls.length + texts.length === 0) return null;
  return (
    <>
      {why.verdict.kind !== "healthy" && <h3>What had arrived</h3>}
      {calls.map((call, at) => {
        const whole = WHOLE.has(call.status);
        const strange =
          whole && why.findings.some((each) => each.code === "T008" && isAbout(each.event, call));
        return (
          <div
            class={`call-card ${whole && !strange ? "" : "broken"}`}
            key={`${call.kind}${call.choice}${call.index}`}
          >
            <p>
              <span class={`of ${hueOf(at)}`}>call {call.index}</span>{" "}
              <strong>{call.name === null ? "no name" : <SafeText text={call.name} />}</strong>{" "}
              <span class="muted">{call.id === null ? "no id" : <SafeText text={call.id} />}</span>{" "}
              <span class={whole ? "right-word" : "wrong-word"}>
                {whole ? "✓" : "✗"} {call.status.replaceAll("_", " ")}
              </span>{" "}
              {strange && <span class="wrong-word">✗ violates the tool's schema</span>}
            </p>
            <Pieces
              pieces={call.fragments.map((each) => ({
                text: each.text,
                class: `fragment ${hueOf(at)}`,
                title: `event ${each.event}`,
              }))}
              none="(no arguments)"
            />
            {call.status === "truncated" && (
              <span class="cut-here">
                <span aria-hidden="true">✂</span> the arguments end here
              </span>
            )}
          </div>
        );
      })}
      {texts.map((each) => (
        <div class="arrived-text" key={`${each.choice}${each.channel}`}>
          <p class="muted">{each.channel}</p>
          <Pieces pieces={[{ text: each.text }]} />
        </div>
      ))}
    </>
  );
}

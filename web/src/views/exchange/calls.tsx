// The final arguments, each character with the event, the read, the bytes and the time of it.
import { useState } from "preact/hooks";
import { LongText, type TextPart } from "../../components/long-text";
import { Many } from "../../components/pieces";
import { SafeText } from "../../components/text";
import { bytes, duration, plural } from "../../format";
import type { Documents, Event, ReplyText, ShownCall } from "./documents";
import type { TabProps } from "./events";
import { indented } from "./json-text";
import type { Selection } from "./state";

export function CallsTab({ docs, at }: TabProps) {
  const chosen = at.char.value?.call;
  return (
    <div class="calls">
      <p class="muted">
        Colours change where an event brought the next part. Click a character, or walk with the
        arrow keys, to see where it came from.
      </p>
      <Origin docs={docs} at={at} />
      <Many
        of={docs.calls}
        what="calls"
        telling={(each) => each.place === chosen || !GOOD.has(each.call.status)}
      >
        {(each) => <CallPart key={each.place} docs={docs} at={at} call={each} />}
      </Many>
      {docs.calls.length === 0 && <p>The reply has no calls.</p>}
      {docs.show.text.map((each, index) => (
        <TextOfReply
          key={`${each.choice}:${each.channel}`}
          docs={docs}
          at={at}
          text={each}
          place={docs.calls.length + index}
        />
      ))}
    </div>
  );
}

/** Where the selected character, or the selected event, is from. */
function Origin({ docs, at }: TabProps) {
  const event = docs.event(at.event.value);
  const char = at.char.value;
  const origin = docs.show.axis.request_ns;
  return (
    <p class="origin" role="status" aria-live="polite">
      {char && (
        <>
          <strong>Character {char.offset.toLocaleString("en")}</strong> of{" "}
          {docs.calls[char.call]?.label ?? "the text"}
          {event ? ": " : ": no event brought it."}
        </>
      )}
      {event ? (
        <>
          <strong>event {event.event}</strong>
          {event.read === null ? "" : `, read ${event.read}`}, bytes{" "}
          {event.span[0].toLocaleString("en")} to {event.span[1].toLocaleString("en")}
          {event.t_ns === null || origin === null ? "" : `, ${duration(event.t_ns - origin)}`}{" "}
          <button type="button" onClick={() => at.open("events")}>
            Show the event
          </button>{" "}
          <button type="button" onClick={() => at.open("raw")}>
            Show its bytes
          </button>
        </>
      ) : (
        !char && <span class="muted">Nothing is selected.</span>
      )}
    </p>
  );
}

/** The characters that an event brought. */
function broughtBy(parts: readonly TextPart[], event: number | null): [number, number] | null {
  if (event === null) return null;
  const own = parts.filter((each) => each.event === event);
  const first = own[0];
  const last = own.at(-1);
  return first && last ? [first.range[0], last.range[1]] : null;
}

function select(docs: Documents, at: Selection, parts: readonly TextPart[], place: number) {
  return (offset: number) => {
    const part = parts.find((each) => offset >= each.range[0] && offset < each.range[1]);
    const event = docs.event(part?.event);
    at.selectChar(place, offset, part?.event ?? null, event?.read ?? null);
  };
}

const GOOD = new Set(["complete", "empty_ok"]);

function CallPart({ docs, at, call: shown }: TabProps & { call: ShownCall }) {
  const { call, hue, label, place } = shown;
  const [pretty, setPretty] = useState(false);
  const char = at.char.value;
  const repaired = call.arguments !== call.arguments_raw;
  const open: Event | undefined = docs.event(call.start_event);
  const cut = (call as { cut?: { arguments_raw?: { bytes: number } } }).cut?.arguments_raw;
  return (
    <section class="call" aria-label={`${label} ${call.name ?? ""}`}>
      <h2>
        <span class={hue}>
          {label}: <SafeText text={call.name ?? "(no name)"} />
        </span>{" "}
        <span class={`badge ${GOOD.has(call.status) ? "healthy" : "severity-error"}`}>
          {call.status.replaceAll("_", " ")}
        </span>{" "}
        {call.repairs.length > 0 && (
          <span class="badge severity-warning">mended: {call.repairs.join(", ")}</span>
        )}
      </h2>
      <p class="muted">
        id{" "}
        <code>
          <SafeText text={call.id ?? "none"} />
        </code>
        , index on the wire {call.wire_index ?? "none"}, {call.kind},{" "}
        {plural(call.fragments.length, "fragment")},{" "}
        {plural(call.arguments_raw.length, "character")}, opened by{" "}
        <button
          type="button"
          class="link"
          onClick={() => {
            at.selectEvent(call.start_event, open?.read ?? null);
            at.open("events");
          }}
        >
          event {call.start_event}
        </button>{" "}
        <button type="button" aria-pressed={pretty} onClick={() => setPretty(!pretty)}>
          indented
        </button>
      </p>
      {pretty ? (
        <LongText
          label={`Arguments of ${label}, indented`}
          text={indented(call.arguments)}
          hue={hue}
        />
      ) : call.arguments_raw ? (
        <LongText
          label={`Arguments of ${label}, by fragment`}
          text={call.arguments_raw}
          parts={call.fragments}
          hue={hue}
          at={char?.call === place ? char.offset : null}
          marked={broughtBy(call.fragments, at.event.value)}
          onAt={select(docs, at, call.fragments, place)}
        />
      ) : (
        <p class="muted">(no bytes)</p>
      )}
      {cut && (
        <p class="muted">The beginning of {bytes(cut.bytes)}; load the whole exchange above.</p>
      )}
      {repaired && !pretty && (
        <>
          <h3>What a correct client passes on</h3>
          <LongText label={`Arguments of ${label}, mended`} text={call.arguments} hue={hue} />
        </>
      )}
    </section>
  );
}

const CHANNELS: Record<string, string> = {
  text: "Text",
  reasoning: "Reasoning",
  refusal: "Refusal",
};

function TextOfReply(props: TabProps & { text: ReplyText; place: number }) {
  const { docs, at, text, place } = props;
  const char = at.char.value;
  const name = CHANNELS[text.channel] ?? text.channel;
  return (
    <section class="call">
      <h2>
        {name}
        {text.choice ? ` of choice ${text.choice}` : ""}
      </h2>
      <LongText
        prose
        label={`${name} of the reply, by fragment`}
        text={text.text}
        parts={text.fragments}
        at={char?.call === place ? char.offset : null}
        marked={broughtBy(text.fragments, at.event.value)}
        onAt={select(docs, at, text.fragments, place)}
      />
    </section>
  );
}

// The bug, seen: whose fault, what, where, what to change; below it the place where it shows.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Code, Severity } from "../components/badge";
import { Command } from "../components/copy";
import { Shown } from "../components/states";
import { SafeText, safe } from "../components/text";
import { duration, plural } from "../format";
import { useLoaded } from "../load";
import { type Ref, toExchange } from "../router";
import { CODES } from "../schema/codes";
import type { Worst } from "../schema/exchanges";
import type { ExchangeDocument as ShowDocument } from "../schema/show";
import type { StepsDocument } from "../schema/steps";
import type { Finding, WhyDocument } from "../schema/why";
import { type Row, source, start } from "../source";
import { CallsPicture, storyOf } from "./bug-calls";
import { StreamPicture } from "./bug-stream";

/** All that is known of an exchange whose bug is shown. */
export interface Bug {
  at: Ref;
  why: WhyDocument;
  show: ShowDocument;
  /** The exchange whose response the app read: the same, or the provider's behind the app's own page. */
  stream: ShowDocument;
  steps: StepsDocument;
  thread: Row[];
}

interface BugViewProps {
  at: Ref;
  /** Of that exchange; others while it goes on. */
  why: WhyDocument;
  show: ShowDocument;
}

export function BugView({ at, why, show }: BugViewProps) {
  const key = `${at.tape}#${at.exchange} ${show.events.length} ${show.exchange.open}`;
  const loaded = useLoaded(key, async () => {
    // The list may not have come to this exchange yet; its bug can be shown without.
    const rows = source.thread(at).catch(() => []);
    const [steps, thread] = await Promise.all([source.steps(at), rows]);
    const behind = steps.stream !== at.exchange;
    const other = behind ? await source.show({ ...at, exchange: steps.stream }) : null;
    return { steps, thread, other };
  });
  const more = loaded.value;
  const bug = useMemo(
    () => more && { at, why, show, stream: more.other ?? show, ...more },
    [more, why, show],
  );
  return (
    <Shown of={loaded} what="the explanation">
      {() => bug && <TheBug bug={bug} />}
    </Shown>
  );
}

function TheBug({ bug }: { bug: Bug }) {
  const { why, stream } = bug;
  const { blame, kind } = why.verdict;
  const [chosen, choose] = useState(0);
  const suspect = blame === "app" ? bug.steps.suspects[chosen] : undefined;
  const story = useMemo(() => storyOf(bug, suspect), [bug, suspect]);
  // What the app did shows in what it made of the calls; anything else, in the stream itself.
  const changed = why.repetition?.calls.some((each) => each.differs) ?? false;
  const ofApp = blame === "app" || kind === "healthy" || (kind !== "blamed" && changed);
  const calls = stream.calls.length + stream.text_calls.length > 0 || why.repetition !== null;
  return (
    <article class="bug">
      <Conclusion bug={bug} chosen={chosen} mistake={story.mistake} />
      <Tries bug={bug} />
      {ofApp && calls ? (
        <CallsPicture bug={bug} story={story} chosen={chosen} choose={choose} />
      ) : (
        <StreamPicture bug={bug} />
      )}
      <Others bug={bug} />
      <Thread bug={bug} />
    </article>
  );
}

/** The finding that the verdict rests on. */
export const decisive = (why: WhyDocument): Finding | null =>
  why.findings.find((each) => each.code === why.verdict.code) ?? null;

// The conclusion.

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);
const SIGNS = { healthy: "✓", blamed: "✗", nobody: "○", unprovable: "?" };

interface ConclusionProps {
  bug: Bug;
  /** The place of the suspect that is looked at. */
  chosen: number;
  mistake: number | null;
}

function Conclusion({ bug, chosen, mistake }: ConclusionProps) {
  const { why } = bug;
  const { verdict, conclusion } = why;
  const decided = decisive(why);
  const suspect = why.suspects[chosen] ?? why.suspects[0];
  const alike = why.suspects.filter((each) => each.exact).length;
  const fix =
    chosen > 0 && suspect ? `if the app behaves like ${suspect.name}: ${suspect.fix}` : verdict.fix;
  const excluded = decided?.excluded ?? [];
  const also = alsoAtFault(why);
  const told = (text: string) => conclusion.what.some((each) => each.includes(text));
  return (
    <section class={`conclusion is-${verdict.kind}`} aria-labelledby="verdict">
      <header>
        <h2 id="verdict">
          <span class="sign" aria-hidden="true">
            {SIGNS[verdict.kind]}
          </span>{" "}
          {capital(verdict.shown)}
          <Also why={why} />
        </h2>
        {decided && <Code code={decided.code} name={decided.name} />}
      </header>
      <p class="means">{verdict.means}</p>
      <dl>
        <Told name="What happened">
          {conclusion.what.map((each) => (
            <p key={each} class="what">
              <SafeText text={`${capital(each)}.`} />
            </p>
          ))}
          {suspect && !told(suspect.says) && (
            <p>
              The app behaves like <strong>{suspect.name}</strong>
              {alike > 1 && ` (or one of ${alike - 1} below that would do the same)`}: it{" "}
              <SafeText text={suspect.says} />.
            </p>
          )}
        </Told>
        {(decided || mistake !== null) && (
          <Told name="Where">
            <Places bug={bug} decided={decided} mistake={mistake} />
          </Told>
        )}
        <Told name="What to change">
          <p class="fix">
            <SafeText text={`${capital(fix)}.`.replace(/\.\.$/, ".")} />
          </p>
        </Told>
        {excluded.length > 0 && (
          <Told name="Ruled out">
            <ul class="excluded">
              {excluded.map((each) => (
                <li key={each.explanation}>
                  <SafeText text={`${capital(each.explanation)}?`} />
                  <span class="because">
                    {" "}
                    No: <SafeText text={each.because} />.
                  </span>
                </li>
              ))}
            </ul>
          </Told>
        )}
        {also.map((each) => (
          <Told key={`${each.code}${each.exchange}${each.message}`} name="Also at fault">
            <p>
              <strong>{capital(blamed(each))}</strong>, <Code code={each.code} name={each.name} />
              {!told(each.message) && (
                <>
                  : <SafeText text={each.message} />.
                </>
              )}
            </p>
            <p>
              <PlaceOf bug={bug} of={each} />
            </p>
            <p>
              <strong>
                <SafeText text={`${capital(each.hint)}.`} />
              </strong>
            </p>
          </Told>
        ))}
        {verdict.possible.length > 0 && (
          <Told name="Possible, not provable">
            <ul>
              {byCode(verdict.possible).map(([first, more]) => (
                <li key={first.code}>
                  <Code code={first.code} name={first.name} /> <SafeText text={first.message} />
                  {more > 0 && <span class="muted"> and {more} more like it</span>}
                </li>
              ))}
            </ul>
          </Told>
        )}
        <Elsewhere bug={bug} />
        <Told name="Next">
          <p>{capital(conclusion.next.what)}:</p>
          <Command text={conclusion.next.command} />
        </Told>
      </dl>
    </section>
  );
}

const OTHERS = 8;

/** What is wrong in other exchanges of the conversation, so that one need not open each. */
function Elsewhere({ bug: { thread, at, why } }: { bug: Bug }) {
  const wrong = new Map<string, [Worst, Row[]]>();
  const decided = decisive(why);
  for (const row of thread) {
    if (!row.worst) continue;
    const here = row.tape === at.tape;
    // A finding about an earlier reply counts for that, and is the one that is shown here.
    const shown = row.exchange === decided?.against?.exchange && row.worst.code === decided.code;
    if (here && (row.exchange === at.exchange || shown)) continue;
    const key = `${row.worst.code} ${blamed(row.worst)}`;
    const [, rows] = wrong.get(key) ?? [];
    if (rows) rows.push(row);
    else wrong.set(key, [row.worst, [row]]);
  }
  if (wrong.size === 0) return null;
  return (
    <Told name="Also in this conversation">
      <ul>
        {[...wrong].map(([key, [worst, rows]]) => (
          <li key={key}>
            {rows.slice(0, OTHERS).map((row) => (
              <span key={`${row.tape}#${row.exchange}`}>
                <To exchange={row}>#{row.exchange}</To>{" "}
              </span>
            ))}
            {rows.length > OTHERS && `and ${rows.length - OTHERS} more `}
            <Code code={worst.code} name={worst.name} />
            {worst.blame && ` (${blamed(worst)})`}: {CODES[worst.code]?.says}
          </li>
        ))}
      </ul>
    </Told>
  );
}

/** Whose fault a finding is, and how sure that is. */
const blamed = ({ blame, confidence }: Pick<Finding, "blame" | "confidence">) =>
  `${blame}, ${confidence}`;

/** Errors of somebody else than the verdict blames, such as of an app that runs a call that was cut. */
function alsoAtFault(why: WhyDocument): Finding[] {
  const { blame, kind } = why.verdict;
  if (kind !== "blamed" && kind !== "nobody") return [];
  const others = why.findings.filter(
    (each) =>
      each.severity === "error" &&
      each.confidence !== "possible" &&
      each.blame !== null &&
      each.blame !== blame,
  );
  return byCode(others).map(([first]) => first);
}

/** Goes on from the words of the verdict with whom it does not blame. */
export function Also({ why }: { why: WhyDocument }) {
  const [first] = alsoAtFault(why);
  if (!first) return null;
  return (
    <span class="also">
      {why.verdict.kind === "nobody" ? "; but also " : "; also "}
      {blamed(first)}
    </span>
  );
}

/** The first finding of each code, and how many follow. */
function byCode(findings: readonly Finding[]): [Finding, number][] {
  const first = findings.filter(
    (each, at) => findings.findIndex((other) => other.code === each.code) === at,
  );
  return first.map((each) => [
    each,
    findings.filter((other) => other.code === each.code).length - 1,
  ]);
}

function Told(props: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

// Places.

/** A link to an exchange, or to one of its events; a report holds no other exchange. */
export function To(props: {
  exchange: Ref;
  event?: number;
  tab?: string;
  children: ComponentChildren;
}) {
  const { exchange, event, tab, children } = props;
  if (!source.whole && exchange.exchange !== start?.exchange) return <>{children}</>;
  const query = {
    ...(event !== undefined && { event: String(event) }),
    ...(tab !== undefined && { tab }),
  };
  return (
    <a href={toExchange({ tape: exchange.tape, exchange: exchange.exchange }, query)}>{children}</a>
  );
}

/** Whether a finding is about the request of its exchange, so about what the app sent. */
export const inRequest = ({ at, why }: Bug, of: Finding) =>
  of.exchange !== at.exchange ||
  (of.event === null && of.t_ns !== null && of.t_ns === why.axis.request_ns);

/** Whether the app printed what a finding is about. */
const isPrinted = ({ at, show }: Bug, of: Finding) =>
  of.exchange === at.exchange && of.line === null && show.log.some((each) => each.t_ns === of.t_ns);

/** Where a finding is: links to the event, and the numbers that one looks for in the tape. */
export function PlaceOf({ bug, of }: { bug: Bug; of: Finding }) {
  const elsewhere = of.exchange !== bug.at.exchange;
  const to = { ...bug.at, exchange: of.exchange };
  const event = of.event === null ? undefined : bug.show.events[of.event];
  const began = bug.why.axis.request_ns;
  const own = !elsewhere && inRequest(bug, of);
  const parts: ComponentChildren[] = [];
  if (elsewhere) parts.push(<To exchange={to}>exchange #{of.exchange}</To>);
  if (own) parts.push("this request");
  const before = event || own || elsewhere ? undefined : lastBefore(bug, of);
  if (before) {
    parts.push(
      <>
        after{" "}
        <To exchange={bug.at} event={before.event}>
          event {before.event}
        </To>
      </>,
    );
  }
  if (of.event !== null) {
    parts.push(
      <To exchange={to} event={of.event}>
        event {of.event}
      </To>,
    );
  }
  if (!elsewhere && event?.read != null) parts.push(`read ${event.read}`);
  if (of.t_ns !== null && began !== null && !own) {
    const since = elsewhere ? `the request of #${bug.at.exchange}` : "the request";
    parts.push(`${duration(of.t_ns - began)} after ${since}`);
  }
  if (of.line !== null) parts.push(`tape line ${of.line}`);
  if (of.span) {
    const [from, to] = of.span;
    parts.push(from === to ? `at byte ${from}` : `bytes ${from} to ${to}`);
  }
  if (parts.length === 0) parts.push("the exchange as a whole");
  return (
    <span class="place">
      {parts.map((part, at) => (
        <span key={at}>{part}</span>
      ))}
    </span>
  );
}

/** The last event before a finding that is about none. */
function lastBefore({ show }: Bug, { t_ns }: Finding) {
  if (t_ns === null) return undefined;
  return show.events.findLast((each) => each.t_ns !== null && each.t_ns <= t_ns);
}

interface PlacesProps {
  bug: Bug;
  /** What the verdict rests on; null: only on the suspect. */
  decided: Finding | null;
  /** The event at which the suspect goes wrong. */
  mistake: number | null;
}

function Places({ bug, decided, mistake }: PlacesProps) {
  const { at, stream, steps, why } = bug;
  const others = new Set(why.timeline.map((each) => each.exchange));
  others.delete(at.exchange);
  const wrong = stream.events.find((each) => each.event === mistake);
  const began = stream.axis.request_ns;
  const ofStream = { ...at, exchange: steps.stream };
  return (
    <>
      {wrong && (
        <p>
          First mistake:{" "}
          <span class="place">
            <span>
              <To exchange={ofStream} event={wrong.event}>
                event {wrong.event}
              </To>
            </span>
            {ofStream.exchange !== at.exchange && <span>of #{ofStream.exchange}</span>}
            {wrong.read !== null && <span>read {wrong.read}</span>}
            {wrong.t_ns !== null && began !== null && (
              <span>{duration(wrong.t_ns - began)} after the request</span>
            )}
            {wrong.line !== null && <span>tape line {wrong.line}</span>}
          </span>
        </p>
      )}
      {deliveredAt(bug).map((each) => (
        <p key={each.call}>
          Delivered, {each.call}:{" "}
          <span class="place">
            <span>
              <To exchange={at} event={each.first}>
                {each.first === each.last
                  ? `event ${each.first}`
                  : `events ${each.first} to ${each.last}`}
              </To>
            </span>
            {each.line !== null && <span>complete at tape line {each.line}</span>}
          </span>
        </p>
      ))}
      {decided ? (
        <p>
          {sideOf(bug, decided)}: <PlaceOf bug={bug} of={decided} />
        </p>
      ) : (
        [...others].map((each) => (
          <p key={each}>
            See also: <To exchange={{ ...at, exchange: each }}>exchange #{each}</To>
          </p>
        ))
      )}
    </>
  );
}

/** Who sent what a finding is about. */
function sideOf(bug: Bug, finding: Finding): string {
  const { show, why } = bug;
  const entry = why.timeline.find(
    (each) => each.t_ns === finding.t_ns && each.codes.includes(finding.code),
  );
  if (entry?.source === "log" || isPrinted(bug, finding)) return "Printed by the app";
  if (inRequest(bug, finding)) return "Sent by the app";
  return show.recording.tap === "app" ? "Sent by the app to its page" : "On the wire";
}

/** Where the calls that the app changed or lost were delivered. */
function deliveredAt({ why, show }: Bug) {
  if (why.verdict.blame !== "app") return [];
  const found = [];
  for (const [at, pair] of (why.repetition?.calls ?? []).entries()) {
    const call = show.calls[at];
    if (!call || !pair.differs) continue;
    const last = call.fragments.at(-1)?.event ?? call.start_event;
    found.push({
      call: `call ${at}`,
      first: call.start_event,
      last,
      line: show.events[last]?.line ?? null,
    });
  }
  return found;
}

// What else there is.

function Others({ bug }: { bug: Bug }) {
  const shown = [decisive(bug.why), ...alsoAtFault(bug.why)];
  const others = bug.why.findings.filter((each) => !shown.includes(each));
  if (others.length === 0) return null;
  return (
    <section aria-labelledby="others">
      <h2 id="others">{plural(others.length, "more finding")}</h2>
      <ul class="findings">
        {[...grouped(others)].map(([code, [first, ...more]]) => (
          <li key={code}>
            <details>
              <summary>
                <Severity is={first.severity} /> <Code code={first.code} name={first.name} />{" "}
                {first.blame && <span class="badge">{blamed(first)}</span>}{" "}
                <SafeText text={first.message} />
                {more.length > 0 && <span class="muted"> and {more.length} more like it</span>}
              </summary>
              {[first, ...more].map((each) => (
                <Other key={`${each.exchange}${each.event}${each.message}`} bug={bug} of={each} />
              ))}
              <p>
                What to do: <SafeText text={first.hint} />
              </p>
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Findings by their code, in their order. */
function grouped(findings: readonly Finding[]) {
  const groups = new Map<string, [Finding, ...Finding[]]>();
  for (const each of findings) {
    const group = groups.get(`${each.code} ${each.severity}`);
    if (group) group.push(each);
    else groups.set(`${each.code} ${each.severity}`, [each]);
  }
  return groups;
}

function Other({ bug, of }: { bug: Bug; of: Finding }) {
  return (
    <div class="other">
      <p>
        <PlaceOf bug={bug} of={of} />: <SafeText text={of.message} />
      </p>
      {of.evidence && (
        <p>
          Evidence: <code>{<SafeText text={of.evidence} />}</code>
        </p>
      )}
      {of.excluded.map((one) => (
        <p key={one.explanation}>
          Ruled out: <SafeText text={`${one.explanation}: ${one.because}`} />
        </p>
      ))}
    </div>
  );
}

/** The equal requests of which this is one. */
function Tries({ bug }: { bug: Bug }) {
  const { attempts } = bug.why;
  if (!attempts) return null;
  const longest = Math.max(1, ...attempts.tries.map((each) => each.pause_ns ?? 0));
  return (
    <section aria-labelledby="tries">
      <h2 id="tries">
        The same request, {attempts.tries.length} times:{" "}
        {attempts.answered ? "answered at last" : "never answered"}
      </h2>
      <ol class="tries">
        {attempts.tries.map((each) => (
          <li
            key={each.exchange}
            aria-current={each.exchange === bug.at.exchange ? "true" : undefined}
          >
            {each.pause_ns !== null && (
              <span class="pause">
                <span class="length" style={{ width: `${(each.pause_ns / longest) * 8}rem` }} />
                waited {duration(each.pause_ns)}
              </span>
            )}
            <To exchange={{ ...bug.at, exchange: each.exchange }}>#{each.exchange}</To>{" "}
            <SafeText text={each.outcome} />
            {each.changed && (
              <span class="muted">
                {" "}
                changed: <SafeText text={each.changed} />
              </span>
            )}
          </li>
        ))}
      </ol>
      {attempts.exit_code !== null && (
        <p>Then the app ended with exit code {attempts.exit_code}.</p>
      )}
    </section>
  );
}

const MARKS: Record<string, string> = {
  retry: "asked again after a failure",
  loop: "repeats calls",
  unanswered: "its calls were never answered",
  "lost-call": "a call of its reply was lost",
  "orphan-result": "brings a result without its call",
};

/** The conversation, where something in it repeats, is lost or is left open. */
function Thread({ bug }: { bug: Bug }) {
  const { thread, at, why } = bug;
  const marks = thread.flatMap((row) => row.marks);
  const told = why.attempts !== null && marks.every((each) => each === "retry");
  if (thread.length < 2 || marks.length === 0 || told) return null;
  return (
    <section aria-labelledby="thread">
      <h2 id="thread">The conversation: {plural(thread.length, "exchange")}</h2>
      <ol class="thread">
        {thread.map((row) => {
          const own = row.exchange === at.exchange && row.tape === at.tape;
          return (
            <li key={`${row.tape}#${row.exchange}`} aria-current={own ? "true" : undefined}>
              <To exchange={row}>#{row.exchange}</To>
              <span>
                {row.called.length > 0 ? <code>{safe(row.called.join("; "))}</code> : "no call"}
                {row.calls > row.called.length && ` and ${row.calls - row.called.length} more`}
              </span>
              <span>{duration(row.duration_ns)}</span>
              {row.worst && (
                <span>
                  <Severity is={row.worst.severity} />{" "}
                  <Code code={row.worst.code} name={row.worst.name} />{" "}
                  {row.worst.blame && <span class="badge">{blamed(row.worst)}</span>}
                </span>
              )}
              {row.marks.map((mark) => (
                <span key={mark} class="thread-mark">
                  {MARKS[mark] ?? mark}
                </span>
              ))}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

// What is wrong, with the evidence, what to do, and why it is nothing harmless.
import { useEffect, useRef } from "preact/hooks";
import { Code, Severity } from "../../components/badge";
import { SafeText } from "../../components/text";
import { duration } from "../../format";
import { type Ref, toExchange } from "../../router";
import type { Finding } from "../../schema/why";
import { source } from "../../source";
import type { Event } from "./documents";
import type { TabProps } from "./events";

export function FindingsTab({ docs, at, of }: TabProps & { of: Ref }) {
  const { findings, verdict } = docs.why;
  if (findings.length === 0) {
    return (
      <p>
        deltatape found nothing wrong with this exchange.{" "}
        {verdict.kind === "healthy" ? "" : <SafeText text={verdict.summary} />}
      </p>
    );
  }
  const chosen = docs.finding(at.finding.value);
  return (
    <ol class="findings">
      {findings.map((each) => (
        <li key={`${docs.findingKey(each)}:${each.message}`}>
          <FindingPart docs={docs} at={at} of={of} finding={each} chosen={each === chosen} />
        </li>
      ))}
    </ol>
  );
}

function FindingPart(props: TabProps & { of: Ref; finding: Finding; chosen: boolean }) {
  const { docs, at, of, finding, chosen } = props;
  const own = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen) own.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const origin = docs.show.axis.request_ns;
  const here = finding.exchange === of.exchange;
  const event = here ? docs.event(finding.event) : undefined;
  const { against, span } = finding;
  const delivered =
    against?.exchange === of.exchange && against.span
      ? docs.show.events.find((each) => each.span[1] > (against.span?.[0] ?? 0))
      : undefined;
  const places = [
    finding.t_ns !== null && origin !== null && `at ${duration(finding.t_ns - origin)}`,
    span && `bytes ${span[0].toLocaleString("en")} to ${span[1].toLocaleString("en")}`,
    finding.line !== null && `tape line ${finding.line}`,
  ].filter(Boolean);
  const show = (to: Event) => {
    at.selectFinding(docs.findingKey(finding), to.event, to.read);
    at.open("events");
  };
  const blame = finding.blame ? `${finding.blame}, ${finding.confidence}` : finding.confidence;
  return (
    <article ref={own} class="finding" aria-current={chosen ? "true" : undefined}>
      <h2>
        <Severity is={finding.severity} /> <Code code={finding.code} name={finding.name} />{" "}
        <span class="badge">{blame}</span>
      </h2>
      <p>
        <SafeText text={finding.message} />
      </p>
      <p class="muted">
        {here ? (
          ""
        ) : (
          <>
            in <Other of={{ tape: finding.tape || of.tape, exchange: finding.exchange }} />{" "}
          </>
        )}
        {places.join(", ")}{" "}
        {event && (
          <button type="button" onClick={() => show(event)}>
            Show event {event.event}
          </button>
        )}
      </p>
      {finding.evidence && finding.evidence !== against?.evidence && (
        <pre class="evidence">
          <SafeText text={finding.evidence} />
        </pre>
      )}
      {against && (
        <div>
          <h3>
            Delivered in{" "}
            {against.exchange === of.exchange ? (
              "this exchange"
            ) : (
              <Other of={{ tape: against.tape || of.tape, exchange: against.exchange }} />
            )}{" "}
            {delivered && (
              <button type="button" onClick={() => show(delivered)}>
                Show event {delivered.event}
              </button>
            )}
          </h3>
          <pre class="evidence">
            <SafeText text={against.evidence} />
          </pre>
        </div>
      )}
      {finding.hint && (
        <p>
          <strong>What to do:</strong> <SafeText text={finding.hint} />
        </p>
      )}
      {finding.excluded.length > 0 && (
        <details>
          <summary>
            {finding.excluded.length === 1
              ? "Why it is not the innocent explanation"
              : `Why it is none of ${finding.excluded.length} innocent explanations`}
          </summary>
          <dl class="excluded">
            {finding.excluded.map((each) => (
              <div key={each.explanation}>
                <dt>
                  <SafeText text={each.explanation} />
                </dt>
                <dd>
                  no: <SafeText text={each.because} />
                </dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </article>
  );
}

/** An exchange beside this one; a report holds only this one. */
function Other({ of }: { of: Ref }) {
  if (!source.whole) return <>exchange {of.exchange}</>;
  return <a href={toExchange(of)}>exchange {of.exchange}</a>;
}

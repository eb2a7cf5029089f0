// What was asked: model, messages, tools; and the heads of request and response.
import { useMemo } from "preact/hooks";
import { LongText } from "../../components/long-text";
import { SafeText } from "../../components/text";
import { bytes, duration, plural } from "../../format";
import type { ExchangeDocument } from "../../schema/show";
import type { TabProps } from "./events";
import { indented } from "./json-text";

type Request = ExchangeDocument["request"];
type Headers = Request["headers"];

export function RequestTab({ docs }: TabProps) {
  const { request, response } = docs.show;
  const { connection } = request;
  const body = request.body ?? request.hex ?? "";
  const cut = (request as { cut?: { body?: { bytes: number } } }).cut?.body;
  const pretty = useMemo(() => indented(body), [body]);
  return (
    <div class="request">
      <section>
        <h2>
          <code>
            <SafeText text={`${request.method} ${request.target}`} />
          </code>
        </h2>
        <dl class="facts">
          <Fact name="upstream" value={request.upstream || "not known"} />
          <Fact name="model" value={request.model ?? "not named"} />
          <Fact name="stream" value={request.stream ? "yes" : "no"} />
          {request.tool_choice && <Fact name="tool choice" value={asText(request.tool_choice)} />}
          <Fact name="body" value={bytes(request.bytes)} />
          {connection && (
            <Fact
              name="connection"
              value={
                connection.reused
                  ? "used before"
                  : `new: connected in ${duration(connection.connect_ns)}${
                      connection.tls_ns ? `, TLS in ${duration(connection.tls_ns)}` : ""
                    }`
              }
            />
          )}
          {request.fault && <Fact name="not decoded" value={request.fault} />}
        </dl>
      </section>
      <div class="request-sides">
        <section aria-label="Messages">
          <h2>{plural(request.messages.length, "message")}</h2>
          {!request.known && (
            <p class="muted">The body is not a request that deltatape can read.</p>
          )}
          <ol class="messages">
            {request.messages.map((each, index) => (
              <li key={index}>
                <Message message={each} last={index === request.messages.length - 1} />
              </li>
            ))}
          </ol>
        </section>
        <section aria-label="Tools">
          <h2>{plural(request.tools.length, "tool")}</h2>
          {request.tools.map((each, index) => (
            <details key={index}>
              <summary class="mono">
                <SafeText text={each.name} />
              </summary>
              <LongText
                label={`Schema of ${each.name}`}
                text={each.parameters === null ? "no schema" : asText(each.parameters)}
              />
            </details>
          ))}
          {request.tools.length === 0 && <p class="muted">The request offers no tools.</p>}
        </section>
        <section>
          <h2>Request headers</h2>
          <HeaderTable headers={request.headers} name="Request headers" />
          {response && (
            <>
              <h2>
                Response headers: {response.status} <SafeText text={response.reason} />
              </h2>
              <HeaderTable headers={response.headers} name="Response headers" />
              {response.trailers.length > 0 && (
                <>
                  <h3>Trailers</h3>
                  <HeaderTable headers={response.trailers} name="Trailers" />
                </>
              )}
            </>
          )}
        </section>
      </div>
      <section>
        <h2>Body</h2>
        {body ? (
          <LongText label="Body of the request" text={pretty} />
        ) : (
          <p class="muted">The request has no body.</p>
        )}
        {cut && (
          <p class="muted">The beginning of {bytes(cut.bytes)}; load the whole exchange above.</p>
        )}
      </section>
    </div>
  );
}

const asText = (value: unknown) =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <SafeText text={value} />
      </dd>
    </div>
  );
}

function HeaderTable({ headers, name }: { headers: Headers; name: string }) {
  return (
    <table class="headers mono" aria-label={name}>
      <tbody>
        {headers.map((each, index) => (
          <tr key={index}>
            <th scope="row">
              <SafeText text={each.name} />
            </th>
            <td>
              <SafeText text={each.value} />
              {each.masked && <span class="muted"> (hidden by the recorder)</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Message({ message, last }: { message: Request["messages"][number]; last: boolean }) {
  const { text } = message;
  return (
    <details open={last || text.length < 2000}>
      <summary>
        <strong>{message.role}</strong>{" "}
        <span class="muted">
          {message.call_id ? `result of ${message.call_id}, ` : ""}
          {message.calls.length ? `${plural(message.calls.length, "call")}, ` : ""}
          {plural(text.length, "character")}
        </span>
      </summary>
      {text && <LongText prose label={`Text of the ${message.role} message`} text={text} />}
      {message.calls.map((call, index) => (
        <p key={index} class="mono">
          <SafeText text={`${call.name ?? "(no name)"} ${call.id ?? ""}`} />
          <br />
          <SafeText text={call.arguments.slice(0, 4000)} />
          {call.arguments.length > 4000 ? "…" : ""}
        </p>
      ))}
    </details>
  );
}

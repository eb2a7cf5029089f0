// From docs/show.schema.json: npm run types --prefix web

/**
 * One document for each part that can be asked for, and one for all of an exchange. Keys are added to, never renamed or removed, while the version stays. References lead to the other schemas beside this file.
 */
export type ShowDocument = (ExchangeDocument | CallsDocument | EventsDocument | ReadsDocument | LogDocument)
/**
 * What the app asked.
 */
export type Request = ({
/**
 * The HTTP method.
 */
method: string
/**
 * Path and query as sent upstream; asterisks stand for credentials.
 */
target: string
/**
 * Scheme, host and port that it was sent to; empty: unknown.
 */
upstream: string
/**
 * The version of HTTP.
 */
http: string
/**
 * As sent upstream, in order.
 */
headers: Header[]
/**
 * How many bytes the body had on the wire.
 */
bytes: number
/**
 * The body as text, its content-coding undone.
 */
body?: string
/**
 * The body in hexadecimal, its content-coding undone.
 */
hex?: string
/**
 * Why the content-coding could not be undone, or not completely; null: it was.
 */
fault: (string | null)
/**
 * How it got upstream; null: that is not on the tape.
 */
connection: (Connection | null)
known: Known
model: AskedModel
stream: Stream
tool_choice: ToolChoice
tools: Tools
messages: Messages
[k: string]: unknown
} & {
[k: string]: unknown
})
/**
 * Whether the body could be read; else there is no model, tool or message.
 */
export type Known = boolean
/**
 * The model that is asked; null: the request names none.
 */
export type AskedModel = (string | null)
/**
 * Whether it asks for a stream.
 */
export type Stream = boolean
/**
 * auto, none, required, or the name of the tool that the model must call; null: not said.
 */
export type ToolChoice = (string | null)
/**
 * Those that it offers to the model.
 */
export type Tools = Tool[]
/**
 * The history, in order; what the provider keeps is not in it.
 */
export type Messages = Message[]
/**
 * [start, end): where the text stands in arguments_raw of the call, or in the text of a choice, in characters (Unicode code points) from 0.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Range = [number, number]
/**
 * Its bytes in the response body, after content-coding.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span = [number, number]
/**
 * It has data, or hex where the bytes are not UTF-8.
 */
export type Read = ({
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * The tape line of its record, from 1; null: it was not taped.
 */
line: (number | null)
span?: Span1
/**
 * How many.
 */
bytes: number
/**
 * The bytes as text.
 */
data?: string
/**
 * The bytes in hexadecimal.
 */
hex?: string
/**
 * Of a WebSocket: who sent it.
 */
side?: ("client" | "server")
/**
 * Of a WebSocket: the kind of frame; dots after it where it goes on, before it where it went on.
 */
frame?: string
[k: string]: unknown
} & Read1)
/**
 * Unless it is of a WebSocket: its bytes in the response body, before content-coding.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span1 = [number, number]
export type Read1 = {
[k: string]: unknown
}
/**
 * It has line, or hex where the bytes are not UTF-8.
 */
export type LogLine = ({
/**
 * Nanoseconds since the tape began.
 */
t_ns: number
/**
 * Where the program printed it; output: stdout and stderr, which were one terminal, pipe or file.
 */
stream: ("stdout" | "stderr" | "output")
/**
 * The line without its end.
 */
line?: string
/**
 * Its bytes in hexadecimal.
 */
hex?: string
[k: string]: unknown
} & LogLine1)
export type LogLine1 = {
[k: string]: unknown
}

/**
 * show TAPE#N without a part: all of an exchange.
 */
export interface ExchangeDocument {
version: 1
exchange: Row
recording: Recording
request: Request
/**
 * The head of the response; null: none came.
 */
response: (Response | null)
reply: Reply
/**
 * Calls that the app is to run.
 */
calls: Call1[]
/**
 * Calls of tools that the app did not define; the provider runs them, unless their kind is built-in.
 */
server_calls: Call1[]
/**
 * Calls that the model wrote into its text.
 */
text_calls: Call2[]
/**
 * What the model wrote, by choice and channel; those with nothing are left out.
 */
text: Text[]
/**
 * Of a WebSocket: the responses on it, in order, with their requests; else empty.
 */
turns: Turn[]
/**
 * All events of the response, in order; of a WebSocket, the server's text messages. Places of reads are those of frames, if there are any.
 */
events: Event[]
/**
 * What each read from the upstream's socket brought of the response body, before content-coding.
 */
reads: Read[]
/**
 * Of a WebSocket: what was read of the frames of both sides; else empty.
 */
frames: Read[]
/**
 * The client's clock: how far a client had got that took bytes later than they came; empty: none did.
 */
delivered: Delivery[]
/**
 * What the recorded program printed from a second before the request to the next request, at most 1000 lines, those nearest to the end of the response.
 */
log: LogLine[]
axis: Axis
[k: string]: unknown
}
/**
 * Its row in the list of exchanges.
 */
export interface Row {
/**
 * The file, as it was named; of several that are read as one, one of them.
 */
tape: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * When the request came: RFC 3339, UTC, milliseconds; null where no times were recorded.
 */
at: (string | null)
/**
 * When the request came, in nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * The provider whose API is at the upstream's host, else that host; null: the upstream is not known.
 */
provider: (string | null)
/**
 * The model that the request asks for, else the one that the reply names; null: neither says.
 */
model: (string | null)
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * Of the request; empty where its head is not on the tape.
 */
method: string
/**
 * The path and query of the request, with asterisks for credentials.
 */
target: string
/**
 * The status code of the response; null: there was none.
 */
status: (number | null)
/**
 * Nanoseconds from the request to the end of the response; null: it has not ended, or no times were recorded.
 */
duration_ns: (number | null)
/**
 * Nanoseconds from the request to the first event of the response; null: there was none, or no times were recorded.
 */
first_event_ns: (number | null)
/**
 * What the reply states; null: nothing.
 */
tokens: (Tokens | null)
/**
 * How many tool calls of the reply the app is to run.
 */
calls: number
/**
 * The first of them: names and arguments, escaped and shortened.
 */
called: string[]
/**
 * The provider's own finish reason; null: none came.
 */
finish: (string | null)
/**
 * How the transport ended; null: it is in progress, or the tape does not say.
 */
ending: ("complete" | "upstream_closed" | "upstream_reset" | "client_closed" | "timeout" | "refused" | "stopped" | null)
/**
 * Whether it was in progress, and being recorded, when the tape was read.
 */
open: boolean
/**
 * How many there are. A finding that compares a reply with a later request counts for the reply.
 */
findings: number
/**
 * The codes of these findings, each once.
 */
codes: string[]
/**
 * The finding on which the verdict of `why` rests, else the gravest: one of these, or their cause in an earlier exchange; null: it has no findings.
 */
worst: (Worst | null)
/**
 * Findings that its request shows about the replies of earlier exchanges, at most five. They count for those, so they are not among its findings, codes and worst.
 */
shows: Shown[]
/**
 * How many silences the findings D001 and D004 report: the dead zones of `show` with these codes.
 */
dead_zones: number
/**
 * How many nanoseconds these last together.
 */
dead_ns: number
/**
 * The number of the exchange that begins its conversation; its own if that is this one.
 */
thread: number
/**
 * The number of the exchange that its request goes on from or repeats; null: it begins a conversation.
 */
before: (number | null)
/**
 * What it is in its conversation. retry: it asks again what an earlier exchange asked that had failed; loop: it repeats calls of the conversation; unanswered: no later request answers its calls; lost-call: a later request goes on from its reply without one of its calls; orphan-result: its request has the result of a call that it does not have.
 */
marks: ("retry" | "loop" | "unanswered" | "lost-call" | "orphan-result")[]
[k: string]: unknown
}
export interface Tokens {
/**
 * Of the request, those from a cache included; null: not stated.
 */
input: (number | null)
/**
 * Of the reply, those of reasoning included; null: not stated.
 */
output: (number | null)
[k: string]: unknown
}
export interface Worst {
/**
 * Stable; docs/findings.md explains each.
 */
code: string
name: string
severity: ("error" | "warning" | "info")
/**
 * Whose fault it was; upstream: model, provider or gateway, which one recording cannot tell apart; null: not provable.
 */
blame: ("model" | "provider" | "gateway" | "transport" | "app" | "tool-server" | "upstream" | null)
confidence: ("proven" | "likely" | "possible")
[k: string]: unknown
}
export interface Shown {
/**
 * Stable; docs/findings.md explains each.
 */
code: string
name: string
severity: ("error" | "warning" | "info")
/**
 * Whose fault it was; upstream: model, provider or gateway, which one recording cannot tell apart; null: not provable.
 */
blame: ("model" | "provider" | "gateway" | "transport" | "app" | "tool-server" | "upstream" | null)
confidence: ("proven" | "likely" | "possible")
/**
 * Its number on the tape, from 1.
 */
exchange: number
[k: string]: unknown
}
/**
 * How it was recorded, and how it ended.
 */
export interface Recording {
/**
 * ULID of the exchange; empty for what was not taped.
 */
id: string
/**
 * What wrote the tape; import: times, reads and endings are not those of a connection.
 */
source: ("gateway" | "mitm" | "import")
/**
 * app: taken in front of the app's own endpoint; provider: between app and provider.
 */
tap: ("provider" | "app")
/**
 * When the tape began, in ISO 8601: t_ns counts from then; null: unknown.
 */
recorded_at: (string | null)
/**
 * How the transport ended, for people.
 */
ended: string
/**
 * What the recorder or the importer remarked.
 */
notes: Note[]
[k: string]: unknown
}
export interface Note {
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * The remark.
 */
text: string
[k: string]: unknown
}
export interface Header {
/**
 * Of the field, as written.
 */
name: string
/**
 * Of the field; asterisks stand for a credential.
 */
value: string
/**
 * Whether the value is a credential, which is not shown.
 */
masked: boolean
[k: string]: unknown
}
export interface Connection {
/**
 * Whether it had been used before.
 */
reused: boolean
/**
 * How many nanoseconds connecting took.
 */
connect_ns: number
/**
 * How many nanoseconds the TLS handshake took.
 */
tls_ns: number
[k: string]: unknown
}
export interface Tool {
name: string
/**
 * Their JSON Schema; null: it has none.
 */
parameters: ({
[k: string]: unknown
} | null)
[k: string]: unknown
}
export interface Message {
/**
 * Who speaks, in the words of the dialect.
 */
role: string
/**
 * Its text; empty: none.
 */
text: string
/**
 * Of an earlier reply: its calls, as the app repeats them.
 */
calls: Call[]
/**
 * Of a tool's result: the call's id; else null.
 */
call_id: (string | null)
[k: string]: unknown
}
export interface Call {
id: (string | null)
name: (string | null)
/**
 * The exact text.
 */
arguments: string
[k: string]: unknown
}
export interface Response {
/**
 * The status code.
 */
status: number
/**
 * The reason phrase; empty: none.
 */
reason: string
/**
 * The version of HTTP.
 */
http: string
/**
 * How HTTP delimits the body; close: it ends with the connection; none: there is no body.
 */
framing: ("chunked" | "length" | "close" | "none")
/**
 * In order.
 */
headers: Header[]
/**
 * Fields after the body, in order.
 */
trailers: Header[]
/**
 * How many bytes of the body were read, before content-coding is undone.
 */
bytes: number
[k: string]: unknown
}
/**
 * What the response says, its text and calls aside.
 */
export interface Reply {
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * The provider's id of the answer; null: none.
 */
id: (string | null)
/**
 * The model as the response names it; null: it does not.
 */
model: (string | null)
/**
 * The message of an error; null: there is none.
 */
error: (string | null)
/**
 * Whether the signal came that ends such a response.
 */
terminated: boolean
/**
 * What that signal is called.
 */
terminator: string
/**
 * Tokens, as the provider reports them; null: it does not.
 */
usage: ({
[k: string]: unknown
} | null)
/**
 * How each choice ended.
 */
finishes: Finish[]
[k: string]: unknown
}
export interface Finish {
/**
 * Its number.
 */
choice: number
/**
 * The provider's word for why it ended; null: none came.
 */
reason: (string | null)
/**
 * What the provider adds to that; null: nothing.
 */
detail: (string | null)
[k: string]: unknown
}
export interface Call1 {
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * Which answer of the response it belongs to: 0, unless n is more than 1, or several answers came over a WebSocket.
 */
choice: number
/**
 * Its place among the calls of this list in the same answer, from 0.
 */
index: number
/**
 * The index that the wire gives it; null: none.
 */
wire_index: (number | null)
id: (string | null)
name: (string | null)
/**
 * function: arguments are JSON; custom: free text; legacy: function_call; server and mcp: the provider runs it; built-in: the provider defines the tool and the app runs it; text: the model wrote the call into its text.
 */
kind: ("function" | "custom" | "legacy" | "server" | "built-in" | "mcp" | "text")
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * The texts of all fragments, one after the other: the same as arguments, unless repairs were needed; of a text call, the text with its tags.
 */
arguments_raw: string
/**
 * What a correct client can do with the call: complete and empty_ok can be run.
 */
status: ("complete" | "empty_ok" | "empty_suspect" | "truncated" | "malformed" | "not_object" | "double_encoded" | "extra_data" | "no_name" | "orphan")
/**
 * Codes of the findings that had to be mended to rebuild it.
 */
repairs: string[]
/**
 * The number of the event that opens it, from 0.
 */
start_event: number
/**
 * What each event brings of the arguments, in order.
 */
fragments: Fragment[]
/**
 * Of a text call: its notation, such as hermes.
 */
family?: string
/**
 * Of a text call: where the model wrote it.
 */
channel?: ("text" | "reasoning" | "refusal")
/**
 * Of a text call: whether its end arrived.
 */
closed?: boolean
[k: string]: unknown
}
export interface Fragment {
/**
 * The number of the event in the response, from 0.
 */
event: number
/**
 * What it adds.
 */
text: string
range: Range
[k: string]: unknown
}
export interface Call2 {
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * Which answer of the response it belongs to: 0, unless n is more than 1, or several answers came over a WebSocket.
 */
choice: number
/**
 * Its place among the calls of this list in the same answer, from 0.
 */
index: number
/**
 * The index that the wire gives it; null: none.
 */
wire_index: (number | null)
id: (string | null)
name: (string | null)
/**
 * function: arguments are JSON; custom: free text; legacy: function_call; server and mcp: the provider runs it; built-in: the provider defines the tool and the app runs it; text: the model wrote the call into its text.
 */
kind: ("function" | "custom" | "legacy" | "server" | "built-in" | "mcp" | "text")
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * The texts of all fragments, one after the other: the same as arguments, unless repairs were needed; of a text call, the text with its tags.
 */
arguments_raw: string
/**
 * What a correct client can do with the call: complete and empty_ok can be run.
 */
status: ("complete" | "empty_ok" | "empty_suspect" | "truncated" | "malformed" | "not_object" | "double_encoded" | "extra_data" | "no_name" | "orphan")
/**
 * Codes of the findings that had to be mended to rebuild it.
 */
repairs: string[]
/**
 * The number of the event that opens it, from 0.
 */
start_event: number
/**
 * What each event brings of the arguments, in order.
 */
fragments: Fragment[]
/**
 * Of a text call: its notation, such as hermes.
 */
family?: string
/**
 * Of a text call: where the model wrote it.
 */
channel?: ("text" | "reasoning" | "refusal")
/**
 * Of a text call: whether its end arrived.
 */
closed?: boolean
[k: string]: unknown
}
export interface Text {
/**
 * Which answer of the response it belongs to.
 */
choice: number
/**
 * text: shown to the user; or reasoning, or a refusal.
 */
channel: ("text" | "reasoning" | "refusal")
/**
 * The texts of all fragments, one after the other.
 */
text: string
/**
 * What each event brings of it, in order; ranges are those in text.
 */
fragments: Fragment[]
[k: string]: unknown
}
export interface Turn {
/**
 * The number of its first choice.
 */
choice: number
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * The tape line of its request, from 1.
 */
line: (number | null)
/**
 * The numbers of its events.
 */
events: number[]
known: Known
model: AskedModel
stream: Stream
tool_choice: ToolChoice
tools: Tools
messages: Messages
[k: string]: unknown
}
export interface Event {
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * Its number in the response, from 0.
 */
event: number
/**
 * As the framing names it; message if it does not.
 */
type: string
/**
 * The last event id of a server-sent event; empty: none.
 */
id: string
/**
 * Its text, as framed.
 */
data: string
/**
 * What it adds to the answer, for people.
 */
new: string
/**
 * The same for programs; empty: nothing. Calls in the text are text here.
 */
brings: Contribution[]
span: Span
/**
 * The place in show --reads, from 0, of the read with its first byte; null with content-coding and on a WebSocket, where it is not known.
 */
first_read: (number | null)
/**
 * The place in show --reads, from 0, of the read that completes it; null: it was not taped.
 */
read: (number | null)
/**
 * The tape line of the record that completes it, from 1.
 */
line: (number | null)
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
[k: string]: unknown
}
export interface Contribution {
/**
 * text, reasoning, refusal: it adds text; open: it opens a call; arguments: it adds to those of a call; result: of a call, in the stream of an app; finish: a reason to finish, or an error; end: the terminal signal; unknown: data of an unknown dialect.
 */
what: ("text" | "reasoning" | "refusal" | "open" | "arguments" | "result" | "finish" | "end" | "unknown")
/**
 * What it adds; of a call that opens, its name; of the end, what the signal is called.
 */
text: string
/**
 * The call that it opens or adds to; null: none.
 */
call: (CallReference | null)
/**
 * Of arguments: where the text stands in arguments_raw of the call; else null.
 */
range: (Range | null)
[k: string]: unknown
}
/**
 * A call as show --calls has it.
 */
export interface CallReference {
/**
 * Where it stands.
 */
list: ("calls" | "server_calls")
/**
 * Its choice there.
 */
choice: number
/**
 * Its index there.
 */
index: number
[k: string]: unknown
}
export interface Delivery {
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * How many bytes of the body the client had taken then.
 */
bytes: number
/**
 * The place in reads, from 0, of the read that brought the last of them; null: it is not on the tape.
 */
read: (number | null)
/**
 * Nanoseconds since that read; null: it is not on the tape.
 */
late_ns: (number | null)
[k: string]: unknown
}
/**
 * When its parts happened.
 */
export interface Axis {
/**
 * The request came.
 */
request_ns: (number | null)
/**
 * It had been sent upstream.
 */
sent_ns: (number | null)
/**
 * The head of the response came.
 */
head_ns: (number | null)
/**
 * The first event was complete.
 */
first_event_ns: (number | null)
/**
 * The exchange ended.
 */
end_ns: (number | null)
/**
 * In order, from the request to the last moment that the tape tells of, without gaps; on a WebSocket, those of each response.
 */
phases: Phase[]
/**
 * Times of a second or more without progress, in order; keep-alives and empty events are no progress.
 */
dead_zones: DeadZone[]
[k: string]: unknown
}
export interface Phase {
/**
 * sending: until the request had left; before-first: until an event brings something; in-text; in-arguments: of a call that is not complete; after-call: until something follows a complete call; before-end: after a reason to finish.
 */
name: ("sending" | "before-first" | "in-text" | "in-arguments" | "after-call" | "before-end")
/**
 * It begins.
 */
from_ns: number
/**
 * It ends.
 */
to_ns: number
[k: string]: unknown
}
export interface DeadZone {
/**
 * The phase in which it lies; unanswered: after the end, while calls were not answered.
 */
phase: ("before-first" | "in-text" | "in-arguments" | "after-call" | "before-end" | "unanswered")
/**
 * It begins.
 */
from_ns: number
/**
 * It ends.
 */
to_ns: number
/**
 * The number of the last event before it that brought something; null: none did.
 */
event: (number | null)
/**
 * Of the finding that is about it; null: it is too short for one, or there is none.
 */
code: (string | null)
[k: string]: unknown
}
/**
 * show --calls, and show of a whole tape without a part.
 */
export interface CallsDocument {
version: 1
/**
 * Calls that the app is to run, of all exchanges that were named, in their order.
 */
calls: Call1[]
/**
 * Calls of tools that the app did not define; the provider runs them, unless their kind is built-in.
 */
server_calls: Call1[]
/**
 * Calls that the model wrote into its text.
 */
text_calls: Call3[]
[k: string]: unknown
}
export interface Call3 {
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * Which answer of the response it belongs to: 0, unless n is more than 1, or several answers came over a WebSocket.
 */
choice: number
/**
 * Its place among the calls of this list in the same answer, from 0.
 */
index: number
/**
 * The index that the wire gives it; null: none.
 */
wire_index: (number | null)
id: (string | null)
name: (string | null)
/**
 * function: arguments are JSON; custom: free text; legacy: function_call; server and mcp: the provider runs it; built-in: the provider defines the tool and the app runs it; text: the model wrote the call into its text.
 */
kind: ("function" | "custom" | "legacy" | "server" | "built-in" | "mcp" | "text")
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * The texts of all fragments, one after the other: the same as arguments, unless repairs were needed; of a text call, the text with its tags.
 */
arguments_raw: string
/**
 * What a correct client can do with the call: complete and empty_ok can be run.
 */
status: ("complete" | "empty_ok" | "empty_suspect" | "truncated" | "malformed" | "not_object" | "double_encoded" | "extra_data" | "no_name" | "orphan")
/**
 * Codes of the findings that had to be mended to rebuild it.
 */
repairs: string[]
/**
 * The number of the event that opens it, from 0.
 */
start_event: number
/**
 * What each event brings of the arguments, in order.
 */
fragments: Fragment[]
/**
 * Of a text call: its notation, such as hermes.
 */
family?: string
/**
 * Of a text call: where the model wrote it.
 */
channel?: ("text" | "reasoning" | "refusal")
/**
 * Of a text call: whether its end arrived.
 */
closed?: boolean
[k: string]: unknown
}
/**
 * show --events.
 */
export interface EventsDocument {
version: 1
/**
 * All events of the response, in order; of a WebSocket, the server's text messages.
 */
events: Event[]
[k: string]: unknown
}
/**
 * show --reads.
 */
export interface ReadsDocument {
version: 1
/**
 * What each read from the upstream's socket brought of the response body, before content-coding; of a WebSocket, what was read of the frames of both sides.
 */
reads: Read[]
[k: string]: unknown
}
/**
 * show --log.
 */
export interface LogDocument {
version: 1
/**
 * What the recorded program printed, in order.
 */
log: LogLine[]
[k: string]: unknown
}

// From docs/why.schema.json: npm run types --prefix web

/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span = [number, number]
/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span1 = [number, number]
/**
 * [start, end): where the text stands in arguments_raw of the call, or in the text of a choice, in characters (Unicode code points) from 0.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Range = [number, number]
/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span2 = [number, number]
/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span3 = [number, number]

/**
 * The explanation of one exchange. Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json and show.schema.json beside this file.
 */
export interface WhyDocument {
version: 1
/**
 * The file as it was named; empty for a body that was not taped.
 */
tape: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
verdict: Verdict
/**
 * As why --short has it.
 */
conclusion: {
/**
 * What went wrong, in clauses, the one that decided included.
 * 
 * @minItems 1
 */
what: [string, ...(string)[]]
/**
 * The next step.
 */
next: {
/**
 * What it is good for.
 */
what: string
/**
 * To be copied into a shell.
 */
command: string
[k: string]: unknown
}
[k: string]: unknown
}
/**
 * Client algorithms that would have done what the app did, the best first.
 */
suspects: Suspect[]
/**
 * What known clients read from the response; empty without --suspects and --with.
 */
clients: Client[]
axis: Axis
requested: Requested
arrived: Arrived
/**
 * What happened, in order; neighbouring events of one kind are one entry.
 */
timeline: TimelineEntry[]
/**
 * On the exchange, and on the later request that repeats its answer; the worst first.
 */
findings: Finding[]
/**
 * The equal requests of which this is one, each after the previous one failed; null: it was asked once.
 */
attempts: (Attempts | null)
/**
 * What a later request of the app repeats of the answer; null: none does. What the suspect makes of it is in suspects.
 */
repetition: (Repetition | null)
[k: string]: unknown
}
/**
 * docs/verdicts.md explains each.
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "verdict".
 */
export interface Verdict {
/**
 * Whose fault it was; null: nobody is blamed.
 */
blame: ("model" | "provider" | "gateway" | "transport" | "app" | "tool-server" | "upstream" | null)
/**
 * How sure the blame is; null: nobody is blamed.
 */
confidence: ("proven" | "likely" | null)
/**
 * What happened, in a sentence or two.
 */
summary: string
/**
 * What to change.
 */
fix: string
kind: ("healthy" | "blamed" | "nobody" | "unprovable")
/**
 * The verdict as shown to people: app, proven.
 */
shown: string
/**
 * What such a verdict means.
 */
means: string
/**
 * Of the finding that decided; null: none did.
 */
code: (string | null)
/**
 * Findings whose innocent explanation the tape does not exclude; they accuse nobody.
 */
possible: Finding[]
[k: string]: unknown
}
export interface Finding {
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
message: string
/**
 * The file as it was named; empty for a body that was not taped.
 */
tape: string
/**
 * The tape line of the record that completes the evidence, from 1.
 */
line: (number | null)
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * The number of the event in the response, from 0.
 */
event: (number | null)
/**
 * The bytes of the response body, after content-coding, that show it; null: no bytes do.
 */
span: (Span | null)
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * What the wire said, with everything escaped that could act on a terminal.
 */
evidence: string
/**
 * What to do about it.
 */
hint: string
/**
 * The other place of a comparison: what a finding about an application's request is held against; null where there is none.
 */
against: ({
tape: string
exchange: number
/**
 * The tape line of the record that completes it.
 */
line: (number | null)
/**
 * Bytes of the response body of that exchange, after content-coding.
 */
span: (Span | null)
/**
 * Bytes of the body of the finding's own request, which says otherwise.
 */
asked: (Span | null)
/**
 * What stands there, escaped.
 */
evidence: string
[k: string]: unknown
} | null)
/**
 * The innocent explanations that were tried, and why each fails; escaped.
 */
excluded: {
explanation: string
because: string
[k: string]: unknown
}[]
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "suspect".
 */
export interface Suspect {
/**
 * Of the known client; else its mistakes: key=single,emit=at-finish.
 */
name: string
/**
 * How it differs from a correct client.
 */
mistakes: Mistake[]
/**
 * Whether it makes exactly what the app made, and not only something like it.
 */
exact: boolean
/**
 * Whether it only explains that calls are missing, as many programs would.
 */
drop: boolean
/**
 * What it does with this response, as a clause after "it".
 */
says: string
/**
 * What to change in such a client.
 */
fix: string
/**
 * Where the algorithm was seen; empty: nowhere in particular.
 */
source: string
made: Reading
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "mistake".
 */
export interface Mistake {
/**
 * The choice that it gets wrong: key, name, emit.
 */
axis: string
/**
 * The wrong choice: single, concatenate.
 */
value: string
/**
 * The mistake, as a clause after "it".
 */
says: string
/**
 * What to change.
 */
fix: string
[k: string]: unknown
}
/**
 * What it makes of this response.
 */
export interface Reading {
/**
 * Those that it would run and repeat, in order.
 */
calls: MadeCall[]
/**
 * What it throws or logs, in the wordings of several parsers.
 */
errors: string[]
/**
 * The text that it would show; null: the same as a correct client.
 */
text: (string | null)
[k: string]: unknown
}
/**
 * A call that the app or a client made of the answer.
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "made_call".
 */
export interface MadeCall {
id: (string | null)
name: (string | null)
/**
 * The exact text.
 */
arguments: string
/**
 * Where its arguments come from, in order, without gaps.
 */
segments: Segment[]
[k: string]: unknown
}
/**
 * A part of arguments that the app or a client made.
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "segment".
 */
export interface Segment {
range: Span1
/**
 * The index of the delivered call whose fragment it comes from, its place in calls of the repetition; null: that cannot be told.
 */
call: (number | null)
/**
 * The number of the event that brought the fragment; null: that cannot be told.
 */
event: (number | null)
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "client".
 */
export interface Client {
/**
 * Of a known client, or of an SDK with its version.
 */
name: string
/**
 * Whether it reads something else than a correct client; null: it could not be tried.
 */
differs: (boolean | null)
/**
 * Why it could not be tried; null: it was.
 */
problem: (string | null)
made: Reading1
[k: string]: unknown
}
/**
 * What it reads; nothing if it could not be tried.
 */
export interface Reading1 {
/**
 * Those that it would run and repeat, in order.
 */
calls: MadeCall[]
/**
 * What it throws or logs, in the wordings of several parsers.
 */
errors: string[]
/**
 * The text that it would show; null: the same as a correct client.
 */
text: (string | null)
[k: string]: unknown
}
/**
 * When the parts of the exchange happened.
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
 * The request in brief; show has all of it.
 */
export interface Requested {
/**
 * Whether the body could be read; else there is no model, tool or message.
 */
known: boolean
/**
 * Method and path.
 */
target: string
/**
 * The model that is asked; null: the request names none.
 */
model: (string | null)
/**
 * Whether it asks for a stream.
 */
stream: boolean
/**
 * The names of those that it offers to the model.
 */
tools: string[]
/**
 * auto, none, required, or the name of the tool that the model must call; null: not said.
 */
tool_choice: (string | null)
/**
 * How many the history has.
 */
messages: number
[k: string]: unknown
}
/**
 * The response in brief, and its calls.
 */
export interface Arrived {
/**
 * The status code; null: no response came.
 */
status: (number | null)
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * How many characters of text.
 */
text: number
/**
 * How many characters of reasoning.
 */
reasoning: number
/**
 * The text of a refusal; empty: none.
 */
refusal: string
/**
 * The message of an error; null: there is none.
 */
error: (string | null)
/**
 * The provider's word for why it ended; null: none came.
 */
finish_reason: (string | null)
/**
 * How the transport ended, for people.
 */
ending: string
/**
 * How many.
 */
events: number
/**
 * How many; on a WebSocket, pieces of frames.
 */
reads: number
/**
 * How many of the body.
 */
bytes: number
/**
 * Nanoseconds from the request to the end; null: the end is not on the tape.
 */
duration_ns: (number | null)
/**
 * Calls that the app is to run, with the fragments that each event brings.
 */
calls: Call[]
/**
 * Calls of tools that the app did not define.
 */
server_calls: Call[]
/**
 * Calls that the model wrote into its text.
 */
text_calls: Call[]
[k: string]: unknown
}
export interface Call {
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
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "timeline_entry".
 */
export interface TimelineEntry {
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * The number of its first event in the response, from 0; null: it is about no event.
 */
event: (number | null)
/**
 * What happened, for people.
 */
what: string
/**
 * wire: it came from upstream; app: from the app; recorder: the recorder noticed it; log: the app printed it.
 */
source: ("wire" | "app" | "recorder" | "log")
/**
 * Of the findings that point here.
 */
codes: string[]
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "attempts".
 */
export interface Attempts {
/**
 * Whether the last one got an answer.
 */
answered: boolean
/**
 * Of the app, if it ended after the last attempt had failed; null: it did not, or nobody knows.
 */
exit_code: (number | null)
/**
 * In order.
 * 
 * @minItems 2
 */
tries: [Attempt, Attempt, ...(Attempt)[]]
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "attempt".
 */
export interface Attempt {
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 */
t_ns: (number | null)
/**
 * status 429, the stream broke off, answered.
 */
outcome: string
/**
 * Nanoseconds since the previous attempt ended; null: it is the first, or no times were recorded.
 */
pause_ns: (number | null)
/**
 * How the request differs from that of the previous attempt; null: it does not.
 */
changed: (string | null)
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "repetition".
 */
export interface Repetition {
/**
 * The later request: its number on the tape, from 1.
 */
exchange: number
/**
 * The calls of the answer, in order.
 */
calls: RepeatedCall[]
/**
 * Calls that the app sent although none was delivered.
 */
extra: MadeCall[]
/**
 * The results that the request brings, in order.
 */
results: Result[]
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "repeated_call".
 */
export interface RepeatedCall {
delivered: Call1
/**
 * As the app sent it back; null: it did not.
 */
sent: (Call2 | null)
/**
 * Whether id, name or arguments differ, or nothing was sent; arguments that are the same JSON do not.
 */
differs: boolean
/**
 * The part of the arguments whose text differs; null: the call does not differ, differs in id or name alone, or was not sent.
 */
different: (Different | null)
/**
 * How the sent arguments differ from the delivered ones, in order, without gaps: character by character; in long texts word by word, in longer ones as a whole; null: nothing was sent.
 */
edits: (Edit[] | null)
/**
 * Where the sent arguments come from, in order, without gaps; null: nothing was sent.
 */
segments: (Segment[] | null)
[k: string]: unknown
}
/**
 * As the response brought it.
 */
export interface Call1 {
id: (string | null)
name: (string | null)
/**
 * The exact text.
 */
arguments: string
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "call".
 */
export interface Call2 {
id: (string | null)
name: (string | null)
/**
 * The exact text.
 */
arguments: string
[k: string]: unknown
}
/**
 * Ranges in characters (Unicode code points): what stands between the beginning and the end that both have.
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "different".
 */
export interface Different {
delivered: Span
sent: Span
[k: string]: unknown
}
/**
 * A step from the delivered arguments to the sent ones; ranges in characters (Unicode code points).
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "edit".
 */
export interface Edit {
/**
 * What it does.
 */
op: ("equal" | "insert" | "delete")
delivered: Span2
sent: Span3
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "result".
 */
export interface Result {
/**
 * Of the call.
 */
id: string
/**
 * The result.
 */
text: string
[k: string]: unknown
}
/**
 * What a client makes of a response.
 * 
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "reading".
 */
export interface Reading2 {
/**
 * Those that it would run and repeat, in order.
 */
calls: MadeCall[]
/**
 * What it throws or logs, in the wordings of several parsers.
 */
errors: string[]
/**
 * The text that it would show; null: the same as a correct client.
 */
text: (string | null)
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "requested".
 */
export interface Requested1 {
/**
 * Whether the body could be read; else there is no model, tool or message.
 */
known: boolean
/**
 * Method and path.
 */
target: string
/**
 * The model that is asked; null: the request names none.
 */
model: (string | null)
/**
 * Whether it asks for a stream.
 */
stream: boolean
/**
 * The names of those that it offers to the model.
 */
tools: string[]
/**
 * auto, none, required, or the name of the tool that the model must call; null: not said.
 */
tool_choice: (string | null)
/**
 * How many the history has.
 */
messages: number
[k: string]: unknown
}
/**
 * This interface was referenced by `WhyDocument`'s JSON-Schema
 * via the `definition` "arrived".
 */
export interface Arrived1 {
/**
 * The status code; null: no response came.
 */
status: (number | null)
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * How many characters of text.
 */
text: number
/**
 * How many characters of reasoning.
 */
reasoning: number
/**
 * The text of a refusal; empty: none.
 */
refusal: string
/**
 * The message of an error; null: there is none.
 */
error: (string | null)
/**
 * The provider's word for why it ended; null: none came.
 */
finish_reason: (string | null)
/**
 * How the transport ended, for people.
 */
ending: string
/**
 * How many.
 */
events: number
/**
 * How many; on a WebSocket, pieces of frames.
 */
reads: number
/**
 * How many of the body.
 */
bytes: number
/**
 * Nanoseconds from the request to the end; null: the end is not on the tape.
 */
duration_ns: (number | null)
/**
 * Calls that the app is to run, with the fragments that each event brings.
 */
calls: Call[]
/**
 * Calls of tools that the app did not define.
 */
server_calls: Call[]
/**
 * Calls that the model wrote into its text.
 */
text_calls: Call[]
[k: string]: unknown
}

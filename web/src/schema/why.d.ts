// From docs/why.schema.json: npm run types --prefix web

/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span = [number, number]

/**
 * The explanation of one exchange. Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
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
calls: Call[]
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
 * via the `definition` "call".
 */
export interface Call {
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
calls: Call[]
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
extra: Call[]
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
sent: (Call | null)
/**
 * Whether id, name or arguments differ, or nothing was sent; arguments that are the same JSON do not.
 */
differs: boolean
/**
 * The part of the arguments whose text differs; null: the call does not differ, differs in id or name alone, or was not sent.
 */
different: (Different | null)
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
calls: Call[]
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

// From docs/exchanges.schema.json: npm run types --prefix web

/**
 * Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
 */
export interface ExchangesDocument {
version: 1
/**
 * Tape by tape; those of a tape by their numbers.
 */
exchanges: Row[]
[k: string]: unknown
}
/**
 * An exchange.
 * 
 * This interface was referenced by `ExchangesDocument`'s JSON-Schema
 * via the `definition` "row".
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
/**
 * This interface was referenced by `ExchangesDocument`'s JSON-Schema
 * via the `definition` "tokens".
 */
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
/**
 * This interface was referenced by `ExchangesDocument`'s JSON-Schema
 * via the `definition` "worst".
 */
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
/**
 * This interface was referenced by `ExchangesDocument`'s JSON-Schema
 * via the `definition` "shown".
 */
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

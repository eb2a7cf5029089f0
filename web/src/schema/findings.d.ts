// From docs/findings.schema.json: npm run types --prefix web

/**
 * Its number on the tape, from 1.
 * 
 * This interface was referenced by `FindingsDocument`'s JSON-Schema
 * via the `definition` "exchange".
 */
export type Exchange = number
/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 * 
 * This interface was referenced by `FindingsDocument`'s JSON-Schema
 * via the `definition` "span".
 */
export type Span = [number, number]
/**
 * Nanoseconds since the tape began; null where no times were recorded.
 * 
 * This interface was referenced by `FindingsDocument`'s JSON-Schema
 * via the `definition` "t_ns".
 */
export type TNs = (number | null)

/**
 * Keys are added to, never renamed or removed, while the version stays.
 */
export interface FindingsDocument {
version: 1
/**
 * Tape by tape in the order in which they were named; for each exchange the worst first, then what its conversations show.
 */
findings: Finding[]
[k: string]: unknown
}
/**
 * This interface was referenced by `FindingsDocument`'s JSON-Schema
 * via the `definition` "finding".
 */
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
exchange: Exchange
/**
 * The number of the event in the response, from 0.
 */
event: (number | null)
/**
 * The bytes of the response body, after content-coding, that show it; null: no bytes do.
 */
span: (Span | null)
t_ns: TNs
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

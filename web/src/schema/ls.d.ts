// From docs/ls.schema.json: npm run types --prefix web

/**
 * [start, end): two offsets from 0, in bytes unless something else is said.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Span = [number, number]

/**
 * Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
 */
export interface LsDocument {
version: 1
/**
 * The newest first.
 */
tapes: Tape[]
[k: string]: unknown
}
/**
 * This interface was referenced by `LsDocument`'s JSON-Schema
 * via the `definition` "tape".
 */
export interface Tape {
/**
 * The file; of several that are read as one, the newest.
 */
path: string
/**
 * The size of the file, or of all that are read as one.
 */
bytes: number
/**
 * Nanoseconds since the file was last written to; negative if that lies in the future.
 */
age_ns: number
/**
 * How many; null: the tape cannot be read, or is too large to count them in a moment.
 */
exchanges: (number | null)
/**
 * Whether it is being recorded now.
 */
recording: boolean
/**
 * Why it cannot be read; null: it can.
 */
error: (string | null)
/**
 * Whether apps, models and findings are known; with --full those of every readable tape are.
 */
analysed: boolean
/**
 * Programs and versions, as their User-Agent names them, in order of appearance.
 */
apps: string[]
/**
 * In order of appearance.
 */
models: string[]
/**
 * How many; null: not analysed.
 */
findings: (number | null)
/**
 * The finding on which `why` gives its verdict; null: there is none, or it is not known. The server of the page tells the row's of the first exchange with the gravest.
 */
worst: (Finding | Worst | null)
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

// From docs/trends.schema.json: npm run types --prefix web

/**
 * Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
 */
export interface TrendsDocument {
version: 1
/**
 * The findings that occur in it, in the order of reports.
 */
codes: Code[]
/**
 * By day; what has no day comes first.
 */
trends: Trend[]
[k: string]: unknown
}
/**
 * This interface was referenced by `TrendsDocument`'s JSON-Schema
 * via the `definition` "code".
 */
export interface Code {
/**
 * Stable; docs/findings.md explains each.
 */
code: string
name: string
/**
 * The usual one of such findings.
 */
severity: ("error" | "warning" | "info")
[k: string]: unknown
}
/**
 * This interface was referenced by `TrendsDocument`'s JSON-Schema
 * via the `definition` "trend".
 */
export interface Trend {
/**
 * In UTC; null where no times were recorded.
 */
day: (string | null)
/**
 * The provider whose API is at the upstream's host, else that host; null: the upstream is not known.
 */
provider: (string | null)
/**
 * The model that the requests ask for, else the one that the replies name; null: neither says.
 */
model: (string | null)
/**
 * How many exchanges there were on that day with that model of that provider.
 */
exchanges: number
/**
 * How many of them have findings.
 */
affected: number
/**
 * How many findings they have.
 */
findings: number
/**
 * How many silences the findings D001 and D004 report: the dead zones of `show` with these codes.
 */
dead_zones: number
/**
 * How many nanoseconds these last together.
 */
dead_ns: number
/**
 * The codes of the findings, in their order.
 */
codes: Count[]
[k: string]: unknown
}
/**
 * This interface was referenced by `TrendsDocument`'s JSON-Schema
 * via the `definition` "count".
 */
export interface Count {
/**
 * Stable; docs/findings.md explains each.
 */
code: string
/**
 * How many of the exchanges have such a finding.
 */
exchanges: number
[k: string]: unknown
}

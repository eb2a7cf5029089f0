// From docs/diff.schema.json: npm run types --prefix web

/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "call".
 */
export type Call = ({
index: number
id: (string | null)
name: (string | null)
kind: string
arguments: string
status: string
[k: string]: unknown
} | null)
/**
 * Numbers of events, from 0.
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "events".
 */
export type Events = number[]

/**
 * Keys are added to, never renamed or removed, while the version stays.
 */
export interface DiffDocument {
version: 1
/**
 * Whether all hops are.
 */
equal: boolean
/**
 * The place in `hops`, from 0, of the first one that damaged a call; null: none did.
 */
damaged: (number | null)
/**
 * One less than the exchanges that were named, each from one to the next.
 * 
 * @minItems 1
 */
hops: [Hop, ...(Hop)[]]
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "hop".
 */
export interface Hop {
left: Side
right: Side
/**
 * Whether nothing differs but fields that are not compared.
 */
equal: boolean
/**
 * content: the dialects differ, so that what events bring was compared.
 */
compared: ("events" | "content")
/**
 * Calls that are not the same, in the order of the left side; added ones are no damage.
 */
calls: CallChange[]
/**
 * Where the rebuilt replies differ, their calls aside.
 */
reply: Difference[]
/**
 * What differs between events that say the same, and in the body as a whole.
 */
framing: Framed[]
/**
 * Fields that were not compared and differ, and in how many equal events.
 */
ignored: {
path: string
events: number
[k: string]: unknown
}[]
/**
 * What differs around the answers; it does not make them unequal.
 */
context?: {
part: ("request" | "headers" | "model" | "usage")
/**
 * A JSON path, the name of a header, or what is compared.
 */
path: string
/**
 * Shortened, or (absent).
 */
left: string
/**
 * Shortened, or (absent).
 */
right: string
[k: string]: unknown
}[]
/**
 * What became of all events, equal ones included, in the order of the left side.
 */
changes: Change[]
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "side".
 */
export interface Side {
/**
 * As it was named.
 */
name: string
exchange: number
/**
 * ULID of the exchange; empty for a body that was not taped.
 */
id: string
dialect: string
events: number
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "call_change".
 */
export interface CallChange {
damage: ("lost" | "added" | "arguments" | "identity")
choice: number
left: Call
right: Call
differences: Difference[]
/**
 * The first change that concerns the call; null: none does.
 */
cause: (null | Change)
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "difference".
 */
export interface Difference {
/**
 * A JSON path, or what is compared.
 */
path: string
/**
 * Shortened JSON, or (absent).
 */
left: string
/**
 * Shortened JSON, or (absent).
 */
right: string
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "change".
 */
export interface Change {
kind: ("equal" | "dropped" | "inserted" | "altered" | "re-indexed" | "merged" | "split" | "re-cut" | "moved")
left: Events
right: Events
/**
 * What of the content, where that was compared: text, call 0, call 0 arguments, finish.
 */
part: (string | null)
differences: Difference[]
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "framed".
 */
export interface Framed {
what: ("format" | "event-line" | "id-line" | "retry-line" | "line-ends" | "json" | "fields" | "comments" | "pending")
/**
 * How many events differ so; null: it is about the body as a whole.
 */
events: (number | null)
/**
 * As seen first, shortened.
 */
left: string
/**
 * As seen first, shortened.
 */
right: string
/**
 * The first events that differ so, left and right.
 */
first: (null | Events)
[k: string]: unknown
}

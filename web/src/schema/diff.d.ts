// From docs/diff.schema.json: npm run types --prefix web

/**
 * The call before the hop.
 */
export type Call = ({
/**
 * Its place among the calls of its answer, from 0.
 */
index: number
/**
 * As the side brings it; null: it brings none.
 */
id: (string | null)
/**
 * Of the tool; null: none came.
 */
name: (string | null)
/**
 * As in show --calls.
 */
kind: string
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * What a correct client can do with it, as in show --calls.
 */
status: string
[k: string]: unknown
} | null)
/**
 * The call behind it.
 */
export type Call1 = ({
/**
 * Its place among the calls of its answer, from 0.
 */
index: number
/**
 * As the side brings it; null: it brings none.
 */
id: (string | null)
/**
 * Of the tool; null: none came.
 */
name: (string | null)
/**
 * As in show --calls.
 */
kind: string
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * What a correct client can do with it, as in show --calls.
 */
status: string
[k: string]: unknown
} | null)
/**
 * What it keeps or takes away; of an insertion, its place, twice.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Range = [number, number]
/**
 * What it keeps or puts there; of a deletion, its place, twice.
 * 
 * @minItems 2
 * @maxItems 2
 */
export type Range1 = [number, number]
/**
 * Those of the left side; empty: none.
 */
export type Events = number[]
/**
 * Those of the right side; empty: none.
 */
export type Events1 = number[]
/**
 * Numbers of events, from 0.
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "events".
 */
export type Events2 = number[]
/**
 * A call of one side; null: this side lacks it.
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "call".
 */
export type Call2 = ({
/**
 * Its place among the calls of its answer, from 0.
 */
index: number
/**
 * As the side brings it; null: it brings none.
 */
id: (string | null)
/**
 * Of the tool; null: none came.
 */
name: (string | null)
/**
 * As in show --calls.
 */
kind: string
/**
 * The exact text that a correct client passes on.
 */
arguments: string
/**
 * What a correct client can do with it, as in show --calls.
 */
status: string
[k: string]: unknown
} | null)
/**
 * [start, end): in characters (Unicode code points) from 0.
 * 
 * @minItems 2
 * @maxItems 2
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "range".
 */
export type Range2 = [number, number]

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
right: Side1
/**
 * Whether nothing differs but fields that are not compared.
 */
equal: boolean
/**
 * events: one by one; content: the dialects differ, so that what events bring was compared.
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
/**
 * The JSON path of the field.
 */
path: string
/**
 * In how many events it differs.
 */
events: number
[k: string]: unknown
}[]
/**
 * What differs around the answers; it does not make them unequal.
 */
context?: {
/**
 * request: its path or its JSON; headers: of the response; model and usage: as the answer reports them.
 */
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
 * The side nearer to the provider.
 */
export interface Side {
/**
 * As it was named.
 */
name: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * ULID of the exchange; empty for a body that was not taped.
 */
id: string
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * How many the response has.
 */
events: number
[k: string]: unknown
}
/**
 * The side nearer to the app.
 */
export interface Side1 {
/**
 * As it was named.
 */
name: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * ULID of the exchange; empty for a body that was not taped.
 */
id: string
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * How many the response has.
 */
events: number
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "call_change".
 */
export interface CallChange {
/**
 * lost: only on the left; added: only on the right; arguments: they mean something else; identity: another name or id, or an index that two calls share.
 */
damage: ("lost" | "added" | "arguments" | "identity")
/**
 * Which answer of the response it belongs to.
 */
choice: number
left: Call
right: Call1
/**
 * What of the call differs.
 */
differences: Difference[]
/**
 * How the arguments on the right differ from those on the left, in order, without gaps: character by character; in long texts word by word, in longer ones as a whole; null: one side lacks the call.
 */
edits: (Edit[] | null)
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
 * A step from the arguments on the left to those on the right.
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "edit".
 */
export interface Edit {
/**
 * What it does.
 */
op: ("equal" | "insert" | "delete")
left: Range
right: Range1
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "change".
 */
export interface Change {
/**
 * What became of the events: dropped ones are only on the left, inserted ones only on the right; altered: something in them differs; re-indexed: a call has another index; merged, split, re-cut: the same text and arguments in fewer events, in more, or cut elsewhere; moved: in another place.
 */
kind: ("equal" | "dropped" | "inserted" | "altered" | "re-indexed" | "merged" | "split" | "re-cut" | "moved")
left: Events
right: Events1
/**
 * What of the content, where that was compared: text, call 0, call 0 arguments, finish.
 */
part: (string | null)
/**
 * What in them differs; empty: nothing does, or that says it all.
 */
differences: Difference[]
[k: string]: unknown
}
/**
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "framed".
 */
export interface Framed {
/**
 * What is framed in another way: docs/diff.md explains each.
 */
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
first: (null | Events2)
[k: string]: unknown
}
/**
 * An exchange that is compared.
 * 
 * This interface was referenced by `DiffDocument`'s JSON-Schema
 * via the `definition` "side".
 */
export interface Side2 {
/**
 * As it was named.
 */
name: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * ULID of the exchange; empty for a body that was not taped.
 */
id: string
/**
 * How the response is written; docs/dialects.md lists them.
 */
dialect: string
/**
 * How many the response has.
 */
events: number
[k: string]: unknown
}

// From docs/steps.schema.json: npm run types --prefix web

/**
 * How an answer is built, event by event: by the reference, and by clients that err. Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
 */
export interface StepsDocument {
version: 1
/**
 * The file as it was named; empty for a body that was not taped.
 */
tape: string
/**
 * Its number on the tape, from 1.
 */
exchange: number
/**
 * The exchange whose response is read: the same, or the provider's if this is the app's own page.
 */
stream: number
/**
 * Which answer of the response is built, as show has it.
 */
choice: number
/**
 * What a correct client has. Its calls have the numbers that show gives to calls; those that the model wrote into its text follow, by their place in text_calls.
 */
reference: {
/**
 * In order, the end of the stream last; only events that changed something.
 */
steps: Step[]
[k: string]: unknown
}
/**
 * Clients that would have done what the app did, best first, as why names them. If nothing speaks against the app: clients that would have read this stream wrongly, the most usual first; of a long stream, fewer.
 */
suspects: Suspect[]
[k: string]: unknown
}
/**
 * This interface was referenced by `StepsDocument`'s JSON-Schema
 * via the `definition` "step".
 */
export interface Step {
/**
 * The number of the event, from 0; null: the end of the stream. Missing where the unit is read.
 */
event?: (number | null)
/**
 * The number of the read, from 0, in place of an event; null: the end of the stream.
 */
read?: (number | null)
/**
 * When it came, in nanoseconds since the tape began; null: unknown.
 */
t_ns: (number | null)
/**
 * The calls that changed, by number.
 */
calls: Call[]
/**
 * The numbers of calls that the client has no longer; missing if there is none.
 */
dropped?: number[]
/**
 * How much of the reply's text has come so far, in characters; of the reference only.
 */
text_length?: number
/**
 * What the client throws or logs now, as several parsers word it: any one counts. At the end, all that it threw; of the reference, the error in place of an answer. Missing if there is none.
 */
errors?: string[]
/**
 * What this client did: a sentence without a subject, or several separated by semicolons. Empty: nothing of note.
 */
note: string
[k: string]: unknown
}
/**
 * What changed of a call, and no more.
 * 
 * This interface was referenced by `StepsDocument`'s JSON-Schema
 * via the `definition` "call".
 */
export interface Call {
/**
 * The client's own number of the call. Calls are in the order of their numbers; a number is never used again.
 */
call: number
/**
 * Its id now, if that changed, and always when the call begins.
 */
id?: (string | null)
/**
 * Its name now, likewise.
 */
name?: (string | null)
/**
 * What changed of its arguments; always there when the call begins.
 */
arguments?: {
/**
 * How many characters of the arguments so far stay: all of them, or none.
 */
from: number
/**
 * What follows them.
 */
add: string
[k: string]: unknown
}
[k: string]: unknown
}
/**
 * This interface was referenced by `StepsDocument`'s JSON-Schema
 * via the `definition` "suspect".
 */
export interface Suspect {
/**
 * Of the preset, else its mistakes: deltatape why NAME explains both.
 */
name: string
/**
 * How it handles this stream, as a clause after "it".
 */
says: string
/**
 * The fix, in one or two sentences.
 */
fix: string
/**
 * Whether it makes exactly what the app sent, not only nearly; null: nothing speaks against the app.
 */
exact: (boolean | null)
/**
 * What its steps are: read if it frames or decodes wrongly, so that what it takes for events are no events of the stream.
 */
unit: ("event" | "read")
/**
 * In order, the end of the stream last; only events or reads that changed something, or that it leaves out. After the last one its calls are those that why names in made; of streams with thousands of fragments, why joins these.
 */
steps: Step[]
[k: string]: unknown
}

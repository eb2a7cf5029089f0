// From docs/show.schema.json: npm run types --prefix web

/**
 * One document for each part that can be asked for. Keys are added to, never renamed or removed, while the version stays. References lead to findings.schema.json beside this file.
 */
export type ShowDocument = (CallsDocument | EventsDocument | ReadsDocument | LogDocument)
/**
 * [start, end): where the text stands in arguments_raw of the call, in characters (Unicode code points) from 0.
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
 * show --calls, and show without a part.
 */
export interface CallsDocument {
version: 1
/**
 * Calls that the app is to run, of all exchanges that were named, in their order.
 */
calls: Call[]
/**
 * Calls of tools that the app did not define; the provider runs them, unless their kind is built-in.
 */
server_calls: Call[]
/**
 * Calls that the model wrote into its text.
 */
text_calls: Call1[]
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

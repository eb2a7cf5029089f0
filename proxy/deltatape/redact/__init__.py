"""Find secrets on tapes and overwrite them.

`patterns` knows what secrets look like, `escaped_text` reads text through its escapes,
`json_strings` finds the strings of JSON, `eventstream` unfolds binary messages, `search` puts these
together for one body, `payload_strings` searches all other records, `content` finds prose, and
`fillers` makes what replaces it. `plan` says which records of a tape change and rewrites its lines,
`audit` says what is wrong with a tape.
"""

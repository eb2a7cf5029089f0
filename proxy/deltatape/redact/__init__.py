"""Find secrets on tapes and overwrite them.

The package `secret_text` searches a text, `json_strings` finds the strings of JSON, `eventstream`
unfolds binary messages, `search` puts these together for one body, `body_texts` makes of it what a
quick search needs to see, `payload_strings` searches all other records, `content` finds prose, and
`fillers` makes what replaces it. `plan` says which records of a tape change and rewrites its lines,
`audit` says what is wrong with a tape.
"""

"""Find secrets on tapes and overwrite them.

`patterns` knows what secrets look like, `layers` reads text through its escapes, `leaves` finds
the strings of JSON, `search` puts these together for one body, `content` masks prose. `plan` says
which records of a tape change, `rewrite` changes them, `audit` says what is wrong with a tape.
"""

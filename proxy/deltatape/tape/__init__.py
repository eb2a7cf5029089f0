"""The tape format, version 1, without files: records to lines, lines to records, and masking.

`recordings/README.md` is the specification. `payload` says what each code carries, `encode` and
`decode` turn records into lines and back, `mask` keeps credentials out, `tap` is what a recorder
feeds, `assemble` makes exchanges of records. `deltatape.store` adds the files.
"""

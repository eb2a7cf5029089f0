"""The tape format, version 1, without files: records to lines, lines to records, and masking.

`recordings/README.md` is the specification. `payload` defines the payload of each code, `encode`
and `decode` turn records into lines and back, `mask` masks credentials, `tap` is the recorder's
interface, `assemble` builds exchanges from records. `deltatape.store` adds the files.
"""

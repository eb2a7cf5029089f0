"""Find secrets in text, whatever it is spelled in, and overwrite them.

`patterns` knows what secrets look like, `escaped_text` reads text through its escapes and maps
changes back, `search` puts both together for one text.
"""

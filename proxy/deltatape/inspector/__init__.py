"""The page of `deltatape open`, and its server on loopback; scripts build static/ from web/.

The server (`server`) computes nothing about an exchange. One process follows the tapes and keeps a
row of every exchange in a file (`indexing`, `index`); others make the documents of an exchange on
request (`documents`). `processes` starts them, and restarts them if they die. Nothing here writes
to a tape, and no part of a request becomes a path.
"""

"""Reads any number of tapes on an existing engine, into tables that other programs query.

`rows` makes the rows of one tape, `arrow` their batches, `dataset` the files; `engine` runs that in
many processes, and `scan` puts these together. `schema` defines the tables.
"""

"""Amazon's Converse, shared by all dialects that carry it.

The same events and the same requests come in two frames: those of ConverseStream, where the framing
names the type of an event, and those of Nova's own API, where an event is an object with one member
of the type's name. An answer that is not streamed is the same document in both.
"""

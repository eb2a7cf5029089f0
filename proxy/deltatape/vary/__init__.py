"""Change how an answer arrives: other reads and times, faults, and legal variations.

Everything is a pure change of an exchange: its reads with their times and chunks, its head, its
end. The player plays any exchange exactly, so it plays a changed one exactly, too.
"""

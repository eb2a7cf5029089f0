"""Values that the layers pass to each other: frozen dataclasses and enums with little behaviour.

`exchange` is what a tape holds, `stream` what framing makes of a body, `reply` what a dialect
rebuilds from the events, `asked` what the request says, `finding` what a rule reports.
"""

"""Values that the layers pass to each other: frozen dataclasses and enums with little behaviour.

`exchange` is the content of a tape, `stream` a framed body, `reply` what a dialect rebuilds from
events, `request_summary` a parsed request, `finding` the report of a rule.
"""

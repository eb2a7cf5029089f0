"""The recordings of each rule: one that fires it, and similar ones that do not.

By code and name; `RECORDINGS["W006"]["silent-user-stop"]` is the tape
`recordings/rules/W006/silent-user-stop.tape`, which scripts/tape-rules writes. Nothing in them has
happened; their shapes are those that the references of the rules report. Each name after `silent-`
is an innocent explanation on the page of the rule.
"""

from helpers.rule_recordings import apps, calls, conversations, reasoning, streams, tool_servers

RECORDINGS = {
    **apps.RECORDINGS,
    **calls.RECORDINGS,
    **conversations.RECORDINGS,
    **reasoning.RECORDINGS,
    **streams.RECORDINGS,
    **tool_servers.RECORDINGS,
}

"""Link replies to the later requests that repeat them, and check what the app made of them."""

from deltatape.conversation.check import (
    check_conversation,
    findings_of,
    findings_of_silence,
    findings_of_turn,
    whole_turn,
)
from deltatape.conversation.read_back import goes_on_without, read_backs
from deltatape.conversation.turns import turns
from deltatape.conversation.unanswered import unanswered

__all__ = [
    "check_conversation",
    "findings_of",
    "findings_of_silence",
    "findings_of_turn",
    "goes_on_without",
    "read_backs",
    "turns",
    "unanswered",
    "whole_turn",
]

"""Several exchanges of one conversation: which reply a later request repeats, and how."""

from deltatape.conversation.check import check_conversation, findings_of, findings_of_silence
from deltatape.conversation.read_back import goes_on_without, read_backs
from deltatape.conversation.unanswered import unanswered

__all__ = [
    "check_conversation",
    "findings_of",
    "findings_of_silence",
    "goes_on_without",
    "read_backs",
    "unanswered",
]

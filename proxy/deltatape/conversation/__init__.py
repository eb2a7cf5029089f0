"""Several exchanges of one conversation: which reply a later request repeats, and how."""

from deltatape.conversation.read_back import (
    check_conversation,
    findings_of,
    goes_on_without,
    read_backs,
)

__all__ = ["check_conversation", "findings_of", "goes_on_without", "read_backs"]

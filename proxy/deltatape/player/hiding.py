"""Keeps credentials out of what is told of requests, on a terminal, in a report or in an answer.

A request that misses has not been masked by any recorder, and what its developer does next is to
paste the message somewhere. What looks like a provider's key is hidden, and what is known to be a
credential; see `redact.patterns` and `tape.literals`.
"""

from collections.abc import Callable, Iterable

from deltatape.redact import patterns
from deltatape.tape.literals import blanked, merged
from deltatape.tape.mask import Masker


def hider(secrets: Iterable[bytes]) -> Callable[[str], str]:
    """A function that overwrites credentials in a text, each byte of them by an asterisk.

    Args:
        secrets: known ones, whatever they look like.
    """
    masker = Masker(b"")  # only asterisks are wanted of it, no hashes
    for secret in secrets:
        masker.learn(secret)

    def hide(text: str) -> str:
        data = text.encode(errors="surrogatepass")
        likely = ((one.start, one.end, "") for one in patterns.find(data.decode("latin-1")))
        spans = merged((*likely, *masker.literals.spans(data)))
        return blanked(data, spans).decode(errors="replace") if spans else text

    return hide

"""The corpus of captured streams (docs/corpus.md) as exchanges on a tape.

It holds whole bodies without times: the reads are made, each of one event, as from a quick network
and a slow model, or of the whole body, as in an import.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measure import BenchError
from benchmarks.proxies import ROOT
from deltatape.cli.tapes import material
from deltatape.diagnose.decode import decode
from deltatape.errors import DeltatapeError
from deltatape.importers import import_capture
from deltatape.importers.taping import tape_exchange
from deltatape.model.exchange import EndReason, Exchange, Read
from deltatape.model.stream import Stream
from deltatape.tape.payload import ParsedAs
from deltatape.tape.tap import ExchangeTap

CORPUS = Path(os.environ.get("DELTATAPE_CORPUS") or ROOT.parent / "shared" / "corpus")
BY_EVENT, BY_BODY = "an event", "a body"
"""What a read brings."""


@dataclass(frozen=True, slots=True)
class CorpusCase:
    """A captured response and its request."""

    exchange: Exchange
    stream: Stream
    parsed: ParsedAs | None = None
    """The `parsed` record, if it was read from a tape."""

    def tape(
        self,
        tap: ExchangeTap,
        number: int,
        read: str,
        at_ns: int,
        *,
        first_ns: int = 0,
        apart_ns: int = 1000,
    ) -> int:
        """Tape the exchange; return when it ends.

        Args:
            tap: gets the records.
            number: makes its id.
            read: what a read brings.
            at_ns: when it begins.
            first_ns: from there to the head of the response.
            apart_ns: between reads.
        """
        request, response = self.exchange.request, self.exchange.response
        assert response is not None
        head_ns = at_ns + first_ns
        reads = tuple(
            Read(head_ns + place * apart_ns, piece, None, None)
            for place, piece in enumerate(self._pieces(read), 1)
        )
        timed = replace(
            self.exchange,
            request=replace(request, t_ns=at_ns, t_end_ns=at_ns),
            response=replace(response, t_ns=head_ns),
            reads=reads,
            notes=(),
        )
        tape_exchange(timed, f"{number:026}", tap)
        ended_ns = head_ns + len(reads) * apart_ns
        tap.end(ended_ns, EndReason.COMPLETE)
        return ended_ns

    def _pieces(self, read: str) -> Iterator[bytes]:
        body, at = self.stream.body, 0
        ends = [event.end for event in self.stream.events] if read == BY_EVENT else []
        for end in (*ends, len(body)):
            if end > at:
                yield body[at:end]
                at = end


def corpus_cases() -> Iterator[tuple[str, CorpusCase]]:
    """Yield the cases with their names, in order; none where there is no corpus.

    Raises:
        BenchError: a case cannot be read.
    """
    for folder in sorted(CORPUS.glob("*--*--*")):
        try:
            (exchange,) = import_capture(material(folder)).exchanges
        except DeltatapeError as error:
            raise BenchError(f"{folder}: {error}") from error
        yield folder.name, CorpusCase(exchange, decode(exchange))

"""The recorder's interface for the tape itself: connections, output, notes, the end.

As with `tap`, what is handed to `put` is a whole line; it does no I/O.

Format: recordings/README.md, "Codes" and "Log lines".
"""

from collections.abc import Callable, Iterator

from deltatape.model.exchange import MaskedSpan
from deltatape.model.tape_summary import LogStream
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.payload import (
    ClientRecord,
    ClientState,
    Idle,
    LogLine,
    MaskedSpans,
    RemarkRecord,
    Stop,
)
from deltatape.tape.record import Payload
from deltatape.tape.seen_credentials import Literals, blanked

Put = Callable[[int, bytes], None]
"""Takes an exchange's number and a line of it."""


# A program's output, in whatever pieces it comes, to lines.
#
# A line ends at a line feed, which is not part of it. One that is longer than `LONGEST_LINE` is cut
# into several, never within a credential.

LONGEST_LINE = 64 << 10
"""The most bytes of a line in one record."""
Line = tuple[bytes, tuple[MaskedSpan, ...]]
"""A line as it may be written, and where in it asterisks stand for a credential."""


class LogLines:
    """Splits one output stream of a program into lines."""

    __slots__ = ("_literals", "_rest")

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._rest = bytearray()  # of the line that has not ended

    def add(self, data: bytes) -> Iterator[Line]:
        """Yield the lines that are now complete."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._rest += part
            yield from self._long()
            yield from self._line()
        self._rest += rest
        yield from self._long()

    def end(self) -> Iterator[Line]:
        """Yield the unfinished last line, if any."""
        if self._rest:
            yield from self._line()

    def _line(self) -> Iterator[Line]:
        line = bytes(self._rest)
        self._rest.clear()
        spans = self._literals.spans(line) if line else ()
        yield blanked(line, spans) if spans else line, spans

    def _long(self) -> Iterator[Line]:
        """Yield the parts of a line that is too long."""
        while len(self._rest) > LONGEST_LINE:
            part = bytes(self._rest[:LONGEST_LINE])
            found = self._literals.find(part)
            cut = len(part) - self._literals.tail(part)[0]
            for start, end, _ in found:
                cut = start if start < cut < end else cut
            # A line that is nothing but credentials one in another has no place to be cut at.
            cut = cut or len(part)
            spans = tuple(span for span in found if span[1] <= cut)
            yield blanked(part[:cut], spans) if spans else part[:cut], spans
            del self._rest[:cut]


class TapeTap:
    """The recorder's interface for the tape itself: exchange 0.

    Args:
        put: takes each line.
        masker: knows the credentials that are masked in remarks and in what a program prints;
            without one none is known.
    """

    __slots__ = ("_logs", "_masker", "_put")

    def __init__(self, put: Put, masker: Masker | None = None) -> None:
        self._put = put
        self._masker = masker or Masker(b"")
        self._logs = {stream: LogLines(self._masker.literals) for stream in LogStream}

    def client(self, t_ns: int, *, connection: int, state: ClientState) -> None:
        """A client connection, counted from 1, was opened or closed."""
        self._write(t_ns, ClientRecord(connection=connection, state=state))

    def idle(self, t_ns: int) -> None:
        """Write that no exchange is open and the recorder is running."""
        self._write(t_ns, Idle())

    def note(self, t_ns: int, text: str) -> None:
        """Write a note about the whole tape."""
        self._write(t_ns, RemarkRecord(text=self._masker.text(text)))

    def log(self, t_ns: int, stream: LogStream, data: bytes) -> None:
        """Write output of the recorded program, a record per line."""
        for line in self._logs[stream].add(data):
            self._write_line(t_ns, stream, line)

    def log_end(self, t_ns: int) -> None:
        """Write unfinished lines: the program prints no more."""
        for stream, lines in self._logs.items():
            for line in lines.end():
                self._write_line(t_ns, stream, line)

    def _write_line(self, t_ns: int, stream: LogStream, line: Line) -> None:
        data, spans = line
        if spans:
            self._write(t_ns, MaskedSpans(spans=spans))
        self._write(t_ns, LogLine(stream=stream, line=data))

    def stop(self, t_ns: int, reason: str, code: int | None) -> None:
        """Write the last record: recording ended in good order; `code` is the child's exit code.

        What the program has printed of a line that did not end comes before it.
        """
        self.log_end(t_ns)
        self._write(t_ns, Stop(reason=reason, exit_code=code))

    def _write(self, t_ns: int, payload: Payload) -> None:
        self._put(0, encode.payload_record(t_ns, 0, payload))

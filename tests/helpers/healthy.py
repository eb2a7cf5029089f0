"""Tapes of the incident applications on which nothing is wrong: a sound provider, a calm history.

A tape is made of what the application asks: it runs against the tape so far, what it asked for and
did not get is answered with the next of the given replies, until it misses nothing.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions
from deltatape.trials.trial import TrialResult, attempt
from helpers.chat import choice, sse
from helpers.clients import ROOT
from helpers.taped import taped

APPS = ROOT / "examples" / "incidents"
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """An application, what its user says, and the replies of its provider."""

    app: str
    says: str
    replies: tuple[bytes, ...]
    target: bytes = b"/v1/chat/completions"


def called(*entries: Mapping[str, object]) -> bytes:
    """A chat completion that calls; each of `entries` in a chunk of its own."""
    chunks = [choice({"tool_calls": [entry]}) for entry in entries]
    return sse(choice({"role": "assistant", "content": ""}), *chunks, choice({}, "tool_calls"))


def said(*pieces: str) -> bytes:
    """A chat completion of text."""
    chunks = [choice({"content": piece}) for piece in pieces]
    return sse(choice({"role": "assistant", "content": ""}), *chunks, choice({}, "stop"))


def command(story: Story, folder: Path, *, go: str = "") -> tuple[str, ...]:
    """What runs the application with what its user says; `go` is the program built of it."""
    app = APPS / story.app
    runs = {".py": f"{sys.executable} {app}", ".mjs": f"node {app}", ".go": go}[app.suffix]
    lines = folder / "says"
    lines.write_text(story.says)
    return ("sh", "-c", f"{runs} < {lines}")


def healthy(story: Story, folder: Path, *, go: str = "") -> tuple[Exchange, ...]:
    """The tape."""
    exchanges: list[Exchange] = []
    for number, body in enumerate(story.replies, 1):
        outcome = run(story, exchanges, folder, go=go)
        missed = outcome.report.missed[0].query
        pieces = [piece + b"\n\n" for piece in body.split(b"\n\n")[:-1]]
        reads = [(20 * at, piece) for at, piece in enumerate(pieces, 1)]
        made = taped(reads, body=missed.body, number=number, target=story.target)
        exchanges.append(replace(made, tape="healthy.tape"))
    return tuple(exchanges)


def run(story: Story, exchanges: Sequence[Exchange], folder: Path, *, go: str = "") -> TrialResult:
    """One run of the application against a tape."""
    playing = PlayOptions(tempo=ReplayTempo(factor=0.0), bodies=True)
    argv = command(story, folder, go=go)
    return asyncio.run(attempt(argv, exchanges, playing, os.environ, folder, _LIMIT_S))

"""Torture in a test: a tape of two answers, and an application with a choice of mistakes."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from deltatape.match.request import MatchLevel, MatchQuery, NoMatch
from deltatape.model.exchange import Exchange
from deltatape.model.torture import MatrixCell, MatrixRow, RunVerdict, TortureResult
from deltatape.player.play_options import MissedRequest, PlayedRequest, PlayReport
from deltatape.trials.torture import TortureSetup, torture
from deltatape.trials.torture_plan import CaseFiler
from deltatape.trials.trial import TrialResult
from deltatape.vary.variation import VARIATIONS, Variation
from helpers.chat import choice, sse
from helpers.program import environment
from helpers.taped import taped

APP = """
import http.client, json, os, re, sys, urllib.parse

how = sys.argv[1:]
url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])


def pieces(response):
    while data := response.read1(65536):
        yield data


def events(response):
    if "by-read" in how:
        for data in pieces(response):
            yield from re.findall(rb"data: (.*)\\n\\n", data)
        return
    for line in response:
        if line.startswith(b"data:"):
            yield line[5:].strip()


def answer(number):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
    body = json.dumps({"number": number + "again" * ("again" in how)})
    connection.request("POST", url.path + "/chat/completions", body)
    response = connection.getresponse()
    if response.status != 200:
        raise OSError(f"status {response.status}")
    text, done = "", False
    for data in events(response):
        if data == b"[DONE]":
            done = True
        else:
            chunk = json.loads(data)
            if "error" in chunk:
                raise OSError(chunk["error"])
            text += chunk["choices"][0]["delta"].get("content") or ""
    if not done and "deaf" not in how:
        raise OSError("the answer broke off")
    return text


for number in "12"[: 1 + ("once" not in " ".join(how))]:
    for attempt in range(1 + ("retry" in how)):
        try:
            print(answer(number), *(os.getpid() for _ in range(how.count("flaky"))))
            break
        except (OSError, http.client.HTTPException, ValueError) as error:
            if "deaf" in how:
                print("...")
            elif "mute" in how:
                sys.exit(3)
            elif attempt == how.count("retry"):
                print(f"something went wrong: {error}")
    if "crash" in how and number == "2":
        os.kill(os.getpid(), 11)
"""
"""Asks twice and prints both answers.

`by-read` takes each read for whole events, `deaf` swallows what goes wrong, `mute` tells by its
exit code alone, `retry` asks again; `once` asks once, `again` asks for what is not on the tape;
`flaky` never prints the same, `crash` dies.
"""


def answers() -> tuple[Exchange, ...]:
    """The two exchanges of the tape."""
    return tuple(_answer(number, text) for number, text in ((1, "Guten Tag"), (2, "Grüße")))


def _answer(number: int, text: str) -> Exchange:
    chunks = [choice({"content": piece}) for piece in (text[:3], text[3:])]
    raw = [json.dumps(chunk, ensure_ascii=False) for chunk in (*chunks, choice({}, "stop"))]
    body = sse(*raw)
    reads = [(20 * at, part + b"\n\n") for at, part in enumerate(body.split(b"\n\n")[:-1], 1)]
    exchange = taped(reads, body={"number": str(number)}, number=number)
    return replace(exchange, tape="x.tape")


def app(folder: Path, *how: str) -> tuple[str, ...]:
    """The command that runs the application."""
    program = folder / "app.py"
    program.write_text(APP)
    return (sys.executable, "-I", "-S", str(program), *how)


def named(*names: str) -> tuple[Variation, ...]:
    """Variations by their names, in their order."""
    found = tuple(one for one in VARIATIONS if one.name in names)
    assert len(found) == len(names), names
    return found


def rig(folder: Path, *how: str, only: Sequence[str], **settings: object) -> TortureSetup:
    """A set-up with the application and these variations."""
    command = app(folder, *how)
    filing = CaseFiler(tapes=("x.tape",), options=(), command=command)
    made = TortureSetup(
        command=command,
        exchanges=answers()[: 1 if "once" in how else 2],
        variations=named(*only),
        environ=environment(folder),
        folder=folder,
        filing=filing,
        seeds=(1,),
        deadline_s=5.0,
        jobs=2,
    )
    return replace(made, **settings)  # type: ignore[arg-type] # each by its name


def tortured(folder: Path, *how: str, only: Sequence[str], **settings: object) -> TortureResult:
    """The result of torturing the application."""
    return torture(rig(folder, *how, only=only, **settings))


def marks(result: TortureResult) -> Mapping[str, str]:
    """By variation and column the verdict: `every-byte #1`."""
    return {f"{one.variation} {one.exchange}": one.verdict.value for one in result.cells}


def outcome(
    stdout: str = "hello\n",
    stderr: str = "",
    *,
    code: int | None = 0,
    signal: str = "",
    timed_out: bool = False,
    missed: int = 0,
    unplayed: int = 0,
) -> TrialResult:
    """A run that played one exchange."""
    first, second = answers()
    asked = MatchQuery(method="POST", target=b"/v1/chat/completions", body=first.request.body)
    return TrialResult(
        exit_code=code,
        signal=signal,
        stdout=stdout.encode(),
        stderr=stderr.encode(),
        seconds=0.25,
        timed_out=timed_out,
        report=PlayReport(
            played=(PlayedRequest(query=asked, exchange=first, level=MatchLevel.EXACT),),
            missed=(_missed(),) * missed,
            unplayed=(second,) * unplayed,
        ),
    )


def _missed() -> MissedRequest:
    query = MatchQuery(method="POST", target=b"/v1/chat/completions?a=b", body=b"{}")
    miss = NoMatch(nearest=None, problem="nothing is recorded", differences=())
    return MissedRequest(query=query, miss=miss, nearest=None, message="not on the tape")


def cell(variation: str = "every-byte", **facts: object) -> MatrixCell:
    """A cell that passed, unless `facts` say otherwise."""
    known = {one.name: one.harmless for one in VARIATIONS}
    made = MatrixCell(
        variation=variation,
        harmless=known[variation],
        exchange="#1",
        verdict=RunVerdict.SAME,
        seconds=0.25,
        runs=1,
    )
    return replace(made, **facts)  # type: ignore[arg-type] # each by its name


def failed(variation: str = "every-byte", **facts: object) -> MatrixCell:
    """A cell that failed."""
    told: dict[str, object] = {
        "verdict": RunVerdict.DIFFERS,
        "why": "exit code 1",
        "reproduce": f"deltatape torture x.tape --only {variation} -- app",
        "printed": "Traceback\nboom",
    }
    return cell(variation, **{**told, **facts})


def result(*cells: MatrixCell, **facts: object) -> TortureResult:
    """The result with these cells."""
    names = dict.fromkeys(one.variation for one in cells)
    made = TortureResult(
        command=("app",),
        tapes=("x.tape",),
        columns=tuple(dict.fromkeys(one.exchange for one in cells)),
        idle=(),
        rows=tuple(
            MatrixRow(name=one.name, harmless=one.harmless, summary=one.summary)
            for one in VARIATIONS
            if one.name in names
        ),
        cells=cells,
        runs=len(cells),
        seconds=1.5,
    )
    return replace(made, **facts)  # type: ignore[arg-type] # each by its name

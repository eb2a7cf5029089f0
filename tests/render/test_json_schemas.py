"""What `why`, `show` and `ls` print is what their published schemas say."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import jsonschema
import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange, Framing, Source, Tap
from deltatape.model.exchange_row import Mark
from deltatape.model.explanation import EventSource, Explanation, VerdictKind
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import CallKind, CallStatus, Channel
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.stepping import StepUnit
from deltatape.model.tape_summary import LogEntry, LogStream, TapeContext
from deltatape.model.websocket import Side
from deltatape.render.exchange_rows import ExchangesDocument, trends_json
from deltatape.render.explanation import explanation_json
from deltatape.render.json_document import long_document
from deltatape.render.show import calls_json, events_json, exchange_object, log_json, reads_json
from deltatape.render.steps import steps_json
from deltatape.rules.event_contribution import ContributionKind
from deltatape.rules.progress import SilencePhase
from deltatape.store.reader import open_tape
from deltatape.why.exchange_index import index_rows
from deltatape.why.explain import explain
from deltatape.why.stepping import stepping
from deltatape.why.trends import Trends
from helpers import corpus
from helpers.chat import FINISH, entry, sse
from helpers.chat import calls as chat_calls
from helpers.console import called
from helpers.exchanges import USER, asks, assistant, call, conversation, pasted, result, timed
from helpers.incidents import BROKEN
from helpers.json_schemas import NAMES, described, keys, printed, schema, validate

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "recordings"
FOLDERS = sorted(path.name for path in RECORDINGS.iterdir() if path.is_dir())
REFUSED = "refuse-"
"""How the names of recordings begin that readers refuse."""

MANY = 30
Sample = TypeVar("Sample")

MORE = (
    "rules/T018/fires.tape",
    "apps/search-of-the-provider.tape",
    "conformance/code-frame.tape",
    "conformance/code-log.tape",
    "conformance/code-note.tape",
    "rules/D005/fires.tape",
    "dialects/websocket/openai-realtime.tape",
)
"""Of what the incidents lack: calls in text and of the provider, frames, bytes in the log, notes, a
slow client, responses on a WebSocket."""
ATTEMPTS = "apps/retry-after-500.tape"

Document: TypeAlias = tuple[str, Any]
"""What a command prints, after the name of its schema."""


def recordings(folder: str) -> list[Path]:
    paths = sorted((RECORDINGS / folder).rglob("*.tape"))
    return [path for path in paths if not path.name.startswith(REFUSED)]


def some(found: Sequence[Sample]) -> Sequence[Sample]:
    """A third of many: all of them take half a minute."""
    return found[::3] if len(found) > MANY else found


def shown(exchange: Exchange, log: Sequence[LogEntry] = ()) -> Iterator[Document]:
    """What `show` prints of an exchange, part by part and as a whole."""
    analysis = analyse(exchange)
    (row,) = index_rows([exchange])
    whole = long_document(**exchange_object(analysis, row, log))
    for text in (calls_json([analysis]), events_json(analysis), reads_json(exchange), whole):
        yield "show", json.loads(text)


def explained(explanation: Explanation) -> Document:
    return "why", json.loads(explanation_json(explanation))


def documents(path: Path) -> Iterator[Document]:
    """What `show` prints of all parts of a tape, and `why` of its worst exchange."""
    tape = open_tape(path)
    exchanges = tuple(sorted(tape, key=lambda each: each.number))
    for exchange in exchanges:
        yield from shown(exchange, tape.logs)
    yield "show", json.loads(log_json(tape.logs))
    if exchanges:
        context = TapeContext(logs=tape.logs, clients=tape.clients)
        explanation = explain(exchanges, context=context)
        yield explained(explanation)
        yield "steps", json.loads(steps_json(stepping(explanation, exchanges)))


def stepped(exchange: Exchange) -> Document:
    found = stepping(explain([exchange]), [exchange])
    return "steps", json.loads(steps_json(found))


def framed_by_read() -> Exchange:
    """An exchange that clients read wrongly that frame each read by itself."""
    body = sse(chat_calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    return timed((0.1, body[:60]), (0.2, body[60:]), end_s=0.3)


def invented_call() -> list[Exchange]:
    """An app that sends back a call beside the one that was delivered."""
    after = asks(USER, assistant(("c1", "get", '{"a":1}'), ("c9", "put", "{}")), result("c1"))
    return conversation((asks(USER), [*call(), FINISH]), (after, []))


def binary_request() -> Exchange:
    exchange = pasted(FINISH)
    return replace(exchange, request=replace(exchange.request, body=b"\xff"))


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_some(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_printed_of_recordings_is_valid_and_named(folder: str) -> None:
    for path in some(recordings(folder)):
        for name, document in documents(path):
            validate(name, document)


@corpus.needs_corpus
@pytest.mark.slow
def test_what_is_printed_of_the_corpus_is_valid_and_named() -> None:
    for case in some(corpus.every_case()):
        for name, document in (*shown(case.exchange), explained(explain([case.exchange]))):
            validate(name, document)


def test_every_key_of_the_schemas_is_printed() -> None:
    several = [
        *(document for path in recordings("incidents") for document in documents(path)),
        *(document for path in MORE for document in documents(RECORDINGS / path)),
        explained(explain([open_tape(BROKEN)[1]], clients=True)),
        explained(explain(tuple(open_tape(RECORDINGS / ATTEMPTS)))),
        explained(explain(invented_call(), 1)),
        *shown(binary_request()),
        stepped(framed_by_read()),
    ]
    for name in ("why", "show", "steps"):
        found = [printed(name, document) for of, document in several if of == name]
        assert keys(name) - set().union(*found) == set()


def test_what_ls_lists_is_valid_and_every_key_is_named(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path)
    (tmp_path / "torn.tape").write_bytes(b"{")
    document = json.loads(called("ls", ".", "--format", "json", folder=tmp_path).stdout)
    validate("ls", document)
    assert printed("ls", document) == keys("ls")
    assert len(document["tapes"]) == 2
    assert [type(tape["worst"]) for tape in document["tapes"]].count(dict) == 1


@pytest.mark.slow
def test_the_rows_of_all_recordings_are_valid_and_named() -> None:
    trends = Trends()
    for path in (path for folder in FOLDERS for path in recordings(folder)):
        tape, document = open_tape(path), ExchangesDocument()
        rows = list(index_rows(tape, DEFAULTS, tape.logs))
        validate("exchanges", json.loads(document.add(rows) + document.end()))
        for row in rows:
            trends.add(row)
    validate("trends", json.loads(trends_json(trends)))


def test_every_key_of_rows_and_trends_is_printed(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path)
    shutil.copy(RECORDINGS / ATTEMPTS, tmp_path)
    for name, option in (("exchanges", "--exchanges"), ("trends", "--trends")):
        result = called("ls", ".", option, "--format", "json", folder=tmp_path)
        document = json.loads(result.stdout)
        validate(name, document)
        assert printed(name, document) == keys(name)


@pytest.mark.slow
def test_the_commands_print_these_documents(tmp_path: Path) -> None:
    one = f"{BROKEN}#1"
    for name, arguments in (
        ("why", ["why", one, "--suspects"]),
        ("show", ["show", one]),
        ("show", ["show", BROKEN]),
        ("show", ["show", one, "--calls"]),
        ("show", ["show", one, "--events"]),
        ("show", ["show", one, "--reads"]),
        ("steps", ["show", one, "--steps"]),
        ("show", ["show", BROKEN, "--log"]),
        ("findings", ["check", BROKEN]),
        ("diff", ["diff", one, f"{BROKEN}#2"]),
    ):
        result = called(*arguments, "--format", "json", folder=tmp_path)
        validate(name, json.loads(result.stdout))


def test_another_key_is_not_valid() -> None:
    name, document = next(shown(open_tape(BROKEN)[1]))
    with pytest.raises(jsonschema.ValidationError):
        validate(name, {**document, "other": 1})
    document["calls"][0]["other"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validate(name, document)


@pytest.mark.parametrize("name", ["why", "show", "ls", "exchanges", "trends", "diff", "steps"])
def test_what_a_key_means_is_said_unless_its_name_says_it(name: str) -> None:
    silent = {key for key, rules in described(name) if not {"description", "$ref"} & rules.keys()}
    assert silent <= {"version", "id", "name", "models", "kind"}


def test_the_schemas_know_every_value_of_an_enumeration() -> None:
    def values(file: str, kind: str, key: str) -> set[object]:
        return set(schema(file)["$defs"][kind]["properties"][key]["enum"])

    assert values("show", "call", "kind") == set(CallKind)
    assert values("show", "call", "status") == set(CallStatus)
    assert values("show", "call", "channel") == set(Channel)
    assert values("show", "read", "side") == set(Side)
    assert values("show", "contribution", "what") == set(ContributionKind)
    assert values("show", "log_line", "stream") == set(LogStream)
    rows = schema("exchanges")["$defs"]["row"]["properties"]
    assert set(rows["ending"]["enum"]) == {*EndReason, None}
    assert set(rows["marks"]["items"]["enum"]) == set(Mark)
    assert values("steps", "suspect", "unit") == set(StepUnit)
    assert values("trends", "code", "severity") == set(Severity)
    assert values("show", "text", "channel") == set(Channel)
    assert values("show", "recording", "source") == set(Source)
    assert values("show", "recording", "tap") == set(Tap)
    assert values("show", "response", "framing") == set(Framing)
    assert values("show", "phase", "name") == {*SilencePhase, "sending"}
    assert values("show", "dead_zone", "phase") == {*SilencePhase, "unanswered"}
    assert values("why", "verdict", "kind") == set(VerdictKind)
    assert values("why", "verdict", "blame") == {*Blame, None}
    assert values("why", "verdict", "confidence") == {*Confidence, None} - {Confidence.POSSIBLE}
    assert values("why", "timeline_entry", "source") == set(EventSource)

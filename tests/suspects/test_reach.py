"""What clients can make of a stream: all that any client makes, and not what others write."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.store.reader import open_tape
from deltatape.suspects import PRESETS, DeliveredResponse, delivered
from deltatape.suspects.client import ClientModel, client_of
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.simulation import ClientRunner
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import deliver

RECORDINGS = Path(__file__).resolve().parent.parent.parent / "recordings"
POINTS = 60
RULES = ("T002", "T006", "T011", "T016", "T018", "C001", "C002")


def clients(runner: ClientRunner) -> Iterator[ClientModel]:
    """Every mistake, every preset, and some combinations of mistakes."""
    chance = random.Random(1)
    points = [chance.sample(list(MISTAKES), size) for size in (2, 3, 4) for _ in range(POINTS)]
    yield from (client for preset in PRESETS for client in runner.clients_of(preset))
    for client in [client_of(*point) for point in [*([one] for one in MISTAKES), *points]]:
        if runner.applies(client):
            yield client
            yield from runner.variants(client)


def read(tape: Path) -> DeliveredResponse:
    """The first response on a tape."""
    exchange, *_ = open_tape(tape)
    analysis = analyse(exchange)
    return delivered(exchange, analysis.stream, analysis.reply, analysis.request)


DIALECTS = sorted(
    path.stem
    for path in (RECORDINGS / "dialects").glob("*.tape")
    if read(path).family is not None  # of whose clients something is known
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(f"dialects/{one}" for one in DIALECTS), *(f"rules/{one}/fires" for one in RULES)]
)
def test_whatever_a_client_makes_is_within_reach(name: str) -> None:
    runner = ClientRunner(read(RECORDINGS / f"{name}.tape"))
    made = {call for client in clients(runner) for call in runner.outcome(client).calls}
    assert made
    for call in made:
        assert runner.reach.has_name(call.name)
        assert runner.reach.has_arguments(call.arguments)


STREAM = ClientRunner(
    deliver(
        sse(
            calls(entry(0, "c1", name="get", arguments='{"path":"/tm')),
            calls(entry(1, "c2", name="put", arguments='{"days":5,"where":"Gent')),
            calls(entry(0, arguments="p/a")),
            calls(entry(0, arguments=".txt")),
            calls(entry(0, arguments='"}')),
            calls(entry(1, arguments=' centre"}')),
            choice({"content": '<tool>{"tool_name":"look","arguments":{"q":"inside"}}</tool>'}),
            FINISH,
        )
    )
).reach


@pytest.mark.parametrize(
    ("arguments", "possible"),
    [
        ('{"path":"/tmp/a.txt"}', True),
        ('{ "path" : "a.txt" }', True),
        ('{"path":"/tmp/a.txt centre"}', True),
        ('{"path":"Gentp/a.txt"}', True),
        ('{"path":"a.txt.txt.txt.txt"}', True),
        ('{"path":"/tmp/b.txt"}', False),
        ('{"path":"/tmp/a.txtGent"}', False),
        ('{"path":"/tmp/aa.txt"}', False),
        ('{"Path":"/tmp/a.txt"}', False),
        ('{"path":"/tmp/a.txt","limit":10}', False),
        ('{"path":["Gent",{"days":"centre"}]}', True),
        ('{"path":["Gent",{"days":"city"}]}', False),
        ('{"q":"inside"}', True),
        ('{"days":500,"where":null}', True),
        ('{"0":"G","1":"e","12":"n"}', True),
        ('{"path":{"0":"G"}}', False),
        ('{"path":"\u00e9\\n\\"\\\\"}', True),
        (r'{"path":"\/tm\u0070"}', True),
        ('"{\\"path\\":\\"Gent centre\\"}"', True),
        ('"{\\"path\\":\\"Gent city\\"}"', False),
        ('{"where":"undefinedNone"}', True),
        ("", True),
        ("{}", True),
        ("{'path': 'elsewhere'}", True),
        ("[elided]", True),
    ],
)
def test_a_text_is_possible_if_its_strings_are_pieces_in_a_row(
    arguments: str,
    possible: bool,  # noqa: FBT001
) -> None:
    assert STREAM.has_arguments(arguments) is possible


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("get", True),
        ("getget", True),
        ("putget", True),
        ("look", True),
        (None, True),
        ("get_v2", False),
        ("Get", False),
    ],
)
def test_names_are_made_of_names(
    name: str | None,
    possible: bool,  # noqa: FBT001
) -> None:
    assert STREAM.has_name(name) is possible


@pytest.mark.parametrize("piece", [r'{"a":"\u0062c', r'{"a":"\u00', r'{"a":"\u', '{"a":"\\'])
def test_where_an_escape_may_make_a_character_everything_is_possible(piece: str) -> None:
    stream = deliver(
        sse(
            calls(entry(0, "c1", name="get", arguments=piece)),
            calls(entry(0, arguments='62"}')),
            FINISH,
        )
    )
    reach = ClientRunner(stream).reach
    assert reach.has_arguments('{"b":"whatever"}')
    assert not reach.has_name("whatever")


def test_of_a_long_text_only_the_beginning_is_compared() -> None:
    stream = deliver(
        sse(*(calls(entry(0, arguments=one)) for one in ('{"abc":"', "a", "b", "c")), FINISH)
    )
    reach = ClientRunner(stream).reach
    assert not reach.has_arguments('{"abc":"' + "cba" * 300 + 'd"}')
    assert reach.has_arguments('{"abc":"' + "cba" * 3_000 + 'd"}')

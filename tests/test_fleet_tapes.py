"""`scripts/fleet-tapes`: as many exchanges as asked for, in order, with the findings of theirs."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from fleet.conversations import Conversation, conversation, conversations
from fleet.tapes import Maker, Plan, write

from deltatape.cli.parallel_check import check_one
from deltatape.settings.defaults import current_rules
from deltatape.store.audit import audit
from deltatape.store.reader import open_tape
from helpers.program import environment

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "recordings"
AGENT = RECORDINGS / "apps" / "ai-sdk-agent.tape"
"""Two exchanges, with ids that nothing else has."""
SINGLE = RECORDINGS / "dialects" / "anthropic-messages.tape"
LOST = RECORDINGS / "rules" / "C001" / "fires.tape"
"""The application loses a call between its two requests."""
SOURCES = (AGENT, SINGLE, LOST)
PLAN = Plan(exchanges=700, seed=3, gateways=2, days=2, per_tape=150)
LIMIT_S = 120


def made(plan: Plan, sources: Sequence[Path] = SOURCES) -> list[list[bytes]]:
    """The lines of the tapes of a plan."""
    maker = Maker(plan, conversations(sources))
    return [list(maker.lines(tape)) for tape in range(plan.tapes)]


def of(lines: Sequence[bytes]) -> Conversation | None:
    return conversation("x", "healthy", lines)


def test_there_are_exactly_as_many_exchanges_as_asked_for_numbered_as_they_began() -> None:
    tapes = made(PLAN)
    numbers = [
        [int(line.split(b",")[1]) for line in lines if b',"request",' in line] for lines in tapes
    ]
    assert [len(each) for each in numbers] == [140] * 5
    assert all(each == list(range(1, 141)) for each in numbers)


def test_records_are_in_the_order_of_their_times_and_conversations_run_beside_each_other() -> None:
    for lines in made(PLAN):
        records = [json.loads(line)[:3] for line in lines[1:]]
        assert all(one[0] <= other[0] for one, other in pairwise(records))
        assert records[-1][1:] == [0, "stop"]
    most = under_way = 0
    for line in made(Plan(exchanges=10_000, gateways=1, days=1, per_tape=10_000))[0]:
        under_way += (b',"request",' in line) - (b',"end",' in line)
        most = max(most, under_way)
    assert most > 1
    assert under_way == 0


def test_the_same_seed_makes_the_same_tapes_and_another_one_others() -> None:
    assert made(PLAN) == made(PLAN)
    assert made(PLAN) != made(Plan(exchanges=700, seed=4, gateways=2, days=2, per_tape=150))


def test_nothing_has_the_id_of_something_else_nor_says_what_another_copy_says() -> None:
    tapes = [b"".join(lines) for lines in made(PLAN)]
    ids = Counter(re.findall(rb'"id":"([0-9A-Z]{26})"', b"".join(tapes)))
    assert len(ids) == PLAN.exchanges + PLAN.tapes
    assert set(ids.values()) == {1}
    replies = Counter(re.findall(rb"chatcmpl-[0-9a-f]{24}", b"".join(tapes)))
    assert len(replies) > PLAN.exchanges / 5
    begun = re.findall(rb"(\d{9})n Turin and Genoa", b"".join(tapes))
    assert len(set(begun)) > PLAN.exchanges / 10
    assert set(Counter(begun).values()) <= {1, 2}


def test_bodies_have_their_hashes_and_tapes_are_as_a_recorder_writes_them(tmp_path: Path) -> None:
    written = write(Maker(PLAN, conversations(SOURCES)), PLAN, tmp_path, range(PLAN.tapes))
    paths = sorted(tmp_path.glob("gateway-0[12]/*.tape"))
    assert len(paths) == written.tapes == PLAN.tapes
    assert written.exchanges == PLAN.exchanges
    assert written.bytes == sum(path.stat().st_size for path in paths)
    assert not [problem for path in paths for problem in audit(path).problems]
    headers = [open_tape(path).header for path in paths]
    assert len({each.id for each in headers}) == len(paths)
    assert {each.recorded_at[:10] for each in headers} == {"2026-11-01", "2026-11-02"}


def test_a_conversation_that_goes_over_is_one_conversation_on_two_tapes() -> None:
    plan = Plan(exchanges=2_000, seed=5, gateways=2, days=1, per_tape=500)
    said = [
        Counter(re.findall(rb"(\d{9})n Turin and Genoa", b"".join(lines)))
        for lines in made(plan, (AGENT, SINGLE))
    ]
    over = [
        (first, second)
        for first in range(len(said))
        for second in range(first + 1, len(said))
        if said[first].keys() & said[second].keys()
    ]
    assert over
    # A later tape, of the same recorder or of the other one.
    assert all(second // 2 == first // 2 + 1 for first, second in over)
    assert all(
        said[first][each] == said[second][each] == 1
        for first, second in over
        for each in said[first].keys() & said[second].keys()
    )


def test_each_copy_has_the_findings_of_its_recording(tmp_path: Path) -> None:
    plan = Plan(exchanges=200, gateways=1, days=1, per_tape=200)
    write(Maker(plan, conversations((LOST, SINGLE))), plan, tmp_path, [0])
    (path,) = tmp_path.rglob("*.tape")
    lost = len(set(re.findall(rb"(\d{9})he weather in Gent[^ ]", path.read_bytes())))
    codes = Counter(
        each.finding.code for each in check_one(str(path), current_rules(), excerpts=False).reported
    )
    alone = check_one(str(LOST), current_rules(), excerpts=False).reported
    assert Counter(each.finding.code for each in alone)["C001"] == 1
    assert lost > 20
    assert codes["C001"] == lost


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb'What is [^"\\]*', "Météo".encode()),
        (b'"end"', b'"fin"'),
        (b"^(.[0-9]+),1,", rb"\1,2,"),
    ],
)
def test_no_copies_are_made_where_one_would_continue_another(old: bytes, new: bytes) -> None:
    lines = SINGLE.read_bytes().splitlines(keepends=True)[1:]
    assert of(lines) is not None
    assert of([re.sub(old, new, line) for line in lines]) is None


def test_parts_make_what_one_run_makes_and_nothing_is_made_twice(tmp_path: Path) -> None:
    def run(folder: Path, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "scripts" / "fleet-tapes"), str(folder)]
        sources = (f"--from={path}" for path in SOURCES)
        options = ("--exchanges=700", "--per-tape=150", "--gateways=2", "--seed=3", "--days=2")
        result = subprocess.run(
            [*command, *options, *sources, *arguments],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        return result.stdout

    assert run(tmp_path / "whole").startswith("700 exchanges on 5 tapes, ")
    told = [run(tmp_path / "parts", f"--part={part}/2") for part in (2, 1)]
    assert [each.split(" ")[0] for each in told] == ["420", "280"]
    whole, parts = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.tape")}
        for folder in (tmp_path / "whole", tmp_path / "parts")
    )
    assert whole == parts
    first = min((tmp_path / "parts").rglob("*.tape"))
    first.write_bytes(b"kept")
    run(tmp_path / "parts")
    assert first.read_bytes() == b"kept"

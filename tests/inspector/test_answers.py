"""What the page asks of the index, and what is no question."""

import shutil
from collections.abc import Iterator

import pytest

from deltatape.demo.demo import INCIDENTS
from helpers.incidents import BROKEN, EMPTY, FIXED
from helpers.inspected import Page, inspected
from helpers.json_schemas import validate

PLACE = f"tape={BROKEN.name}&exchange=1"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("tapes")
    tapes = sorted(INCIDENTS.glob("*.tape"))
    for each in tapes:
        shutil.copy(each, folder)
    with inspected(folder, folder / "index") as page:
        yield page.indexed(len(tapes))


def test_the_tapes_are_a_document_of_ls(page: Page) -> None:
    document = page.json("/api/tapes")
    validate("ls", document)
    tapes = {each["path"]: each for each in document["tapes"]}
    assert tapes[BROKEN.name]["exchanges"] == 2
    assert tapes[BROKEN.name]["models"] == ["demo-model"]
    assert tapes[BROKEN.name]["findings"] > 0
    rows = page.json(f"/api/exchanges?tape={BROKEN.name}&order=severity")["rows"]
    assert tapes[BROKEN.name]["worst"] == rows[0]["worst"] != None  # noqa: E711 - there is one
    assert tapes[FIXED.name]["worst"] is None


def test_rows_are_those_of_ls_exchanges(page: Page) -> None:
    document = page.json("/api/exchanges")
    validate("exchanges", {"version": 1, "exchanges": document["rows"]})
    assert document["total"] == document["all"] == len(document["rows"])
    assert document["indexed"]["done"] == document["indexed"]["of"]
    assert document["facets"]["model"] == {"demo-model": document["all"]}
    times = [row["at"] for row in document["rows"]]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"tape={BROKEN.name}", 2),
        (f"tape={BROKEN.name}&code=C002", 1),
        (f"tape={BROKEN.name}&code=C002&code=X&q=DEMO", 1),
        ("code=T001,D002", 3),
        ("severity=error&tape=itinerary-fixed.tape", 0),
        ("from=2026-11-21&to=2026-11-21", None),
        ("from=2100-01-01T00:00Z", 0),
        ("to=2026-11-21T00:00:00.5", 0),
        ("provider=127.0.0.1&provider=openai", None),
        ("model=&provider=&code=&q=&from=", None),
        ("q=%27%22%25_", 0),
    ],
)
def test_filters(page: Page, query: str, found: int | None) -> None:
    document = page.json(f"/api/exchanges?{query}")
    assert document["total"] == (document["all"] if found is None else found)
    assert len(document["rows"]) == document["total"]


def test_pages(page: Page) -> None:
    whole = page.json("/api/exchanges?order=at")["rows"]
    assert page.json("/api/exchanges?order=at&offset=2&limit=3")["rows"] == whole[2:5]
    assert page.json("/api/exchanges?order=-at&limit=1")["rows"] == whole[-1:]
    assert page.json("/api/exchanges?offset=1000")["rows"] == []


def test_a_conversation_and_trends(page: Page) -> None:
    rows = page.json(f"/api/thread?{PLACE}")["rows"]
    assert [row["exchange"] for row in rows] == [1, 2]
    trends = page.json(f"/api/trends?tape={EMPTY.name}")
    validate("trends", trends)
    assert sum(each["exchanges"] for each in trends["trends"]) == 2


@pytest.mark.parametrize("what", ["why", "show", "steps"])
def test_documents_follow_their_schemas(page: Page, what: str) -> None:
    validate(what, page.json(f"/api/{what}?{PLACE}"))


def test_two_exchanges_are_compared(page: Page) -> None:
    document = page.json(f"/api/diff?{PLACE}&other={EMPTY.name}%231")
    validate("diff", document)
    assert document["hops"][0]["right"]["name"] == f"{EMPTY.name}#1"


def test_copies_are_text(page: Page) -> None:
    answer = page.get(f"/api/copy?{PLACE}&as=command")
    assert answer.fields["content-type"] == "text/plain; charset=utf-8"
    assert answer.body.startswith(b"deltatape why ")
    assert b"$AUTHORIZATION" in page.get(f"/api/copy?{PLACE}&as=curl").body


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("exchanges?order=row", "order: one of at, "),
        ("exchanges?order=--at", "order: one of at, "),
        ("exchanges?offset=-1", "offset: has to be a number from 0"),
        ("exchanges?limit=x", "limit: has to be a number from 0"),
        ("exchanges?severity=fatal", "severity: one of error, warning, info"),
        ("exchanges?from=yesterday", "from: a day such as"),
        ("trends?to=2026-13-01", "to: a day such as"),
        ("thread", "name an exchange"),
        ("why?tape=x", "name an exchange"),
        ("why?exchange=1", "name an exchange"),
        (f"why?tape={BROKEN.name}&exchange=1e3", "name an exchange"),
        (f"why?tape={BROKEN.name}&exchange=%D9%A1", "name an exchange"),
        (f"diff?{PLACE}", "other: name the exchange to compare with"),
        (f"diff?{PLACE}&other=x", "other: name the exchange to compare with"),
        (f"diff?{PLACE}&other=%231", "other: name the exchange to compare with"),
        (f"raw?{PLACE}", "side: one of request, response"),
        (f"raw?{PLACE}&side=request&offset=x", "offset: has to be a number"),
        (f"copy?{PLACE}&as=sh", "as: one of command, curl, pytest"),
    ],
)
def test_what_is_no_question_is_said(page: Page, path: str, problem: str) -> None:
    answer = page.get(f"/api/{path}")
    assert answer.status == 400
    assert answer.json()["error"].startswith(problem)


def test_an_exchange_that_is_not_there_is_said(page: Page) -> None:
    for path in ("why", "thread"):
        answer = page.get(f"/api/{path}?tape={BROKEN.name}&exchange=9")
        assert answer.status == 404
        assert f"{BROKEN.name}#9: no such exchange" in answer.json()["error"]

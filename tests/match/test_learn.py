import gzip

import pytest

from deltatape.match.learn import learned
from deltatape.model.exchange import Exchange
from helpers.taped import taped


def asks(day: str, folder: str, *messages: object, **more: object) -> dict[str, object]:
    system = {"role": "system", "content": f"Today is {day}. You work in {folder}."}
    return {"model": "m", "messages": [system, *messages], **more}


def recording(
    *bodies: object, answer: bytes = b"data: 1\n\n", coded: bool = False
) -> list[Exchange]:
    headers = ((b"Content-Encoding", b"gzip"),) if coded else ()
    data = gzip.compress(answer) if coded else answer
    return [
        taped(((10, data),), body=body, number=at, headers=headers)
        for at, body in enumerate(bodies, 1)
    ]


HI = {"role": "user", "content": "Hi"}
GO = {"role": "user", "content": "Go"}


def test_two_recordings_of_a_run_tell_what_differs() -> None:
    first = recording(asks("2026-11-26", "/w/a", HI, trace="t1"), asks("2026-11-26", "/w/a", GO))
    again = recording(asks("2026-12-03", "/w/b", HI, trace="t2"), asks("2026-12-03", "/w/b", GO))
    found = learned(first, again)
    assert found.options == ("date", "path", "$.trace")
    assert (found.matched, found.alike, found.missed) == (2, 0, ())


def test_what_is_known_stays_and_is_not_learned_again() -> None:
    first, again = recording(asks("2026-11-26", "/w", HI)), recording(asks("2026-12-03", "/w", HI))
    assert learned(first, again, ("date", "user")).options == ("date", "user")
    assert learned(first, first).options == ()


def test_what_makes_several_requests_equal_is_counted() -> None:
    first = recording(*({"text": f"on 2026-11-2{day}"} for day in range(3)))
    again = recording(*({"text": f"on 2026-12-0{day}"} for day in range(1, 4)))
    found = learned(first, again)
    assert (found.options, found.matched, found.alike) == (("date",), 3, 2)


@pytest.mark.parametrize("coded", [False, True])
def test_what_the_model_said_is_no_reason(*, coded: bool) -> None:
    def run(day: str, ident: str, says: str) -> list[Exchange]:
        call = {"role": "assistant", "content": says, "tool_calls": [{"id": ident}]}
        result = {"role": "tool", "tool_call_id": ident, "content": "12 C"}
        answer = f'data: {{"id": "{ident}"}}\n\n'.encode()
        requests = (asks(day, "/w", HI), asks(day, "/w", HI, call, result))
        return recording(*requests, answer=answer, coded=coded)

    found = learned(
        run("2026-11-26", "call_Qx7", "Let me see."), run("2026-12-03", "call_Zy8", "Well, I look.")
    )
    assert found.options == ("date",)
    assert found.matched == 1
    ((exchange, miss),) = found.missed
    assert exchange.number == 2
    assert [each.path for each in miss.differences] == [
        "$.messages[2].content",
        "$.messages[2].tool_calls[0].id",
        "$.messages[3].tool_call_id",
    ]


def test_what_lets_no_request_match_is_not_learned() -> None:
    first = recording(asks("2026-11-26", "/w/a", HI), asks("2026-11-26", "/w/a", GO))
    other = {"role": "user", "content": "Something else"}
    again = recording(asks("2026-12-03", "/w/a", HI), asks("2026-12-03", "/w/b", other))
    found = learned(first, again)
    assert (found.options, found.matched) == (("date",), 1)
    ((_, miss),) = found.missed
    assert "$.messages[1].content" in [each.path for each in miss.differences]
    found = learned(first[:1], again[1:], ("user",))
    assert (found.options, found.matched) == (("user",), 0)


def test_other_requests_and_other_endpoints_stay_misses() -> None:
    first = recording(asks("2026-11-26", "/w", HI))
    other = taped(body={}, target=b"/v1/models")
    found = learned(first, [*recording(asks("2026-11-26", "/w", HI, HI)), other, *first])
    assert found.options == ()
    assert [each.request.path for each, _ in found.missed] == [
        "/v1/chat/completions",
        "/v1/models",
        "/v1/chat/completions",
    ]
    assert "was already played" in found.missed[2][1].problem


def test_what_is_learned_has_no_secret() -> None:
    first, again = recording({"a": "key fake-0 1"}), recording({"a": "key fake-0 2"})
    assert learned(first, again).options == ("/key fake-0 ([0-9]+)/",)
    hidden = learned(first, again, hide=lambda text: text.replace("fake-0", "******"))
    assert hidden.options == ()

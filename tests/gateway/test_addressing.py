"""What a request says to the gateway itself."""

import pytest

from deltatape.gateway.addressing import Addressed, read_address
from deltatape.gateway.routes import Refusal
from deltatape.http1.head import parse_request

TOKEN = "t-000"  # noqa: S105 - a fake


def read(
    target: str, *fields: str, token: str | None = TOKEN, reserved: bool = True
) -> Addressed | Refusal:
    raw = "\r\n".join((f"POST {target} HTTP/1.1", "Host: h", *fields, "", "")).encode()
    return read_address(parse_request(raw), token, reserved=reserved)


@pytest.mark.parametrize(
    ("target", "rest", "tape", "allowed"),
    [
        ("/openai/v1", b"/openai/v1", None, False),
        ("/s/test_one/openai/v1?a=b", b"/openai/v1?a=b", "test_one", False),
        ("/t/t-000/openai", b"/openai", None, True),
        ("/t/t-000/s/a.b-c/openai", b"/openai", "a.b-c", True),
        ("/s/a/t/t-000/openai", b"/openai", "a", True),
        ("/t/wrong/openai", b"/openai", None, False),
        ("/s/a", b"/", "a", False),
        ("/s/a?x=1", b"/?x=1", "a", False),
        ("/s/a/s/b/openai", b"/s/b/openai", "a", False),
        ("/t/t-000/t/t-000/openai", b"/openai", None, True),
        ("/static/app.js", b"/static/app.js", None, False),
        ("//s/a", b"//s/a", None, False),
    ],
)
def test_the_path_names_the_tape_and_brings_the_token(
    target: str,
    rest: bytes,
    tape: str | None,
    allowed: bool,  # noqa: FBT001
) -> None:
    assert read(target) == Addressed(rest, tape, allowed)


def test_fields_do_the_same() -> None:
    both = read("/openai", "X-Deltatape-Tape: a", "X-Deltatape-Token: t-000")
    assert both == Addressed(b"/openai", "a", token=True)


def test_what_stands_in_the_path_outranks_the_fields() -> None:
    assert read("/s/path/openai", "X-Deltatape-Tape: field") == Addressed(
        b"/openai", "path", token=False
    )


def test_an_app_of_its_own_keeps_all_paths_but_that_of_the_right_token() -> None:
    assert read("/s/a/v1", reserved=False) == Addressed(b"/s/a/v1", None, token=False)
    assert read("/t/x/v1", reserved=False) == Addressed(b"/t/x/v1", None, token=False)
    assert read("/t/t-000/v1", reserved=False) == Addressed(b"/v1", None, token=True)
    assert read("/v1", "X-Deltatape-Tape: a", reserved=False) == Addressed(b"/v1", "a", token=False)


def test_without_a_token_nothing_is_the_right_one() -> None:
    assert read("/t//openai", token=None) == Addressed(b"/openai", None, token=False)
    assert read("/t/None/openai", token=None) == Addressed(b"/openai", None, token=False)


@pytest.mark.parametrize("name", ["", ".hidden", "a%2Fb", "x" * 65, "a.ring", "a.ring-2"])
def test_a_name_that_no_tape_can_have_is_refused(name: str) -> None:
    refusal = read(f"/s/{name}/openai")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (400, "bad_tape_name")


@pytest.mark.parametrize("target", ["/openai/t/t-000/v1", "/s/a/s/b/t/t-000/x", "/v1/t/t-000"])
def test_the_token_is_never_passed_on(target: str) -> None:
    refusal = read(target)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "token_in_path"

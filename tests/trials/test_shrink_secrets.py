from dataclasses import replace
from pathlib import Path

from deltatape.http1.head import RequestHead
from deltatape.tape.mask import Masker
from deltatape.trials.shrink_memory import AskedBody
from deltatape.trials.shrink_secrets import Secrets
from helpers.taped import taped

KEY = b"mine"
FAKE = "fake-000000-secret"


def secrets(folder: Path, **environ: str) -> Secrets:
    return Secrets(KEY, environ, folder)


def test_what_the_environment_and_its_files_hold_is_masked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OTHER_API_KEY=fake-other-key-1\n")
    known = secrets(tmp_path, MY_API_KEY=FAKE)
    assert known.text(f"no {FAKE}, no fake-other-key-1") == f"no {'*' * 18}, no {'*' * 16}"
    digest = Masker(KEY).value(FAKE.encode()).hash
    asked = known.body(f"key {FAKE}.".encode())
    assert asked == AskedBody(data=b"key " + b"*" * 18 + b".", masked=((4, 22, digest),))
    assert known.body(b"none") == AskedBody(data=b"none")


def test_the_placeholder_is_masked_as_a_key_would_be(tmp_path: Path) -> None:
    assert secrets(tmp_path).text("sk-replay-000000") == "*" * 16


def test_what_a_head_carries_is_masked_from_then_on(tmp_path: Path) -> None:
    known = secrets(tmp_path)
    assert known.text(FAKE) == FAKE
    known.heard(
        RequestHead(
            method="POST",
            target=b"/v1/messages",
            http="1.1",
            fields=((b"Authorization", f"Bearer {FAKE}".encode()),),
            length=0,
            keep_alive=True,
        )
    )
    assert known.text(FAKE) == "*" * 18


def test_what_was_masked_when_it_was_recorded_is_masked_again(tmp_path: Path) -> None:
    digest = Masker(KEY).value(FAKE.encode()).hash
    body = b'{"a": "k", "token": "%b"}' % (b"*" * 18)
    start = body.index(b"*")
    spans = ((start, start + 18, digest),)
    recorded = replace(taped(body=body).request, masked=spans)
    known = secrets(tmp_path)
    known.found(recorded, b'{"token": "something else, shorter"}')
    assert known.text(FAKE) == FAKE
    known.found(recorded, b'{"token": "no", "b": 1, "token": "%b"}' % FAKE.encode())
    assert known.text(FAKE) == "*" * 18


def test_a_recorded_request_in_clear_is_masked_too(tmp_path: Path) -> None:
    known = secrets(tmp_path, MY_API_KEY=FAKE)
    plain = taped(body=b"no secret").request
    assert known.asked(plain) is plain
    request = replace(plain, body=f"**** {FAKE}".encode(), masked=((0, 4, "0"),))
    done = known.asked(request)
    assert done.body == b"**** " + b"*" * 18
    assert [span[:2] for span in done.masked] == [(0, 4), (5, 23)]

"""A tape is in the deck for the length of a test, and no longer."""

import pytest

from helpers.plugged import OWN, hello, plugged, write_tape


def test_nothing_is_left_of_a_test_however_it_ends(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
import threading
urls = []
pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape")

def test_passes(tape):
    urls.append(tape.url())
    ask("Hi")

def test_fails(tape):
    urls.append(tape.url())
    assert False

def test_leaves_its_stream(tape):
    urls.append(tape.url())
    url = urlsplit(tape.url("openai"))
    global connection
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    connection.connect()
    raise ValueError

@pytest.mark.parametrize("number", range(3))
def test_later(number):
    ask("Hi")
    url = urlsplit(urls[number])
    gone = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    with pytest.raises(OSError):
        gone.connect()
    connection.close()
    assert sum("deltatape" in one.name for one in threading.enumerate()) == 1
""",
    )
    result.assert_outcomes(passed=4, failed=2)


def test_a_damaged_tape_is_told(pytester: pytest.Pytester) -> None:
    (pytester.path / "x.tape").write_text("no tape\n")
    result = plugged(
        pytester,
        """
@pytest.mark.tape("x.tape")
def test_it():
    pass
""",
    )
    result.assert_outcomes(errors=1)
    assert "x.tape:1: no tape" in result.stdout.str()

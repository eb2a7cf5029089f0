"""What one may take from an exchange into a terminal or a test: `command`, `curl`, `pytest`.

What is pasted into a terminal must not act on it: a control character in it could end the paste and
press Enter. So words with any are written by `printf`, and everything else is quoted. No text of a
tape is in a test but the names of a file and a provider, as literals.
"""

from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters import export
from deltatape.exporters.curl import CurlExporter, provider_of, shell_word

COPIES = ("command", "curl", "pytest")


def copied(kind: str, analysis: Analysis, path: str, version: str) -> str:
    """Return the text of one of `COPIES`.

    Args:
        kind: which one.
        analysis: the analysis of the exchange.
        path: the path of its tape.
        version: the version of this program.

    Raises:
        UsageError: there is no such command for this exchange.
    """
    if kind == "curl":
        return export([analysis], CurlExporter(), version).files[""].decode()
    place = f"{path}#{analysis.exchange.number}"
    if place.startswith("-"):
        place = f"./{place}"
    if kind == "command":
        return f"deltatape why {shell_word(place)}\n"
    provider = provider_of(analysis.exchange.request)
    named = f'"{provider.name}"' if provider is not None else ""
    return _PYTEST.format(place=ascii(place), provider=named)


_PYTEST = """\
import pytest


@pytest.mark.tape({place})
def test_the_app_copes_with_this_answer(tape):
    # The tape answers in the provider's place, byte for byte, without a network or a key: base-URL
    # variables lead there. A client that reads none needs this URL.
    base_url = tape.url({provider})
    pytest.fail(f"call the app here, so that it asks {{base_url}} what it asked on the tape")
"""

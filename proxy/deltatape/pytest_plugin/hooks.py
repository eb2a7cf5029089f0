"""The hooks, option, marker and fixture that pytest loads.

Invariant: importing this imports nothing but pytest, and a run without a test that has a tape
imports nothing more; see docs/pytest.md for what it all means to a user.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deltatape.pytest_plugin.fixture import TapeFixture

MARKER = "tape"
_CELL = "_deltatape_cell"  # the name of the fixture below
_FIXTURE = pytest.StashKey["TapeFixture"]()
_RECORDED, _ATTEMPT, _ENDED = "deltatape recorded", "deltatape attempt", "deltatape ended"
USAGE = (
    "tape(*tapes, speed='instant', volatile=(), ignore=(), repeat=False, reads='recorded',"
    " fault=(), seed=0, hold=30.0, upstream=(), torture=False, deadline=10.0): the provider is a"
    " tape for the length of this test; its own one beside it where none is named (deltatape,"
    " docs/pytest.md)"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tape-mode`."""
    parser.getgroup("deltatape", "tapes of LLM streams (deltatape)").addoption(
        "--tape-mode",
        choices=("replay", "record", "auto"),
        default="replay",
        help="What a test with a tape does: replay: play it, and never go to the network (default);"
        " record: ask the provider, and make the tape anew; auto: play what is on the tape, and"
        " record what is missing.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", USAGE)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Warn that requests go to the provider, since that costs money."""
    mode = config.getoption("tape_mode")
    return [] if mode == "replay" else [f"deltatape: tape mode {mode}: the provider may be asked"]


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate a test per variation under torture."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or not marker.kwargs.get("torture"):
        return
    if metafunc.config.getoption("tape_mode") != "replay":
        return
    from deltatape.pytest_plugin.torture import cells  # noqa: PLC0415 - costs nobody else

    found = cells(metafunc.definition)
    if found:
        metafunc.fixturenames.append(_CELL)
        ids = [cell.name for cell in found]
        metafunc.parametrize(_CELL, found, ids=ids, indirect=True)


@pytest.fixture
def _deltatape_cell(request: pytest.FixtureRequest) -> object:
    """The variation of a torture test; None without torture."""
    return getattr(request, "param", None)


@pytest.fixture(autouse=True)
def _deltatape(request: pytest.FixtureRequest) -> None:
    """Load a marked test's tape before its fixtures create clients."""
    if request.node.get_closest_marker(MARKER) is not None:
        request.getfixturevalue("tape")


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Iterator["TapeFixture"]:
    """The provider, played from a tape during this test.

    The base-URL variables of all providers name it, `tape.url("openai")` is where it is, and
    `tape.report` has the requests. A request that is not on the tape, an exchange
    that was never requested, and a mistake of the application fail the test.
    """
    from deltatape.pytest_plugin.loading import loaded  # noqa: PLC0415 - costs nobody else

    item: pytest.Item = request.node
    with loaded(item, request.getfixturevalue(_CELL)) as fixture:
        item.stash[_FIXTURE] = fixture
        yield fixture


@pytest.hookimpl(tryfirst=True)  # before a plugin makes other functions of asynchronous fixtures
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> None:
    """Note whether a fixture may send requests after the test."""
    if fixturedef.scope != "function":
        return
    fixture = request.node.stash.get(_FIXTURE, None)
    if fixture is not None and not fixture.asks_later:
        from deltatape.pytest_plugin.tape_check import asks_later  # noqa: PLC0415 - costs nobody else

        fixture.asks_later = asks_later(fixturedef)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Report missed requests next to the error that a fixture raised for them."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception):
        fixture = item.stash.get(_FIXTURE, None)
        if fixture is not None:
            from deltatape.pytest_plugin.tape_check import report_setup  # noqa: PLC0415 - costs nobody else

            report_setup(item, fixture)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Note which tape was made, for the summary."""
    try:
        return (yield)
    finally:
        fixture = item.stash.get(_FIXTURE, None)
        if fixture is not None:
            del item.stash[_FIXTURE]
            for name, path in (
                (_RECORDED, fixture.kept),
                (_ATTEMPT, fixture.attempt),
                (_ENDED, fixture.ended),
            ):
                if path is not None:
                    item.user_properties.append((name, str(path)))


@pytest.hookimpl(wrapper=True, trylast=True)  # what other plugins raise is not the test's word
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check the test against its tapes."""
    fixture = item.stash.get(_FIXTURE, None)
    if fixture is None:
        return (yield)
    from deltatape.pytest_plugin.tape_check import JudgedTest  # noqa: PLC0415 - costs nobody else

    result: object = None
    with JudgedTest(item, fixture):
        result = yield
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make the kept tape and the report consistent.

    A failing `unittest.TestCase` raises nothing: pytest reads its error elsewhere, and prefers it
    to any other.
    """
    report = yield
    fixture = item.stash.get(_FIXTURE, None)
    if fixture is not None and call.when == "call" and not report.passed:
        fixture.holds = False
        if fixture.failure and fixture.failure not in report.longreprtext:
            report.sections.append(("Captured tape call", fixture.failure))
    return report


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Name the tapes that were made, to be committed or inspected."""
    sections = (
        (_RECORDED, "tapes recorded, to be committed", ""),
        (_ATTEMPT, "recorded of tests that failed, and not kept", "deltatape why "),
        (_ENDED, "passed as far as their tapes go, where the app was wrong; record them anew", ""),
    )
    here = str(terminalreporter.config.invocation_params.dir)
    for key, title, before in sections:
        paths = {
            str(value).removeprefix(f"{here}/")
            for reports in terminalreporter.stats.values()
            for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == key
        }
        if paths:
            terminalreporter.section(title)
            for path in sorted(paths):
                terminalreporter.write_line(f"{before}{path}")

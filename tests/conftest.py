"""What all tests start from."""

import gc
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from helpers.object_store import S3Server, s3_server, use
from helpers.program import UNMEASURED, leave_unmeasured

# A shell starts what it puts into the background, and what nohup guards, without these signals; the
# programs that tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(each, signal.SIG_DFL)

# A busy machine is slow, which is no defect of what is tested.
settings.register_profile(
    "deltatape",
    settings(),
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deltatape")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage in what is collected: it stays, and looking took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Measure no coverage of most programs that tests start: a third of their time went into that.

    In processes of pytest-xdist alone, which have begun to measure by the same variables. The one
    that starts them runs no tests, and is not measured at all.
    """
    if hasattr(config, "workerinput"):
        leave_unmeasured()
    elif config.getoption("numprocesses") and (measuring := Coverage.current()):
        measuring.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage while a slow test runs: it would take twice as long."""
    measuring = Coverage.current()
    if measuring is None or item.get_closest_marker("slow") is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        for name in UNMEASURED:
            patch.delenv(name, raising=False)
        measuring.stop()
        try:
            return (yield)
        finally:
            measuring.start()


@pytest.fixture(scope="session")
def _s3() -> Iterator[S3Server]:
    """One for all tests of a process: starting and stopping it takes longer than most of them."""
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The store that the usual variables name; it holds one bucket, which is empty."""
    _s3.reset()
    use(_s3.port, monkeypatch)
    return _s3


_SLOWEST = (
    *("page/test_exchange.py", "page/test_overview.py", "page/test_report.py"),
    *("page/test_trends.py", "page/test_bug.py", "page/test_live.py"),
    *("test_bench.py", "scan/test_many_exchanges.py", "clients/test_sdk_table.py"),
    *("record/test_handover.py", "clients/test_litellm_proxy.py", "ship/test_shipper.py"),
    *("record/test_workers.py", "incidents/test_replayed.py", "test_fleet_figures.py"),
    *("test_secrets.py", "test_soak.py"),
    *("clients/test_mcp.py", "clients/test_openai.py", "test_recordings.py"),
    *("scan/test_engine.py", "scan/test_join.py", "clients/test_litellm_log.py"),
    *("scan/test_joined.py", "inspector/test_recordings.py"),
    *("store/test_packing.py", "clients/test_bedrock.py"),
    *("test_recordings_and_rules.py", "clients/test_sdk_torture.py", "clients/test_sdks.py"),
    *("incidents/test_apps.py", "test_ci_projects.py", "clients/test_suspect_apps.py"),
    *("mitm/test_run.py", "mitm/test_recorder.py", "live/test_killed_analyst.py"),
    *("inspector/test_processes.py", "inspector/test_index.py", "cli/test_open_command.py"),
    *("record/test_session.py", "sdks/test_run.py", "mitm/test_session.py"),
    *("mitm/test_mitmdump.py", "cli/test_record_command.py", "cli/test_mitm_command.py"),
    *("cli/test_why_command.py", "mitm/test_outward.py", "cli/test_demo_command.py"),
    *("player/test_round_trip.py", "cli/test_replay_command.py", "cli/test_shrink_command.py"),
    *("trials/test_shrink.py", "test_examples.py", "diagnose/test_fuzz.py"),
    *("conversation/test_history.py", "wire/test_framing_corpus.py", "mutate/test_mutators.py"),
    *("conversation/test_read_back.py", "diagnose/test_check.py", "diagnose/test_check_tape.py"),
    *("suspects/test_found.py", "conversation/test_retold.py", "suspects/test_corpus.py"),
    *("text_calls/test_text_calls.py", "redact/test_search.py", "wire/test_sse.py"),
    *("suspects/test_presets.py", "shrink/test_passes.py", "suspects/test_search.py"),
    *("conversation/test_check.py", "secret_text/test_prefilter.py", "dialects/test_corpus.py"),
)
"""Files that take longest: they go first, so that no process is left alone with one in the end."""
_TOGETHER = ("tests/page",)
"""Folders whose files share what takes long to start: one process takes those that are adjacent."""
_RANK = {name: rank for rank, name in enumerate(_SLOWEST)}
_TESTS = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the slowest files go first, and slow tests last.

    Nothing is measured any more where a cache was filled by one of them.
    """
    ranks = {
        path: _RANK.get(path.relative_to(_TESTS).as_posix(), len(_RANK))
        for path in {item.path for item in items}
        if path.is_relative_to(_TESTS)
    }
    slow = {item for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item in slow, ranks.get(item.path, len(_RANK))))


class _Scheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no type information
    """A process takes the tests of a file, or of a folder, that follow each other.

    Its slow tests come later. Those of a program in several versions are apart as well.
    """

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        self._scopes: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        if not self._scopes:
            runs = Counter[str]()
            for file, tests in groupby(self.collection, _file):
                self._scopes |= {test: f"{file} {runs[file]}{_version(test)}" for test in tests}
                runs[file] += 1
        return self._scopes[nodeid]


def _file(test: str) -> str:
    file = test.partition("::")[0]
    return next((each for each in _TOGETHER if file.startswith(f"{each}/")), file)


def _version(test: str) -> str:
    return test[test.find("[") :][:3] if "mitm/test_run.py" in test and "[1" in test else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Scheduling | None:
    return _Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None

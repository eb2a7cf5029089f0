"""`deltatape check`: reports the findings on tapes, for people and CI."""

import contextlib
import os
from pathlib import Path

import click

from deltatape.cli.options import (
    FILE,
    TapeArgument,
    codes,
    fail_on,
    failing_severities,
    jobs,
    option,
)
from deltatape.cli.parallel_check import check_all
from deltatape.cli.tapes import all_of, each_recording_once, latest, read_file
from deltatape.cli.terminal import Bar, say, show, width, write
from deltatape.diagnose.baseline import Accepted, accepted, baseline_text, read_baseline
from deltatape.diagnose.check_tape import ReportedFinding, TapeReport
from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.finding import Severity
from deltatape.printable import count
from deltatape.render.ci_log import inert_remark
from deltatape.render.report import FORMATS, Part, Report, report_in
from deltatape.rules import RULES
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import Unreadable

# The file of accepted findings: read, compared with what is found, written.

_SHOWN = 5


class Baseline:
    """An accepted baseline, and how many of its findings occurred."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            UsageError: it cannot be read, or is no baseline.
        """
        try:
            text = read_file(path).decode()
        except UsageError as error:
            raise UsageError(
                f"--baseline {error}; deltatape check --write-baseline makes one"
            ) from None
        except ValueError:
            raise UsageError(
                f"--baseline {path}: no text in UTF-8; deltatape check --write-baseline makes one"
            ) from None
        self._path = path
        self._accepted = {one.fingerprint: one for one in read_baseline(str(path), text)}
        self._known = 0
        self._seen: set[str] = set()

    def is_new(self, reported: ReportedFinding) -> bool:
        """Check whether a finding is not accepted; count accepted ones."""
        if reported.fingerprint not in self._accepted:
            return True
        self._known += 1
        self._seen.add(reported.fingerprint)
        return False

    def print_summary(self) -> None:
        """Print how many findings were accepted, and which accepted ones no longer occur."""
        gone = [one for key, one in self._accepted.items() if key not in self._seen]
        verb = "is" if self._known == 1 else "are"
        say(f"note: {self._path}: {count(self._known, 'finding')} {verb} accepted")
        if gone:
            say(f"note: {self._path}: {count(len(gone), 'accepted finding')} did not occur:")
        for one in gone[:_SHOWN]:
            say(inert_remark(f"  {one.code} {one.name}, {one.request}: {one.message}"))
        if len(gone) > _SHOWN:
            say(f"  and {len(gone) - _SHOWN} more; --write-baseline drops them")


class NewBaseline:
    """Findings to be accepted."""

    def __init__(self, path: Path) -> None:
        """Raise UsageError if something else is there, such as a tape."""
        if os.path.lexists(path) and not _may_be_replaced(path):
            raise UsageError(
                f"--write-baseline {path}: is there already, and no baseline; name another file"
            )
        self._path = path
        self._accepted: set[Accepted] = set()

    def add(self, reported: ReportedFinding) -> None:
        self._accepted.update(accepted([reported]))

    def write(self) -> None:
        """Write the file atomically.

        Raises:
            UsageError: it cannot be written.
        """
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(baseline_text(sorted(self._accepted)), "utf-8")
            draft.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise UsageError(f"--write-baseline {self._path}: {error.strerror}") from None
        say(f"note: {self._path}: {count(len(self._accepted), 'finding')} accepted from now on")


def _may_be_replaced(path: Path) -> bool:
    """Check for an older baseline, or an empty file."""
    if not path.is_file():  # reading a pipe would wait for a writer
        return False
    try:
        text = read_file(path).decode()
        if text:
            read_baseline(str(path), text)
    except (UsageError, ValueError):
        return False
    return True


@click.command("check")
@click.argument("tapes", cls=TapeArgument, nargs=-1, metavar="[TAPE[#N] | FOLDER]...")
@option(
    "--format",
    type=click.Choice(FORMATS),
    default="text",
    help="Text for people, JSON for programs, or the format of a CI system.",
)
@codes("--select", "Report only these codes, such as T,D001.")
@codes("--ignore", "Report all but these codes.")
@fail_on(
    "The least severity that makes the exit code 1.",
    default=Severity.ERROR.value,
    severities=(Severity.ERROR, Severity.WARNING),
)
@option("--all", is_flag=True, help="Show all findings in full, also for many tapes.")
@option("--baseline", type=FILE, help="Leave out the findings that this file accepts.")
@option("--write-baseline", type=FILE, help="Write all findings to this file, as accepted.")
@jobs("Processes that check tapes; default: one per core, where tapes are large.")
def command(
    *,
    tapes: tuple[str, ...],
    format: str,  # noqa: A002 - the option's name
    select: frozenset[str],
    ignore: frozenset[str],
    fail_on: str,
    all: bool,  # noqa: A002 - the option's name
    baseline: Path | None,
    write_baseline: Path | None,
    jobs: int | None,
) -> int:
    """Report the defects on tapes, each with its evidence.

    Accepts what `deltatape why` accepts, and folders, to check every tape in them; tapes and
    folders can be URLs of an object store: s3://BUCKET/KEY. Without an argument, checks the latest
    tape. For many tapes, the text shows the first finding of each code, and ends with totals.

    A tape can have any number of exchanges, since few are held in memory. If there are more than
    4,096, each is compared with at least the 1,024 before and after it, and only the last ones are
    checked for calls without an answer.

    Exit code: 1 for findings, 2 if something cannot be read; the rest is still reported.
    """
    if baseline is not None and write_baseline is not None:
        raise UsageError("--baseline leaves out what --write-baseline would accept; give one")
    if not any(_is_reported(rule.code, select, ignore) for rule in RULES):
        raise UsageError("--select and --ignore: together, they leave no code to report")
    failing = failing_severities(fail_on)
    names = _named(tapes)
    first_only = len(names) > 1 and not all
    check = _Check(
        report=report_in(format, width=width(), failing=failing, first_only=first_only),
        failing=frozenset() if write_baseline else failing,
        codes=(select, ignore),
        known=Baseline(baseline) if baseline else None,
        accepting=NewBaseline(write_baseline) if write_baseline else None,
    )
    return check.run(names, jobs)


def _named(tapes: tuple[str, ...]) -> list[str | TapeReport]:
    """Resolve what to check; names that cannot be checked become error reports."""
    if not tapes:
        name = latest().name
        say(f"note: the latest tape: {name}")
        return [name]
    found: list[str | TapeReport] = []
    unreadable: list[Unreadable] = []
    for text in tapes:
        try:
            found += all_of(text, unreadable.append)
        except DeltatapeError as error:
            found.append(TapeReport(name=text, problem=str(error)))
    found += [TapeReport(name=str(each.path), problem=each.problem) for each in unreadable]
    once = frozenset(each_recording_once(each for each in found if isinstance(each, str)))
    return [each for each in found if isinstance(each, TapeReport) or each in once]


def _is_reported(code: str, select: frozenset[str], ignore: frozenset[str]) -> bool:
    """Check whether `--select` and `--ignore` let a code pass."""
    if any(code.startswith(part) for part in ignore):
        return False
    return not select or any(code.startswith(part) for part in select)


class _Check:
    """A run: passes findings through the filters into the report, tape by tape."""

    def __init__(
        self,
        *,
        report: Report,
        failing: frozenset[Severity],
        codes: tuple[frozenset[str], frozenset[str]],
        known: Baseline | None,
        accepting: NewBaseline | None,
    ) -> None:
        self._report = report
        self._failing = failing
        self._select, self._ignore = codes
        self._known = known
        self._accepting = accepting
        self._failed = False
        self._unreadable = False

    def run(self, names: list[str | TapeReport], jobs: int | None) -> int:
        """Check and report; return the exit code."""
        with Bar("tapes", len(names)) as bar:
            for checked in check_all(names, current_rules(), jobs, excerpts=self._report.excerpts):
                self._report_tape(checked, bar)
                bar.step()
        _write(self._report.end())
        if self._known is not None:
            self._known.print_summary()
        if self._unreadable:
            return DeltatapeError.exit_code
        if self._accepting is not None:
            self._accepting.write()
        return int(self._failed)

    def _report_tape(self, checked: TapeReport, bar: Bar) -> None:
        """Report on a tape; the progress bar pauses for output."""
        filtered = checked.only(self._is_selected)
        for reported in filtered.reported:
            self._failed |= reported.finding.severity in self._failing
            if self._accepting is not None:
                self._accepting.add(reported)
        self._unreadable |= bool(filtered.problem)
        part = self._report.tape(filtered)
        if part or filtered.notes or filtered.problem:
            with bar.aside():
                if filtered.problem:
                    say(inert_remark(f"deltatape: {filtered.problem}"))
                for note in filtered.notes:
                    say(inert_remark(f"note: {note}"))
                _write(part)

    def _is_selected(self, reported: ReportedFinding) -> bool:
        if not _is_reported(reported.finding.code, self._select, self._ignore):
            return False
        return self._known is None or self._known.is_new(reported)


def _write(part: Part) -> None:
    if isinstance(part, str):
        write(part)
    elif part:
        show(part)

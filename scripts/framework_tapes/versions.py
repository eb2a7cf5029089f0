"""The frameworks to tape, with their versions and scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "frameworks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework."""

    name: str
    """The name of its folder of tapes."""
    title: str
    language: str
    """`python` or `javascript`."""
    environment: str
    """The folder under .frameworks; frameworks may share one."""
    driver: str
    packages: Mapping[str, str]
    """Exact versions; the first package is the framework itself."""
    scenarios: Mapping[str, Sequence[str]]
    """The scenarios of each dialect."""
    remarks: Sequence[str]

    @property
    def version(self) -> str:
        """The version of the framework itself."""
        return next(iter(self.packages.values()))


def frameworks() -> Sequence[Framework]:
    """All of them."""
    told = yaml.safe_load((FOLDER / "versions.yaml").read_text())
    sets = told["scenarios"]
    return [
        Framework(
            name=one["name"],
            title=one["title"],
            language=one["language"],
            environment=one.get("environment", one["name"]),
            driver=one["driver"],
            packages={name: str(version) for name, version in one["packages"].items()},
            scenarios={
                dialect: sets.get(scenarios, scenarios).split()
                for dialect, scenarios in one["dialects"].items()
            },
            remarks=one.get("remarks", ()),
        )
        for one in told["frameworks"]
    ]

"""What is known of the SDKs, by version."""

import pytest

from deltatape.environment.variables import is_listed
from deltatape.sdks.table import SDKS, Ecosystem, sdk_of


@pytest.mark.parametrize(
    ("ecosystem", "package", "version", "reads"),
    [
        (Ecosystem.PYTHON, "openai", "3.54.0", ("OPENAI_BASE_URL",)),
        (Ecosystem.PYTHON, "openai", "0.28.1", ("OPENAI_API_BASE",)),
        (Ecosystem.PYTHON, "openai", "1.0.0rc1", ("OPENAI_BASE_URL",)),
        (Ecosystem.PYTHON, "mistralai", "3.7.0", ()),
        (Ecosystem.NODE, "@ai-sdk/openai", "^1.3.0", ()),
        (Ecosystem.NODE, "@ai-sdk/openai", "~2.0.1", ("OPENAI_BASE_URL",)),
        (Ecosystem.NODE, "openai", "latest", ("OPENAI_BASE_URL",)),
    ],
)
def test_the_version_decides(
    ecosystem: Ecosystem, package: str, version: str, reads: tuple[str, ...]
) -> None:
    sdk = sdk_of(ecosystem, package, version)
    assert sdk is not None
    assert sdk.reads == reads


def test_other_packages_are_no_sdks() -> None:
    assert sdk_of(Ecosystem.PYTHON, "requests", "2.0") is None


def test_every_entry_says_how_to_reach_it_and_the_last_one_holds_for_all_later_versions() -> None:
    for package, entries in (item for table in SDKS.values() for item in table.items()):
        assert all(sdk.option or sdk.remark for sdk in entries), package
        assert all(sdk.before for sdk in entries[:-1]), package
        assert entries[-1].before == (), package
        assert all(is_listed(name) for sdk in entries for name in sdk.reads), package

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from helpers.browser import chromium
from helpers.clients import ROOT
from helpers.inspected import Page, inspected

INCIDENTS = ROOT / "recordings" / "incidents"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium; for this folder alone, since other tests run event loops of their own."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A server on the incidents, all in its index."""
    with inspected(INCIDENTS, tmp_path_factory.mktemp("index") / "index") as page:
        yield page.indexed(len([*INCIDENTS.rglob("*.tape")]))

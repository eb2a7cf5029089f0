"""The package as others meet it: names, import cost, the built wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import deltatape

ROOT = Path(__file__).resolve().parent.parent
QUIET = ("-q", "--no-deps", "--no-build-isolation")


@pytest.mark.parametrize("name", deltatape.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(deltatape, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        deltatape.nothing  # noqa: B018 - the access is the test


def test_importing_the_package_loads_no_shell() -> None:
    code = "import deltatape, sys; print(sorted({'asyncio', 'click', 'rich'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.strip() == b"[]"


def test_the_core_loads_no_shell() -> None:
    code = (
        "import deltatape, sys\n"
        "exchange = deltatape.Exchange.from_body(b'', content_type='text/event-stream', url='')\n"
        "deltatape.check(exchange)\n"
        "print(sorted({'asyncio', 'click', 'rich', 'httptools'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.strip() == b"[]"


def test_the_wheel_holds_the_package_and_the_demos_tapes(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *QUIET, "-w", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert top == {"deltatape", f"deltatape-{deltatape.__version__}.dist-info"}
    assert "deltatape/demo/incidents/itinerary-broken.tape" in names
    assert "deltatape/py.typed" in names

"""The addon that mitmproxy loads: `mitmdump -s "$(deltatape mitm --addon-path)"`.

Load it after other addons (`-s OTHER -s PATH`): stream filters that they have set are kept. Bodies
that are taped are streamed, so addons that need complete bodies get none.

mitmproxy may run in another environment, without deltatape. So this file loads its own package by
path, and does not add the folder around it to `sys.path`: that folder may be full of libraries for
another Python, which must not replace mitmproxy's own.
"""

import importlib.util
import os
import sys
from pathlib import Path

OLDEST = (3, 11)


def check_python(version: "tuple[int | str, ...]") -> None:
    """Raise a plain error if this Python is too old for the rest.

    Raises:
        RuntimeError: it is.
    """
    if version[:2] < OLDEST:
        raise RuntimeError(
            f"deltatape's addon needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and this mitmproxy"
            f" runs on {version[0]}.{version[1]}: install mitmproxy with a newer Python"
        )


def load_package() -> None:
    """Make `import deltatape` mean the package around this file."""
    if "deltatape" in sys.modules:
        return
    home = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "deltatape", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["deltatape"] = package
    spec.loader.exec_module(package)


check_python(sys.version_info)
load_package()

from mitmproxy import ctx, exceptions, version  # noqa: E402 - the Python is checked first

from deltatape.mitm.ipc import PLAYER  # noqa: E402 - only now is there such a package
from deltatape.mitm.recorder import MitmRecorder  # noqa: E402
from deltatape.mitm.redirector import MitmRedirector  # noqa: E402

_Addon = MitmRedirector if PLAYER in os.environ else MitmRecorder
addons = [_Addon(ctx, version.VERSION, exceptions.OptionsError)]
"""The name that mitmproxy looks for."""

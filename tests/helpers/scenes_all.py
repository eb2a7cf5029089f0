"""All scenes, by the code of the rule that they are for: those of every module `scenes_*`."""

import importlib
import pkgutil
from pathlib import Path

from helpers.scenes import registered

for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _module.name.startswith("scenes_") and _module.name != "scenes_all":
        importlib.import_module(f"helpers.{_module.name}")

PAIRS = registered()

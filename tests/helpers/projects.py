"""Projects as users have them, in a folder of the test's."""

from pathlib import Path


def put(folder: Path, path: str, text: str) -> Path:
    """A file with this text, and the folders it needs."""
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def python_environment(folder: Path, *distributions: str, name: str = ".venv") -> Path:
    """An environment with the metadata of `distributions`, each as `openai-3.54.0`."""
    environment = folder / name
    put(environment, "pyvenv.cfg", "home = /usr/bin\n")
    for distribution in distributions:
        put(environment, f"lib/python3.11/site-packages/{distribution}.dist-info/METADATA", "")
    (environment / "lib/python3.11/site-packages").mkdir(parents=True, exist_ok=True)
    return environment


def node_package(folder: Path, name: str, version: str) -> Path:
    """A package as npm installs it."""
    return put(folder, f"node_modules/{name}/package.json", f'{{"version": "{version}"}}')

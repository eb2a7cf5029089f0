"""The pages for people: their links lead somewhere, and what they name exists."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *DOCS.glob("*.md")])
CODE = ROOT / "proxy" / "deltatape"
BLOCK = re.compile(r"```.*?```", re.DOTALL)
PICTURES = DOCS / "pictures"
MAX_README_LINES = 250
MAX_PICTURE, MAX_ANIMATION = 120_000, 600_000


def anchors(page: Path) -> set[str]:
    """Those of a page, and those that GitHub makes of its headings: equal ones are numbered."""
    text = BLOCK.sub("", page.read_text())
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_tests_that_pages_name_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    code = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in code} == set()


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (DOCS / "README.md").read_text()))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


def test_pages_show_pictures_that_exist_and_every_picture_is_shown() -> None:
    shown = {
        page.parent / name
        for page in PAGES
        for name in re.findall(r"""(?:src|srcset)="([^"]+)\"""", page.read_text())
    }
    taken = json.loads((PICTURES / "manifest.json").read_text())["pictures"]
    assert {path.relative_to(ROOT) for path in shown} == {
        PICTURES.relative_to(ROOT) / name for name in taken
    }
    assert {path.name for path in PICTURES.iterdir()} == {*taken, "manifest.json"}


def test_every_picture_has_words_for_those_who_do_not_see_it() -> None:
    for page in PAGES:
        for tag in re.findall(r"<img [^>]*>", page.read_text()):
            assert re.search(r'alt="[^"]{40,}"', tag), tag


def test_pictures_are_small() -> None:
    for path in PICTURES.glob("*.webp"):
        assert path.stat().st_size < (MAX_ANIMATION if "steps" in path.name else MAX_PICTURE), path


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MAX_README_LINES


def test_the_glossary_has_each_word_once_in_order() -> None:
    words = re.findall(r"^\| ([a-z][^|]*?) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert words[0] == "word"
    assert words[1:] == sorted(set(words[1:]), key=str.casefold)


def test_the_architecture_names_modules_that_exist() -> None:
    page = (DOCS / "architecture.md").read_text()
    named = re.findall(r"`([\w/]+\.py|[\w/]+/)`", page)
    places = (CODE, ROOT, CODE / "wire", CODE / "pytest_plugin", CODE / "store", CODE / "dialects")
    assert len(named) > 20
    for name in named:
        assert name == "dialects/NAME.py" or any((place / name).exists() for place in places), name

# SPDX-License-Identifier: Apache-2.0
"""The documentation mentions what there is, and nothing that there is not."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module

import pytest
from markdown.extensions.toc import slugify

import discreet
from discreet import mechanisms, privacy
from discreet.privacy.routes import BY_NAME as ROUTES
from tests.house.project import DOCS, ROOT, TESTS, read, relative, text_files, tree_of

REFERENCE = "\n".join(read(path) for path in sorted((DOCS / "reference").rglob("*.md")))
MAP = DOCS / "explain" / "architecture.md"


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", sorted(privacy.__all__))
def test_every_public_name_of_privacy_has_a_heading(name):
    assert any(re.search(rf"\b{name}\b", heading) for heading in headings(REFERENCE))


@pytest.mark.parametrize("name", sorted(mechanisms.__all__))
def test_every_public_name_of_mechanisms_is_in_the_reference(name):
    assert re.search(rf"`[^`]*\b{name}\b", REFERENCE)


@pytest.mark.parametrize(
    "name", [name for name, _ in inspect.getmembers(privacy.Guarantee) if not name.startswith("_")]
)
def test_every_view_of_a_guarantee_is_in_the_reference(name):
    assert re.search(rf"`(guarantee\.|\.)?{name}\b", REFERENCE)


@pytest.mark.parametrize("name", discreet.__all__)
def test_every_name_of_the_facade_is_in_the_reference(name):
    assert f"`{name}`" in REFERENCE or f"`discreet.{name}`" in REFERENCE or f"`dp.{name}`" in REFERENCE


def test_every_part_is_on_the_map():
    from tests.house.test_imports import ARROWS

    parts = {part for part in ARROWS if not part.startswith("__")}
    assert {part for part in parts if not re.search(rf"\b{part}\b", read(MAP))} == set()


def rows_of_the_notes() -> dict[str, set[str]]:
    """For each row of docs/notes.md that names tests, these tests."""
    rows = re.findall(r"^\| (\d+\.\d+) \|.*\| ([^|]+) \|$", read(DOCS / "notes.md"), flags=re.MULTILINE)
    return {row: names for row, cell in rows if (names := set(re.findall(r"`(test_\w+)`", cell)))}


def rows_of_the_tests() -> dict[str, set[str]]:
    """For each row that the docstring of a claim test begins with, the tests that do."""
    rows: dict[str, set[str]] = {}
    for path in sorted((TESTS / "claims").glob("test_*.py")):
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                stated = re.match(r"Row (\d+\.\d+)[.:]", ast.get_docstring(node) or "")
                rows.setdefault(stated[1] if stated else f"none for {node.name}", set()).add(node.name)
    return rows


def test_every_claim_of_the_notes_has_its_test_and_every_test_its_row():
    assert rows_of_the_notes() == rows_of_the_tests()


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=relative)
def test_a_path_that_a_page_names_exists(path):
    named = re.findall(r"`((?:docs|tests|src|benchmarks)/[\w./-]+)`", read(path))
    assert [name for name in named if not (ROOT / name).exists()] == []


GLOSSARY = DOCS / "reference" / "glossary.md"
#: Where the functions live that the notes name: packages, and the classes whose methods they name alone.
HOMES = [discreet, privacy, mechanisms, mechanisms.ptr, privacy.Guarantee]
CLASSES = [thing for package in (mechanisms, mechanisms.ptr) for thing in vars(package).values()]
OPERATORS = {"+", "*"}


def glossary_words() -> set[str]:
    """The words of the glossary as links spell them."""
    return {slugify(heading, "-") for heading in headings(read(GLOSSARY))}


def links_to_the_glossary(page, text: str) -> list[str]:
    """The words of the glossary to which a page links; a path that leads elsewhere is not a link to it."""
    links = re.findall(r"\]\(([\w./-]*glossary\.md)#([\w-]+)\)", text)
    return [word for path, word in links if (page.parent / path).resolve() == GLOSSARY]


@pytest.mark.parametrize("page", sorted({*DOCS.rglob("*.md")} - {GLOSSARY}), ids=relative)
def test_a_page_links_words_that_the_glossary_explains(page):
    words = links_to_the_glossary(page, read(page))
    assert words, "link the first use of a word that a newcomer needs"
    assert set(words) <= glossary_words()


def test_a_word_that_the_glossary_lacks_is_found():
    assert links_to_the_glossary(DOCS / "index.md", "a [lane](reference/glossary.md#lane)") == ["lane"]
    assert links_to_the_glossary(DOCS / "notes.md", "a [unit](glossary.md#privacy-unit)") == []
    assert {"privacy-unit", "epsilon", "zcdp"} <= glossary_words()
    assert "lane" not in glossary_words()


def functions_of_the_notes() -> set[str]:
    """What the column "function" of docs/notes.md names."""
    rows = re.findall(
        r"^\| \d+\.\d+ \|.*\| ([^|]+) \| [^|]+ \|$", read(DOCS / "notes.md"), flags=re.MULTILINE
    )
    return {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}


def has_attributes(thing: object, dotted: str) -> bool:
    for name in dotted.split("."):
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


def exists(name: str) -> bool:
    """Whether a name of the notes is a route, a solver, a package, or a function or method of the library."""
    if name in ROUTES or name in OPERATORS:
        return True
    if '"' in name:
        solvers = import_module("discreet.learn.solvers")
        return name.split('"')[1] in {*solvers.CLASSIFIERS, *solvers.REGRESSORS}
    if name.startswith("discreet."):
        return bool(import_module(name))
    called = name.partition("(")[0]
    return any(has_attributes(home, called) for home in [*HOMES, *filter(inspect.isclass, CLASSES)])


@pytest.mark.parametrize("name", sorted(functions_of_the_notes()))
def test_a_function_that_the_notes_name_exists(name):
    assert exists(name)


def test_a_function_that_the_notes_invent_is_found():
    assert not any(
        exists(name) for name in ["Laplace.tails", "epsilons(delta=0)", 'solver="magic"', "renyi worst"]
    )


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=relative)
def test_a_python_file_or_proof_that_a_page_names_exists(path):
    named = set(re.findall(r"`([\w/-]+(?:\.py|\.proof\.md))`", read(path))) - {"name.proof.md"}
    here = [relative(file) for file in text_files()]
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in here)] == []


def wide_lines(text: str) -> list[str]:
    """Prose beyond column 120, and code beyond column 80; tables, images, commands and their output may be wide."""
    wide, language = [], None
    for line in text.splitlines():
        if fence := re.match(r" *```(\w*)", line):
            language = None if language is not None else fence[1]
        elif language is None and not line.startswith(("|", "!")):
            wide += [line] if len(line) > 120 else []
        elif language in {"python", "toml", "json"}:
            wide += [line] if len(line) > 80 else []
    return wide


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))], ids=relative
)
def test_a_page_is_narrow_enough_to_read(page):
    assert wide_lines(read(page)) == []


def test_a_wide_line_is_found():
    code = "x = 1  # " + "a" * 80
    assert wide_lines(f"# Title\n\n```python\n{code}\n```\n{'b ' * 70}\n| {'c ' * 70} |") == [code, "b " * 70]


def test_every_page_is_in_the_navigation():
    navigation = read(ROOT / "mkdocs.yml")
    assert [
        page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).as_posix() not in navigation
    ] == []


def test_the_version_has_its_place_in_the_changelog():
    assert headings(read(ROOT / "CHANGELOG.md"))[1] in {"[Unreleased]", f"[{discreet.__version__}]"}

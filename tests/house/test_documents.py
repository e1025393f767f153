# SPDX-License-Identifier: Apache-2.0
"""The documentation mentions what there is, and nothing that there is not."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import discreet
from discreet import mechanisms, privacy
from tests.house.project import DOCS, ROOT, TESTS, read, relative, tree_of

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


def test_every_page_is_in_the_navigation():
    navigation = read(ROOT / "mkdocs.yml")
    assert [
        page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).as_posix() not in navigation
    ] == []


def test_the_version_has_its_place_in_the_changelog():
    assert headings(read(ROOT / "CHANGELOG.md"))[1] in {"[Unreleased]", f"[{discreet.__version__}]"}

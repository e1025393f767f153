# SPDX-License-Identifier: Apache-2.0
"""Every error code is declared, raised somewhere and explained in the documentation."""

from __future__ import annotations

import ast
import re

import pytest

from discreet import errors
from tests.house.project import DOCS, PACKAGE, read, source_files, tree_of

PAGE = DOCS / "reference" / "errors.md"
CODE = re.compile(r"DP\d{3}")


def raised(tree: ast.Module) -> set[str]:
    """The codes that are handed to a call: an error's constructor, or a helper that raises it."""
    return {
        argument.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for argument in call.args
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and CODE.fullmatch(argument.value)
    }


def test_every_raised_code_is_declared_and_every_declared_code_is_raised():
    codes = set().union(*(raised(tree_of(path)) for path in source_files() if path != PACKAGE / "errors.py"))
    assert codes - set(errors.CODES) == set()
    assert set(errors.CODES) - codes == set()


@pytest.mark.parametrize(("code", "title"), errors.CODES.items())
def test_every_code_has_its_heading_with_a_cause_and_a_fix(code, title):
    sections = re.split(r"^## ", read(PAGE), flags=re.MULTILINE)
    (section,) = [section for section in sections if section.startswith(code)]
    assert section.splitlines()[0] == f"{code} · {title}"
    assert "**Cause.**" in section
    assert "**Fix.**" in section


def test_the_page_has_no_code_that_does_not_exist():
    headings = re.findall(r"^## (DP\d{3})", read(PAGE), flags=re.MULTILINE)
    assert headings == sorted(errors.CODES)


def test_every_class_of_error_is_in_the_drawn_tree():
    classes = [name for name, thing in vars(errors).items() if isinstance(thing, type)]
    assert [name for name in classes if name not in (errors.__doc__ or "")] == []


def test_an_error_says_all_it_owes():
    error = errors.BadParameter(
        "DP102", "delta must lie in [0, 1).", why="it is a probability.", fix="delta=1e-6"
    )
    lines = str(error).splitlines()
    assert [line.split()[0] for line in lines] == ["DP102", "Why", "Fix", "Spent"]
    assert isinstance(error, ValueError)
    assert raised(ast.parse('raise E("DP102", "x")')) == {"DP102"}

# SPDX-License-Identifier: Apache-2.0
"""Nothing grows beyond what a reader can hold in mind. Split by idea when one of these fails."""

from __future__ import annotations

import ast

import pytest

from tests.house.project import code_lines, read, relative, source_files

FILE, FUNCTION, CLASS = 500, 60, 250

FILES = source_files()


def too_long(text: str) -> list[str]:
    """What in this source is longer than the house allows, in code lines."""
    code = code_lines(text)
    found = [f"the file has {len(code)} code lines"] if len(code) > FILE else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            limit = CLASS if isinstance(node, ast.ClassDef) else FUNCTION
            body = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            length = len(code.intersection(body))
            if length > limit:
                found.append(f"{node.name} (line {node.lineno}) has {length} code lines")
    return found


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_source_file_and_its_parts_stay_small(path):
    assert too_long(read(path)) == []


def test_the_rule_counts_code_and_nothing_else():
    docstring = '    """' + "words\n" * 50 + '    """\n'
    quiet = "def f():\n" + docstring + "    # why\n\n" * 50 + "    x = 1\n" * FUNCTION
    assert too_long(quiet) == []
    assert too_long(quiet + "    return x\n") == ["f (line 1) has 61 code lines"]
    assert too_long("x = 1\n" * (FILE + 1)) == ["the file has 501 code lines"]

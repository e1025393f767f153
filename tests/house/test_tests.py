# SPDX-License-Identifier: Apache-2.0
"""Tests can fail, do not wait, and do not leave the machine."""

from __future__ import annotations

import ast

import pytest

from tests.house import project

FILES = project.test_files()
CLAIMS = {"raises", "warns"}
HELPERS = ("assert_", "check_", "accepts", "rejects", "must_")
NETWORK = {"socket", "urllib", "requests", "httpx"}
#: Tests that ask a server of their own on this machine.
LOOPBACK = ("tests/client/", "tests/pages/", "tests/server/")


def says_nothing(tree: ast.Module) -> list[str]:
    """The tests of a file that assert nothing."""
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return [test.name for test in tests if not any(claims(node) for node in ast.walk(test))]


def claims(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    return name in CLAIMS or name.startswith(HELPERS)


@pytest.mark.parametrize("path", FILES, ids=project.relative)
def test_every_test_asserts_something(path):
    assert says_nothing(project.tree_of(path)) == []


@pytest.mark.parametrize("path", FILES, ids=project.relative)
def test_no_test_sleeps_or_calls_out(path):
    calls = {ast.unparse(n.func) for n in ast.walk(project.tree_of(path)) if isinstance(n, ast.Call)}
    assert not calls & {"time.sleep", "sleep"}
    modules = {
        alias.name.split(".")[0]
        for node in ast.walk(project.tree_of(path))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    allowed = (
        {"httpx"}
        if path.as_posix().removeprefix(f"{project.ROOT.as_posix()}/").startswith(LOOPBACK)
        else set()
    )
    assert not modules & (NETWORK - allowed)


def test_the_rule_sees_an_empty_test():
    assert says_nothing(ast.parse("def test_a():\n    f()\ndef test_b():\n    assert f()\n")) == ["test_a"]

# SPDX-License-Identifier: Apache-2.0
"""Where fixes are written down, and which of these places an error came from."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import discreet
from discreet import errors
from discreet.errors import DiscreetError

ROOT = Path(discreet.__file__).parent
_ERRORS = {"Exception", *(name for name, one in vars(errors).items() if isinstance(one, type))}


@dataclass(frozen=True)
class Site:
    """A call that is handed a fix: its file, the function that it stands in, and which of its calls it is."""

    file: str
    function: str
    number: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file} {self.function} {self.number}"

    def holds(self, file: str, line: int) -> bool:
        return file == self.file and self.first <= line <= self.last


@cache
def sites() -> tuple[Site, ...]:
    """Every call with `fix=`, or of a function of the library that takes a fix; one that only passes it on is none."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    takers = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(one.arg == "fix" for one in (*node.args.args, *node.args.kwonlyargs))
        and isinstance(node.returns, ast.Name)
        and node.returns.id in _ERRORS
    }
    return tuple(
        site
        for path, tree in trees.items()
        for site in _in_file(path.relative_to(ROOT).as_posix(), tree, frozenset(takers))
    )


def _in_file(file: str, tree: ast.AST, takers: frozenset[str]) -> Iterator[Site]:
    seen: Counter[str] = Counter()
    for function, call in _calls(tree, ""):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        told = [word.value for word in call.keywords if word.arg == "fix"]
        passed_on = any(
            isinstance(one, ast.Name) and one.id == "fix" and function.endswith(tuple(takers))
            for one in (*told, *call.args)
        )
        if (told or name in takers) and not passed_on:
            seen[function] += 1
            yield Site(file, function, seen[function], call.lineno, call.end_lineno or call.lineno)


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for inner in ast.iter_child_nodes(node):
        named = isinstance(inner, ast.FunctionDef | ast.ClassDef)
        within = f"{function}.{inner.name}".lstrip(".") if named else function
        if isinstance(inner, ast.Call):
            yield function or "module", inner
        yield from _calls(inner, within)


@contextmanager
def watching() -> Iterator[set[str]]:
    """The sites at which errors are made meanwhile."""
    found: set[str] = set()
    made = DiscreetError.__init__

    def noted(self, *args, **named):
        frame = sys._getframe(1)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(ROOT):
                file = path.relative_to(ROOT).as_posix()
                found.update(str(site) for site in sites() if site.holds(file, frame.f_lineno))
            frame = frame.f_back
        made(self, *args, **named)

    DiscreetError.__init__ = noted
    try:
        yield found
    finally:
        DiscreetError.__init__ = made

# SPDX-License-Identifier: Apache-2.0
"""Where things lie, and how to read them: what the house rules have in common."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = SRC / "discreet"
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"

_TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".json", ".css", ".js", ".html", ".csv", ".cff", ""}
_FOLDERS = ("src", "tests", "docs", "benchmarks", "scripts", ".ci", ".github")
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def text_files() -> list[Path]:
    """Every text file that belongs to the project; in a worktree `.git` is a file, and says where the repository is."""
    here = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    below = [path for folder in _FOLDERS for path in _walk(ROOT / folder)]
    return sorted(path for path in here + below if path.suffix in _TEXT)


def _walk(folder: Path) -> Iterator[Path]:
    """The files below a folder; caches and environments, which are not ours, are not entered."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_file():
            yield path
        elif not path.name.startswith((".", "__pycache__")):
            yield from _walk(path)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(read(path), filename=str(path))


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no blank lines, no comments, no docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines

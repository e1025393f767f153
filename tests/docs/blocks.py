# SPDX-License-Identifier: Apache-2.0
"""Reads the code out of a page, runs it, and holds the page to what it says.

A comment at the end of an expression is a claim:

    train.epsilon(delta=1e-6)     # → 2.48          equal to the digits shown
    a + b                         # raises DP201    refused with that code

A block of TOML that is named is a file, which the commands of its page find.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError
from tests.house.project import DOCS, ROOT

_FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", flags=re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^```toml title=\"([\w.-]+)\"\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_CLAIM = re.compile(r"#\s*(→|raises)\s*(.+?)\s*$")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks(text: str, language: str) -> list[Block]:
    """The fenced blocks of one language, with the line on which their code begins."""
    found = []
    for match in _FENCE.finditer(text):
        indent, kind, body = match.groups()
        if kind == language:
            code = "\n".join(line.removeprefix(indent) for line in body.splitlines())
            found.append(Block(kind, code, text.count("\n", 0, match.start(3)) + 1))
    return found


def files(text: str) -> dict[str, str]:
    """The files that a page shows, by name; its commands find them beside them."""
    return dict(_FILE.findall(text))


def run(block: Block, names: dict[str, Any], page: str = "page") -> None:
    """Run a block in `names`, statement by statement, and check the claims in it."""
    lines = block.text.splitlines()
    for statement in ast.parse(block.text, filename=page).body:
        ast.increment_lineno(statement, block.line - 1)
        last = lines[(statement.end_lineno or statement.lineno) - block.line]
        claim = _CLAIM.search(last)
        where = f"{page}:{statement.lineno}"
        if claim is None:
            exec(compile(ast.Module([statement], []), page, "exec"), names)
        elif claim[1] == "raises":
            _refused(statement, names, claim[2], where)
        else:
            _equal(statement, names, claim[2], where)


def _refused(statement: ast.stmt, names: dict[str, Any], code: str, where: str) -> None:
    raised = "nothing"
    try:
        exec(compile(ast.Module([statement], []), where, "exec"), names)
    except DiscreetError as error:
        raised = error.code
    assert raised == code, f"{where}: {raised} was raised, the page says {code}"


def _equal(statement: ast.stmt, names: dict[str, Any], shown: str, where: str) -> None:
    assert isinstance(statement, ast.Expr), f"{where}: only an expression has a value to show"
    value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
    assert agrees(value, shown), f"{where}: the value is {value!r}, the page says {shown}"


def agrees(value: Any, shown: str) -> bool:
    """Whether a page may show `value` like this: a float to within one unit of its last digit."""
    if isinstance(value, float) and re.fullmatch(r"-?[\d_.]+(e-?\d+)?", shown):
        decimal = Decimal(shown.replace("_", ""))
        return abs(Decimal(value) - decimal) < Decimal(1).scaleb(int(decimal.as_tuple().exponent))
    return shown in {repr(value), str(value)}

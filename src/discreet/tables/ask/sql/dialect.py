# SPDX-License-Identifier: Apache-2.0
"""The words of SQL, without their meaning: functions are all parsed alike, by their name and arguments.

What each function means is decided in `functions.py` and `aggregates.py`, and not by a dialect.
"""

from __future__ import annotations

from sqlglot import exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

__all__ = ["Plain"]

_KEPT_PARSERS = {"CAST", "TRY_CAST", "EXTRACT"}


class Plain(Dialect):
    """SQL in which a function is its name and its arguments."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        """`//` divides whole numbers, as DIV does; no word swallows the rest of the text."""

        KEYWORDS = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}  # noqa: RUF012 - read by a metaclass
        COMMANDS = set()  # noqa: RUF012

    class Parser(parser.Parser):
        """No function has a meaning yet."""

        FUNCTIONS = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in parser.Parser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS
        }

    class Generator(generator.Generator):
        """What was written, shown again."""

        TRANSFORMS = {  # noqa: RUF012
            **generator.Generator.TRANSFORMS,
            exp.IntDiv: lambda self, node: self.binary(node, "DIV"),
        }

# SPDX-License-Identifier: Apache-2.0
"""The syntax of SQL without its meaning: every function is parsed as a name with arguments.

`functions.py` and `aggregates.py` define what each function means.
"""

from __future__ import annotations

from sqlglot import exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

__all__ = ["PlainDialect"]

_KEPT_PARSERS = {"CAST", "TRY_CAST", "EXTRACT"}


class PlainDialect(Dialect):
    """SQL in which a function is a name with arguments."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        """`//` divides whole numbers, as DIV does; no keyword consumes the rest of the text."""

        KEYWORDS = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}  # noqa: RUF012 - read by a metaclass
        COMMANDS = set()  # noqa: RUF012

    class Parser(parser.Parser):
        """No function is parsed specially but CAST, TRY_CAST and EXTRACT."""

        FUNCTIONS = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in parser.Parser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS
        }

    class Generator(generator.Generator):
        """Writes a tree as the text that it was parsed from."""

        TRANSFORMS = {  # noqa: RUF012
            **generator.Generator.TRANSFORMS,
            exp.IntDiv: lambda self, node: self.binary(node, "DIV"),
        }

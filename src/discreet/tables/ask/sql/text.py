# SPDX-License-Identifier: Apache-2.0
"""Parses a text to one SELECT, and reads EXPLAIN PRIVACY before it and WITH ( … ) behind it.

    EXPLAIN PRIVACY  SELECT … FROM …  WITH (epsilon = 0.1) ;

**Guarantee.** The text is parsed to a tree and never pasted into another text. The result is one
SELECT, with nothing around it but the two parts above. Everything else is refused. Texts that are
too long or nested too deeply are refused before they are parsed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from discreet.errors import BadParameter
from discreet.tables.ask.sql.dialect import PlainDialect
from discreet.tables.ask.sql.refuse import question_error, unsupported_error

__all__ = ["OPTIONS", "SelectStatement", "parse_statement", "tokenize_text"]

#: What may stand in a trailing WITH ( … ).
OPTIONS = ("epsilon", "delta", "rho", "error", "confidence", "objective")

_LONGEST = 100_000
_MOST_TOKENS = 10_000
_DEEPEST = 40
_TALLEST = 120

_OPENERS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSERS = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}


@dataclass(frozen=True)
class SelectStatement:
    """A SELECT, whether EXPLAIN PRIVACY stands before it, and the options behind it."""

    select: exp.Select
    text: str
    explain: bool
    options: Mapping[str, float | str]


def parse_statement(text: object) -> SelectStatement:
    """The only statement of a text."""
    text = _validate_text(text)
    tokens = _tokenize(text)
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    _check_shape(tokens)
    explain = [token.text.upper() for token in tokens[:2]] == ["EXPLAIN", "PRIVACY"]
    if explain:
        tokens = tokens[2:]
    tokens, options = _split_options(tokens)
    _check_start(tokens)
    written = text[tokens[0].start : tokens[-1].end + 1]
    return SelectStatement(_parse_select(written), written, explain, options)


def tokenize_text(text: object) -> list[Token]:
    """The words of a text that is short enough to be parsed."""
    return _tokenize(_validate_text(text))


def _validate_text(text: object) -> str:
    if not isinstance(text, str):
        raise BadParameter(
            "DP104",
            f"a question must be a text, not {type(text).__name__}.",
            why="the ledger records the text of each question.",
            fix='session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
        )
    if len(text) > _LONGEST:
        raise question_error(
            "DP702",
            f"the question is longer than {_LONGEST} characters.",
            "parsing a very long text blocks a shared server.",
            "put long lists into a public table and join it",
        )
    if any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"} and c not in "\t\r\n" for c in text):
        raise question_error(
            "DP702",
            "the question contains invisible characters.",
            "the ledger must record what a person reads.",
            "remove the control characters, or type the question again",
        )
    return text


def _tokenize(text: str) -> list[Token]:
    try:
        return list(PlainDialect().tokenize(text))
    except (SqlglotError, ValueError) as error:
        raise question_error(
            "DP702",
            "a quote in the question is opened and never closed.",
            "the end of the text or name is unknown.",
            "close every quote:  ward = 'A'",
        ) from error


def _check_shape(tokens: Sequence[Token]) -> None:
    """Refuse too many words, too deep nesting, several statements, and a number that runs into a
    name.
    """
    if len(tokens) > _MOST_TOKENS:
        raise _too_deep_error(f"the question has more than {_MOST_TOKENS} words.")
    depth = prefixes = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPENERS) - (token.token_type in _CLOSERS)
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        if max(depth, prefixes) > _DEEPEST:
            raise _too_deep_error(f"the question is nested more than {_DEEPEST} levels deep.")
        if token.token_type == TokenType.SEMICOLON:
            raise question_error(
                "DP702",
                "the text contains several statements.",
                "each question is charged separately.",
                "ask them one by one",
            )
        if at and _runs_on(tokens[at - 1], token):
            raise question_error(
                "DP702",
                f"a number runs into a name: {tokens[at - 1].text}{token.text}",
                "SQL would read it as a number with an alias.",
                "write numbers in digits:  1000",
            )


def _runs_on(number: Token, token: Token) -> bool:
    touches = number.token_type == TokenType.NUMBER and number.end + 1 == token.start
    return touches and token.token_type not in _AFTER_NUMBERS


_AFTER_NUMBERS = {
    *_CLOSERS - {TokenType.END},
    *_PREFIXES - {TokenType.NOT},
    TokenType.COMMA,
    TokenType.STAR,
    TokenType.SLASH,
    TokenType.DIV,
    TokenType.MOD,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.DCOLON,
    TokenType.SEMICOLON,
}


def _too_deep_error(what: str) -> Exception:
    return question_error(
        "DP702",
        what,
        "parsing it would exhaust a shared server.",
        "put long lists into a public table and join it; use CLAMP and BUCKET instead of nested CASE",
    )


def _split_options(tokens: list[Token]) -> tuple[list[Token], dict[str, float | str]]:
    """The statement without its trailing WITH ( name = value, … )."""
    if not tokens or tokens[-1].token_type != TokenType.R_PAREN:
        return tokens, {}
    depth, at = 1, len(tokens) - 1
    while depth and at:
        at -= 1
        depth += (tokens[at].token_type == TokenType.R_PAREN) - (tokens[at].token_type == TokenType.L_PAREN)
    if at == 0 or tokens[at - 1].token_type != TokenType.WITH:
        return tokens, {}
    return tokens[: at - 1], _options(tokens[at + 1 : -1])


def _options(tokens: Sequence[Token]) -> dict[str, float | str]:
    options: dict[str, float | str] = {}
    for at in range(0, len(tokens) + 1, 4):
        item = tokens[at : at + 4]
        simple = len(item) in {3, 4} and item[1].token_type == TokenType.EQ
        ended = len(item) == 3 or (len(item) == 4 and item[3].token_type == TokenType.COMMA)
        name = item[0].text.lower() if item else ""
        if not (simple and ended and name in OPTIONS and name not in options):
            raise _options_error()
        options[name] = _option(item[2])
        if len(item) == 3:
            return options
    raise _options_error()


def _option(token: Token) -> float | str:
    if token.token_type == TokenType.NUMBER:
        return float(token.text)
    if token.token_type == TokenType.STRING:
        return token.text
    raise _options_error()


def _options_error() -> Exception:
    return question_error(
        "DP702",
        "WITH ( … ) is not a valid list of options.",
        f"the options are {', '.join(OPTIONS)}; each may appear once, with a number or a text.",
        "SELECT COUNT(*) FROM visits WITH (epsilon = 0.1)",
    )


def _check_start(tokens: Sequence[Token]) -> None:
    first = tokens[0].text.upper() if tokens else ""
    if first in {"SELECT", "WITH"}:
        return
    raise question_error(
        "DP702",
        "the question is not a SELECT." if first else "the question is empty.",
        "a session answers questions; it never changes data or shows rows.",
        "SELECT COUNT(*) FROM visits   or   EXPLAIN PRIVACY SELECT COUNT(*) FROM visits",
    )


def _parse_select(text: str) -> exp.Select:
    try:
        trees = PlainDialect().parse(text)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise question_error(
            "DP702",
            "the question cannot be parsed as one SELECT" + _place(error),
            "only a text with one meaning is answered.",
            "SELECT ward, COUNT(*) AS n FROM visits WHERE days > 2 GROUP BY ward",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise unsupported_error(tree if isinstance(tree, exp.Expression) else exp.Subquery())
    if _height(tree) > _TALLEST:
        raise _too_deep_error(f"the question is nested more than {_TALLEST} levels deep.")
    for group in tree.find_all(exp.Group):
        _list_grouping_sets(group)
    return tree


def _list_grouping_sets(group: exp.Group) -> None:
    """Put CUBE (…), ROLLUP (…) and GROUPING SETS (…) among the expressions of GROUP BY, where later
    versions of the parser put them. Their order does not matter: sets are multiplied.
    """
    for part in ("grouping_sets", "rollup", "cube"):
        nodes = group.args.get(part)
        if isinstance(nodes, list) and nodes and all(node.expressions for node in nodes):
            group.set(part, None)
            group.set("expressions", [*group.expressions, *nodes])


def _place(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    near, line = details[0].get("highlight"), details[0].get("line")
    return f", near {str(near)[:40]!r} in line {line}." if near and line else "."


def _height(tree: exp.Expression) -> int:
    """The height of a tree, computed without recursion. A run of ANDs, or of ORs, counts once."""
    tallest, waiting = 0, [(tree, 1)]
    while waiting:
        node, height = waiting.pop()
        tallest = max(tallest, height)
        for child in node.iter_expressions():
            run = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            waiting.append((child, height if run else height + 1))
    return tallest

# SPDX-License-Identifier: Apache-2.0
"""Values in the place of the `?` of a question.

**Guarantee.** A value becomes a literal in the tree of the question. It is never parsed, so no text
can change what the question asks, and the recorded text has the values.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from discreet.errors import BadParameter
from discreet.tables.ask.expressions import Expression, syntax_tree
from discreet.tables.ask.sql.dialect import PlainDialect
from discreet.tables.ask.sql.text import SelectStatement, parse_statement, tokenize_text

__all__ = ["parse_with_parameters"]

_NAME = "discreet_parameter_"


def parse_with_parameters(text: object, parameters: object) -> SelectStatement:
    """The only statement of a text, with a value for each `?` in the order of the text."""
    if isinstance(parameters, list | tuple) and not parameters:
        return parse_statement(text)
    written, count = _number_places(text)
    values = _validate_values(parameters, count)
    statement = parse_statement(written)
    places: list[exp.Expression] = list(statement.select.find_all(exp.Placeholder))
    for place in places:
        name = str(place.args.get("this") or "")
        if name.startswith(_NAME):
            place.replace(syntax_tree(values[int(name.removeprefix(_NAME))]))
    return replace(statement, text=statement.select.sql(dialect=PlainDialect))


def _number_places(text: object) -> tuple[object, int]:
    """The text with a name in place of each `?`, because a tree does not keep their order."""
    if not isinstance(text, str):
        return text, 0
    places = [token.start for token in tokenize_text(text) if text[token.start : token.end + 1] == "?"]
    for number in reversed(range(len(places))):
        text = f"{text[: places[number]]}:{_NAME}{number}{text[places[number] + 1 :]}"
    return text, len(places)


def _validate_values(parameters: object, count: int) -> list[exp.Expression]:
    values = list(parameters) if isinstance(parameters, list | tuple) else None
    if (
        values is not None
        and len(values) == count
        and not any(isinstance(value, Expression) for value in values)
    ):
        return values
    given = "no list" if values is None else f"{len(values)} values"
    raise BadParameter(
        "DP104",
        f"the question has {count} parameters, and there is {given} for them.",
        why="each ? stands for one public value, in their order.",
        fix='session.sql("SELECT COUNT(*) FROM visits WHERE days > ?", parameters=[3], epsilon=0.1)',
    )

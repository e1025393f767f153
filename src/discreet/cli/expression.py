# SPDX-License-Identifier: Apache-2.0
"""An expression such as `1000 * gaussian(1).sampled(0.01) + laplace(10)`, read into a guarantee.

The grammar is Python's, and of Python only this much: the functions of `FUNCTIONS` and the methods
of `METHODS`, called with numbers, words and other expressions; sums of guarantees; and a whole
number times a guarantee. One number may be written as `?`, to be found by `discreet.cli.search`.

**Guarantee.** Nothing is executed but the listed functions and methods. Everything else is refused,
with its position.
"""

from __future__ import annotations

import ast
import math
import shlex
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from discreet import check
from discreet.cli.search import Safer
from discreet.cli.terminal import all_digits
from discreet.errors import BadParameter, DiscreetError

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

#: Stands for the number that is searched.
HOLE = "?"
#: What each function means and how it is called; all of them are functions of `discreet.privacy`.
FUNCTIONS = {
    "gaussian": ("Gaussian noise: standard deviation / sensitivity", "1.0"),
    "laplace": ("Laplace noise: scale / sensitivity", "10"),
    "pure": ("any ε-DP mechanism", "0.5"),
    "approximate": ("any (ε, δ)-DP mechanism", "0.5, 1e-7"),
    "concentrated": ("any ρ-zCDP mechanism", "0.1"),
    "approximate_concentrated": ("any δ-approximate ρ-zCDP mechanism", "1e-7, 0.1"),
    "renyi": ("Rényi DP at one order", "8, 0.5"),
    "renyi_curve": ("Rényi DP at several orders", "{2: 0.1, 8: 0.6}"),
    "exponential": ("the exponential mechanism, calibrated to ε", "0.5"),
    "randomized_response": ("one answer of two, or of more outcomes", "1.0"),
    "discrete_laplace": ("integer Laplace noise: scale, sensitivity", "10, 1"),
    "discrete_gaussian": ("integer Gaussian noise: scale, sensitivity", "3, 2"),
    "leaky": ("reveals its input with probability δ", "1e-7"),
    "leaky_randomized_response": ("both of the last two: ε, δ", "1.0, 1e-7"),
    "parallel": ("one mechanism for each of several disjoint parts", "laplace(1), laplace(2)"),
    "one_of": ("one of several, chosen without the data", "laplace(1), laplace(2)"),
    "gaussian_mixture": ("Gaussian noise, moves of chance", "1.0, {0: 0.9, 1: 0.1}"),
    "truncated_batches": (
        "a Poisson sample cut to a size: noise, rate, batch, records",
        "1.0, 0.01, 130, 10000",
    ),
    "shuffled": (
        "n shuffled reports of a local randomiser",
        "pure(1.0, relation='replace'), n=10000",
    ),
    "selected": ("the best of a random, secret number of runs", "laplace(10), mean_runs=10"),
}
#: The methods of a guarantee.
METHODS = {
    "sampled": ("on a fresh, secret sample of the units: rate, scheme", "0.01"),
    "allocated": ("each unit in a few secret, random runs of many: steps, times", "100"),
    "group": ("for so many units at once", "3"),
}
_COMBINING = {"parallel", "one_of", "selected", "shuffled"}
_EXAMPLE = "1000 * gaussian(1.0).sampled(0.01) + laplace(10)"
_OPEN_EXAMPLE = "1000 * gaussian(?).sampled(0.01)"
_LONGEST, _DEEPEST = 4_000, 40
_SAFER = {
    **dict.fromkeys(("noise", "scale"), Safer.MORE),
    **dict.fromkeys(("epsilon", "delta", "rho", "rate"), Safer.LESS),
    **dict.fromkeys(("count", "size", "times"), Safer.FEWER),
}
#: What stands for `?` while Python parses the expression; of the same length, so that positions
#: stay.
_STAND_IN = "_"


@dataclass(frozen=True)
class OpenNumber:
    """Where `?` stands: the parameter, the function it belongs to, and which way is safer."""

    parameter: str
    owner: str
    safer: Safer

    @property
    def name(self) -> str:
        """For a sentence: "noise of gaussian"."""
        return f"{self.parameter} of {self.owner}" if self.owner else "number of runs"


@dataclass(frozen=True)
class GuaranteeExpression:
    """An expression that was read; `open_number` is where `?` stands, if it stands somewhere."""

    text: str
    body: ast.expr
    relation: str
    unit: str
    open_number: OpenNumber | None

    def guarantee(self, value: float | None = None) -> Guarantee:
        """The guarantee; `value` takes the place of `?`."""
        return _evaluate(self, self.body, value)

    def with_number(self, value: float) -> GuaranteeExpression:
        """The expression with a number in place of `?`."""
        position = _hole_positions(self.text)[0]
        text = f"{self.text[:position]}{all_digits(value)}{self.text[position + 1 :]}"
        return replace(self, text=text, body=_parse_python(text), open_number=None)

    def samplings(self) -> Iterator[tuple[str, float]]:
        """The scheme and the rate of every sampling."""
        for node in ast.walk(self.body):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "sampled"
            ):
                values = [*map(_literal, node.args), *([None] * 2)]
                named = {keyword.arg: _literal(keyword.value) for keyword in node.keywords}
                yield (
                    str(named.get("scheme", values[1]) or "poisson"),
                    float(named.get("rate", values[0]) or 0),
                )


def read_expression(text: str, *, relation: str, unit: str) -> GuaranteeExpression:
    """An expression, checked against the grammar; DP105 or DP107 with the position where it departs
    from it.
    """
    from discreet.privacy.unit import Unit

    # A wrong relation or unit is refused here, because it belongs to no position of the expression.
    Unit(unit, relation)
    text = "".join(" " if character.isspace() else character for character in text).strip()
    if len(text) > _LONGEST:
        raise _grammar_error("DP107", f"the expression has more than {_LONGEST} characters", text, _LONGEST)
    body = _parse_python(text)
    holes = list(_open_numbers(text, body, depth=0))
    if len(holes) > 1:
        raise BadParameter(
            "DP107",
            f"{len(holes)} numbers are written as {HOLE}, and one can be found.",
            why="with several open numbers there are many answers.",
            fix=f"{in_shell(_OPEN_EXAMPLE)} --epsilon 1 --delta 1e-6",
        )
    return GuaranteeExpression(text, body, relation, unit, holes[0] if holes else None)


def in_shell(text: str) -> str:
    """The command that reads an expression, to be pasted."""
    quoted = f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
    return f"discreet account {quoted}"


def _parse_python(text: str) -> ast.expr:
    """The expression as a tree of Python; nothing is executed."""
    python = text
    for position in _hole_positions(text):
        python = f"{python[:position]}{_STAND_IN}{python[position + 1 :]}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(python, mode="eval").body
    except SyntaxError as error:
        what = f"this is no expression ({error.msg})" if text else "the expression is empty"
        position = min(max(0, (error.offset or 1) - 1), len(text))
    except (ValueError, MemoryError, RecursionError):
        what, position = "this is no expression", 0
    raise _grammar_error("DP107", what, text, position)


def _hole_positions(text: str) -> list[int]:
    """Where `?` stands outside of quotes."""
    positions, quote = [], ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == HOLE:
            positions.append(position)
    return positions


# --- the grammar ----------------------------------------------------------------------------------


def _open_numbers(text: str, node: ast.expr, depth: int) -> Iterator[OpenNumber]:
    """Where `?` stands in an expression for a guarantee; whatever the grammar does not know is
    refused.
    """
    if depth > _DEEPEST:
        raise _node_error("DP107", f"the expression is nested more than {_DEEPEST} deep", text, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for term in _terms(node):
            yield from _open_numbers(text, term, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        count, term = _count_and_term(node)
        if _is_hole(text, count):
            yield OpenNumber("count", "", Safer.FEWER)
        else:
            _check_count(text, count)
        yield from _open_numbers(text, term, depth + 1)
    elif isinstance(node, ast.Call):
        yield from _open_arguments(text, node, depth)
    elif isinstance(node, ast.Name):
        raise _name_error(text, node, node.id, FUNCTIONS, "a mechanism")
    else:
        raise _node_error("DP105", "a mechanism is expected here", text, node)


def _open_arguments(text: str, node: ast.Call, depth: int) -> Iterator[OpenNumber]:
    """The same for the arguments of a call."""
    name, known = _callee(node)
    if isinstance(node.func, ast.Attribute):
        if name not in METHODS:
            raise _name_error(text, node.func, name, METHODS, "a method of a guarantee")
        yield from _open_numbers(text, node.func.value, depth + 1)
    elif not isinstance(node.func, ast.Name) or name not in FUNCTIONS:
        raise _name_error(text, node.func, name, FUNCTIONS, "a mechanism")
    named = [keyword.arg for keyword in node.keywords]
    for keyword in node.keywords:
        if keyword.arg is None or named.count(keyword.arg) > 1:
            raise _node_error("DP107", "each argument is written once, under its name", text, keyword.value)
    parameters = list(signature(known()).parameters) if known is not None else []
    positional = [name for name in parameters if name != "self"]
    for index, argument in enumerate(node.args):
        parameter = positional[index] if index < len(positional) else ""
        yield from _open_argument(text, argument, parameter, name, depth)
    for keyword in node.keywords:
        yield from _open_argument(text, keyword.value, str(keyword.arg), name, depth)


def _open_argument(text: str, node: ast.expr, parameter: str, owner: str, depth: int) -> Iterator[OpenNumber]:
    if _is_hole(text, node):
        if parameter not in _SAFER:
            what = f"{HOLE} cannot stand for the {parameter or 'argument'} of {owner}"
            raise _node_error("DP104", what, text, node)
        yield OpenNumber(parameter, owner, _SAFER[parameter])
    elif isinstance(node, ast.Dict):
        for part in (*node.keys, *node.values):
            if part is None or not isinstance(_literal(part), int | float):
                raise _node_error("DP105", "orders and values are numbers", text, part or node)
    elif _literal(node) is None:
        yield from _open_numbers(text, node, depth + 1)
    elif isinstance(_literal(node), float) and not math.isfinite(float(str(_literal(node)))):
        raise _node_error("DP101", "a number must be finite", text, node)


def _callee(node: ast.Call) -> tuple[str, Callable[[], Callable[..., Any]] | None]:
    """The name that is called, and how to look up what it stands for."""
    from discreet import privacy

    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return name, (lambda: getattr(privacy.Guarantee, name)) if name in METHODS else None
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return name, (lambda: getattr(privacy, name)) if name in FUNCTIONS else None


def _terms(node: ast.expr) -> list[ast.expr]:
    """The terms of a sum, which may have hundreds of them."""
    terms: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms.append(node.right)
        node = node.left
    return [node, *reversed(terms)]


def _count_and_term(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    """A product is a number times a guarantee, in either order."""
    is_number = isinstance(node.right, ast.Constant | ast.UnaryOp)
    is_hole = isinstance(node.right, ast.Name) and node.right.id == _STAND_IN
    return (node.right, node.left) if is_number or is_hole else (node.left, node.right)


def _check_count(text: str, node: ast.expr) -> None:
    value = _literal(node)
    if not isinstance(value, int | float):
        raise _node_error("DP105", "a product is a whole number times a mechanism", text, node)
    with _naming_position(text, node, "1000"):
        check.whole(count=_as_whole(value))


def _literal(node: ast.expr) -> float | int | str | None:
    """The number or the word that is written; None for anything else. True and False are no numbers
    here.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _literal(node.operand) if isinstance(node.operand, ast.Constant) else None
        if not isinstance(value, int | float):
            return None
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
        return node.value if isinstance(node.value, int | float | str) else None
    return None


def _as_whole(value: float) -> float | int:
    """1e3 is a whole number, 2.5 is not."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_hole(text: str, node: ast.expr) -> bool:
    is_stand_in = isinstance(node, ast.Name) and node.id == _STAND_IN
    return is_stand_in and text[_position(text, node)] == HOLE


# --- the guarantee --------------------------------------------------------------------------------


def _evaluate(expression: GuaranteeExpression, node: ast.expr, hole: float | None) -> Guarantee:
    """The guarantee of an expression that the grammar allows."""
    from discreet.privacy.guarantee import compose

    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return compose((_evaluate(expression, term, hole), 1) for term in _terms(node))
    if isinstance(node, ast.BinOp):
        count, term = _count_and_term(node)
        times: Any = hole if _is_hole(expression.text, count) else _literal(count)
        return _evaluate(expression, term, hole) * cast("int", _as_whole(times))
    assert isinstance(node, ast.Call)
    name, known = _callee(node)
    assert known is not None
    arguments = [_argument(expression, argument, hole) for argument in node.args]
    named = {str(word.arg): _argument(expression, word.value, hole) for word in node.keywords}
    if isinstance(node.func, ast.Attribute):
        arguments.insert(0, _evaluate(expression, node.func.value, hole))
    elif name not in _COMBINING:
        named = {"relation": expression.relation, "unit": expression.unit} | named
    example = (METHODS if isinstance(node.func, ast.Attribute) else FUNCTIONS)[name][1]
    called = ast.get_source_segment(expression.text.replace(HOLE, _STAND_IN), node.func) or name
    with _naming_position(expression.text, node, f"{called}({example})"):
        guarantee: Guarantee = known()(*arguments, **named)
    return guarantee


def _argument(expression: GuaranteeExpression, node: ast.expr, hole: float | None) -> Any:
    if _is_hole(expression.text, node):
        return hole
    if isinstance(node, ast.Dict):
        return {_literal(key): _literal(value) for key, value in zip(node.keys, node.values) if key}  # noqa: B905
    value = _literal(node)
    return _evaluate(expression, node, hole) if value is None else value


# --- errors ---------------------------------------------------------------------------------------


def _position(text: str, node: ast.expr) -> int:
    """The character at which a node begins; Python counts bytes."""
    return len(text.encode()[: node.col_offset].decode(errors="ignore"))


@contextmanager
def _naming_position(text: str, node: ast.expr, instead: str) -> Iterator[None]:
    """A refusal of the library also tells where in the expression, and what to write instead."""
    try:
        yield
    except DiscreetError as error:
        start = _position(text, node)
        end = len(text.encode()[: node.end_col_offset].decode(errors="ignore"))
        if "at character" not in error.what:
            error.what = f"{error.what.rstrip('.')}, at character {start + 1}: {_short(text[start:end])}"
            if isinstance(error, BadParameter):
                error.fix = in_shell(f"{text[:start]}{instead}{text[end:]}")
        raise


def _node_error(code: str, what: str, text: str, node: ast.expr) -> BadParameter:
    return _grammar_error(code, what, text, _position(text, node))


def _grammar_error(code: str, what: str, text: str, position: int, fix: str = "") -> BadParameter:
    where = f", at character {position + 1}: {_short(text[position:])}" if text[position:] else ""
    return BadParameter(
        code,
        f"{what}{where}" if where else f"{what}.",
        why="an expression names mechanisms, their methods and numbers; nothing else is read.",
        fix=fix or in_shell(_EXAMPLE),
    )


def _name_error(text: str, node: ast.expr, name: str, known: Collection[str], kind: str) -> BadParameter:
    """A name that is not listed, with the one that was probably meant in its place."""
    end = len(text.encode()[: node.end_col_offset].decode(errors="ignore"))
    start = end - len(name) if isinstance(node, ast.Attribute) else _position(text, node)
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    fix = f"one of: {', '.join(known)}"
    if near and near[0] != name:
        fix = in_shell(f"{text[:start]}{near[0]}{text[end:]}")
    elif near:
        example = (FUNCTIONS | METHODS)[name][1]
        fix = in_shell(f"{text[:end]}({example}){text[end:]}")
    what = f"{name} needs its parameters" if name in known else f"{name or 'this'} is not {kind}"
    return _grammar_error("DP105", what, text, start, fix)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"

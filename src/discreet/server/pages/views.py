# SPDX-License-Identifier: Apache-2.0
"""What templates show of a question plan, a budget, an answer and a description: texts and numbers,
ready to be written.

**Guarantee.** Everything here follows from a preview, a budget, a released answer or a public
description. No file here has an engine. Texts are plain: the templates escape them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError
from discreet.ledger.budget import Budget, percent
from discreet.mechanisms.digits import cell_text, number_cells
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import least_epsilon, short
from discreet.privacy.svg import hundred_squares_svg
from discreet.server import texts
from discreet.server.charts import Chart, answer_charts
from discreet.tables.answer.answer import Answer
from discreet.tables.plan.preview import Preview

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Column, DescribedTables

__all__ = ["AnswerView", "BudgetView", "PlanView", "ProblemView"]

#: Rows of a table on a page; a file has all of them.
ROWS = 200
#: Fractions of a budget above which it is nearly used, and used.
_NEARLY, _USED = 0.8, 0.95


@dataclass(frozen=True)
class BudgetView:
    """What remains, in words; `state` is a class of the style sheet, and is said in words too."""

    spent: float
    words: str
    state: str
    tracks: tuple[str, ...]
    like: str = ""

    @classmethod
    def of(cls, budget: Budget, like: str = "") -> BudgetView:
        """A budget, rounded to the careful side."""
        spent = budget.spent_fraction
        state = "bad" if spent >= _USED else "fair" if spent >= _NEARLY else "good"
        words = f"{percent(spent, ROUND_CEILING)} spent, {percent(budget.remaining_fraction, ROUND_FLOOR)} remaining"
        if state != "good":
            words += ", nearly used" if state == "fair" else ", almost nothing fits"
        fits = like or (f"{budget.fits[0][:1].upper()}{budget.fits[0][1:]}." if budget.fits else "")
        return cls(spent, words, state, (*map(str, budget.tracks), *budget.notes), fits)


def cost_words(guarantee: Guarantee, delta: float | None = None) -> str:
    """What an answer costs, as ε; with δ where it needs one.

    >>> from discreet import privacy
    >>> cost_words(privacy.pure(0.1))
    'ε = 0.1'
    """
    return f"ε = {least_epsilon(guarantee, delta).removesuffix(' at δ = 0')}"


@dataclass(frozen=True)
class PlanView:
    """The margin of error and the cost of a question that was not asked yet."""

    columns: tuple[Mapping[str, str], ...]
    groups: str
    cost: str
    part: str
    like: str
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    cheaper: tuple[str, ...]

    @classmethod
    def of(cls, preview: Preview, *, part: float | None, like: float | None) -> PlanView:
        """A preview; `part` is the fraction of the budget that it uses, `like` how many of them
        fit.
        """
        columns = tuple(
            {"name": column.text or column.name, "error": f"{column.error} (95 %)"}
            for column in preview.columns
        )
        closing = tuple(note for note in preview.notes if note.startswith("This closes"))
        return cls(
            columns,
            preview.groups,
            cost_words(preview.cost, preview.delta),
            "" if part is None else f"{percent(part, ROUND_CEILING)} of your budget",
            "" if like is None else texts.more_like_this(like),
            closing,
            tuple(note for note in preview.notes if note not in closing),
            preview.cheaper,
        )


@dataclass(frozen=True)
class ProblemView:
    """An error on a page; `where` is the part of the question that it is about, and `use` an amount
    that would fit.
    """

    title: str
    code: str
    what: str
    why: str
    fix: str
    spent: str
    where: Mapping[str, int] | None = None
    use: Mapping[str, str] | None = None

    @classmethod
    def of(cls, error: DiscreetError, title: str = "Refused") -> ProblemView:
        """A refusal."""
        return cls(
            title,
            error.code,
            _sentence(error.what),
            _sentence(error.why),
            _sentence(error.fix),
            _sentence(error.spent),
            getattr(error, "where", None),
            _amount_that_fits(error),
        )

    def at(self, where: Mapping[str, int]) -> ProblemView:
        """The same, about a part of the question."""
        return replace(self, where=where)


#: Words with which sentences of refusals begin; anything else may be a name.
_FIRST = {
    "a",
    "all",
    "an",
    "as",
    "ask",
    "at",
    "every",
    "it",
    "no",
    "nothing",
    "only",
    "one",
    "state",
    "that",
    "the",
}
_FIRST |= {"there", "this", "to", "use", "with", "what", "which", "who", "whoever"}


def _sentence(text: str) -> str:
    first = text.partition(" ")[0].rstrip(",.:")
    return f"{text[:1].upper()}{text[1:]}" if first in _FIRST else text


def _amount_that_fits(error: DiscreetError) -> Mapping[str, str] | None:
    """The ε that still fits, where a refusal knows one."""
    fits = getattr(error, "fits", None)
    amount = fits.get("epsilon") if isinstance(fits, Mapping) else None
    if not isinstance(amount, int | float) or not 0 < amount < math.inf:
        return None
    return {"how": "epsilon", "amount": f"{amount:g}", "words": f"ε = {amount:g}"}


@dataclass(frozen=True)
class AnswerView:
    """An answer: its table, its charts, and what belongs to it."""

    head: tuple[Mapping[str, Any], ...]
    keys: int
    rows: int
    shown: tuple[tuple[str, ...], ...]
    charts: tuple[Chart, ...]
    notes: tuple[str, ...]
    question: str
    guarantee: str
    negative: bool
    receipt: Mapping[str, Any] | None
    code: str
    cite: str

    @property
    def cut(self) -> bool:
        """Whether the table on the page has fewer rows than the answer."""
        return self.rows > len(self.shown)

    @classmethod
    def of(
        cls,
        answer: Answer,
        *,
        receipt: Mapping[str, Any] | None = None,
        code: str = "",
        cite: str = "",
    ) -> AnswerView:
        """A released answer; `code` repeats it, and `cite` says where it comes from."""
        head = [{"name": name, "key": True} for name in answer.keys]
        for name, column in answer.columns.items():
            head += [
                {"name": column.text or name, "key": False},
                {"name": "noise interval", "key": False},
            ]
        shown = [_row(answer, at) for at in range(min(len(answer), ROWS))]
        return cls(
            tuple(head),
            len(answer.keys),
            len(answer),
            tuple(shown),
            tuple(answer_charts(answer)),
            answer.all_notes(),
            answer.question,
            "" if answer.guarantee is None else f"{short(answer.guarantee)} for {answer.guarantee.unit}",
            any(
                column.nonnegative and any(_below_zero(value) for value in column.values)
                for column in answer.columns.values()
            ),
            receipt,
            code,
            cite,
        )


def _below_zero(value: object) -> bool:
    return isinstance(value, int | float) and value < 0


def _row(answer: Answer, at: int) -> tuple[str, ...]:
    cells = [cell_text(cell) for cell in answer.groups[at]]
    for column in answer.columns.values():
        number, low, high = number_cells(column.values[at], column.lo[at], column.hi[at])
        cells += [number, f"{low} to {high}" if low != "–" else "–"]
    return tuple(cells)


def reproducing_code(url: str, dataset: str, sql: str, spend: Mapping[str, object], key: str) -> str:
    """Python that gets an answer again.

    >>> print(reproducing_code("http://127.0.0.1:8765", "adult", "SELECT 1", {"epsilon": 0.1}, "a"))
    import discreet as dp
    <BLANKLINE>
    session = dp.connect("http://127.0.0.1:8765/d/adult")
    answer = session.sql("SELECT 1", epsilon=0.1, key="a")
    """
    words = "".join(f", {name}={value!r}" for name, value in spend.items() if value is not None)
    quoted = json.dumps(sql, ensure_ascii=False)
    return (
        "import discreet as dp\n\n"
        f"session = dp.connect({json.dumps(f'{url}/d/{dataset}')})\n"
        f"answer = session.sql({quoted}{words}, key={json.dumps(key)})"
    )


# --- the data set ---------------------------------------------------------------------------------


def table_views(data: DescribedTables) -> list[dict[str, Any]]:
    """The tables of a data set with their columns, in words; no row is read."""
    return [
        {
            "name": table.name,
            "private": table.private,
            "columns": [_column(column) for column in table.columns.values()],
        }
        for table in data.tables.values()
    ]


def _column(column: Column) -> dict[str, str]:
    values = texts.column_values(column.bounds, column.values)
    number = "" if column.values is None else texts.many(len(column.values), "value")
    short_words = number if len(values) > 24 else values
    kind = texts.column_kind(column.kind)
    return {
        "name": column.name,
        "kind": kind,
        "values": values,
        "short": kind if short_words in {"", "–"} else short_words,
        "source": column.source or "",
    }


def example_questions(data: DescribedTables) -> list[str]:
    """Three questions that fit the description: a count, a count by group, and a mean."""
    examples: list[str] = []
    for table in data.tables.values():
        if not table.private:
            continue
        columns = [column for column in table.columns.values() if column.name != data.protect.column]
        few = min((c for c in columns if c.values and len(c.values) <= 30), key=_size, default=None)
        number = next((c for c in columns if c.bounds is not None and c.kind != "text"), None)
        examples.append(_select("COUNT(*)", table.name))
        if few is not None:
            examples.append(_select("COUNT(*)", table.name, few.name))
        if few is not None and number is not None:
            examples.append(_select(f"AVG({_sql_name(number.name)})", table.name, few.name))
    return examples[:3]


def _select(aggregate: str, table: str, key: str = "") -> str:
    """A question; it is shown, and asked by nobody but its reader."""
    by = f" GROUP BY {_sql_name(key)}" if key else ""
    keys = f"{_sql_name(key)}, " if key else ""
    return f"SELECT {keys}{aggregate} FROM {_sql_name(table)}{by}"  # noqa: S608 - see above


def _size(column: Column) -> int:
    return len(column.values or ())


def _sql_name(name: str) -> str:
    """A name as SQL writes it."""
    if name.isidentifier() and name.isascii() and name == name.lower():
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def schema_of(data: DescribedTables) -> str:
    """Tables and their columns as JSON, for what the editor proposes."""
    return json.dumps({table.name: list(table.columns) for table in data.tables.values()})


# --- what could be learnt ---------------------------------------------------------------------------


def learning_view(words: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What an attacker could learn, from the words of a statement: a hundred squares, and
    sentences.
    """
    if words is None:
        return None
    counted = math.ceil(100 * Fraction(words["guess"]["right"]))
    sentence = f"At most {counted} of 100 guesses are right. A coin toss gets 50 right, above the line."
    return {
        "dots": hundred_squares_svg(counted, sentence),
        "words": sentence,
        "sentences": list(words["sentences"]),
        "not_protected": list(words["not_protected"]),
    }


_MARKS = {"enforced by the software": "good", "asserted by the curator": "fair"}


def layer_views(layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """On what a guarantee rests, each line with the class of its mark."""
    return [
        {
            "layer": layer["layer"],
            "lines": [{**line, "state": _MARKS.get(line["mark"], "bad")} for line in layer["lines"]],
        }
        for layer in layers
    ]

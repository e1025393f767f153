# SPDX-License-Identifier: Apache-2.0
"""Where the error of an answer comes from, and which changes of a question would halve it.

    explanation = explain_error(mechanism)
    explanation.columns[0].noise            # the margin of error of the noise, or None where it depends on data
    explanation.rewrites[0].change, explanation.rewrites[0].ratio

**Guarantee.** Nothing here reads data. The noise is computed from the plan; the shares of rows and
of values that bounds cut off are handed in, if they were released and paid for; the released answer
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from discreet.errors import DiscreetError
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.tables.algebra.expr import leaves
from discreet.tables.answer.answer import Answer
from discreet.tables.plan.compile import TableMechanism
from discreet.tables.plan.spend import Spend

__all__ = ["CutOff", "ErrorExplanation", "ErrorRewrite", "ErrorSources", "explain_error"]

#: A rewrite is listed if it leaves less than this part of some error.
_WORTH = 0.9
#: Half of an error, with what is rounded.
_HALF = 0.505
#: Multiples of a budget that are tried, to halve an error.
_MULTIPLES = (2.0, 2.25, 2.5, 3.0, 4.0)
#: Up to this many aggregates, each is left out in turn.
_FEW = 8
#: The δ that is tried if none was stated.
_DELTA = 1e-6
#: The numbers that fewer rows make smaller.
_TOTALS = {"count", "count_of", "sum"}


@dataclass(frozen=True)
class CutOff:
    """Released estimates of what bounds cut off: the share of rows beyond `at_most`, and for each
    column the share of units with a value outside its bounds; None where nothing was released.
    """

    beyond: float | None = None
    clipped: Mapping[str, float] | None = None


@dataclass(frozen=True)
class ErrorSources:
    """The sources of the error of one column.

    `noise` is its margin of error at 95 %, None where it depends on data and no answer was given.
    `bound` is the estimated bias of the contribution bound, in the units of the column: None where
    it is unknown. `clipped` is the share of units with clipped values, and `suppression` says which
    groups are not shown, or "" if all are.
    """

    name: str
    text: str
    noise: float | None
    bound: float | None
    clipped: float | None
    suppression: str


@dataclass(frozen=True)
class ErrorRewrite:
    """A change of the question, with the part of the error that it leaves (`ratio`), and the
    margins before and after for each column where they are known.
    """

    change: str
    ratio: float
    margins: Mapping[str, tuple[float, float]]
    caveat: str = ""

    @property
    def halves(self) -> bool:
        """Whether it at least halves the error of every column that it keeps."""
        return self.ratio <= _HALF

    def __str__(self) -> str:
        margins = ", ".join(
            f"{name} ±{new:.4g} instead of ±{old:.4g}" for name, (old, new) in self.margins.items()
        )
        effect = margins or f"{100 * self.ratio:.0f} % of the error"
        return f"{self.change}: {effect}{f'; {self.caveat}' if self.caveat else ''}"


@dataclass(frozen=True, repr=False)
class ErrorExplanation:
    """Where the error of each column comes from, and the changes that reduce it, the best first."""

    columns: tuple[ErrorSources, ...]
    rewrites: tuple[ErrorRewrite, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*(_sentence(column) for column in self.columns), *self.notes, *self._advice()])

    def __repr__(self) -> str:
        return str(self)

    def _advice(self) -> Iterator[str]:
        for rewrite in self.rewrites:
            yield f"{'halves it' if rewrite.halves else 'helps'}: {rewrite}"


def _sentence(column: ErrorSources) -> str:
    noise = "noise: depends on the data" if column.noise is None else f"noise: ±{column.noise:.4g}"
    bound = (
        "contribution bound: not known"
        if column.bound is None
        else f"contribution bound: about {column.bound:.4g}"
    )
    parts = [noise, bound]
    if column.clipped is not None:
        parts.append(f"clipping: values of about {100 * column.clipped:.2g} % of the units")
    if column.suppression:
        parts.append(f"suppression: {column.suppression}")
    return f"{column.text or column.name}  {'; '.join(parts)}"


def explain_error(
    mechanism: TableMechanism, cut_off: CutOff | None = None, answer: Answer | None = None
) -> ErrorExplanation:
    """The sources of the error of a question, and its rewrites; `answer` is what it has released."""
    cut_off = cut_off or CutOff()
    rewrites = sorted(_rewrites(mechanism), key=lambda rewrite: rewrite.ratio)
    return ErrorExplanation(_sources(mechanism, cut_off, answer), tuple(rewrites), _notes(mechanism, cut_off))


def _sources(mechanism: TableMechanism, cut_off: CutOff, answer: Answer | None) -> tuple[ErrorSources, ...]:
    margins, selection = mechanism.error(), mechanism.selection
    suppression = "" if selection is None else selection.suppressed
    sources = []
    for aggregate in mechanism.question.aggregates:
        column = None if answer is None else answer.columns.get(aggregate.name)
        margin = margins[aggregate.name]
        if margin is None and column is not None:
            halves = [
                (high - low) / 2 for low, high in zip(column.lo, column.hi, strict=True) if low is not None
            ]
            margin = max(halves, default=None)
        bound: float | None = None
        if mechanism.scope.contribution.one_row_per_unit or aggregate.kind not in _TOTALS:
            bound = 0.0 if mechanism.scope.contribution.one_row_per_unit else None
        elif cut_off.beyond is not None and column is not None:
            # What is left is the rest of the rows.
            kept = max(1 - cut_off.beyond, 1e-9)
            bound = max((abs(value) * cut_off.beyond / kept for value in column.values), default=None)
        read = [] if aggregate.of is None else [leaf.column for leaf in leaves(aggregate.of)]
        shares = [share for name, share in (cut_off.clipped or {}).items() if name in read]
        sources.append(
            ErrorSources(
                aggregate.name, aggregate.text, margin, bound, max(shares, default=None), suppression
            )
        )
    return tuple(sources)


def _notes(mechanism: TableMechanism, cut_off: CutOff) -> tuple[str, ...]:
    notes = [
        f"Noise is stated with {CONFIDENCE:.0%} confidence; bias is an estimate, and no interval includes it."
    ]
    if not mechanism.scope.contribution.one_row_per_unit and cut_off.beyond is None:
        notes.append(
            "session.suggest_bounds(…) estimates what the bounds cut off, for a cost that is paid once."
        )
    elif cut_off.beyond is not None:
        notes.append(f"About {100 * cut_off.beyond:.2g} % of the rows are beyond at_most.")
    return tuple(notes)


def _rewrites(mechanism: TableMechanism) -> Iterator[ErrorRewrite]:
    """Every change that leaves less than 90 % of the error of each column that it keeps."""
    yield from _larger_budget(mechanism)
    for change, caveat, variant in _changes(mechanism):
        rewrite = _compare(mechanism, change, variant, caveat)
        if rewrite is not None and rewrite.ratio < _WORTH:
            yield rewrite


def _changes(mechanism: TableMechanism) -> Iterator[tuple[str, str, Callable[[], TableMechanism]]]:
    question, spend, contribution = mechanism.question, mechanism.spend, mechanism.scope.contribution
    unit = contribution.unit.protects
    if not contribution.one_row_per_unit and contribution.rows > 1:
        rows = (contribution.rows + 1) // 2
        where = f" for {' and '.join(contribution.tables)}" if contribution.tables else ""
        caveat = f"rows of one {unit} beyond {rows} are down-weighted"
        yield f"at_most={rows}{where}", caveat, lambda: mechanism.variant(rows=rows)
    if question.keys and 1 < contribution.groups < contribution.rows:
        groups = (contribution.groups + 1) // 2
        caveat = f"one {unit} in more than {groups} groups is down-weighted"
        yield f"groups={groups}", caveat, lambda: mechanism.variant(groups=groups)
    if spend.is_pure and mechanism.selection is None:
        yield f"delta={_DELTA:g} too", "", lambda: mechanism.variant(spend=Spend(spend.epsilon, _DELTA))
    if 2 <= len(question.aggregates) <= _FEW:
        # What is made of the released numbers has no part in their error.
        plain = replace(question, outputs=(), having=None, qualify=None, order=(), limit=None)
        for aggregate in question.aggregates:
            if aggregate.name in question.quotients:
                continue
            rest = tuple(other for other in question.aggregates if other is not aggregate)
            smaller = replace(plain, aggregates=rest)
            name = aggregate.text or aggregate.name
            yield f"without {name}", "", lambda smaller=smaller: mechanism.variant(question=smaller)  # type: ignore[misc]


def _larger_budget(mechanism: TableMechanism) -> Iterator[ErrorRewrite]:
    """The least of some multiples of the budget that halves the error."""
    spend = mechanism.spend
    for multiple in _MULTIPLES:
        if spend.epsilon is not None:
            larger = Spend(epsilon=spend.epsilon * multiple, delta=spend.delta)
            change = f"epsilon={larger.epsilon:g}"
        else:
            assert spend.rho is not None
            larger = Spend(rho=spend.rho * multiple**2, delta=spend.delta)
            change = f"rho={larger.rho:g}"
        rewrite = _compare(mechanism, change, lambda larger=larger: mechanism.variant(spend=larger))  # type: ignore[misc]
        if rewrite is not None and rewrite.halves:
            yield rewrite
            return


def _compare(
    mechanism: TableMechanism, change: str, variant: Callable[[], TableMechanism], caveat: str = ""
) -> ErrorRewrite | None:
    """A change with the error that it leaves; None if it is refused."""
    try:
        other = variant()
    except DiscreetError:
        return None
    new, old = other.expected_errors(), mechanism.expected_errors()
    ratio = max((new[name] / old[name] for name in new if old.get(name)), default=math.inf)
    before, after = mechanism.error(), other.error()
    margins = {
        name: (margin, changed)
        for name, changed in after.items()
        if changed is not None and (margin := before.get(name)) is not None
    }
    return ErrorRewrite(change, ratio, margins, caveat)

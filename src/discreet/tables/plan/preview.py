# SPDX-License-Identifier: Apache-2.0
"""What an answer will cost and how wrong it will be, before it is drawn.

**Guarantee.** Nothing here reads data: it is computed from the question, the public description and the noise.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import least_epsilon, point, short
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.data.sums import MassScheme, NormScheme
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals

if TYPE_CHECKING:
    from discreet.tables.plan.compile import TableMechanism

__all__ = ["ColumnPreview", "Preview", "bounding_notes", "preview_of"]

_WORTH = 0.9  # a rewrite is mentioned if it leaves less than this of the error
_FEW = 8  # aggregates of which each is left out in turn
_DELTA = 1e-6  # the δ that is proposed where none was stated


@dataclass(frozen=True)
class ColumnPreview:
    """One noisy column: its noise and its error, in words."""

    name: str
    text: str
    noise: str
    error: str


@dataclass(frozen=True)
class Preview:
    """Cost and error of an answer that has not been drawn; `delta` is the δ that was asked for, where one was."""

    question: str
    cost: Guarantee
    columns: tuple[ColumnPreview, ...]
    groups: str
    notes: tuple[str, ...]
    cheaper: tuple[str, ...]
    delta: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON types."""
        return {
            "question": self.question,
            "cost": repr(self.cost),
            "epsilon": least_epsilon(self.cost, self.delta),
            "delta": point(self.cost, self.delta)[0],
            "protects": str(self.cost.unit),
            "groups": self.groups,
            "columns": [vars(column) for column in self.columns],
            "notes": list(self.notes),
            "cheaper": list(self.cheaper),
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """What is said, line by line."""
        if self.question:
            yield "question", self.question
        yield "cost", f"{short(self.cost)} for {self.cost.unit}"
        yield "epsilon", least_epsilon(self.cost, self.delta)
        yield "groups", self.groups
        for column in self.columns:
            yield column.name, f"{column.error} ({CONFIDENCE:.0%}); {column.noise}"
        yield from (("note", note) for note in self.notes)
        yield from (("cheaper", sentence) for sentence in self.cheaper)

    def __str__(self) -> str:
        listed = list(self.lines())
        width = max(len(name) for name, _ in listed)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in listed)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self.lines()
        )
        return f"<table>{rows}</table>"


def preview_of(mechanism: TableMechanism) -> Preview:
    """The preview of a mechanism."""
    stated = {
        name: said
        for part in mechanism.plan.described_stages
        for name, said in part.describe(CONFIDENCE).items()
    }
    columns = tuple(
        ColumnPreview(one.name, one.text, stated[one.name].noise, stated[one.name].error)
        for one in mechanism.question.aggregates
    )
    return Preview(
        mechanism.question.text,
        mechanism.guarantee,
        columns,
        _groups(mechanism),
        mechanism.notes,
        tuple(_cheaper(mechanism)),
        mechanism.stated_delta,
    )


def bounding_notes(mechanism: TableMechanism) -> tuple[str, ...]:
    """How much of one unit counts, in words; the bias that this makes is not in the intervals."""
    who = mechanism.scope.contribution
    notes = list(_chosen_noise(mechanism))
    if who.one_row_per_unit:
        return tuple(notes)
    word = who.unit.protects
    rows = f"{who.rows} row{'s' if who.rows > 1 else ''}"
    apart = _apart(mechanism)
    effects = _effects([one for one in mechanism.question.aggregates if one not in apart])
    if effects:
        notes.append(
            f"Each {word} contributes at most {rows}; extra rows are down-weighted, so {effects}. "
            "The intervals do not include this bias."
        )
    if apart:
        names = ", ".join(one.text or one.name for one in apart)
        notes.append(
            f"What one {word} adds to {names} is scaled down to what {rows} at the bound can add, so the sum may be too "
            "close to zero. The intervals do not include this bias. Counts and means are bounded in another way: for a mean use "
            "AVG, not a sum divided by a count."
        )
    if any(one.kind == "units" for one in mechanism.question.aggregates) and mechanism.question.keys:
        few = f"{who.groups} group{'s' if who.groups > 1 else ''}"
        notes.append(f"One {word} in more than {few} counts less than one in each of them.")
    return tuple(notes)


def _effects(aggregates: list[Aggregate]) -> str:
    """What down-weighted rows do to these numbers."""
    counts = any(one.kind in {"count", "count_of"} for one in aggregates)
    sums = [one.of.type.low >= 0 for one in aggregates if one.kind == "sum" and one.of is not None]
    others = any(one.kind not in {"count", "count_of", "sum", "units", "mode"} for one in aggregates)
    low = " and ".join([*(["counts"] if counts else []), *(["sums"] if sums and all(sums) else [])])
    effects = [f"{low} may be too low"] if low else []
    effects += ["sums may be too close to zero"] if not all(sums) else []
    effects += ["other numbers give these rows less weight"] if others else []
    return ", and ".join(effects)


def _apart(mechanism: TableMechanism) -> list[Aggregate]:
    """Sums that are bounded by what is summed, and not by rows."""
    parts = [part for part in mechanism.stages if isinstance(part, Totals)]
    alone = [part for part in parts if all(one.asked.kind == "sum" for one in part.estimates.values())]
    bounded = [part for part in alone if isinstance(part.sums.scheme, NormScheme | MassScheme)]
    return [one.asked for part in bounded for one in part.estimates.values()]


def _chosen_noise(mechanism: TableMechanism) -> Iterator[str]:
    """That Laplace noise was taken where Gaussian noise could have been."""
    laws = [law for part in mechanism.stages if isinstance(part, Totals) for law in part.laws]
    laplace = [isinstance(law, LaplaceDistribution) for law in laws]
    if mechanism.spend.delta is None or not any(laplace):
        return
    if not all(laplace):
        yield (
            "Counts and sums here have Gaussian noise, which cuts less off them; the other columns have Laplace noise, which "
            "leaves less error. Over many questions Gaussian noise adds up to less; rho=… asks for it."
        )
        return
    delta = "uses no delta" if mechanism.selection is None else "needs delta for finding groups only"
    yield (
        f"The noise is Laplace noise, which leaves less error here than Gaussian noise would and {delta}. "
        "Over many questions Gaussian noise adds up to less; rho=… asks for it."
    )


def _groups(mechanism: TableMechanism) -> str:
    found = mechanism.selection
    if found is None:
        assert mechanism.groups is not None
        many = len(mechanism.groups)
        return "one answer" if not mechanism.question.keys else f"{many} public groups, all of them shown"
    word = mechanism.scope.contribution.unit.protects
    need = [f"{found.units_needed()} {word}s"]
    if found.max_groups > 1:
        need.append(
            f"{found.units_needed(min(3, found.max_groups))} if each is in {min(3, found.max_groups)} groups"
        )
    return f"found privately: a group is shown as often as not if it has {', '.join(need)}"


def _cheaper(mechanism: TableMechanism) -> Iterator[str]:
    """Ways to ask that leave less error at the same cost. Each was compiled, and what is said of it was compared."""
    yield from _without_one(mechanism)
    yield from _other_noise(mechanism)
    yield from _total(mechanism)
    yield from _fewer_rows(mechanism)


def _without_one(mechanism: TableMechanism) -> Iterator[str]:
    aggregates = mechanism.question.aggregates
    if not 2 <= len(aggregates) <= _FEW or mechanism.question.outputs:
        return
    best, dropped = _WORTH, None
    for one in aggregates:
        rest = tuple(other for other in aggregates if other is not one)
        ratio = _most(_ratios(mechanism, question=replace(mechanism.question, aggregates=rest)))
        if ratio < best:
            best, dropped = ratio, one
    if dropped is not None:
        yield (
            f"without {dropped.text or dropped.name} the margins of error of the others would be about {_percent(best)} "
            "of these."
        )


def _other_noise(mechanism: TableMechanism) -> Iterator[str]:
    """A delta that is missing; or that Laplace noise would be less, where it was not taken for what it cuts off."""
    spend = mechanism.spend
    if spend.epsilon is None or mechanism.selection is not None:
        return
    ratio = _most(_ratios(mechanism, spend=Spend(spend.epsilon, _DELTA if spend.is_pure else None)))
    if ratio >= _WORTH:
        return
    if spend.is_pure:
        yield (
            f"with delta={_DELTA:g} too (Gaussian noise) all margins of error would be about {_percent(ratio)} of these."
        )
    else:
        word = mechanism.scope.contribution.unit.protects
        yield (
            f"without delta (Laplace noise) all margins of error would be about {_percent(ratio)} of these, but the rows "
            f"of one {word} in several groups would be down-weighted more."
        )


def _total(mechanism: TableMechanism) -> Iterator[str]:
    """What adding up the groups costs, against asking for the total."""
    if not mechanism.question.keys or mechanism.groups is None or len(mechanism.groups) < 2:
        return
    counted = [one for one in mechanism.question.aggregates if one.kind in {"count", "sum", "count_of"}]
    off = mechanism.error().get(counted[0].name) if counted else None
    if not off:
        return
    many, one = len(mechanism.groups), counted[0]
    added = off * math.sqrt(many)
    alone = _error_alone(mechanism, one)
    if alone < _WORTH * added:
        yield (
            f"the sum of {one.name} over all {many} groups would be off by about {added:.4g}; "
            f"{one.text or one.name} alone, asked for without groups, by at most {alone:.4g}."
        )


def _error_alone(mechanism: TableMechanism, one: Aggregate) -> float:
    """The margin of error of one number over all groups, if nothing else is asked for the same cost; ∞ if it is refused."""
    question = Question(mechanism.scope.rows, (one,))
    try:
        return mechanism.variant(question=question).error().get(one.name) or math.inf
    except DiscreetError:
        return math.inf


def _fewer_rows(mechanism: TableMechanism) -> Iterator[str]:
    """Half the rows of a unit, for the columns that gain by it; a number of units, say, does not."""
    who = mechanism.scope.contribution
    if who.one_row_per_unit or who.rows < 2:
        return
    half = (who.rows + 1) // 2
    ratios = _ratios(mechanism, rows=half)
    better = {name: ratio for name, ratio in ratios.items() if ratio < _WORTH}
    if not better or _most(ratios) > 1:
        return
    which = (
        "all margins of error"
        if len(better) == len(ratios)
        else f"the margin of error of {', '.join(better)}"
    )
    yield (
        f"with at_most={half} instead of {who.rows} {which} would be about {_percent(_most(better))} of this, "
        f"but rows of one {who.unit.protects} beyond {half} would be down-weighted."
    )


def _ratios(mechanism: TableMechanism, **changed: Any) -> dict[str, float]:
    """What a variant leaves of the error of each column that both have; none where it is refused."""
    try:
        new = mechanism.variant(**changed).expected_errors()
    except DiscreetError:
        return {}
    old = mechanism.expected_errors()
    return {name: new[name] / old[name] for name in new if old.get(name)}


def _most(ratios: Mapping[str, float]) -> float:
    """The greatest of them, so that what is said of all of them is true; ∞ if there is none."""
    return max(ratios.values(), default=math.inf)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"

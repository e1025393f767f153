# SPDX-License-Identifier: Apache-2.0
"""The cost and the margin of error of an answer, before it is drawn.

**Guarantee.** Nothing here reads data. A preview is computed from the question, the public
description and the noise.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import DiscreetError
from discreet.json_types import JsonObject
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import least_epsilon, point, short
from discreet.privacy.wire import from_json, read_list, read_text, read_texts, read_versioned, write_versioned
from discreet.tables.algebra.sums import MassScheme, NormScheme
from discreet.tables.algebra.types import TEXT
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.plan.cube import CubeStage
from discreet.tables.plan.cube_keys import OTHER, PrivateCubeStage
from discreet.tables.plan.remarks import question_notes
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals

if TYPE_CHECKING:
    from discreet.tables.plan.compile import TableMechanism

__all__ = ["ColumnPreview", "Preview", "bounding_notes", "preview_of"]

#: A rewrite is proposed if it leaves less than this part of the error.
_WORTH = 0.9
#: Up to this many aggregates, each is left out in turn.
_FEW = 8
#: The δ that is proposed if none was stated.
_DELTA = 1e-6


@dataclass(frozen=True)
class ColumnPreview:
    """The noise and the margin of error of one column, in words."""

    name: str
    text: str
    noise: str
    error: str


@dataclass(frozen=True, repr=False)
class Preview:
    """The cost and the errors of an answer before it is drawn; `delta` is the stated δ, if any.

    **Guarantee.** `cost` is what the question is charged if it is asked so, and nothing here
    depends on the rows.

    Why it holds: a session compiles the question for its answer as it does for the preview, and
    both follow from the question and the description. What would break it: another description.
    """

    question: str
    cost: Guarantee
    columns: tuple[ColumnPreview, ...]
    groups: str
    notes: tuple[str, ...]
    cheaper: tuple[str, ...]
    delta: float | None = None

    def to_dict(self) -> JsonObject:
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

    def to_json(self) -> str:
        """One line of JSON, from which `from_json` makes an equal preview.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> preview = session.preview("SELECT COUNT(*) FROM adult", epsilon=0.1)
        >>> Preview.from_json(preview.to_json()) == preview
        True
        """
        columns: list[JsonObject] = [dict(vars(column)) for column in self.columns]
        fields: JsonObject = {
            "question": self.question,
            "cost": self.cost.to_json(),
            "columns": columns,
            "groups": self.groups,
            "notes": list(self.notes),
            "cheaper": list(self.cheaper),
            "delta": self.delta,
        }
        return write_versioned("preview", fields)

    @classmethod
    @check.arguments
    def from_json(cls, text: str) -> Preview:
        """The preview that `to_json` wrote; any other text is refused (DP401, DP402).

        **Guarantee.** An equal preview, the cost included, so that its views can be computed where
        neither the data nor the engine is.
        """
        return read_versioned(text, "preview", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: Mapping[str, Any]) -> Preview:
        columns = tuple(
            ColumnPreview(**{name: read_text(text) for name, text in column.items()})
            for column in read_list(fields["columns"])
        )
        question, groups = read_text(fields["question"]), read_text(fields["groups"])
        notes, cheaper = read_texts(fields["notes"]), read_texts(fields["cheaper"])
        delta = None if fields["delta"] is None else check.delta(delta=fields["delta"])
        cost = from_json(fields["cost"])
        return cls(question, cost, columns, groups, notes, cheaper, delta)

    def lines(self) -> Iterator[tuple[str, str]]:
        """The lines of the preview, each with its label."""
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
        lines = list(self.lines())
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:<{width}}  {text}" for label, text in lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th><td>{html.escape(text)}</td></tr>"
            for label, text in self.lines()
        )
        return f"<table>{rows}</table>"


def preview_of(mechanism: TableMechanism) -> Preview:
    """The preview of a mechanism."""
    descriptions = {
        name: description
        for stage in mechanism.plan.described_stages
        for name, description in stage.describe(CONFIDENCE).items()
    }
    columns = tuple(
        ColumnPreview(
            aggregate.name,
            aggregate.text,
            descriptions[aggregate.name].noise,
            descriptions[aggregate.name].error,
        )
        for aggregate in mechanism.question.aggregates
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
    """The notes on the noise and on the contribution bound, with the bias that it causes."""
    contribution = mechanism.scope.contribution
    unit = contribution.unit.protects
    notes = [*_noise_notes(mechanism), *_left_out_notes(mechanism), *question_notes(mechanism.question, unit)]
    if contribution.one_row_per_unit:
        return tuple(notes)
    rows = f"{contribution.rows} row{'s' if contribution.rows > 1 else ''}"
    sums_apart = _sums_apart(mechanism)
    aggregates = mechanism.question.aggregates
    effects = _effects([aggregate for aggregate in aggregates if aggregate not in sums_apart])
    if effects:
        notes.append(
            f"Each {unit} contributes at most {rows}; extra rows are down-weighted, so {effects}. "
            "The intervals do not include this bias."
        )
    if sums_apart:
        names = ", ".join(total.text or total.name for total in sums_apart)
        notes.append(
            f"What one {unit} adds to {names} is scaled down to what {rows} at the bound can add, so the sum may be too "
            "close to zero. The intervals do not include this bias. Counts and means are bounded differently: for a mean use "
            "AVG, not a sum divided by a count."
        )
    if any(aggregate.kind == "units" for aggregate in aggregates) and mechanism.question.keys:
        groups = f"{contribution.groups} group{'s' if contribution.groups > 1 else ''}"
        notes.append(f"One {unit} in more than {groups} counts less than one in each of them.")
    distinct = [aggregate.text or aggregate.name for aggregate in aggregates if aggregate.kind == "distinct"]
    if distinct:
        values = f"{contribution.rows} value{'s' if contribution.rows > 1 else ''}"
        notes.append(
            f"Each {unit} adds at most {values} to {', '.join(distinct)}; values of a {unit} with more count less than "
            "one, unless others have them too, so the number may be too low. The intervals do not include this bias."
        )
    return tuple(notes)


def _left_out_notes(mechanism: TableMechanism) -> Iterator[str]:
    """A note where rows may be in none of the tables of a cube, because of the value of one key."""
    if mechanism.question.workload is None:
        return
    names = [
        key.name
        for key in mechanism.question.keys
        if key.values is not None
        and None not in key.values
        and (key.of.type.null or key.of.type.kind == TEXT)
    ]
    if names:
        yield (
            f"Rows with NULL or a value that is not listed in {', '.join(names)} are in none of the tables, so that all of "
            "them agree. COALESCE makes a value of NULL."
        )


def _effects(aggregates: list[Aggregate]) -> str:
    """What down-weighting does to these numbers, in words."""
    counts = any(aggregate.kind in {"count", "count_of"} for aggregate in aggregates)
    sums = [total.of.type for total in aggregates if total.kind == "sum" and total.of is not None]
    nonnegative = all(kind.low >= 0 for kind in sums)
    kinds = {aggregate.kind for aggregate in aggregates}
    others = bool(kinds - {"count", "count_of", "sum", "units", "mode", "distinct"})
    too_low = " and ".join([*(["counts"] if counts else []), *(["sums"] if sums and nonnegative else [])])
    effects = [f"{too_low} may be too low"] if too_low else []
    effects += ["sums may be too close to zero"] if not nonnegative else []
    effects += ["other numbers give these rows less weight"] if others else []
    return ", and ".join(effects)


def _sums_apart(mechanism: TableMechanism) -> list[Aggregate]:
    """The sums whose stage bounds a unit's total, and not its rows."""
    stages = [stage for stage in mechanism.stages if isinstance(stage, Totals)]
    return [
        estimate.aggregate
        for stage in stages
        if all(estimate.aggregate.kind == "sum" for estimate in stage.estimates.values())
        and isinstance(stage.sums.scheme, NormScheme | MassScheme)
        for estimate in stage.estimates.values()
    ]


def _noise_notes(mechanism: TableMechanism) -> Iterator[str]:
    """A note if the noise is Laplace noise although Gaussian noise was possible."""
    totals = [stage for stage in mechanism.stages if isinstance(stage, Totals)]
    laplace = [isinstance(noise, LaplaceDistribution) for stage in totals for noise in stage.distributions]
    if mechanism.selection is not None and mechanism.selection.estimates:
        laplace.append(not isinstance(mechanism.selection.distribution, GaussianDistribution))
    if mechanism.spend.delta is None or not any(laplace):
        return
    later = "Over many questions Gaussian noise adds up to less; rho=… asks for it."
    if not all(laplace):
        yield (
            f"Some columns here have Gaussian and the others Laplace noise, because that leaves the least error. {later}"
        )
        return
    delta = "uses no delta" if mechanism.selection is None else "needs delta for key selection only"
    yield f"The noise is Laplace noise, which leaves less error here than Gaussian noise and {delta}. {later}"


def _groups(mechanism: TableMechanism) -> str:
    """Which groups are shown, in words."""
    selection = mechanism.selection
    if selection is None:
        assert mechanism.groups is not None
        if mechanism.question.workload is not None:
            return _tables(mechanism)
        if not mechanism.question.keys:
            return "one answer"
        return f"{len(mechanism.groups)} public groups, all of them shown"
    unit = mechanism.scope.contribution.unit.protects
    sizes = [
        f"{selection.rows_needed} rows" if selection.counts_rows else f"{selection.units_needed()} {unit}s"
    ]
    if selection.max_groups > 1 and not selection.counts_rows:
        several = min(3, selection.max_groups)
        sizes.append(f"{selection.units_needed(several)} if each is in {several} groups")
    return f"found by key selection: a group is shown half of the time if it has {', '.join(sizes)}"


def _tables(mechanism: TableMechanism) -> str:
    """How many tables are released together, in words."""
    (stage,) = mechanism.stages
    if isinstance(stage, PrivateCubeStage):
        private = ", ".join(key.name for key in mechanism.question.keys if key.values is None)
        needed = stage.selections[0].units_needed()
        unit = mechanism.scope.contribution.unit.protects
        return (
            f"values of {private} are found by key selection: one is shown half of the time if it has {needed} {unit}s; "
            f'all others count under "{OTHER}"'
        )
    assert isinstance(stage, CubeStage)
    shape = stage.strategy.shape
    rows = sum(map(shape.size, shape.shown))
    several = f"{len(shape.shown)} table{'s' if len(shape.shown) > 1 else ''}"
    more = len(shape.closure) - len(shape.shown)
    follows = f"; {more} more follow from them for free" if more else ""
    return f"{several} with {rows} public groups, all of them shown{follows}"


def _cheaper(mechanism: TableMechanism) -> Iterator[str]:
    """Questions with less error at the same cost. Each is compiled, to compare its errors."""
    yield from _without_one_aggregate(mechanism)
    yield from _other_noise(mechanism)
    yield from _total_instead_of_groups(mechanism)
    yield from _tighter_bounds(mechanism)


def _without_one_aggregate(mechanism: TableMechanism) -> Iterator[str]:
    aggregates = mechanism.question.aggregates
    if not 2 <= len(aggregates) <= _FEW or mechanism.question.outputs:
        return
    best, dropped = _WORTH, None
    for aggregate in aggregates:
        rest = tuple(other for other in aggregates if other is not aggregate)
        ratio = _greatest(_error_ratios(mechanism, question=replace(mechanism.question, aggregates=rest)))
        if ratio < best:
            best, dropped = ratio, aggregate
    if dropped is not None:
        yield (
            f"without {dropped.text or dropped.name} the margins of error of the others would be about {_percent(best)} "
            "of these."
        )


def _other_noise(mechanism: TableMechanism) -> Iterator[str]:
    """Gaussian noise, if its errors are smaller; with a δ the better noise is taken anyway."""
    spend = mechanism.spend
    if not spend.is_pure or mechanism.selection is not None:
        return
    ratio = _greatest(_error_ratios(mechanism, spend=Spend(spend.epsilon, _DELTA)))
    if ratio < _WORTH:
        yield (
            f"with delta={_DELTA:g} too (Gaussian noise) all margins of error would be about {_percent(ratio)} of these."
        )


def _total_instead_of_groups(mechanism: TableMechanism) -> Iterator[str]:
    """The total without groups, if its error is less than that of the sum over all groups."""
    if not mechanism.question.keys or mechanism.groups is None or len(mechanism.groups) < 2:
        return
    totals = [
        aggregate
        for aggregate in mechanism.question.aggregates
        if aggregate.kind in {"count", "sum", "count_of"}
    ]
    margin = mechanism.error().get(totals[0].name) if totals else None
    if not margin:
        return
    groups, total = len(mechanism.groups), totals[0]
    added = margin * math.sqrt(groups)
    alone = _error_alone(mechanism, total)
    if alone < _WORTH * added:
        yield (
            f"the sum of {total.name} over all {groups} groups would be off by about {added:.4g}; "
            f"{total.text or total.name} alone, asked for without groups, would be off by at most {alone:.4g}."
        )


def _error_alone(mechanism: TableMechanism, total: Aggregate) -> float:
    """The margin of error of one number alone, without groups; ∞ if that is refused."""
    question = Question(mechanism.scope.rows, (total,))
    try:
        return mechanism.variant(question=question).error().get(total.name) or math.inf
    except DiscreetError:
        return math.inf


def _tighter_bounds(mechanism: TableMechanism) -> Iterator[str]:
    """Half of each contribution bound that makes some columns better and none worse."""
    contribution = mechanism.scope.contribution
    if contribution.one_row_per_unit:
        return
    unit, tables = contribution.unit.protects, " and ".join(contribution.tables)
    where = f" for {tables}" if tables else ""
    bounds = {"at_most": contribution.rows}
    # With as many groups as rows, the bound on rows is the one to change.
    if mechanism.question.keys and contribution.groups < contribution.rows:
        bounds["groups"] = contribution.groups
    for name, bound in bounds.items():
        half, is_rows = (bound + 1) // 2, name == "at_most"
        ratios = _error_ratios(mechanism, rows=half if is_rows else None, groups=None if is_rows else half)
        better = {column: ratio for column, ratio in ratios.items() if ratio < _WORTH}
        if bound < 2 or not better or _greatest(ratios) > 1:
            continue
        every = len(better) == len(ratios)
        which = "all margins of error" if every else f"the margin of error of {', '.join(better)}"
        more = f"rows of one {unit} beyond {half}" if is_rows else f"one {unit} in more than {half} groups"
        yield (
            f"with {name}={half}{where} instead of {bound} {which} would be about {_percent(_greatest(better))} of this, "
            f"but {more} would be down-weighted."
        )


def _error_ratios(
    mechanism: TableMechanism,
    question: Question | None = None,
    spend: Spend | None = None,
    rows: int | None = None,
    groups: int | None = None,
) -> dict[str, float]:
    """The error of a variant by that of the question, for each common column; {} if refused."""
    try:
        new = mechanism.variant(question, spend, rows, groups).expected_errors()
    except DiscreetError:
        return {}
    old = mechanism.expected_errors()
    return {name: new[name] / old[name] for name in new if old.get(name)}


def _greatest(ratios: Mapping[str, float]) -> float:
    """The greatest ratio, so that a sentence about all columns is true; ∞ if there is none."""
    return max(ratios.values(), default=math.inf)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"

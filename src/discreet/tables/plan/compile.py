# SPDX-License-Identifier: Apache-2.0
"""A question about a table becomes one mechanism.

    mechanism = compile_question(question, dataset, Spend(epsilon=0.2))
    mechanism.guarantee; mechanism.error(); mechanism.preview()       # no data are touched
    mechanism.draw(dataset)                                         # an Answer

**Guarantee.** The guarantee of the mechanism implies the spend. It compares data sets that differ
in one unit, added, removed or replaced, whatever the rows are and however many rows one unit has.
Rows never leave the engine; bounded whole-number sums do. Of these sums an answer shows only noisy
sums, private choices, and the keys of groups that enough units share.

Why it holds: compile.proof.md.

What would break it: an engine that breaks the guarantee of `algebra/sums.py`; a public table or
public bounds that were read off private rows; a unit column that does not identify the units to
protect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from discreet import check
from discreet.errors import RefusedQuestion
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.expr import Expr, IsNull, Read
from discreet.tables.algebra.sums import BoundedSums, GroupKey, OnceScheme
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT
from discreet.tables.answer.answer import Answer, Noisy
from discreet.tables.answer.arrange import arrange
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.cube import CubeStage, CubeStrategy, cube_answer
from discreet.tables.plan.cube_keys import OTHER, PrivateCubeStage, PrivateCubeStrategy
from discreet.tables.plan.distinct import DistinctStrategy
from discreet.tables.plan.distinct_values import DistinctValuesStrategy
from discreet.tables.plan.groups import kept_rows, public_groups
from discreet.tables.plan.linear import LINEAR
from discreet.tables.plan.modes import ModeStrategy
from discreet.tables.plan.preview import Preview, bounding_notes, preview_of
from discreet.tables.plan.ranks import RANKED, RankStrategy
from discreet.tables.plan.selection import KeySelection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.split import leak_of_selection, split_budget
from discreet.tables.plan.stage import QueryScope, Stage, Strategy
from discreet.tables.plan.totals import DOWN_WEIGHTED, Totals, TotalsStrategy
from discreet.tables.plan.unit_rows import unit_rows

__all__ = ["Spend", "TableMechanism", "compile_question"]


class TableMechanism(Mechanism):
    """The mechanism that answers one question.

    **Guarantee.** `guarantee` is known before any data are seen, and it implies the spend.
    """

    def __init__(self, question: Question, contribution: Contribution, spend: Spend) -> None:
        self.question, self.spend, self._contribution = question, spend, contribution
        self.stated_delta = spend.delta
        self.groups = public_groups(question)
        if self.groups is not None:
            # A unit is in at most as many groups as there are.
            contribution = replace(contribution, groups=min(contribution.groups, max(1, len(self.groups))))
        self.scope = QueryScope(kept_rows(question), tuple(key.of for key in question.keys), contribution)
        private_keys = self.groups is None
        _check_answerable(question, spend, private_keys=private_keys)
        self.plan = split_budget(
            pure=pure_strategies(question, self.scope, spend),
            gaussian=gaussian_strategies(question, self.scope, spend),
            scope=self.scope,
            spend=spend,
            private_keys=private_keys,
            counts=_selecting_counts(question),
        )
        self._guarantee = self.plan.guarantee

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the plan, without key selection."""
        return self.plan.stages

    @property
    def selection(self) -> KeySelection | None:
        """The stage that finds the groups; None where they are public."""
        return self.plan.selection

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: Any) -> Answer:
        """The answer; `data` is the data set that was compiled for, or another version of it."""
        return arrange(self.draw_aggregates(data), self.question)

    def draw_aggregates(self, data: Any) -> Answer:
        """The aggregates of the question, before they are arranged as it says."""
        cube = self.stages[0] if self.stages else None
        if isinstance(cube, CubeStage | PrivateCubeStage):
            found = cube if isinstance(cube, CubeStage) else cube.select_keys(data.engine)
            return cube_answer(found.draw_tables(data.engine), self.question, self._answer([], {}))
        groups, columns = self._shown_groups(data)
        for stage in self.stages:
            columns |= stage.draw(data.engine, groups)
        columns = {aggregate.name: columns[aggregate.name] for aggregate in self.question.aggregates}
        return self._answer(groups, columns)

    def _answer(self, groups: Sequence[GroupKey], columns: dict[str, Noisy]) -> Answer:
        """An answer with the notes and the guarantee of this mechanism."""
        return Answer.of(
            keys=[key.name for key in self.question.keys],
            groups=groups,
            columns=columns,
            question=self.question.text,
            notes=self.notes,
            suppressed=self._suppressed,
            guarantee=self.guarantee,
            private=is_private(),
        )

    @property
    def _suppressed(self) -> str:
        """What the answer says about groups that are not shown."""
        private = [stage for stage in self.stages if isinstance(stage, PrivateCubeStage)]
        if self.selection is None:
            return private[0].suppressed if private else ""
        return self.selection.suppressed

    def error(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """The margin of error of each noisy column; None where it depends on the data."""
        check.inner_probability(confidence=confidence)
        errors_by_column: dict[str, float | None] = {}
        for stage in self.plan.described_stages:
            errors_by_column |= stage.errors(confidence)
        return {aggregate.name: errors_by_column[aggregate.name] for aggregate in self.question.aggregates}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The notes of the answer: how contributions are bounded, and what has no interval."""
        described = [stage.describe(CONFIDENCE) for stage in self.plan.described_stages]
        notes = [column.note for columns in described for column in columns.values()]
        return (*bounding_notes(self), *dict.fromkeys(note for note in notes if note))

    def preview(self) -> Preview:
        """The cost, the margins of error and cheaper ways to ask; it reads no data."""
        return preview_of(self)

    def expected_errors(self) -> dict[str, float]:
        """A number proportional to the error of each column, to compare variants of a question."""
        errors_by_column: dict[str, float] = {}
        for stage in self.plan.described_stages:
            errors_by_column |= stage.expected_errors()
        return errors_by_column

    def variant(
        self,
        question: Question | None = None,
        spend: Spend | None = None,
        rows: int | None = None,
        groups: int | None = None,
    ) -> TableMechanism:
        """The mechanism of another question, spend, `at_most` or `groups`, for the same data set."""
        contribution = self._contribution if rows is None else self._contribution.with_rows(rows)
        contribution = contribution if groups is None else contribution.with_groups(groups)
        return TableMechanism(question or self.question, contribution, spend or self.spend)

    def _shown_groups(self, data: Dataset) -> tuple[Sequence[GroupKey], dict[str, Noisy]]:
        """The groups of the answer, and the columns that key selection has released with them."""
        if self.selection is None:
            assert self.groups is not None
            return self.groups, {}
        totals = [stage for stage in self.stages if isinstance(stage, Totals)]
        features = dict.fromkeys(feature for stage in totals for feature in stage.sums.features)
        selected = self.selection.draw(data.engine, tuple(features))
        return selected.groups, selected.columns


def compile_question(
    question: Question, dataset: Dataset, spend: Spend, cap: int | None = None
) -> TableMechanism:
    """The mechanism that answers a question at a cost.

    If the data set says at_most="auto", `cap` is the contribution bound that was chosen for it.

    **Guarantee.** A question that does not fit the schema is refused here, so before a charge.
    """
    mechanism = TableMechanism(
        question, Contribution.of(dataset, cap, question.rows).for_rows(unit_rows(question.rows)), spend
    )
    # A description can be compiled without an engine, before there are rows.
    if dataset.engine is not None:
        dataset.engine.check(_schema_request(mechanism))
    return mechanism


def _schema_request(mechanism: TableMechanism) -> BoundedSums:
    """Everything that a question reads, as keys, for an engine to check against its schema."""
    expressions = (aggregate.of for aggregate in mechanism.question.aggregates)
    reads = dict.fromkeys(IsNull(expression) for expression in expressions if expression is not None)
    return BoundedSums(mechanism.scope.rows, (*mechanism.scope.keys, *reads), (), OnceScheme())


def pure_strategies(question: Question, scope: QueryScope, spend: Spend) -> list[Strategy]:
    """The strategies for the columns under Laplace noise; what is asked twice is paid once."""
    if question.workload is not None:
        return _cube_strategies(question, scope, spend, pure=True)
    units = _unit_counts(question)
    return [
        *([DistinctStrategy(scope, units)] if units else []),
        *_total_strategies(question, scope, units=()),
        *_choice_strategies(question, scope),
    ]


def gaussian_strategies(question: Question, scope: QueryScope, spend: Spend) -> list[Strategy]:
    """The strategies under Gaussian noise, where counts of units in groups are totals too."""
    if question.workload is not None:
        return _cube_strategies(question, scope, spend, pure=False)
    units = _unit_counts(question)
    if units and not scope.keys:
        return pure_strategies(question, scope, spend)
    return [*_total_strategies(question, scope, units=units), *_choice_strategies(question, scope)]


def _cube_strategies(question: Question, scope: QueryScope, spend: Spend, *, pure: bool) -> list[Strategy]:
    """All tables together; where a key is private, after key selection and with Gaussian noise."""
    if all(key.values is not None for key in question.keys):
        return [CubeStrategy(scope, question)]
    return [] if pure else [PrivateCubeStrategy(scope, question, leak_of_selection(spend))]


def _unit_counts(question: Question) -> tuple[Aggregate, ...]:
    return tuple(aggregate for aggregate in question.aggregates if aggregate.kind == "units")


def _selecting_counts(question: Question) -> tuple[Aggregate, ...]:
    """The counts of rows that may select the groups; those of a quotient keep the weights of the
    other.
    """
    counts = [aggregate for aggregate in question.aggregates if aggregate.kind == "count"]
    return () if any(count.name in question.quotients for count in counts) else tuple(counts)


def _total_strategies(
    question: Question, scope: QueryScope, *, units: tuple[Aggregate, ...]
) -> list[Strategy]:
    """Counts, sums, means and variances; sums apart where a unit's total can be bounded."""
    strategies: list[Strategy] = []
    totals = [aggregate for aggregate in question.aggregates if aggregate.kind in LINEAR]
    sums = tuple(total for total in totals if total.kind == "sum" and total.name not in question.quotients)
    # Rows that are units are never down-weighted, so their sums can share the noise of the means.
    if sums and not scope.contribution.one_row_per_unit:
        totals = [total for total in totals if total not in sums]
        beside_others = any(aggregate.kind not in DOWN_WEIGHTED for aggregate in question.aggregates)
        strategies.append(TotalsStrategy(scope, sums, beside_others))
    if totals or units:
        strategies.append(TotalsStrategy(scope, (*totals, *units)))
    return strategies


def _choice_strategies(question: Question, scope: QueryScope) -> list[Strategy]:
    """Each mode, each number of different values, and all quantiles of a column together."""
    modes: list[Strategy] = []
    quantiles_by_column: dict[Expr, list[Aggregate]] = {}
    for aggregate in question.aggregates:
        if aggregate.kind == "mode":
            modes.append(ModeStrategy(scope, aggregate))
        elif aggregate.kind == "distinct":
            modes.append(DistinctValuesStrategy(scope, aggregate))
        elif aggregate.kind in RANKED and aggregate.of is not None:
            quantiles_by_column.setdefault(aggregate.of, []).append(aggregate)
    return [
        *modes,
        *(RankStrategy(scope, of, tuple(quantiles)) for of, quantiles in quantiles_by_column.items()),
    ]


#: Two examples of values of each kind, as SQL writes them.
_EXAMPLE_VALUES = {
    NUMBER: ("1", "2"),
    TEXT: ("'A'", "'B'"),
    DATE: ("DATE '2026-01-01'", "DATE '2026-01-02'"),
    MOMENT: ("TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '2026-01-02 00:00:00'"),
}


def _where_listed(question: Question) -> str:
    """A fix that lists values for each private key: WHERE for a column, CASE for an expression."""
    conditions, cases = [], []
    for key in question.keys:
        written, values = key.text or key.name, _EXAMPLE_VALUES.get(key.of.type.kind, ("TRUE", "FALSE"))
        if key.values is None and isinstance(key.of, Read):
            conditions.append(f"{written} IN ({', '.join(values)})")
        elif key.values is None:
            whens = " ".join(f"WHEN {value} THEN {value}" for value in values)
            cases.append(f"CASE {written} {whens} END")
    where = [f"WHERE {' AND '.join(conditions)}"] if conditions else []
    return "   ".join([*where, *([f"GROUP BY {', '.join(cases)}"] if cases else [])])


def _check_answerable(question: Question, spend: Spend, *, private_keys: bool) -> None:
    if question.workload is not None:
        private = [key for key in question.keys if key.values is None]
        private_keys = bool(private)
        if names := ", ".join(key.name for key in private if key.of.type.kind != TEXT):
            raise RefusedQuestion(
                "DP704",
                f"the values of {names} are not public, and are no texts.",
                why=f'in a cube, rows with a value that was not found count under "{OTHER}", which is a text.',
                fix=f"list them:  {_where_listed(question)}   or state their bounds or values in the description",
            )
    if private_keys and spend.delta is None:
        names = ", ".join(key.name for key in question.keys if key.values is None)
        raise RefusedQuestion(
            "DP704",
            f"the values of {names} are not public, and key selection needs a delta.",
            why="a group with only one person must not be shown because of that person.",
            fix=f"delta=1e-6, or list them:  {_where_listed(question)}   or state them (bounds of a date or a whole number) in the "
            "description",
        )
    if not question.aggregates and (not private_keys or question.workload is not None):
        raise RefusedQuestion(
            "DP706",
            "the question asks nothing of the data.",
            why="every value of the answer is already public.",
            fix="add  COUNT(*)  to the SELECT list",
        )

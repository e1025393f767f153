# SPDX-License-Identifier: Apache-2.0
"""A question about a table becomes one mechanism.

    mechanism = compile_question(question, dataset, Spend(epsilon=0.2))
    mechanism.guarantee; mechanism.error(); mechanism.preview()       # no data are touched
    mechanism.draw(dataset)                                         # an Answer

**Guarantee.** The mechanism's promise implies the spend, for one unit of the data set more or less (or another in its
place), whatever the rows are and however many one unit has. Rows never leave the engine: bounded whole-number sums
do, and nothing is shown of them but sums with noise, a private choice, or the names of groups that enough units share.

Why it holds: compile.proof.md. What would break it: an engine that does not keep the promise of `plan.py`, a public
table or public bounds that were read off private rows, a unit column that does not name whom it protects.
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
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.answer.answer import Answer, Noisy
from discreet.tables.answer.arrange import arrange
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.data.dataset import Dataset
from discreet.tables.data.expr import IsNull
from discreet.tables.data.sums import GroupKey, Once, Sums
from discreet.tables.data.types import DATE, MOMENT, NUMBER, TEXT
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.distinct import DistinctRecipe
from discreet.tables.plan.groups import kept_rows, public_groups
from discreet.tables.plan.linear import LINEAR
from discreet.tables.plan.modes import ModeRecipe
from discreet.tables.plan.part import Part, Recipe, Scope
from discreet.tables.plan.preview import Preview, bounding_notes, preview_of
from discreet.tables.plan.ranks import RANKED, RankRecipe
from discreet.tables.plan.selection import Selection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.split import divided
from discreet.tables.plan.totals import CUT, TotalsRecipe

__all__ = ["Spend", "TableMechanism", "compile_question"]


class TableMechanism(Mechanism):
    """The mechanism that answers one question.

    **Guarantee.** As the module's: `guarantee` is known before any data are seen, and implies what was to be spent.
    """

    def __init__(self, question: Question, contribution: Contribution, spend: Spend) -> None:
        self.question, self.spend, self._contribution = question, spend, contribution
        self.stated_delta = spend.delta
        self.groups = public_groups(question)
        if self.groups is not None:  # nobody is in more groups than there are
            contribution = replace(contribution, groups=min(contribution.groups, max(1, len(self.groups))))
        self.scope = Scope(kept_rows(question), tuple(key.of for key in question.keys), contribution)
        _check(question, spend, found=self.groups is None)
        ready = divided(self._recipes, self.scope, spend, found=self.groups is None)
        self.parts, self.selection = ready.parts, ready.selection
        self.stating: list[Part | Selection] = [*self.parts, *([self.selection] if self.selection else [])]
        found = [] if self.selection is None else [(self.selection.guarantee, 1)]
        self._guarantee = compose([*found, *((part.guarantee, 1) for part in self.parts)])

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: Any) -> Answer:
        """The answer; `data` is the data set that the mechanism was made for, or another version of it."""
        groups, columns = self._named(data)
        for part in self.parts:
            columns |= part.draw(data.engine, groups)
        answer = Answer.of(
            keys=[key.name for key in self.question.keys],
            groups=groups,
            columns={one.name: columns[one.name] for one in self.question.aggregates},
            question=self.question.text,
            notes=self.notes,
            withheld="" if self.selection is None else self.selection.withheld,
            guarantee=self.guarantee,
            private=is_private(),
        )
        return arrange(answer, self.question)

    def error(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """How far each noisy column is off, at most; None where that depends on the data."""
        check.inner_probability(confidence=confidence)
        found: dict[str, float | None] = {}
        for part in self.stating:
            found |= part.errors(confidence)
        return {one.name: found[one.name] for one in self.question.aggregates}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What must be said with the answer: how units were bounded, and what has no interval."""
        stated = [said.note for part in self.stating for said in part.stated(CONFIDENCE).values()]
        return (*bounding_notes(self), *dict.fromkeys(note for note in stated if note))

    def preview(self) -> Preview:
        """Cost, expected error and cheaper ways to ask; touches no data."""
        return preview_of(self)

    def expected(self) -> dict[str, float]:
        """A number for each column that grows with its error, for comparing ways to ask the same."""
        found: dict[str, float] = {}
        for part in self.stating:
            found |= part.expected()
        return found

    def variant(
        self, question: Question | None = None, spend: Spend | None = None, rows: int | None = None
    ) -> TableMechanism:
        """Another question, another cost, or another `at_most`, for the same data set."""
        contribution = self._contribution if rows is None else self._contribution.with_rows(rows)
        return TableMechanism(question or self.question, contribution, spend or self.spend)

    def _named(self, data: Any) -> tuple[Sequence[GroupKey], dict[str, Noisy]]:
        """The groups that are answered, and the columns that finding them has answered already."""
        if self.selection is None:
            assert self.groups is not None
            return self.groups, {}
        named = self.selection.draw(data.engine)
        return named.groups, named.columns

    def _recipes(self, pure: bool) -> list[Recipe]:  # noqa: FBT001 - one of two currencies
        return recipes(self.question, self.scope, pure=pure)


def compile_question(
    question: Question, dataset: Dataset, spend: Spend, cap: int | None = None
) -> TableMechanism:
    """The mechanism that answers a question at that cost.

    **Guarantee.** What the schema decides is refused here, so before a charge.

    `cap` is the number of rows that a unit contributes at most, where the data set says "auto" and it was chosen before.
    """
    mechanism = TableMechanism(question, Contribution.of(dataset, cap), spend)
    if dataset.engine is not None:  # a description can be compiled before there are rows
        dataset.engine.check(_everything(mechanism))
    return mechanism


def _everything(mechanism: TableMechanism) -> Sums:
    """All that a question reads, as keys: an engine refuses what its schema cannot give."""
    of = (one.of for one in mechanism.question.aggregates)
    asked = dict.fromkeys(IsNull(expr) for expr in of if expr is not None)
    return Sums(mechanism.scope.rows, (*mechanism.scope.keys, *asked), (), Once())


def recipes(question: Question, scope: Scope, *, pure: bool) -> list[Recipe]:
    """What is to be released, part by part; nothing that is asked twice is paid twice."""
    found: list[Recipe] = []
    sums = [one for one in question.aggregates if one.kind in LINEAR]
    units = [one for one in question.aggregates if one.kind == "units"]
    if units and (pure or not scope.keys):
        found.append(DistinctRecipe(scope, tuple(units)))
        units = []
    apart = tuple(one for one in sums if one.kind == "sum" and one.name not in question.quotients)
    if (
        apart and not scope.contribution.alone
    ):  # where rows are units nothing is cut off, and sums come with means
        sums = [one for one in sums if one not in apart]
        beside = any(one.kind not in CUT for one in question.aggregates)
        found.append(TotalsRecipe(scope, apart, beside))
    if sums or units:
        found.append(TotalsRecipe(scope, (*sums, *units)))
    ranked: dict[Any, list[Aggregate]] = {}
    for one in question.aggregates:
        if one.kind in RANKED:
            ranked.setdefault(one.of, []).append(one)
        elif one.kind == "mode":
            found.append(ModeRecipe(scope, one))
    found += [RankRecipe(scope, of, tuple(asked)) for of, asked in ranked.items()]
    return found


#: Values of each kind, as they are written in SQL.
_LISTED = {
    NUMBER: "(1, 2)",
    TEXT: "('A', 'B')",
    DATE: "(DATE '2026-01-01', DATE '2026-01-02')",
    MOMENT: "(TIMESTAMP '2026-01-01 00:00:00')",
}


def _listing(question: Question) -> str:
    """A condition that lists the groups, for every key whose values are not public."""
    unknown = [key for key in question.keys if key.values is None]
    listed = (f"{key.name} IN {_LISTED.get(key.of.type.kind, '(TRUE, FALSE)')}" for key in unknown)
    return f"WHERE {' AND '.join(listed)}"


def _check(question: Question, spend: Spend, *, found: bool) -> None:
    if found and spend.delta is None:
        names = ", ".join(key.name for key in question.keys if key.values is None)
        raise RefusedQuestion(
            "DP704",
            f"the values of {names} are not public, and finding them needs a delta.",
            why="a group that only one person is in must not be shown because of that person.",
            fix=f"delta=1e-6, or list them:  {_listing(question)}   or state them (bounds of a date or a whole number) in the "
            "description",
        )
    if not found and not question.aggregates:
        raise RefusedQuestion(
            "DP706",
            "nothing is asked of the data.",
            why="every value of the answer is public already.",
            fix="add  COUNT(*)  to what is selected",
        )

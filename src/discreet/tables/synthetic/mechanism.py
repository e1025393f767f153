# SPDX-License-Identifier: Apache-2.0
"""A synthetic copy as one mechanism: measure, fit, sample, check.

    mechanism = compile_synthesis(request, dataset, Spend(epsilon=1, delta=1e-6))
    mechanism.guarantee                       # no data are touched
    mechanism.draw(dataset)                   # a SyntheticCopy

**Guarantee.** `guarantee` implies the spend, for units that are added, removed or replaced, however
many rows they have. The rows are seen through exact noise alone (`measure.py`); the model and every
synthetic row are computed from released numbers and public seeds, so they cost nothing, and nor do
more rows.

Why it holds: mechanism.proof.md.

What would break it: a synthetic row that is compared with real rows and published because of the
outcome; public bounds or values that were read off private rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from discreet import check as validate
from discreet.errors import BadParameter, RefusedQuestion
from discreet.exact import exactly
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee
from discreet.tables.ask.query import Query
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.stage import FINE
from discreet.tables.plan.unit_rows import unit_rows
from discreet.tables.synthetic.aim import run_aim
from discreet.tables.synthetic.columns import Bins, CopiedColumn, choose_columns
from discreet.tables.synthetic.copy import CopyQuality, SyntheticCopy
from discreet.tables.synthetic.counts import CountedRows, count_tables, counted_rows, exact_cells
from discreet.tables.synthetic.measure import (
    UnitReach,
    measure_distance,
    pair_measurement,
    pair_system,
    rounded_noise,
)
from discreet.tables.synthetic.mixture import fit_mixture
from discreet.tables.synthetic.released import ReleasedCounts
from discreet.tables.synthetic.rounds import Rounds, tables_of_rounds
from discreet.tables.synthetic.sample import RowModel, sample_rows
from discreet.tables.synthetic.spending import AimSpending, SynthesisSpending
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.workloads.measurement import SparseTable
from discreet.tables.workloads.residuals import KeySet

__all__ = ["METHODS", "SynthesisMechanism", "SynthesisRequest", "compile_synthesis", "synthesis_request"]

#: mixture: all pairs at once, and a mixture of products; aim: tables that are chosen round after round, and a graphical model.
METHODS = ("mixture", "aim")
#: So many tables are compared when a copy is checked; of more, a public sample.
_CHECKED_TABLES = 300
_SEED = 41


@dataclass(frozen=True)
class SynthesisRequest:
    """What is copied: the rows of a question, and columns with their codes. `check` is a share of
    the budget.
    """

    query: Query
    columns: tuple[CopiedColumn, ...]
    check: float
    method: str = "mixture"
    left_out: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(column.size for column in self.columns)

    @property
    def text(self) -> str:
        """What the ledger writes down: the rows, the columns and everything that the copy depends
        on.
        """
        rows = self.query.count().text.partition(" FROM ")[2]
        columns = ", ".join(map(_column_text, self.columns))
        return f"SYNTHESIZE {columns} FROM {rows} [{self.method}, check {self.check:g}]"


def _column_text(column: CopiedColumn) -> str:
    if not column.edges:
        return f"{column.name} ({column.size} values)"
    return f"{column.name} ({', '.join(map(str, column.edges))}{', NULL' if column.null else ''})"


def synthesis_request(
    start: object,
    columns: Sequence[str] | None,
    bins: Mapping[str, Bins] | None,
    check: float,
    method: str = "mixture",
) -> SynthesisRequest:
    """A request for a copy of the rows of a data set or of a question without keys."""
    _check_one_table(start)
    query = start.where() if isinstance(start, Dataset | Query) else None
    if query is None or query.keys:
        raise BadParameter(
            "DP104",
            "a synthetic copy is made of a data set, or of those of its rows that a condition keeps.",
            why="the copy has a row for each row, and columns of the description.",
            fix='session.synthesize(data, …)   or  session.synthesize(data.where(dp.col("age") >= 18), …)',
        )
    question = query.count().question
    chosen, left_out = choose_columns(query, question.rows, columns, {} if bins is None else bins)
    method = validate.choice(METHODS, method=method)
    left_out = left_out if columns is None else ()
    return SynthesisRequest(query, chosen, _check_share(check), method, left_out)


def _check_one_table(start: object) -> None:
    """Refuse several private tables: their rows together are not what is measured."""
    private = (
        [table for table in start.tables.values() if table.private] if isinstance(start, Dataset) else []
    )
    if len(private) > 1:
        raise RefusedQuestion(
            "DP701",
            "a synthetic copy is made of one table, and the data set has several private ones.",
            why="rows of a copy belong to nobody: rows of two copies could not be linked, and what connects the "
            "tables is in no table that is measured.",
            fix=f'session.synthesize(data["{private[0].name}"], …)',
        )


def _check_share(share: object) -> float:
    value = validate.not_negative(check=share)
    if value <= 0.5:
        return value
    raise BadParameter(
        "DP102",
        f"check must lie in [0, 0.5], not {value:g}.",
        why="it is the share of the budget that measures how far the copy is off; the copy needs the rest.",
        fix="check=0.01",
    )


class SynthesisMechanism(Mechanism):
    """The mechanism that makes one synthetic copy.

    **Guarantee.** `guarantee` is known before any data are seen, and it implies the spend.
    """

    def __init__(self, request: SynthesisRequest, contribution: Contribution, spend: Spend) -> None:
        self.request, self.spend = request, spend
        self.stated_delta = spend.delta
        fine = 1 if contribution.one_row_per_unit else FINE
        self.reach = UnitReach(contribution, fine)
        self.spending: SynthesisSpending | AimSpending
        if request.method == "aim":
            self.spending = AimSpending.of(spend, request.check, contribution.unit)
        else:
            self.spending = SynthesisSpending.of(
                spend, request.check, contribution.unit, tables_of_rounds(request.sizes)
            )
        self.counted: CountedRows = counted_rows(
            request.query.count().question.rows,
            request.query.table,
            request.columns,
            contribution.rows,
            fine,
        )
        self._guarantee = self.spending.guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: Any) -> SyntheticCopy:
        """The copy; `data` is the data set that was compiled for."""
        cells = exact_cells(data.engine, self.counted)
        released, model = self._fit(cells)
        model = model.to_single()
        return SyntheticCopy(
            released,
            model,
            quality=self._quality(cells, released, model),
            question=self.request.text,
            notes=self.notes,
            guarantee=self.guarantee,
            private=is_private(),
        )

    def _fit(self, cells: SparseTable) -> tuple[ReleasedCounts, RowModel]:
        """What is released, and the model that is fitted to it."""
        columns, spending = self.request.columns, self.spending
        if isinstance(spending, AimSpending):
            return run_aim(cells, columns, min(exactly(spending.rho), Fraction(spending.rho)), self.reach)
        measurement = pair_measurement(pair_system(self.request.sizes), spending.pairs, self.reach)
        blocks = measurement.draw(cells, rounded_noise)
        released = ReleasedCounts(
            columns, self.reach.fine, measurement.multipliers, measurement.scales, blocks
        )
        if spending.tables:
            return Rounds(cells, spending, self.reach).run(released)
        return released, fit_mixture(released.pairs())

    def _quality(self, cells: SparseTable, released: ReleasedCounts, model: RowModel) -> CopyQuality | None:
        """How far the rows that the copy shows by default are off, in its tables of three columns."""
        if not self.spending.check:
            return None
        rows, sizes = max(0, round(released.total)), self.request.sizes
        codes = sample_rows(model, rows, seed=0)
        copied = SparseTable(codes.astype(np.int64), np.full(rows, self.reach.fine, np.int64))
        sets = checked_tables(sizes)
        exact, synthetic = (count_tables(table, sizes, sets) for table in (cells, copied))
        pairs = ((one, other) for (_, one), (_, other) in zip(exact, synthetic, strict=True))
        noisy, distribution = measure_distance(pairs, len(sets), self.spending.check, self.reach)
        half = distribution.tail_bound(1 - CONFIDENCE)
        scale = 2 * self.reach.fine * len(sets) * max(rows, 1)
        return CopyQuality(
            max(0.0, noisy / scale),
            max(0.0, (noisy - half) / scale),
            max(0.0, (noisy + half) / scale),
            len(sets),
            len(sets[0]),
            rows,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the copy must know."""
        contribution, columns = self.reach.contribution, self.request.columns
        followed = "tables of two columns"
        if isinstance(self.spending, AimSpending):
            followed = "tables of up to three columns, which were chosen with noise"
        elif self.spending.tables:
            followed = f"tables of two columns, and {self.spending.tables} tables of three"
        notes = [
            "Each row of the copy is made up: it belongs to nobody.",
            f"The copy follows {followed}.",
            "What only more columns together show, rare groups, and links between rows may be wrong or missing.",
        ]
        if any(column.edges for column in columns):
            notes.append("Numbers and dates are spread evenly inside their intervals.")
        if any(column.of.kind == "text" for column in columns):
            notes.append("Rows with a text that the description does not list are left out.")
        if not contribution.one_row_per_unit:
            rows = "row" if contribution.rows == 1 else "rows"
            notes.append(
                f"Each {contribution.unit.protects} contributes at most {contribution.rows} {rows}; extra rows are "
                "down-weighted. The intervals do not include this bias."
            )
        if self.request.left_out:
            notes.append(f"Not copied, without public values or bounds: {', '.join(self.request.left_out)}.")
        return tuple(notes)


def checked_tables(sizes: Sequence[int]) -> list[KeySet]:
    """The tables of three columns by which a copy is checked (fewer columns, if there are no
    three); of many, a public sample.
    """
    sets: list[KeySet] = list(combinations(range(len(sizes)), min(3, len(sizes))))
    if len(sets) <= _CHECKED_TABLES:
        return sets
    order = np.argsort(SeededStream(_SEED, "checked tables").uniform(len(sets)), kind="stable")
    return sorted(sets[place] for place in order[:_CHECKED_TABLES].tolist())


def compile_synthesis(
    request: SynthesisRequest, dataset: Dataset, spend: Spend, cap: int | None = None
) -> SynthesisMechanism:
    """The mechanism that makes a copy at a cost; `cap` is the bound that was chosen where the data
    set says "auto".

    **Guarantee.** A request that does not fit the schema is refused here, so before a charge.
    """
    rows = request.query.count().question.rows
    mechanism = SynthesisMechanism(request, Contribution.of(dataset, cap).for_rows(unit_rows(rows)), spend)
    if dataset.engine is not None:
        dataset.engine.check(mechanism.counted.sums)
    return mechanism

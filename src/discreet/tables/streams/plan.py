# SPDX-License-Identifier: Apache-2.0
"""A question becomes a stream: the matrix, the noise of each coordinate, and the guarantee.

    plan = plan_stream(question, dataset, Spend(epsilon=1, delta=1e-6), calendar)
    plan.guarantee; plan.errors()                  # no data are touched

Candidates are independent Laplace noise, and Gaussian noise with each factor of
`discreet.streams.choice`. The one with the least error of the figures that are asked for is taken.

**Guarantee.** `guarantee` bounds what all rows of the stream reveal together, whatever the rows of
data are and whenever they are published.

Why it holds: participation.proof.md, §§ 1 to 5. What would break it: rows of data that change
after their period; a row that is shown in two versions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discreet import privacy
from discreet.errors import BadParameter, RefusedQuestion
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.unit import Unit
from discreet.streams.choice import best_factor
from discreet.streams.decoding import weights_of_range
from discreet.streams.factor import Factor, independent
from discreet.streams.participation import Participation
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.sums import BoundedSums, GroupKey
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.contribution import ROOT_TWO, Contribution
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.groups import kept_rows, public_groups
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import (
    ColumnMoments,
    FeatureLayout,
    gaussian_layout,
    laplace_layout,
    requested_columns,
    whole,
)
from discreet.tables.plan.spend import Spend
from discreet.tables.streams.bounded import StreamRows, stream_rows, time_column
from discreet.tables.streams.calendar import Calendar
from discreet.tables.streams.entry import KeyEntry, entry_threshold
from discreet.tables.streams.noise import range_noise

__all__ = ["StreamPlan", "plan_stream", "stream_layout"]

_KINDS = ("count", "count_of", "sum", "mean")
#: Bits of the values of a column, the finest first, and of the noise, the fastest first.
_VALUE_BITS, _NOISE_BITS = (22, 20, 18, 16, 14, 12, 10), (36, 44)
#: Bits of a square root.
_ROOT_BITS = 64
#: The part of ε, or of ρ, and of δ, that finds private keys; without Gaussian noise all of δ does.
_ENTRY, _LEAK, _ALL = Fraction(1, 4), 0.1, 1 - 1e-9
#: Rounds up by more than the rounding errors of shares and square roots.
_UP = Fraction(1) + Fraction(1, 10**12)
_TOLERANCE = 1e-9
#: The coefficient of independent Gaussian noise.
_INDEPENDENT = 64


@dataclass(frozen=True)
class StreamPlan:
    """A stream with its noise, ready to be drawn row by row.

    `groups` are the public groups, or None where keys appear in the course of time (`entry`).
    `distributions` are those of the coordinates of `layout`.
    """

    question: Question
    source: StreamRows
    time: str
    unit: Unit
    measure: str | int
    factor: Factor
    noise: str
    bits: int
    layout: FeatureLayout
    distributions: tuple[NoiseDistribution, ...]
    guarantee: Guarantee
    groups: tuple[GroupKey, ...] | None
    entry: KeyEntry | None = None

    @property
    def calendar(self) -> Calendar:
        return self.source.calendar

    @property
    def participation(self) -> Participation:
        """The bound on what one unit contributes, in the whole stream."""
        return self.source.participation

    def request(self, periods: int) -> BoundedSums:
        """The request for the sums of the first periods; with private keys the last feature counts
        rows.
        """
        counted = () if self.entry is None else (whole(1),)
        keys = tuple(key.of for key in self.question.keys)
        return self.source.sums(keys, (*self.layout.features, *counted), periods)

    @cached_property
    def _vector(self) -> NoiseVector:
        return NoiseVector(self.distributions)

    def estimates(self, first: int, last: int) -> dict[str, ColumnEstimate]:
        """How each aggregate is read off the decoded sums of a range of periods."""
        noise = range_noise(self._vector, weights_of_range(self.factor, first, last))
        is_whole = self.factor.coefficients == (1,)
        found = {}
        for aggregate in self.question.aggregates:
            moments = (
                ColumnMoments(count=self.layout.rows)
                if aggregate.kind == "count"
                else self.layout.moments[aggregate.of]
            )
            found[aggregate.name] = ColumnEstimate(aggregate, moments, noise, whole=is_whole)
        return found

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, dict[str, float | None]]:
        """The margins of error of a single period, of four periods and of the total, by column; the
        greatest of all periods.
        """
        last = self.calendar.periods - 1
        ranges = {
            f"one {self.calendar.every}": (last, last),
            f"{min(4, last + 1)} {self.calendar.every}s": (max(0, last - 3), last),
            "the total": (0, last),
        }
        return {
            name: {column: each.half_width(confidence) for column, each in self.estimates(*ends).items()}
            for name, ends in ranges.items()
        }

    @property
    def measured_range(self) -> tuple[int, int]:
        """The last range of periods of the kind that shall have the least error."""
        last = self.calendar.periods - 1
        if self.measure == "totals":
            return 0, last
        return (last, last) if self.measure == "periods" else (max(0, last + 1 - int(self.measure)), last)

    @property
    def log_error(self) -> float:
        """The sum of the logarithms of the errors that shall be least."""
        estimates = self.estimates(*self.measured_range).values()
        return sum(math.log(max(each.half_width_for(1e9), 1e-9)) for each in estimates)

    @property
    def reason(self) -> str:
        """Which noise was chosen, and for what."""
        measured = {"totals": "totals", "periods": f"single {self.calendar.every}s"}.get(
            str(self.measure), f"windows of {self.measure} {self.calendar.every}s"
        )
        kind = "Laplace" if self.noise == "laplace" else "Gaussian"
        how = (
            "independent in each period"
            if len(self.factor.coefficients) == 1
            else f"with sums encoded by the {self.factor.name}"
        )
        return f"{kind} noise, {how}: it has the least error for {measured}."

    def describe(self) -> list[str]:
        """The stream in plain sentences."""
        calendar, unit = self.calendar, self.unit.protects
        end = calendar.last_day(calendar.periods - 1)
        sentences = [
            f"{calendar.periods} {calendar.every}s from {calendar.start} to {end}, by {self.time}.",
            f"{self.participation.describe(unit, calendar.every)}; later rows are not counted."
            if not self.source.one_row_per_unit
            else f"Each {unit} contributes one row.",
            self.reason,
        ]
        if self.entry is not None:
            sentences.append(
                f"A group appears in the first {calendar.every} in which its noisy number of rows reaches "
                f"{self.entry.threshold}; its totals contain what came before. Smaller groups may exist."
            )
        return sentences


def plan_stream(  # noqa: PLR0917 - a question and everything that is public about its stream
    question: Question,
    dataset: Dataset,
    spend: Spend,
    calendar: Calendar,
    time: str | None = None,
    participation: Participation | None = None,
    measure: str | int = "totals",
) -> StreamPlan:
    """The stream with the least error of what is measured, at a cost.

    **Guarantee.** A question that cannot be a stream is refused here, so before a charge.
    """
    _check_question(question)
    draft = _StreamDraft.of(question, dataset, calendar, time, participation, measure)
    if draft.groups is None and spend.delta is None:
        names = ", ".join(key.name for key in question.keys if key.values is None)
        raise RefusedQuestion(
            "DP704",
            f"the values of {names} are not public, and finding them needs a delta.",
            why="a group with only one person must not be shown because of that person.",
            fix="delta=1e-6, or state the values in the description",
        )
    candidates = []
    if spend.rho is None:
        candidates.append(_laplace_plan(draft, spend))
    if not spend.is_pure:
        candidates.append(_gaussian_plan(draft, spend))
    best = min(candidates, key=lambda plan: plan.log_error)
    if dataset.engine is not None:
        dataset.engine.check(best.request(calendar.periods))
    return best


def _check_question(question: Question) -> None:
    kinds = {aggregate.kind for aggregate in question.aggregates}
    other = sorted(kinds - set(_KINDS))
    if other or not kinds:
        text = next((each.text for each in question.aggregates if each.kind in other), "no number")
        raise RefusedQuestion(
            "DP708",
            f"a stream adds up counts, sums and means; {text or other[0]} cannot be published again every period.",
            why="its value after two periods does not follow from the values of each.",
            fix="SELECT COUNT(*) FROM visits   or SUM, or AVG",
        )
    arranged = question.having or question.qualify or question.order or question.limit is not None
    if arranged:
        raise RefusedQuestion(
            "DP708",
            "a stream has no HAVING, ORDER BY or LIMIT.",
            why="every row shows the same groups, so that each of them can be added up.",
            fix="leave them out, and sort what is published:  stream.total().to_pandas().sort_values(…)",
        )


@dataclass(frozen=True)
class _StreamDraft:
    """A stream before its noise is chosen."""

    question: Question
    source: StreamRows
    time: str
    unit: Unit
    measure: str | int
    groups: tuple[GroupKey, ...] | None

    @classmethod
    def of(  # noqa: PLR0917 - as plan_stream
        cls,
        question: Question,
        dataset: Dataset,
        calendar: Calendar,
        time: str | None,
        participation: Participation | None,
        measure: str | int,
    ) -> _StreamDraft:
        groups = public_groups(question)
        bound = _participation(question, dataset, participation).within(calendar.periods)
        if groups is None:
            # Contributions that fall together when a key appears are rows in all.
            bound = Participation(bound.most_rows)
        column = time_column(dataset, question, time)
        source = stream_rows(question, dataset, column, calendar, bound)
        return cls(question, source, column, dataset.unit, measure, None if groups is None else tuple(groups))

    @property
    def replaces(self) -> bool:
        return self.unit.relation == "replace"

    def plan(
        self,
        factor: Factor,
        *,
        noise: str,
        bits: int,
        distributions: Sequence[NoiseDistribution],
        guarantee: Guarantee,
        entry: KeyEntry | None,
    ) -> StreamPlan:
        layout = stream_layout(self.question, noise, bits)
        return StreamPlan(
            self.question,
            self.source,
            self.time,
            self.unit,
            self.measure,
            factor,
            noise,
            bits,
            layout,
            tuple(distributions),
            guarantee,
            self.groups,
            entry,
        )


def stream_layout(question: Question, noise: str, bits: int) -> FeatureLayout:
    """The coordinates of a question under a kind of noise."""
    columns = requested_columns(question.aggregates)
    return laplace_layout(columns, bits) if noise == "laplace" else gaussian_layout(columns, bits)


def _participation(question: Question, dataset: Dataset, stated: Participation | None) -> Participation:
    """The bound that is stated; else so many rows in all as the description allows in one answer."""
    protect = dataset.protect
    if protect.per:
        raise BadParameter(
            "DP107",
            f"a stream cannot protect each {dataset.unit.protects}.",
            why="a stream bounds what a person adds over all its periods, so the person is its unit.",
            fix=f"leave out per, so that all rows of one {protect.column} are protected together",
        )
    if protect.column is None or any(table.unit == ROW for table in dataset.tables.values() if table.private):
        if stated is not None and stated != Participation():
            raise BadParameter(
                "DP107",
                "per_unit is for units with several rows; here every row is a unit of its own.",
                why="a row has one day, so it is in one period.",
                fix="leave out per_unit",
            )
        return Participation()
    if stated is not None:
        return stated
    if protect.at_most == "auto":
        raise BadParameter(
            "DP107",
            f'at_most is "auto" for {protect.column}, and a stream needs a number.',
            why="the bound is on the whole stream, whose later rows nobody knows yet.",
            fix="per_unit=dp.streams.Participation(rows=3)",
        )
    # That of its table, where tables have bounds of their own.
    return Participation(Contribution.of(dataset, rows=kept_rows(question)).rows)


# --- Laplace noise ----------------------------------------------------------------------------------


def _laplace_plan(draft: _StreamDraft, spend: Spend) -> StreamPlan:
    """Independent Laplace noise: the whole ε, with a part of it and δ for private keys."""
    assert spend.epsilon is not None
    unit, rows = draft.unit, draft.source.participation.most_rows
    moved = rows * (2 if draft.replaces else 1)
    epsilon = exactly(spend.epsilon)
    guarantees, entry = [], None
    if draft.groups is None:
        assert spend.delta is not None
        leak, part = spend.delta * _ALL, exactly(float_below(epsilon * _ENTRY))
        distribution = LaplaceDistribution(float_above(moved / part))
        entry = KeyEntry(distribution, entry_threshold(distribution, rows, leak))
        guarantees = [privacy.leaky(leak, unit=unit), privacy.pure(float_below(part), unit=unit)]
        epsilon -= part
    whole_part = float_below(epsilon)
    for bits in _VALUE_BITS:
        layout = stream_layout(draft.question, "laplace", bits)
        part = exactly(whole_part) / max(1, len(layout.blocks))
        scales = [0.0] * len(layout.features)
        for block in layout.blocks:
            for place in block.places:
                scales[place] = float_above(moved * block.width / part)
        if max(scales) <= 2.0 ** _NOISE_BITS[-1]:
            guarantee = compose([(each, 1) for each in (*guarantees, privacy.pure(whole_part, unit=unit))])
            distributions = [LaplaceDistribution(scale) for scale in scales]
            factor = independent(draft.source.calendar.periods)
            return draft.plan(
                factor,
                noise="laplace",
                bits=bits,
                distributions=distributions,
                guarantee=guarantee,
                entry=entry,
            )
    raise _too_noisy_error()


# --- Gaussian noise ---------------------------------------------------------------------------------


def _gaussian_plan(draft: _StreamDraft, spend: Spend) -> StreamPlan:
    """Gaussian noise with the best factor."""
    unit, bound = draft.unit, draft.source.participation
    periods = draft.source.calendar.periods
    factor = best_factor(periods, bound, draft.measure).factor
    if len(factor.coefficients) == 1:
        # On a finer grid the rounding of many periods does not add up to much.
        factor = Factor((_INDEPENDENT,), periods, factor.name)
    leak = 0.0
    if draft.groups is None:
        assert spend.delta is not None
        leak = spend.delta * (_LEAK if spend.epsilon is not None else _ALL)
    wider = (math.sqrt(1 / _ENTRY), math.sqrt(1 / (1 - _ENTRY))) if leak else (0.0, 1.0)

    def guarantee_at(noise: float) -> Guarantee:
        parts = [privacy.gaussian(noise * wider[1], unit=unit)]
        if leak:
            parts += [privacy.gaussian(noise * wider[0], unit=unit), privacy.leaky(leak, unit=unit)]
        return compose([(part, 1) for part in parts])

    noise = calibrate(guarantee_at, to=spend.target(unit), tolerance=_TOLERANCE)
    entry = None
    if leak:
        moved = bound.most_rows * (ROOT_TWO if draft.replaces else Fraction(1))
        distribution = GaussianDistribution(float_above(widest(noise * wider[0]) * moved * _UP))
        entry = KeyEntry(distribution, entry_threshold(distribution, bound.most_rows, leak))
    for noise_bits in _NOISE_BITS:
        for bits in _VALUE_BITS:
            scales = _gaussian_scales(draft, factor, noise * wider[1], bits)
            if max(scales) <= 2.0**noise_bits:
                distributions = [GaussianDistribution(scale) for scale in scales]
                return draft.plan(
                    factor,
                    noise="gaussian",
                    bits=bits,
                    distributions=distributions,
                    guarantee=guarantee_at(noise),
                    entry=entry,
                )
    raise _too_noisy_error()


def _gaussian_scales(draft: _StreamDraft, factor: Factor, noise: float, bits: int) -> list[float]:
    """The scale of each coordinate: noise · sensitivity · reach / √share, rounded up.

    Coordinates of which at most one is not 0 in any row share their parts.
    """
    layout = stream_layout(draft.question, "gaussian", bits)
    sensitivity = _root_above(draft.source.participation.squared_sensitivity(factor))
    if draft.replaces:
        sensitivity *= Fraction(2) if layout.signed else ROOT_TWO
    scales = [0.0] * len(layout.features)
    for places in layout.exclusive:
        share = sum(layout.shares[place] for place in places)
        for place in places:
            part = widest(noise) * sensitivity * layout.reach[place] * _UP
            scales[place] = float_above(part / Fraction(math.sqrt(share)))
    return scales


def _root_above(square: int) -> Fraction:
    """√square, rounded up."""
    scaled = square << (2 * _ROOT_BITS)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << _ROOT_BITS)


def _too_noisy_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "the noise that this stream needs is too large to be drawn exactly.",
        why="with so small a cost and so many rows of one unit, the numbers would be noise only.",
        fix="fewer columns, fewer rows of one unit, or a greater cost:  epsilon=1",
    )

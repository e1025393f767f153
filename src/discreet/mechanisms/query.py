# SPDX-License-Identifier: Apache-2.0
"""A query about records, and the mechanism that answers it with noise.

    query = queries.mean((0, 120), size=1_000)
    query.sensitivity(relation="replace")   # how far one record can move the answer
    query.laplace(epsilon=0.5)(ages).value  # or gaussian(rho=…), gaussian(epsilon=…, delta=…)

A `RecordQuery` defines the exact numbers that get noise, how far one record moves them, and the
answer as a function of the noisy numbers. A `QueryAnswer` is a query with noise: a `Mechanism` that
takes the records.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import as_ratio, exactly, float_above
from discreet.mechanisms.additive import Additive, Gaussian, Geometric, Laplace
from discreet.mechanisms.expression import CallRepr
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import RELATIONS

_ROOT_BITS = 64

#: Why a query is undefined under a relation, and what to do instead.
_WHY_UNDEFINED = {
    "add-remove": "a public number of records changes if a record is added or removed.",
    "replace": "under 'replace' the number of records is public, so counting it needs no noise.",
}
_FIX_UNDEFINED = {
    "add-remove": "leave out size= to protect the number of records too",
    "replace": "none is needed: the number of records is public there",
}


class RecordQuery(CallRepr, ABC):
    """A query about records. Base of the queries in `discreet.mechanisms.queries`.

    **Guarantee.** `exact` is a function of the records as a bag: their order does not matter, and
    no record makes it fail. Neighbouring records give exact numbers whose distance is at most
    `moves`, in either norm.
    """

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations under which it is defined; the first is the default."""
        return RELATIONS

    @property
    def dimension(self) -> int:
        """How many numbers get noise."""
        return 1

    @property
    def per(self) -> int:
        """The public number that the noisy numbers are divided by at the end."""
        return 1

    @property
    def range(self) -> tuple[float, float] | None:
        """The range of the answer, to which the noisy answer is clipped."""
        return None

    @abstractmethod
    def exact(self, records: object) -> Any:
        """The exact numbers that get noise: one, or a list."""

    @abstractmethod
    def moves(self, relation: str, norm: int) -> Fraction:
        """The sensitivity of the exact numbers in the l1 or the l2 norm."""

    def sensitivity(self, relation: str | None = None, norm: int = 1) -> float:
        """The sensitivity of the answer, or of the numbers it is computed from; rounded up."""
        return float_above(self.moves(self._relation(relation), _norm(norm)) / self.per)

    def laplace(
        self,
        *,
        epsilon: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> QueryAnswer:
        """The answer with Laplace noise, ε-private; `scale` is in the unit of the answer."""
        return self._build_answer(Laplace, 1, relation, unit, epsilon=epsilon, scale=scale)

    def gaussian(
        self,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> QueryAnswer:
        """The answer with Gaussian noise, for ρ or for (ε, δ); `scale` is the standard deviation."""
        return self._build_answer(
            Gaussian, 2, relation, unit, rho=rho, epsilon=epsilon, delta=delta, scale=scale
        )

    def answer_from(self, noisy: Any) -> Any:
        """The answer as a function of the noisy numbers."""
        if self.per == 1 and self.range is None:
            return noisy
        value = noisy / self.per
        return value if self.range is None else min(max(value, self.range[0]), self.range[1])

    def error(self, noise: Additive, confidence: float) -> float | None:
        """The margin of error; None if it depends on data."""
        return float_above(as_ratio(noise.error(confidence)) / self.per)

    def interval(self, noise: Additive, value: Any, confidence: float) -> tuple[Any, Any]:
        """A confidence interval for the exact answer, given the released one."""
        error = float_above(as_ratio(noise.error(confidence)) / self.per)
        low, high = value - error, value + error
        return (low, high) if self.range is None else (max(low, self.range[0]), min(high, self.range[1]))

    def _relation(self, relation: str | None) -> str:
        if relation is None:
            return self.relations[0]
        if check.choice(RELATIONS, relation=relation) in self.relations:
            return relation
        raise UnsupportedGuarantee(
            "DP203",
            f"this query is undefined under the relation {relation!r}.",
            why=_WHY_UNDEFINED[relation],
            fix=_FIX_UNDEFINED[relation],
        )

    def _build_answer(
        self, noise: type[Additive], norm: int, relation: str | None, unit: str, **amount: float | None
    ) -> QueryAnswer:
        relation = self._relation(relation)
        scale = amount.get("scale")
        if scale is not None:
            # The scale is that of the answer; the numbers are `per` times as large.
            amount["scale"] = float(exactly(check.moderate(scale=scale)) * self.per)
        mechanism: Any = noise
        return QueryAnswer(
            self,
            mechanism(
                sensitivity=self.moves(relation, norm),
                dimension=self.dimension,
                relation=relation,
                unit=unit,
                **amount,
            ),
        )


class WholeNumberQuery(RecordQuery):
    """A query whose exact numbers are whole."""

    def geometric(
        self,
        *,
        epsilon: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> QueryAnswer:
        """The answer with whole-number Laplace noise: a whole number, ε-private."""
        return self._build_answer(Geometric, 1, relation, unit, epsilon=epsilon, scale=scale)


class QueryAnswer(Mechanism):
    """A query with noise: a mechanism that takes records.

    **Guarantee.** The guarantee of `noise` at the sensitivity that the query proves. The step from
    noisy numbers to the answer is post-processing. Empty records are answered like any others.

    Why it holds: `Additive` and the `moves` of the query. What would break it: a `moves` that is
    not true.

    >>> from discreet.mechanisms import queries
    >>> answer = queries.sum((0, 10)).laplace(epsilon=0.5)
    >>> answer.scale, answer.guarantee.epsilon(delta=0)
    (20.0, 0.5)
    >>> isinstance(answer([]).value, float)
    True
    """

    def __init__(self, query: RecordQuery, noise: Additive) -> None:
        self.query, self.noise, self.stated_delta = query, noise, noise.stated_delta

    @property
    def guarantee(self) -> Guarantee:
        return self.noise.guarantee

    @property
    def scale(self) -> float:
        """The scale of the noise (the standard deviation of a Gaussian), in the unit of the answer."""
        return self.noise.scale / self.query.per

    def draw(self, data: object) -> object:
        return self.query.answer_from(self.noise.draw(self.query.exact(data)))

    def error(self, confidence: float = CONFIDENCE) -> float | None:
        return self.query.error(self.noise, confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
        return self.query.interval(self.noise, value, confidence)


@dataclass(frozen=True)
class ClippingBounds:
    """Two public numbers to which every record is clipped."""

    low: float
    high: float

    @classmethod
    def of(cls, bounds: Any) -> ClippingBounds:
        """The bounds, stated as (low, high)."""
        if isinstance(bounds, ClippingBounds):
            return bounds
        if not isinstance(bounds, tuple | list | np.ndarray) or np.shape(bounds) != (2,):
            raise BadParameter(
                "DP104",
                "bounds must be two numbers, (low, high).",
                why="one record moves an unbounded answer without limit, and bounds from the data reveal it.",
                fix="bounds=(0, 100), from public knowledge",
            )
        low, high = check.real(low=bounds[0]), check.real(high=bounds[1])
        if not low < high:
            raise BadParameter(
                "DP107",
                f"the lower bound must be below the upper one, not {low!r} and {high!r}.",
                why="records are clipped to the range between the two.",
                fix="bounds=(0, 100)",
            )
        check.moderate(width=high - low)
        check.moderate(greatest=max(-low, high))
        return cls(low, high)

    @property
    def width(self) -> Fraction:
        """high - low, exactly."""
        return Fraction(self.high) - Fraction(self.low)

    @property
    def max_abs(self) -> Fraction:
        """The greatest absolute value within."""
        return max(abs(Fraction(self.low)), abs(Fraction(self.high)))


def query_with_noise(
    query: RecordQuery, amount: dict[str, float | None], relation: str | None
) -> QueryAnswer:
    """The query with Laplace noise for ε alone, with Gaussian noise for ρ, (ε, δ) or a scale."""
    epsilon, delta, rho, scale = (amount[name] for name in ("epsilon", "delta", "rho", "scale"))
    if delta is None and rho is None and scale is None:
        return query.laplace(epsilon=epsilon, relation=relation)
    return query.gaussian(epsilon=epsilon, delta=delta, rho=rho, scale=scale, relation=relation)


def records_needed(error: float, parts: float) -> int:
    """The least n for which parts / n is at most the error."""
    return max(1, math.ceil(as_ratio(parts) / exactly(check.positive(error=error))))


def root_above(square: int) -> Fraction:
    """The square root of a whole number: exact if it is whole, else rounded up."""
    root = math.isqrt(square)
    if root * root == square:
        return Fraction(root)
    return Fraction(math.isqrt(square << (2 * _ROOT_BITS)) + 1, 1 << _ROOT_BITS)


def _norm(norm: int) -> int:
    if isinstance(norm, int) and not isinstance(norm, bool) and norm in {1, 2}:
        return norm
    raise BadParameter(
        "DP102",
        "norm must be 1 or 2.",
        why="Laplace noise is measured in the l1 norm and Gaussian noise in the l2 norm.",
        fix="norm=1",
    )

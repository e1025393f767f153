# SPDX-License-Identifier: Apache-2.0
"""A question about records, and the mechanism that answers it with noise.

    question = queries.mean((0, 120), size=1_000)
    question.sensitivity(relation="replace")         # how far one record moves the answer, at most
    question.laplace(epsilon=0.5)(ages).value        # or gaussian(rho=…), gaussian(epsilon=…, delta=…)

A `RecordQuery` says which exact numbers are computed from the records, how far one record moves them, and how the answer
is read off the noisy numbers. An `QueryAnswer` is a query with noise: a `Mechanism` that takes the records.
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
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import RELATIONS

_ROOT_BITS = 64

#: Why a question is not asked under a relation, and how to ask it.
_NOT_ASKED = {
    "add-remove": "a public number of records contradicts a record that is added or removed.",
    "replace": "where a record is replaced the number of records is public, and counting it protects nobody.",
}
_ASK_INSTEAD = {
    "add-remove": "leave out size= and let the number of records be protected",
    "replace": "none is needed: the number of records is public there",
}


class RecordQuery(ABC):
    """A question about records. Base of all that are in `discreet.mechanisms.queries`.

    **Guarantee.** `exact` is a function of the records as a bag: their order does not matter, and no record makes it
    fail. Neighbouring records give exact numbers whose distance is at most `moves`, in either norm.
    """

    @property
    def relations(self) -> tuple[str, ...]:
        """Under which it is answered; the first is the default."""
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
        """Where the answer lies for all records; what noise carries beyond is moved back."""
        return None

    @abstractmethod
    def exact(self, records: object) -> Any:
        """The exact numbers that get noise: one, or a list."""

    @abstractmethod
    def moves(self, relation: str, norm: int) -> Fraction:
        """How far one record moves the exact numbers, at most, in the l1 or the l2 norm."""

    def sensitivity(self, relation: str | None = None, norm: int = 1) -> float:
        """How far one record moves the answer (or the parts that it is read off), at most; rounded up."""
        return float_above(self.moves(self._relation(relation), _norm(norm)) / self.per)

    def laplace(
        self,
        *,
        epsilon: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> QueryAnswer:
        """The answer with Laplace noise: ε-differential privacy. `scale` is in the unit of the answer."""
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
        """The answer, from the noisy numbers."""
        if self.per == 1 and self.range is None:
            return noisy
        value = noisy / self.per
        return value if self.range is None else min(max(value, self.range[0]), self.range[1])

    def error(self, noise: Additive, confidence: float) -> float | None:
        """How far the answer is from the exact one, at most; None where that depends on a secret."""
        return float_above(as_ratio(noise.error(confidence)) / self.per)

    def interval(self, noise: Additive, value: Any, confidence: float) -> tuple[Any, Any]:
        """Where the exact answer lies, given the released one."""
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
            f"this question is not asked under the relation {relation!r}.",
            why=_NOT_ASKED[relation],
            fix=_ASK_INSTEAD[relation],
        )

    def _build_answer(
        self, noise: type[Additive], norm: int, relation: str | None, unit: str, **amount: Any
    ) -> QueryAnswer:
        relation = self._relation(relation)
        if amount.get("scale") is not None:  # of the answer, so `per` times that for the numbers
            amount["scale"] = float(exactly(check.moderate(scale=amount["scale"])) * self.per)
        made: Any = noise
        moved = self.moves(relation, norm)
        return QueryAnswer(
            self, made(sensitivity=moved, dimension=self.dimension, relation=relation, unit=unit, **amount)
        )


class WholeNumberQuery(RecordQuery):
    """A question whose exact numbers are whole."""

    def geometric(
        self,
        *,
        epsilon: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> QueryAnswer:
        """The answer with whole-number Laplace noise, which is whole again: ε-differential privacy."""
        return self._build_answer(Geometric, 1, relation, unit, epsilon=epsilon, scale=scale)


class QueryAnswer(Mechanism):
    """A query with noise: a mechanism that takes records.

    **Guarantee.** The guarantee of `noise` at the sensitivity that the query proves; reading the answer off the noisy
    numbers is post-processing. Empty records are answered like any others.

    Why it holds: `Additive` and the `moves` of the query. What would break it: a `moves` that is not true.

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
    """Two public numbers that every record is moved between."""

    low: float
    high: float

    @classmethod
    def of(cls, bounds: Any) -> ClippingBounds:
        """The bounds that a caller stated as (low, high)."""
        if isinstance(bounds, ClippingBounds):
            return bounds
        if not isinstance(bounds, tuple | list | np.ndarray) or np.shape(bounds) != (2,):
            raise BadParameter(
                "DP104",
                "bounds must be two numbers, (low, high).",
                why="without bounds one record can move the answer without limit, and bounds that are read off"
                " the data reveal it.",
                fix="bounds=(0, 100), from what is known without the data",
            )
        low, high = check.real(low=bounds[0]), check.real(high=bounds[1])
        if not low < high:
            raise BadParameter(
                "DP107",
                f"the lower bound must be below the upper one, not {low!r} and {high!r}.",
                why="records are moved between the two.",
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
    """The query with the noise that the amount describes: ε alone is Laplace noise, ρ or (ε, δ) Gaussian noise."""
    epsilon, delta, rho, scale = (amount[name] for name in ("epsilon", "delta", "rho", "scale"))
    if delta is None and rho is None and scale is None:
        return query.laplace(epsilon=epsilon, relation=relation)
    return query.gaussian(epsilon=epsilon, delta=delta, rho=rho, scale=scale, relation=relation)


def records_needed(error: float, parts: float) -> int:
    """The least n for which parts / n is at most the error."""
    return max(1, math.ceil(as_ratio(parts) / exactly(check.positive(error=error))))


def root_above(square: int) -> Fraction:
    """The root of a whole number: exact where it is whole, else a ratio a little above it."""
    root = math.isqrt(square)
    if root * root == square:
        return Fraction(root)
    return Fraction(math.isqrt(square << (2 * _ROOT_BITS)) + 1, 1 << _ROOT_BITS)


def _norm(norm: Any) -> int:
    if isinstance(norm, int) and not isinstance(norm, bool) and norm in {1, 2}:
        return norm
    raise BadParameter(
        "DP102",
        "norm must be 1 or 2.",
        why="Laplace noise is measured in the l1 norm and Gaussian noise in the l2 norm.",
        fix="norm=1",
    )

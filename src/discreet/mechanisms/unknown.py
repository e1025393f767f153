# SPDX-License-Identifier: Apache-2.0
"""The mean and the sum of numbers whose range nobody knows: a part of ε finds bounds, the rest answers within them.

    UnboundedMean(epsilon=1)(incomes).value            # a float, or a Refusal
    UnboundedSum(epsilon=1)(incomes).value

**Guarantee.** One guarantee for both steps, of ε in all, also when the first step refuses.

Why it holds: whatever the bounds are, the second step is private for the same, fixed part of ε; the bounds are an
answer of the first step, so the two compose. What would break it: records that are not clipped to the bounds that
were drawn.

Records beyond the bounds count as the bounds. That is a bias, and how large it is depends on the data: so `error` is None
and there is no interval. Whoever wants one asks for `Bounds` first and puts a bounded question afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from discreet import check, privacy
from discreet.exact import exactly, float_below
from discreet.mechanisms import queries
from discreet.mechanisms.bounds import Bounds
from discreet.mechanisms.mechanism import Mechanism, Refusal
from discreet.privacy.guarantee import Guarantee

__all__ = ["UnboundedMean", "UnboundedSum"]


class _Unbounded(Mechanism):
    """A search for bounds, and then a question about records within them."""

    def __init__(
        self,
        *,
        epsilon: float,
        share: float = 0.25,
        failure: float = 1e-3,
        exponents: Sequence[int] = (-64, 64),
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        whole = exactly(check.moderate(epsilon=epsilon))
        search = float_below(whole * exactly(check.inner_probability(share=share)))
        self.bounds = Bounds(
            epsilon=search, failure=failure, exponents=exponents, relation=relation, unit=unit
        )
        rest = float_below(whole - exactly(search))
        self._answer: dict[str, Any] = {"epsilon": rest, "relation": relation, "unit": unit}
        self._guarantee = self.bounds.guarantee + privacy.pure(**self._answer)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> object:
        found = self.bounds.draw(data)
        if isinstance(found, Refusal):
            return found
        return self._question(found).laplace(**self._answer).draw(data)

    @staticmethod
    @abstractmethod
    def _question(bounds: tuple[float, float]) -> queries.RecordQuery:
        """What is asked about records within those bounds."""


class UnboundedMean(_Unbounded):
    """The mean of records whose range, and whose number, is not known.

    **Guarantee.** ε-differential privacy in all, `share` of it for the bounds; `failure` and `exponents` are those of
    `Bounds`. Where the bounds are refused, so is the mean.

    Why it holds: `Bounds`, then `queries.mean` within them.

    >>> mechanism = UnboundedMean(epsilon=1.0, failure=1e-12)
    >>> mechanism.guarantee
    discrete_laplace(scale=4.0, sensitivity=1) + pure(epsilon=0.75)
    >>> abs(mechanism([3.0] * 10_000).value - 3.0) < 0.1
    True
    """

    @staticmethod
    def _question(bounds: tuple[float, float]) -> queries.RecordQuery:
        return queries.mean(bounds)


class UnboundedSum(_Unbounded):
    """The sum of records whose range is not known.

    **Guarantee.** ε-differential privacy in all, `share` of it for the bounds; `failure` and `exponents` are those of
    `Bounds`. Where the bounds are refused, so is the sum.

    Why it holds: `Bounds`, then `queries.sum` within them.

    >>> abs(UnboundedSum(epsilon=1.0, failure=1e-12)([3.0] * 10_000).value - 30_000) < 500
    True
    """

    @staticmethod
    def _question(bounds: tuple[float, float]) -> queries.RecordQuery:
        return queries.sum(bounds)

# SPDX-License-Identifier: Apache-2.0
"""at_most="auto": a contribution bound, chosen privately from a histogram of the numbers of rows of
units.

    CapMechanism(dataset, epsilon=0.1)(dataset).value       # 14, for example: paid once, used by every later question

A cap of k clips Σ (n_u − k)₊ rows and needs noise in proportion to k. The best k depends only on
how many units have more than k rows. The histogram has the public edges ⌈2^{j/2}⌉, and each unit is
in one bin of it.

**Guarantee.** ε-differential privacy, whatever is done with the histogram. With probability 99.9 %
no empty bin survives the noise, so the cap is not above the edge of the largest sizes that occur.

Why it holds: an added or removed unit moves the histogram by one in l1, a replaced unit by two, and
everything else is post-processing (compile.proof.md, § 9). Heavy tails get a low cap, because noise
hides bins with few units.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet import check, privacy
from discreet.errors import RefusedQuestion
from discreet.exact import exactly, float_above
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.engine import guard_engine
from discreet.tables.algebra.sums import Private, Relation, UnitSizes
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.groups import kept_rows

__all__ = ["CapMechanism"]

#: The probability that an empty bin survives. It is small, because such a bin can make the cap
#: huge, and with it the noise of every later answer.
_BETA = 0.001
_DOUBLINGS = 16
#: 1, 2, 3, 4, 6, 8, 12, …, 65536: ⌈2^{j/2}⌉, each once.
EDGES = tuple(dict.fromkeys(math.isqrt(2**j - 1) + 1 for j in range(2 * _DOUBLINGS + 1)))


class CapMechanism(Mechanism):
    """A whole number of rows that about balances clipping and noise.

    `question` restricts the choice to the rows of one question. `noise` is the mean absolute noise
    of later questions per unit of sensitivity; for a count at ε it is 1/ε. By default later
    questions are assumed to cost as much as this choice.

    **Guarantee.** As the module's.
    """

    def __init__(
        self,
        dataset: Dataset,
        question: Question | None = None,
        *,
        epsilon: float,
        noise: float | None = None,
    ) -> None:
        self.epsilon = check.moderate(epsilon=epsilon)
        self.noise = 1 / self.epsilon if noise is None else check.moderate(noise=noise)
        self._rows = _rows_of(dataset) if question is None else kept_rows(question)
        sensitivity = 2 if dataset.unit.relation == "replace" else 1
        self._distribution = LaplaceDistribution(float_above(sensitivity / exactly(self.epsilon)))
        self._guarantee = privacy.discrete_laplace(self._distribution.scale, sensitivity, unit=dataset.unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def floor(self) -> int:
        """The least t with P(noise >= t in some bin) <= 0.1 %; bins below it count as empty."""
        return self._distribution.tail_bound(2 * _BETA / (len(EDGES) + 1)) + 1

    def draw(self, data: Any) -> int:
        """The cap; `data` is the data set."""
        sizes = guard_engine(data.engine.sizes, UnitSizes(self._rows, (), EDGES))
        noisy = np.array(sizes, np.int64) + self._distribution.draw(len(EDGES) + 1)
        return self._best(np.where(noisy >= self.floor, noisy, 0).tolist())

    def _best(self, units: list[int]) -> int:
        """The edge with the least sum of clipped rows and noise."""
        # Each unit counts as if it had as many rows as the edge of its bin.
        sizes = (*EDGES, 2 * EDGES[-1])

        def loss(cap: int) -> float:
            clipped = sum(many * max(0, size - cap) for many, size in zip(units, sizes, strict=True))
            return clipped + self.noise * cap

        return min(EDGES, key=loss)


def _rows_of(dataset: Dataset) -> Relation:
    private = [table.name for table in dataset.tables.values() if table.private]
    if len(private) == 1:
        return Private(private[0])
    raise RefusedQuestion(
        "DP706",
        "at_most cannot be chosen for several private tables at once.",
        why="the rows of a unit are counted in one table, or in the rows of one question.",
        fix="at_most=20, or choose it for one question:  CapMechanism(dataset, question, epsilon=0.1)",
    )

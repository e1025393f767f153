# SPDX-License-Identifier: Apache-2.0
"""at_most="auto": how many rows of one unit should count, chosen privately from a histogram of how many they have.

    CapMechanism(dataset, epsilon=0.1)(dataset).value       # 14, say: paid once, used by every later question

A cap of k clips Σ (n_u − k)₊ rows and needs noise in proportion to k. Which k is best depends only on how many units have
more rows than k; each unit is in one bin of a histogram with public edges ⌈2^{j/2}⌉, so it adds one to it in all.

**Guarantee.** ε-differential privacy, whatever is done with the histogram. With probability 99.9 % no empty bin survives
the noise, so the cap is not above the edge of the largest sizes that occur.

Why it holds: a histogram moves by one in l1 when a unit comes or goes (two when one is replaced), and all else is
post-processing; compile.proof.md, § 9. Heavy tails are capped low: bins with few units drown in the noise.
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
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.data.engine import guard_engine
from discreet.tables.data.sums import Private, Relation, UnitSizes
from discreet.tables.plan.groups import kept_rows

__all__ = ["CapMechanism"]

_BETA = (
    0.001  # how often an empty bin may survive: it can make a cap, and the noise of every later answer, huge
)
_DOUBLINGS = 16
#: 1, 2, 3, 4, 6, 8, 12, …, 65536: ⌈2^{j/2}⌉, each once.
EDGES = tuple(dict.fromkeys(math.isqrt(2**j - 1) + 1 for j in range(2 * _DOUBLINGS + 1)))


class CapMechanism(Mechanism):
    """A whole number of rows at which clipping and noise are about balanced.

    **Guarantee.** As the module's. `question` narrows it to the rows that a question is about; `noise` is the mean absolute
    noise, per unit of sensitivity, of the questions to come: 1/ε of a count at ε. Without it, that of questions
    that cost as much as this choice.
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
        who = dataset.unit
        self._moved = 2 if who.relation == "replace" else 1
        self._law = LaplaceDistribution(float_above(self._moved / exactly(self.epsilon)))
        self._guarantee = privacy.discrete_laplace(self._law.scale, self._moved, unit=who)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def floor(self) -> int:
        """Noisy bins below this are taken as empty: the least t with P(noise >= t) <= 0.1 % over all bins together."""
        return self._law.tail_bound(2 * _BETA / (len(EDGES) + 1)) + 1

    def draw(self, data: Any) -> int:
        """The cap; `data` is the data set."""
        sizes = guard_engine(data.engine.sizes, UnitSizes(self._rows, (), EDGES))
        noisy = np.array(sizes, np.int64) + self._law.draw(len(EDGES) + 1)
        return self._best(np.where(noisy >= self.floor, noisy, 0).tolist())

    def _best(self, units: list[int]) -> int:
        """The edge with the least sum of clipped rows and noise; units of a bin have as many rows as its edge."""
        most = (*EDGES, 2 * EDGES[-1])

        def loss(cap: int) -> float:
            return (
                sum(many * max(0, size - cap) for many, size in zip(units, most, strict=True))
                + self.noise * cap
            )

        return min(EDGES, key=loss)


def _rows_of(dataset: Dataset) -> Relation:
    private = [table.name for table in dataset.tables.values() if table.private]
    if len(private) == 1:
        return Private(private[0])
    raise RefusedQuestion(
        "DP706",
        "at_most cannot be chosen for several private tables at once.",
        why="how many rows one unit has is asked of one relation.",
        fix="at_most=20, or choose it for one question:  CapMechanism(dataset, question, epsilon=0.1)",
    )

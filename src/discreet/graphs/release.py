# SPDX-License-Identifier: Apache-2.0
"""Counts of triangles and stars under edge privacy, in five ways.

    Triangles(nodes=22_470, epsilon=0.5)(edges).value
    KStars(k=2, nodes=22_470, epsilon=0.5, method="smooth")(edges).value

| method | guarantee | noise for | interval |
|---|---|---|---|
| "ladder" | ε | the local sensitivities at every distance; whole numbers | no |
| "smooth" | ε, or (ε, δ) if δ is stated | the smooth sensitivity; heavy tails | no |
| "bound" | (ε, δ) | a private bound on the local sensitivity, released with the count | yes |
| "propose" | (ε, δ) | a `bound` that you propose; refuses if the graph is near one that exceeds it | yes |
| "global" | ε | the worst graph with this number of nodes | yes |

**Guarantee.** The table states it, for one edge added or removed, on graphs with `nodes` public
nodes. A method without an interval has none because the margin of error would reveal how sensitive
the graph is.

Why it holds: graphs.proof.md, and the mechanisms that are used: `Ladder`, `SmoothMechanism`,
`HighProbabilityBound`, `ProposeTestRelease`, `Geometric`. What would break it: a `floor` or a
`bound` that was read off the graph.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.graphs.counts import StarCount, SubgraphCount, TriangleCount
from discreet.graphs.ladder import Ladder
from discreet.graphs.local import LocalSensitivity
from discreet.mechanisms.additive import Geometric
from discreet.mechanisms.guided import HighProbabilityBound
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.mechanisms.propose import ProposeTestRelease
from discreet.mechanisms.smooth.families import SmoothBudget
from discreet.mechanisms.smooth.release import SmoothMechanism
from discreet.mechanisms.smooth.statistics import Measured, Statistic
from discreet.privacy.guarantee import Guarantee

__all__ = ["METHODS", "CountRelease", "KStars", "Triangles"]

METHODS = ("ladder", "smooth", "bound", "propose", "global")
#: The arguments of each method beside ε: required, and optional.
_ARGUMENTS = {
    "ladder": ((), ("floor",)),
    "smooth": ((), ("delta",)),
    "bound": (("delta",), ("share",)),
    "propose": (("delta", "bound"), ("share",)),
    "global": ((), ()),
}
_MAX_COUNT = 10**100
_SHARE = 0.25  # of ε, for the private bound or the test


class CountRelease(Mechanism):
    """A noisy count of subgraphs; base of `Triangles` and `KStars`."""

    def __init__(self, count: SubgraphCount, epsilon: float, method: str, parameters: dict[str, Any]) -> None:
        self.count, self.method = count, check.choice(METHODS, method=method)
        arguments = {name: value for name, value in parameters.items() if value is not None}
        required, optional = _ARGUMENTS[self.method]
        if not set(required) <= set(arguments) <= {*required, *optional}:
            raise _wrong_arguments_error(self.method, required, optional)
        if count.most > _MAX_COUNT:
            raise _too_many_error()
        self.release: Mechanism = _RELEASES[self.method](count, check.moderate(epsilon=epsilon), **arguments)
        self.error_unit = self.release.error_unit

    @property
    def guarantee(self) -> Guarantee:
        return self.release.guarantee

    def draw(self, data: object) -> object:
        return self.release.draw(self.count.graph(data))

    def error(self, confidence: float = CONFIDENCE) -> object:
        return self.release.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any] | None:
        return self.release.interval(value, confidence)


class Triangles(CountRelease):
    """The number of triangles of a graph.

    **Guarantee.** See the table above. The value is an int; for "propose" a float, and for "bound"
    a pair of an int and the bound.

    >>> from discreet.graphs import Graph
    >>> kite = Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 1)], nodes=5)
    >>> Triangles(nodes=5, epsilon=1.0).guarantee
    pure(epsilon=1.0, unit='edge')
    >>> isinstance(Triangles(nodes=5, epsilon=1.0)(kite).value, int)
    True
    >>> bounded = Triangles(nodes=5, epsilon=1.0, delta=1e-6, method="bound")(kite)
    >>> bounded.value.bound
    3.0
    """

    def __init__(
        self,
        *,
        nodes: int,
        epsilon: float,
        delta: float | None = None,
        method: str = "ladder",
        floor: int | None = None,
        bound: int | None = None,
        share: float | None = None,
    ) -> None:
        count = TriangleCount(check.whole(at_least=3, nodes=nodes))
        parameters = {"delta": delta, "floor": floor, "bound": bound, "share": share}
        super().__init__(count, epsilon, method, parameters)


class KStars(CountRelease):
    """The number of stars with k points: a node and k of its neighbours.

    A star with two points is a path of two edges.

    **Guarantee.** As `Triangles`. The default method is "smooth", because the ladder for three and
    more points needs a floor that few graphs exceed. For "bound", the private bound is on the
    greatest degree.

    >>> KStars(k=2, nodes=100, epsilon=0.5, method="global").error(confidence=0.95)
    1174.0
    """

    def __init__(
        self,
        *,
        k: int,
        nodes: int,
        epsilon: float,
        delta: float | None = None,
        method: str = "smooth",
        floor: int | None = None,
        bound: int | None = None,
        share: float | None = None,
    ) -> None:
        k = check.whole(at_least=2, k=k)
        count = StarCount(check.whole(at_least=k + 1, nodes=nodes), k)
        parameters = {"delta": delta, "floor": floor, "bound": bound, "share": share}
        super().__init__(count, epsilon, method, parameters)


class _Global(Mechanism):
    """The count with noise for the global sensitivity."""

    def __init__(self, count: SubgraphCount, epsilon: float) -> None:
        self._count = count
        self._noise = Geometric(epsilon=epsilon, sensitivity=count.cap, unit="edge")

    @property
    def guarantee(self) -> Guarantee:
        return self._noise.guarantee

    def draw(self, data: Any) -> int:
        return int(self._noise.draw(self._count.exact(data)))

    def error(self, confidence: float = CONFIDENCE) -> float:
        return self._noise.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
        return self._noise.interval(value, confidence)


class _CountStatistic(Statistic):
    """A count and its smooth sensitivity, for `SmoothMechanism`."""

    relations = ("add-remove",)

    def __init__(self, count: SubgraphCount) -> None:
        self._count = count

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(self._count.most)

    def measure(self, records: Any, t: float) -> Measured:
        # The public guess of `typical`.
        if isinstance(records, LocalSensitivity):
            return Fraction(0), records.smooth(exactly(t))
        return Fraction(self._count.exact(records)), self._count.sensitivity(records).smooth(exactly(t))

    def typical(self, size: int) -> object:
        return self._count.typical()


class _Smooth(SmoothMechanism):
    """The count with noise for its smooth sensitivity, as a whole number."""

    def __init__(self, count: SubgraphCount, epsilon: float, delta: float | None = None) -> None:
        super().__init__(_CountStatistic(count), SmoothBudget(epsilon=epsilon, delta=delta), unit="edge")

    def draw(self, data: object) -> int:
        return round(super().draw(data))


class _Distance:
    """The distance to the nearest graph whose local sensitivity exceeds the bound."""

    def __init__(self, count: SubgraphCount, bound: int) -> None:
        self._count, self._bound = count, bound

    def __call__(self, graph: Any) -> float:
        return self._count.sensitivity(graph).distance_above(self._bound)


def _ladder(count: SubgraphCount, epsilon: float, floor: int | None = None) -> Mechanism:
    return Ladder(count, epsilon=epsilon, floor=floor)


def _bound(count: SubgraphCount, epsilon: float, *, delta: float, share: float = _SHARE) -> Mechanism:
    bound_epsilon, release_epsilon = _split(epsilon, share)
    # Noise that cannot be drawn exactly is refused here, before any draw.
    for sensitivity in (1, count.cap):
        Geometric(epsilon=release_epsilon, sensitivity=sensitivity)
    return HighProbabilityBound(
        count.exact,
        count.measure,
        sensitivity=count.sensitivity_below,
        bound_epsilon=bound_epsilon,
        release_epsilon=release_epsilon,
        delta=delta,
        mechanism=Geometric,
        unit="edge",
    )


def _propose(
    count: SubgraphCount, epsilon: float, *, delta: float, bound: int, share: float = _SHARE
) -> Mechanism:
    test_epsilon, release_epsilon = _split(epsilon, share)
    return ProposeTestRelease(
        count.exact,
        _Distance(count, check.whole(bound=bound)),
        bound=bound,
        test_epsilon=test_epsilon,
        release_epsilon=release_epsilon,
        delta=delta,
        unit="edge",
    )


_RELEASES: dict[str, Any] = {
    "ladder": _ladder,
    "smooth": _Smooth,
    "bound": _bound,
    "propose": _propose,
    "global": _Global,
}


def _split(epsilon: float, share: float) -> tuple[float, float]:
    """ε in two parts whose sum, as decimals, is at most ε."""
    first = float(exactly(epsilon) * exactly(check.inner_probability(share=share)))
    rest = exactly(epsilon) - exactly(first)
    second = float(rest)
    while exactly(second) > rest:
        second *= 1 - 2.0**-52
    return first, second


def _wrong_arguments_error(method: str, required: tuple[str, ...], optional: tuple[str, ...]) -> BadParameter:
    requires = " and ".join(required) or "nothing"
    accepts = f", and accepts {' and '.join(optional)}" if optional else ""
    return BadParameter(
        "DP107",
        f"method {method!r} needs {requires} beside epsilon{accepts}.",
        why="each method has its own theorem and its own parameters.",
        fix="Triangles(nodes=1_000, epsilon=0.5), or with method='bound', delta=1e-6",
    )


def _too_many_error() -> BadParameter:
    return BadParameter(
        "DP108",
        "a graph with this number of nodes can have more than 10**100 of these stars.",
        why="noise of that size cannot be represented exactly in floating point.",
        fix="count stars with fewer points, for example k=3",
    )

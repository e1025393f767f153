# SPDX-License-Identifier: Apache-2.0
"""How many questions a limit on (ε, δ) admits: by basic composition, as it was, as it is now, and at best.

    python benchmarks/limits.py                            # a minute
    python benchmarks/limits.py --write                    # and keep the table in benchmarks/RESULTS.md

"Before" keeps a tenth of δ for mechanisms that may fail, and key selection takes a quarter of a question's δ; "now" the first
charge chooses the split, and key selection takes a tenth. "Expected" is now with the questions listed in `expects=`. "At best"
is the largest number of questions, fixed in advance, whose exact composition is within the limit: no filter can admit
more. Basic composition divides δ equally among Gaussian questions, as well as it can.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "peers")]

import report as tables  # noqa: E402

import discreet as dp  # noqa: E402
from discreet import privacy  # noqa: E402
from discreet.errors import OverBudget  # noqa: E402
from discreet.ledger import Limit  # noqa: E402
from discreet.privacy.guarantee import Guarantee, compose  # noqa: E402

DELTA = 1e-6
MOST = 2_000


@dataclass(frozen=True)
class Mix:
    """Questions that are asked in turn under (ε, 1e-6): their guarantees, given the share of δ that finds keys."""

    name: str
    epsilon: float
    questions: Callable[[float], list[Guarantee]]
    basic: Callable[[int], bool]


def main() -> None:
    options = _options()
    lines = []
    for line in _page():
        print(line, flush=True)
        lines.append(line)
    if options.write:
        tables.replace_section(HERE / "RESULTS.md", "Limits", lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def _page() -> Iterator[str]:
    yield from tables.heading(f"python benchmarks/limits.py {shlex.join(sys.argv[1:])}".strip())
    yield ""
    yield "Questions that are admitted before the first refusal, δ of the limit 1e-6."
    yield ""
    yield "| questions, in turn | ε of the limit | basic | before | now | expected | at best |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for mix in MIXES:
        before, now = mix.questions(0.25), mix.questions(0.1)
        counts = [
            _largest(mix.basic),
            _admitted(Limit.filter(mix.epsilon, DELTA, leaks=0.1), before),
            _admitted(Limit.filter(mix.epsilon, DELTA), now),
            _admitted(Limit.filter(mix.epsilon, DELTA, expects=now), now),
            _largest(lambda count, mix=mix, now=now: _composed(now, count).delta(mix.epsilon) <= DELTA),  # type: ignore[misc]
        ]
        yield f"| {mix.name} | {mix.epsilon:g} | {' | '.join(map(str, counts))} |"


def _admitted(limit: Limit, questions: list[Guarantee]) -> int:
    state, costs = limit.start(), [limit.cost(question) for question in questions]
    for done in range(MOST):
        try:
            state = limit.admit(state, costs[done % len(costs)])
        except OverBudget:
            return done
    return MOST


def _composed(questions: list[Guarantee], count: int) -> Guarantee:
    asked = Counter(questions[number % len(questions)] for number in range(count))
    return compose(list(asked.items()))


def _largest(fits: Callable[[int], bool]) -> int:
    low, high = 0, 1
    while high < MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _with_keys(epsilon: float, delta: float) -> Callable[[float], list[Guarantee]]:
    """A Gaussian question that finds its keys with a share of its δ."""

    def questions(share: float) -> list[Guarantee]:
        def of(noise: float) -> Guarantee:
            return privacy.leaky(share * delta) + privacy.gaussian(noise)

        return [of(dp.calibrate(of, to=privacy.approximate(epsilon, delta)))]

    return questions


def _gaussian(rho: float) -> Guarantee:
    return privacy.gaussian(math.sqrt(1 / (2 * rho)))


def _stated(limit: float, *costs: tuple[float, float]) -> Callable[[int], bool]:
    """Whether so many questions with these ε and δ, in turn, add up to no more than the limit."""

    def fits(count: int) -> bool:
        asked = [costs[number % len(costs)] for number in range(count)]
        within = math.fsum(e for e, _ in asked) <= limit * (1 + 1e-12)
        return within and math.fsum(d for _, d in asked) <= DELTA * (1 + 1e-12)

    return fits


def _divided(limit: float, question: Guarantee, own: float = 0.0) -> Callable[[int], bool]:
    """The same for questions without a δ, or with `own` of it: what is left is divided equally."""
    return lambda count: own * count < DELTA and question.epsilon(DELTA / count) * count <= limit


def _mixed(count: int) -> bool:
    """Laplace 0.1, Gaussian ρ = 0.002 and keys at (0.1, 2e-8), in turn, with what is left of δ for the Gaussian ones."""
    laplace, gaussian, keys = (len(range(start, count, 3)) for start in range(3))
    rest = DELTA - 2e-8 * keys
    if rest <= 0:
        return False
    each = _gaussian(0.002).epsilon(rest / gaussian) if gaussian else 0.0
    return 0.1 * (laplace + keys) + each * gaussian <= 2 * (1 + 1e-12)


MIXES = [
    Mix(
        "M1: any mechanism at (0.5, 1e-7), private keys",
        4,
        lambda _: [privacy.approximate(0.5, 1e-7)],
        _stated(4, (0.5, 1e-7)),
    ),
    Mix("M1g: Gaussian at (0.5, 1e-7), private keys", 4, _with_keys(0.5, 1e-7), _stated(4, (0.5, 1e-7))),
    Mix(
        "M2: any mechanism at (0.05, 1e-8), private keys",
        1,
        lambda _: [privacy.approximate(0.05, 1e-8)],
        _stated(1, (0.05, 1e-8)),
    ),
    Mix(
        "M3: Laplace 0.1, Gaussian ρ = 0.002, private keys at (0.1, 2e-8)",
        2,
        lambda _: [privacy.laplace(10), _gaussian(0.002), privacy.approximate(0.1, 2e-8)],
        _mixed,
    ),
    Mix("M4: Gaussian ρ = 0.001", 1, lambda _: [_gaussian(0.001)], _divided(1, _gaussian(0.001))),
    Mix(
        "M5: Gaussian ρ = 0.0005 with a leak of 1e-8",
        1,
        lambda _: [_gaussian(0.0005) + privacy.leaky(1e-8)],
        _divided(1, _gaussian(0.0005) + privacy.leaky(1e-8), own=1e-8),
    ),
    Mix("M6: Laplace 0.2", 3, lambda _: [privacy.laplace(5)], _stated(3, (0.2, 0.0))),
    Mix("M7: Gaussian at (0.2, 1e-6), private keys", 1, _with_keys(0.2, 1e-6), _stated(1, (0.2, 1e-6))),
]


if __name__ == "__main__":
    main()

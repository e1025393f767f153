# SPDX-License-Identifier: Apache-2.0
"""The error of numbers that are published again every period: factors of discreet, trees, and jax-privacy.

    python benchmarks/streams.py                                     # seconds
    python benchmarks/streams.py --peer /path/to/python --write      # with jax-privacy, installed there

Standard deviations of running totals, for noise of one sensitivity: the greatest of all periods and, behind the
stroke, the root of the mean of their squares. Units take part in k periods, b apart. The third table has the noise of
(ε, 1e-6) for units that take part once. "Figure" compares with published figures of the same quantity.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "peers")]

import report as tables  # noqa: E402

import discreet as dp  # noqa: E402
from discreet import privacy  # noqa: E402
from discreet.streams import (  # noqa: E402
    Factor,
    Participation,
    banded_inverse,
    best_factor,
    independent,
    predict,
    square_root,
)

DELTA = 1e-6
#: T, and the greatest / mean deviation of independent noise and of the square root.
ONCE = {
    12: ((3.46, 2.55), (1.851, 1.709)),
    52: ((7.21, 5.15), (2.322, 2.164)),
    365: ((19.1, 13.5), (2.944, 2.782)),
    10_000: ((100.0, 70.7), (3.998, 3.836)),
}
#: T, k, b and the figures of independent noise, the square root, and a banded inverse of so many bands.
BACK = [
    (52, 1, 1, (7.2, 5.1), (2.32, 2.16), 16, (2.38, 2.12)),
    (52, 4, 1, (14.4, 10.3), (8.04, 7.49), 16, (8.14, 7.22)),
    (52, 4, 13, (14.4, 10.3), (5.98, 5.58), 8, (5.85, 4.86)),
    (52, 12, 4, (25.0, 17.8), (16.1, 15.0), 4, (14.5, 11.2)),
    (52, 52, 1, (52.0, 37.1), (63.5, 59.2), 2, (52.6, 38.5)),
    (365, 12, 30, (66.2, 46.9), (18.2, 17.2), 16, (17.1, 13.1)),
    (365, 52, 7, (138, 97.6), (72.6, 68.6), 8, (59.0, 43.4)),
    (365, 365, 1, (365, 258), (500, 472), 2, (366, 260)),
]
EPSILONS = (0.1, 1.0, 4.0)


def main() -> None:
    options = _options()
    lines = []
    for line in _page(_peers(options.peer, options.answers)):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        tables.replace_section(HERE / "RESULTS.md", "Streams", lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has jax-privacy")
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="what peers/streams_jax_privacy.py printed earlier, in its own Python",
    )
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    return parser.parse_args()


def _page(others: dict[tuple, str]) -> Iterator[str]:
    started = time.process_time()
    yield f"`python {shlex.join(['benchmarks/streams.py', *(['--write'] if '--write' in sys.argv else [])])}`."
    yield ""
    yield "Units take part once; greatest / mean deviation of a total per sensitivity."
    yield ""
    yield "| T | least mean of any factor | independent | tree | tree, all nodes | **square root** | largest gap to the figure |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    for periods, figures in ONCE.items():
        found = [
            _deviations(factor, Participation()) for factor in (independent(periods), square_root(periods))
        ]
        yield (
            f"| {periods:,} | {_nuclear(periods):.3f} | {_pair(found[0])} | {_pair(_tree(periods, refined=False))} | "
            f"{_pair(_tree(periods, refined=True))} | **{_pair(found[1])}** | {_gap(found, figures):.2%} |"
        )
    yield ""
    yield "Units that return: in k periods, b apart. The chosen factor is the best of those that discreet tries."
    yield ""
    yield "| T, k, b | independent | square root | banded inverse (bands) | chosen by discreet | jax-privacy BLT | jax-privacy BandMF | gap to the figure |"
    yield "|---|--:|--:|--:|---|--:|--:|--:|"
    for periods, k, b, *figures, bands, last in BACK:
        bound = Participation(periods=k, apart=b)
        factors = (independent(periods), square_root(periods), banded_inverse(periods, bands))
        found = [_deviations(factor, bound) for factor in factors]
        best = best_factor(periods, bound)
        yield (
            f"| {periods}, {k}, {b} | {_pair(found[0])} | {_pair(found[1])} | {_pair(found[2])} ({bands}) | "
            f"{best.factor.name}: **{_pair((best.greatest, best.mean))}** | {others.get((periods, k, b, 'BLT'), '')} | "
            f"{others.get((periods, k, b, 'BandMF'), '')} | {_gap(found, [*figures, last]):.2%} |"
        )
    yield ""
    yield f"Greatest deviation of a total at (ε, {DELTA:g}); units take part once."
    yield ""
    yield (
        "| T | "
        + " | ".join(
            f"ε = {e:g}: independent Laplace · square root, zCDP · square root, GDP" for e in EPSILONS
        )
        + " |"
    )
    yield "|--:|" + "--:|" * len(EPSILONS)
    noises = {epsilon: _noises(epsilon) for epsilon in EPSILONS}
    for periods in ONCE:
        unit = predict(square_root(periods), Participation()).greatest
        cells = []
        for epsilon in EPSILONS:
            laplace = math.sqrt(periods) * _laplace_deviation(epsilon)
            best = min(laplace, noises[epsilon][1] * unit)
            trio = (laplace, noises[epsilon][0] * unit, noises[epsilon][1] * unit)
            cells.append(" · ".join(f"**{x:.3g}**" if x == best else f"{x:.3g}" for x in trio))
        yield f"| {periods:,} | {' | '.join(cells)} |"
    yield ""
    yield (
        "zCDP is what is known of discrete Gaussian noise (Canonne, Kamath, Steinke 2020), with σ = "
        f"{', '.join(f'{noises[e][0]:.3g}' for e in EPSILONS)}; GDP is what holds for rounded Gaussian noise, which discreet "
        f"draws, with σ = {', '.join(f'{noises[e][1]:.3g}' for e in EPSILONS)}."
    )
    yield f"{time.process_time() - started:.1f} CPU seconds for all of discreet's figures."


def _deviations(factor: Factor, bound: Participation) -> tuple[float, float]:
    prediction = predict(factor, bound)
    return prediction.greatest, prediction.mean


def _pair(numbers: tuple[float, float]) -> str:
    return " / ".join(f"{x:.3f}" if x < 10 else f"{x:.1f}" for x in numbers)


def _gap(found, figures) -> float:
    """The greatest relative difference beyond the digits that the figures show."""
    gaps = [0.0]
    for pair, shown in zip(found, figures, strict=True):
        for value, figure in zip(pair, shown, strict=True):
            digits = len(repr(figure).partition(".")[2]) if isinstance(figure, float) else 0
            rounding = 0.5 * 10.0**-digits
            gaps.append(max(0.0, abs(value - figure) - rounding) / figure)
    return max(gaps)


def _nuclear(periods: int) -> float:
    """The nuclear norm of "add up everything so far" over T bounds the mean of every factorisation."""
    angles = (2 * np.arange(1, periods + 1) - 1) * math.pi / (4 * periods + 2)
    return float(np.sum(1 / (2 * np.sin(angles)))) / periods


def _tree(periods: int, *, refined: bool) -> tuple[float, float]:
    """The binary tree; `refined` combines each node with those below it (Honaker 2015)."""
    levels = periods.bit_length()
    variances = [1.0]
    for _ in range(levels - 1):
        variances.append(1 / (1 + 1 / (2 * variances[-1])) if refined else 1.0)
    totals = [
        levels * sum(variances[bit] for bit in range(levels) if t >> bit & 1) for t in range(1, periods + 1)
    ]
    return math.sqrt(max(totals)), math.sqrt(sum(totals) / periods)


def _laplace_deviation(epsilon: float) -> float:
    q = math.exp(-epsilon)
    return math.sqrt(2 * q) / (1 - q)


def _noises(epsilon: float) -> tuple[float, float]:
    """σ for one sensitivity: by zero-concentrated privacy, and by the exact Gaussian curve."""
    target = privacy.approximate(epsilon, DELTA)
    rho = 1 / dp.calibrate(lambda inverse: privacy.concentrated(1 / inverse), to=target)
    return 1 / math.sqrt(2 * rho), dp.calibrate(privacy.gaussian, to=target)


def _peers(python: str | None, answers: str | None) -> dict[tuple, str]:
    """The errors of the peers, with the CPU seconds that they took; of an earlier run, or of a new one."""
    if python is None and answers is None:
        return {}
    if answers is not None:
        text = Path(answers).read_text(encoding="utf-8")
    else:
        script = str(HERE / "peers" / "streams_jax_privacy.py")
        text = subprocess.run([str(python), script], capture_output=True, text=True, check=True).stdout
    return {
        (
            one["periods"],
            one["k"],
            one["apart"],
            one["name"],
        ): f"{_pair(one['errors'])} ({one['seconds']:.0f} s)"
        for one in json.loads(text)
    }


if __name__ == "__main__":
    main()

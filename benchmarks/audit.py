# SPDX-License-Identifier: Apache-2.0
"""The auditor measured: what it catches, how often it accuses wrongly, and how near it comes to the best attack.

    python benchmarks/audit.py                 # everything
    python benchmarks/audit.py --runs 200      # fewer runs for the false alarms
    python benchmarks/audit.py --write         # and keep the tables in benchmarks/RESULTS.md

The faults are those of tests/attacks/broken.py. A false alarm is a refuted claim that holds exactly, so the rates are
those of the hardest case; the confidence there is low enough for a rate to be seen.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import norm

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "peers")]

import report as tables  # noqa: E402

from discreet import privacy  # noqa: E402
from discreet.audit import audit, batched, clopper_pearson, worst_pair  # noqa: E402
from discreet.mechanisms import Gaussian, Geometric, Laplace  # noqa: E402
from tests.attacks.broken import FAULTS  # noqa: E402
from tests.audit.test_false_alarms import TIGHT, accused  # noqa: E402


def main() -> None:
    options = _options()
    lines = []
    for line in _page(options.runs):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        tables.replace_section(HERE / "RESULTS.md", "Audit", lines)


def _page(runs: int) -> Iterator[str]:
    yield from tables.heading(f"python benchmarks/audit.py {shlex.join(sys.argv[1:])}".strip())
    yield ""
    yield "Faults, at confidence 0.999. Excess: certified detection above the claimed curve; > 0 is caught."
    yield ""
    yield from _faults()
    yield ""
    yield "Time of a whole audit of 100,000 runs on each input, drawing included, and the lower bounds of the kept ones:"
    yield ""
    yield from _kept()
    yield ""
    yield f"False alarms in {runs} audits of 400 runs on each input, on claims that hold exactly:"
    yield ""
    yield from _false_alarms(runs)
    yield ""
    yield "Power: the ε that the best event would prove with the same runs and the same confidence, and the one proved:"
    yield ""
    yield from _power()


def _faults() -> Iterator[str]:
    yield "| fault | claim | trials | caught | excess | ε at least | μ at least | s |"
    yield "|---|---|--:|---|--:|--:|--:|--:|"
    for fault in FAULTS:
        settings = {"claim": fault.claim, "trials": fault.trials, "look_at": fault.look_at}
        found = audit(batched(fault.draw), fault.x, fault.x_neighbour, **settings)
        yield (
            f"| {fault.name} | {fault.claim!r} | {fault.trials} | {'yes' if found.refutes() else '**NO**'} "
            f"| {found.excess().amount:.4f} | {found.epsilon_at_least():.2f} | {found.mu_at_least:.2f} "
            f"| {found.seconds:.1f} |"
        )


def _kept() -> Iterator[str]:
    yield "| mechanism | refuted | ε at least | μ at least | wall s | CPU s of this process |"
    yield "|---|---|--:|--:|--:|--:|"
    for mechanism in (
        Laplace(epsilon=1, sensitivity=1),
        Geometric(epsilon=1, sensitivity=1),
        Gaussian(scale=1.0, sensitivity=1),
    ):
        began, cpu = time.perf_counter(), time.process_time()
        found = audit(mechanism, *worst_pair(mechanism))
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        yield (
            f"| {mechanism.guarantee!r} | {'**YES**' if found.refutes() else 'no'} "
            f"| {found.epsilon_at_least():.3f} | {found.mu_at_least:.3f} | {took:.1f} | {cpu:.1f} |"
        )


def _false_alarms(runs: int) -> Iterator[str]:
    yield "| mechanism | confidence | allowed | seen |"
    yield "|---|--:|--:|--:|"
    for name in TIGHT:
        for confidence in (0.8, 0.999):
            count = accused(name, runs, 400, confidence)
            yield f"| {name} | {confidence:g} | {(1 - confidence) * runs:.0f} | {count} |"


def _power(trials: int = 100_000, alpha: float = 1e-3) -> Iterator[str]:
    """The best event of a Laplace or Gaussian pair is known; give it the whole error probability."""
    half = trials - 2 * (trials // 4)
    yield "| noise | true value | best event, all runs | best event, half of them | proved |"
    yield "|---|--:|--:|--:|--:|"
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        rates = 0.5, 0.5 * math.exp(-epsilon)
        best = [_ratio(rates, size, alpha / 2) for size in (trials, half)]
        draw = batched(lambda data, n, e=epsilon: data + np.random.default_rng().laplace(0, 1 / e, n))
        found = audit(draw, 0.0, 1.0, claim=privacy.pure(epsilon), look_at="values").epsilon_at_least()
        yield f"| Laplace, ε | {epsilon:g} | {best[0]:.3f} | {best[1]:.3f} | {found:.3f} |"
    for mu in (0.5, 1.0, 2.0):
        rates = float(norm.cdf(mu / 2)), float(norm.cdf(-mu / 2))
        best = [_shift(rates, size, alpha / 2) for size in (trials, half)]
        draw = batched(lambda data, n, m=mu: data + np.random.default_rng().normal(0, 1 / m, n))
        found = audit(draw, 0.0, 1.0, claim=privacy.gaussian(1 / mu), look_at="values").mu_at_least
        yield f"| Gaussian, μ | {mu:g} | {best[0]:.3f} | {best[1]:.3f} | {found:.3f} |"


def _corner(rates: tuple[float, float], trials: int, alpha: float) -> tuple[float, float]:
    """What Clopper and Pearson certify if the counts are the expected ones."""
    detection = clopper_pearson(round(rates[0] * trials), trials, alpha)[0]
    return float(detection), float(clopper_pearson(round(rates[1] * trials), trials, alpha)[1])


def _ratio(rates: tuple[float, float], trials: int, alpha: float) -> float:
    detection, false_alarm = _corner(rates, trials, alpha)
    return math.log(detection / false_alarm)


def _shift(rates: tuple[float, float], trials: int, alpha: float) -> float:
    detection, false_alarm = _corner(rates, trials, alpha)
    return float(norm.ppf(detection) - norm.ppf(false_alarm))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2_000, help="audits of each kept mechanism")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()

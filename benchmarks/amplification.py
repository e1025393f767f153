# SPDX-License-Identifier: Apache-2.0
"""Amplification as it is practised: random allocation, shuffled reports, truncated batches, mixtures.

    python benchmarks/amplification.py              # beside dp-accounting, where it has the case
    python benchmarks/amplification.py --no-peers   # discreet alone
    python benchmarks/amplification.py --write      # and keep the tables in benchmarks/RESULTS.md

Each value is a certified bracket, with CPU seconds. dp-accounting 0.6.0 has neither
allocation nor shuffling; beside allocation stands what it says of Poisson sampling at the same rate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import environments  # noqa: E402
import report  # noqa: E402

from discreet import privacy  # noqa: E402

DELTA = 1e-6
ALLOCATED = [
    (1.0, 10, 1),
    (1.0, 100, 1),
    (1.0, 128, 1),
    (1.0, 1000, 1),
    (0.5, 100, 1),
    (0.3, 128, 1),
    (1.0, 10, 10),
    (1.0, 100, 10),
    (2.0, 100, 100),
    (0.6, 1000, 10),
]
SHUFFLED = [(0.5, 100, 1e-3), (1.0, 1000, 1e-6), (1.0, 10**4, 1e-6), (2.0, 10**4, 1e-6)]
SHUFFLED += [(4.0, 10**5, 1e-6), (1.0, 10**6, 1e-8), (8.0, 10**6, 1e-6)]


def main() -> None:
    """Compute, print, and keep the tables if told to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--no-peers", action="store_true", help="discreet alone")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    options = parser.parse_args()
    peer = {} if options.no_peers else _ask_peer()
    lines = [
        f"`python benchmarks/amplification.py --write`, {datetime.now(UTC).date()}. CPU seconds of a first call.",
        "",
    ]
    lines += [*_allocation(peer), "", *_shuffling(), "", *_batches(peer)]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Amplification", lines)


def _ask_peer() -> dict[str, tuple[float, float]]:
    """ε and CPU seconds of each case that dp-accounting has."""
    python = environments.python_of("dp-accounting")
    done = subprocess.run(
        [str(python), str(HERE / "peers" / "ask_amplification.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    answers: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return answers


def _bracket(guarantee: privacy.Guarantee, delta: float = DELTA) -> tuple[str, str]:
    """The certified bracket, its width, and seconds."""
    started = time.process_time()
    upper = guarantee.epsilon(delta)
    seconds = time.process_time() - started
    lower = guarantee.bound(delta=delta).lower
    return f"[{lower:.6g}, {upper:.6g}] | {upper - lower:.1e}", f"{seconds:.2f}"


def _shown(answer: tuple[float, float] | None) -> str:
    return f"{answer[0]:.6g} ({answer[1]:.2f} s)" if answer else ""


def _allocation(peer: dict[str, tuple[float, float]]) -> list[str]:
    lines = [
        "| σ, steps, epochs | allocated: certified ε | width | CPU s | Poisson | dp-accounting, Poisson |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for noise, steps, epochs in ALLOCATED:
        step = privacy.gaussian(noise)
        bracket, seconds = _bracket(epochs * step.allocated(steps))
        poisson = (epochs * steps * step.sampled(1 / steps)).epsilon(DELTA)
        other = _shown(peer.get(f"poisson {noise} {steps} {epochs}"))
        lines.append(f"| {noise:g}, {steps}, {epochs} | {bracket} | {seconds} | {poisson:.6g} | {other} |")
    return lines


def _shuffling() -> list[str]:
    lines = [
        "| ε₀, n, δ | any randomiser: ε ≤ | CPU s | two answers: certified ε | width | CPU s |",
        "|---|--:|--:|---|--:|--:|",
    ]
    for epsilon, people, delta in SHUFFLED:
        started = time.process_time()
        general = privacy.shuffled(privacy.pure(epsilon, relation="replace"), people).epsilon(delta)
        seconds = time.process_time() - started
        local = privacy.randomized_response(epsilon, relation="replace")
        bracket, two = _bracket(privacy.shuffled(local, people), delta)
        lines.append(
            f"| {epsilon:g}, {people:,}, {delta:g} | {general:.6g} | {seconds:.2f} | {bracket} | {two} |"
        )
    return lines


def _batches(peer: dict[str, tuple[float, float]]) -> list[str]:
    small = 3 * privacy.truncated_batches(1.0, 0.5, 2, 4) + 2 * privacy.truncated_batches(1.0, 0.5, 2, 3)
    long = 1000 * privacy.truncated_batches(1.0, 0.01, 150, 10_000)
    mixture = 3 * privacy.gaussian_mixture(1.0, {0: 0.2, 1: 0.6, 2: 0.2})
    mixture += 2 * privacy.gaussian_mixture(2.0, {0: 0.33, 2: 0.34, 3: 0.33})
    lines = ["| case | certified ε | width | CPU s | dp-accounting |", "|---|---|--:|--:|--:|"]
    cases = [
        ("batches of 2 of 4 (3 times) and of 3 (twice), q = 1/2, σ = 1", small, "truncated small"),
        ("1,000 batches of 150 of 10,000, q = 0.01, σ = 1", long, "truncated long"),
        ("3 · (σ 1; 0, 1, 2) + 2 · (σ 2; 0, 2, 3)", mixture, "mixture"),
    ]
    for name, guarantee, key in cases:
        bracket, seconds = _bracket(guarantee)
        lines.append(f"| {name} | {bracket} | {seconds} | {_shown(peer.get(key))} |")
    return lines


if __name__ == "__main__":
    main()

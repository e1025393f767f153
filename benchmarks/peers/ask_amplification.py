# SPDX-License-Identifier: Apache-2.0
"""What dp-accounting says of the cases of `amplification.py` that it knows: JSON of ε, or of seconds and ε."""

from __future__ import annotations

import json
import time

from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

DELTA = 1e-6


def main() -> None:
    """Answer every case, one line of JSON for all."""
    answers: dict[str, tuple[float, float]] = {}
    for noise, steps, epochs in (
        (1.0, 10, 1),
        (1.0, 100, 1),
        (1.0, 1000, 1),
        (0.5, 100, 1),
        (0.3, 128, 1),
        (1.0, 100, 10),
    ):
        step = dp_event.PoissonSampledDpEvent(1 / steps, dp_event.GaussianDpEvent(noise))
        answers[f"poisson {noise} {steps} {epochs}"] = _epsilon([(step, steps * epochs)])
    truncated = [
        (dp_event.TruncatedSubsampledGaussianDpEvent(4, 0.5, 2, 1.0), 3),
        (dp_event.TruncatedSubsampledGaussianDpEvent(3, 0.5, 2, 1.0), 2),
    ]
    answers["truncated small"] = _epsilon(truncated)
    long = [(dp_event.TruncatedSubsampledGaussianDpEvent(10_000, 0.01, 150, 1.0), 1000)]
    answers["truncated long"] = _epsilon(long)
    mixed = [
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [0, 1, 2], [0.2, 0.6, 0.2]), 3),
        (dp_event.MixtureOfGaussiansDpEvent(2.0, [0, 2, 3], [0.33, 0.34, 0.33]), 2),
    ]
    answers["mixture"] = _epsilon(mixed)
    print(json.dumps(answers))


def _epsilon(events: list[tuple[dp_event.DpEvent, int]]) -> tuple[float, float]:
    started = time.process_time()
    accountant = PLDAccountant()
    for event, count in events:
        accountant.compose(event, count)
    return accountant.get_epsilon(DELTA), time.process_time() - started


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The same questions to another certified accountant, in its own environment (`pytest -m peers`).

dp-accounting rounds a loss distribution up or down; its two answers bracket the truth, so our bracket must not lie
beside theirs. The questions are drawn at random, from a fixed seed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet import privacy

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ASK = """
import json, logging, sys
from dp_accounting.pld import privacy_loss_distribution as pld
logging.disable(logging.WARNING)
for case in json.load(sys.stdin):
    row = []
    for up in (False, True):
        if case["kind"] == "sampled gaussian":
            law = pld.from_gaussian_mechanism(case["noise"], sampling_prob=case["rate"], pessimistic_estimate=up)
        elif case["kind"] == "laplace":
            law = pld.from_laplace_mechanism(case["noise"], pessimistic_estimate=up)
        else:
            law = pld.from_discrete_gaussian_mechanism(case["noise"], pessimistic_estimate=up)
        law = law.self_compose(case["count"])
        row.append([law.get_epsilon_for_delta(case["delta"]), law.get_delta_for_epsilon(case["epsilon"])])
    print(json.dumps(row))
"""


def _cases() -> list[dict[str, Any]]:
    chance = random.Random(5)
    return [
        {
            "kind": kind,
            "noise": round(chance.uniform(0.8, 5), 2),
            "rate": round(10 ** chance.uniform(-2.5, -0.5), 4),
            "count": int(10 ** chance.uniform(0, 2.5)),
            "delta": 10 ** round(chance.uniform(-9, -2)),
        }
        for kind in ("sampled gaussian", "laplace", "discrete gaussian")
        for _ in range(5)
    ]


def _ours(case: dict[str, Any]) -> Any:
    if case["kind"] == "sampled gaussian":
        return case["count"] * privacy.gaussian(case["noise"]).sampled(case["rate"])
    make = privacy.laplace if case["kind"] == "laplace" else privacy.discrete_gaussian
    return case["count"] * make(case["noise"])


@pytest.mark.peers
def test_both_brackets_hold_the_same_truth() -> None:
    sys.path.insert(0, str(BENCHMARKS / "peers"))
    import environments

    cases = _cases()
    ours = []
    for case in cases:
        by_delta = _ours(case).bound(delta=case["delta"])
        case["epsilon"] = 0.8 * by_delta.upper + 0.01
        ours.append((by_delta, _ours(case).bound(epsilon=case["epsilon"])))
    python = environments.python_of("dp-accounting")
    done = subprocess.run(
        [str(python), "-c", ASK], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    for case, bounds, line in zip(cases, ours, done.stdout.splitlines(), strict=True):
        optimistic, pessimistic = json.loads(line)
        for bound, low, high in zip(bounds, optimistic, pessimistic, strict=True):
            assert bound.upper >= low * (1 - 1e-9), case
            assert bound.lower <= high * (1 + 1e-9), case

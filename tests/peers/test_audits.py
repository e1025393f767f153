# SPDX-License-Identifier: Apache-2.0
"""Released mechanisms of other libraries, run in their own environments and audited here (`pytest -m peers`).

Each of these is a published weakness; the auditor has to find it from outputs alone. Ours, asked beside them on the
same inputs, must not be accused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet import privacy

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TRIALS = 40_000

FLOATS = """
import json, sys
from diffprivlib import mechanisms
case = json.load(sys.stdin)
made = {
    "Laplace": lambda: mechanisms.Laplace(epsilon=1, sensitivity=1),
    "LaplaceTruncated": lambda: mechanisms.LaplaceTruncated(epsilon=1, sensitivity=1, lower=-50, upper=50),
    "GaussianAnalytic": lambda: mechanisms.GaussianAnalytic(epsilon=1, delta=1e-5, sensitivity=1),
}[case["name"]]()
print(json.dumps([made.randomise(case["value"]).hex() for _ in range(case["trials"])]))
"""
TOOLS = """
import json, sys, warnings
import numpy as np
from diffprivlib import tools
warnings.simplefilter("ignore")
case = json.load(sys.stdin)
records = np.array([float(x) for x in case["records"]])
def mean():
    try:
        return float(tools.mean(records, epsilon=1, bounds=(0, 1)))
    except ZeroDivisionError:
        return float("inf")
print(json.dumps([mean().hex() for _ in range(case["trials"])]))
"""


def _drawn(program: str, **case: object) -> np.ndarray:
    sys.path.insert(0, str(BENCHMARKS / "peers"))
    import environments

    done = subprocess.run(
        [str(environments.python_of("diffprivlib")), "-c", program],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array([float.fromhex(word) for word in json.loads(done.stdout)])


def _replayed(**outputs: np.ndarray) -> object:
    """What was drawn for each input, as something to audit; every output is used once."""
    left = dict(outputs)

    def take(which: str, count: int) -> np.ndarray:
        taken, left[which] = left[which][:count], left[which][count:]
        return taken

    return dp.audit.batched(take)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["Laplace", "LaplaceTruncated", "GaussianAnalytic"])
def test_floats_give_their_input_away(name) -> None:
    """The low bits of a float plus a float depend on the first: far more than ε = 1 is proved."""
    at = {
        which: _drawn(FLOATS, name=name, value=value, trials=TRIALS)
        for which, value in (("x", 0.0), ("y", 1.0))
    }
    report = dp.audit.audit_bits(_replayed(**at), "x", "y", trials=TRIALS, claim=privacy.approximate(1, 1e-5))
    assert report.refutes()
    assert report.epsilon_at_least(delta=1e-5) > 2


@pytest.mark.peers
def test_a_missing_value_shows_in_a_mean() -> None:
    """One NaN among the records, and the answer is NaN: seen with certainty."""
    clean, marked = [0.5] * 20, [0.5] * 19 + ["nan"]
    at = {which: _drawn(TOOLS, records=rows, trials=2_000) for which, rows in (("x", clean), ("y", marked))}
    report = dp.audit.audit(_replayed(**at), "x", "y", trials=2_000, claim=privacy.pure(1))
    assert report.refutes()
    assert report.epsilon_at_least() > 3


@pytest.mark.peers
def test_the_last_record_shows_when_it_leaves() -> None:
    """The mean of one record is a number; of none it is an error or no number, which the last record pays for."""
    at = {which: _drawn(TOOLS, records=rows, trials=2_000) for which, rows in (("x", [0.5]), ("y", []))}
    report = dp.audit.audit(_replayed(**at), "x", "y", trials=2_000, claim=privacy.pure(1))
    ours = dp.mechanisms.queries.mean((0, 1)).laplace(epsilon=1)
    assert report.refutes()
    assert not dp.audit.audit(ours, [0.5], [], trials=20_000, confidence=1 - 1e-9).refutes()


@pytest.mark.peers
def test_ours_beside_them_is_not_accused() -> None:
    for mechanism in (
        dp.Laplace(epsilon=1, sensitivity=1),
        dp.Gaussian(epsilon=1, delta=1e-5, sensitivity=1),
    ):
        assert not dp.audit.audit_bits(mechanism, 0.0, 1.0, trials=TRIALS, confidence=1 - 1e-9).refutes()

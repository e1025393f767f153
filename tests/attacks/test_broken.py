# SPDX-License-Identifier: Apache-2.0
"""Every known fault is caught, and the report says on what event.

The tests are not seeded. At these sizes each fault is many standard deviations beyond what its claim allows.
"""

from __future__ import annotations

import json

import pytest

from discreet.audit import audit, batched
from tests.attacks.broken import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault):
    report = audit(
        batched(fault.draw),
        fault.x,
        fault.x_neighbour,
        claim=fault.claim,
        trials=fault.trials,
        look_at=fault.look_at,
    )
    assert report.refutes()
    assert report.witness
    found = json.loads(report.to_json())
    assert found["refuted"]
    assert found["excess"] > 0

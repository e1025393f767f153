# SPDX-License-Identifier: Apache-2.0
"""What earlier releases wrote, a tenth of δ for mechanisms that may fail, is read, charged and verified as it was made.

`former.json` was written by such a release: limits, and charges with their costs and totals.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import privacy
from discreet.errors import LedgerError
from discreet.ledger import Asker, Cost, Ledger, Limit, State
from discreet.privacy.wire import from_json

FORMER = json.loads(Path(__file__).with_name("former.json").read_text())
LIMIT = Limit.from_dict(FORMER["limit"])
_WORSE = Fraction(9999, 10_000), 1 + Fraction(1, 10**12)


def test_the_constants_stay_what_they_were():
    assert LIMIT.to_dict() == FORMER["limit"]
    assert Limit.filter(epsilon=1, delta=1e-6, leaks=0.1) == LIMIT
    odometer = Limit.from_dict(FORMER["odometer"])
    assert odometer.to_dict() == FORMER["odometer"]
    assert odometer == Limit.odometer(delta=1e-6).former_limit


def _is_no_worse(today: Cost, stored: Cost) -> bool:
    """The same rows; a closer bound of the accountant may lower an amount a little, and rounding may move its last digits."""
    pairs = [pair for ways in zip(today.ways, stored.ways, strict=True) for pair in zip(*ways, strict=True)]
    return all(
        row.name == former.name
        and row.amounts.keys() == former.amounts.keys()
        and all(
            row.amounts[name] == of or _WORSE[0] * of <= row.amounts[name] <= _WORSE[1] * of
            for name, of in former.amounts.items()
        )
        for row, former in pairs
    )


def test_costs_and_totals_stay_what_they_were():
    """Those of truncated runs too. An exponential mechanism costs less today, and what was charged for it stays charged."""
    state = LIMIT.start()
    for row in FORMER["rows"]:
        guarantee, stored = from_json(row["guarantee"]), Cost.from_dict(row["cost"])
        today = LIMIT.cost(guarantee)
        if guarantee == privacy.exponential(0.1):
            assert all(today.rows[0].amounts[name] <= of for name, of in stored.rows[0].amounts.items())
            assert today != stored
        else:
            assert _is_no_worse(today, stored)
        state = LIMIT.admit(state, stored)
        assert state == State.from_dict(row["state"])
    run = from_json(FORMER["rows"][1]["guarantee"])
    assert _is_no_worse(Limit.filter(rho=0.5, delta=1e-6).cost(run), Cost.from_dict(FORMER["rho"]))
    odometer = Limit.from_dict(FORMER["odometer"])
    assert odometer.cost(privacy.renyi(8, 0.1)).to_dict() == FORMER["odometer cost"]


SAME = [
    ({"epsilon": 1, "delta": 1e-6}, {"leaks": 0.1}),
    ({"epsilon": 1, "delta": 1e-6, "kind": "zcdp"}, {"leaks": 0.1}),
    ({"epsilon": 1, "delta": 1e-6, "analysts": {"ana": 0.5}}, {"leaks": 0.1}),
    ({"epsilon": 1, "delta": 1e-6, "analysts": {"ana": 0.5}, "reserved": True}, {"leaks": 0.1}),
    ({"epsilon": 1, "delta": 1e-6, "window": "month"}, {"leaks": 0.1}),
    (
        {"epsilon": 1, "delta": 1e-6, "window": "month", "lifetime": Limit.odometer(delta=1e-6)},
        {"leaks": 0.1, "lifetime": Limit.odometer(delta=1e-6).former_limit},
    ),
]


@pytest.mark.parametrize(("call", "former"), SAME)
def test_the_same_call_opens_a_ledger_that_it_made_before(where, call, former):
    made = Limit.filter(**{**call, **former})
    Ledger(where, limit=made).close()
    with Ledger(where, limit=Limit.filter(**call)) as ledger:
        assert ledger.limit == made
        ledger.charge(privacy.pure(0.1), asker=Asker(analyst="ana"))
        assert ledger.verify().intact
        ledger.check_belongs(limit=Limit.filter(**call), dataset="")


def test_another_claim_is_still_another_limit(where):
    Ledger(where, limit=LIMIT).close()
    for other in (Limit.filter(epsilon=2, delta=1e-6), Limit.filter(epsilon=1, delta=1e-6, kind="basic")):
        with pytest.raises(LedgerError, match="DP603"):
            Ledger(where, limit=other)


def test_a_ledger_of_an_earlier_release_goes_on_with_its_split(where):
    Ledger(where, limit=LIMIT).close()
    with Ledger(where, limit=Limit.filter(epsilon=1, delta=1e-6)) as ledger:
        for row in FORMER["rows"]:
            ledger.charge(from_json(row["guarantee"]))
        found = ledger.verify()
        assert found.intact
        assert not [finding for finding in found.findings if finding.code in {"W4", "W5"}]

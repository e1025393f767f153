# SPDX-License-Identifier: Apache-2.0
"""The repr of a limit is the call that makes it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import privacy
from discreet.ledger import Limit
from discreet.ledger.filter_choice import former_filter, without_pure_track
from discreet.ledger.odometer import Odometer

LIMITS = {
    "pure": Limit.filter(epsilon=1),
    "the first charge chooses": Limit.filter(epsilon=1, delta=1e-6),
    "a third": Limit.filter(epsilon=Fraction(1, 3), delta=1e-6),
    "a share for failures": Limit.filter(epsilon=2, delta=1e-6, leaks=0.5),
    "tracks": Limit.filter(epsilon=2, delta=1e-6, kind="tracks"),
    "basic": Limit.filter(epsilon=2, delta=1e-6, kind="basic"),
    "zcdp of epsilon": Limit.filter(epsilon=2, delta=1e-6, kind="zcdp"),
    "zcdp with a share": Limit.filter(epsilon=2, delta=1e-6, kind="zcdp", leaks=0.25),
    "gdp of epsilon": Limit.filter(epsilon=2, delta=1e-6, kind="gdp"),
    "rho": Limit.filter(rho=0.1),
    "rho with delta": Limit.filter(rho=0.1, delta=1e-9),
    "mu": Limit.filter(mu=0.3),
    "allocations": Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "o'ben": Fraction(1, 3)}),
    "reserved": Limit.filter(epsilon=1, projects={"survey": 0.5}, reserved=True),
    "month": Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=5)),
    "month with an odometer": Limit.filter(epsilon=1, window="month", lifetime=Limit.odometer(delta=1e-6)),
    "plan": Limit.plan(5 * privacy.gaussian(10.0), within=privacy.approximate(1, 1e-6)),
    "odometer": Limit.odometer(delta=1e-6, rho=0.25),
}
NAMES = {"Limit": Limit, "Fraction": Fraction, **{name: getattr(privacy, name) for name in privacy.__all__}}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_the_repr_of_a_limit_makes_an_equal_limit(limit):
    assert eval(repr(limit), NAMES) == limit


def test_a_repr_is_short():
    assert repr(LIMITS["the first charge chooses"]) == "Limit.filter(epsilon=1.0, delta=1e-06)"
    assert repr(LIMITS["mu"]) == "Limit.filter(mu=0.3)"


def test_a_limit_that_no_call_makes_is_no_call():
    former = without_pure_track(former_filter(LIMITS["tracks"]))
    old = Odometer(Fraction(1, 10**6), Fraction(5), Fraction(1, 10))
    assert repr(former).startswith("<Filter of an earlier release: ")
    assert repr(old).startswith("<Odometer of an earlier release: ")

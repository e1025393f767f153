# SPDX-License-Identifier: Apache-2.0
"""A refusal for want of budget names what does not fit; its fix, pasted, is admitted."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import discreet as dp
from discreet.errors import OverBudget

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits"
MEANS = "SELECT ward, AVG(CLAMP(days, 0, 60)) AS d, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def visits():
    rows = pd.DataFrame(
        {"patient": range(600), "ward": ["a", "b", "c"] * 200, "days": [n % 40 for n in range(600)]}
    )
    return dp.open(rows, protect=dp.each("patient", at_most=1), name="visits")


def refused(session, sql, **spend):
    """Asked until it is refused; the refusal."""
    for _ in range(100):
        try:
            session.sql(sql, **spend)
        except OverBudget as error:
            return error
    raise AssertionError


def applied(session, sql, error):
    """The cost that a fix proposes, asked for."""
    found = re.search(r"ask with  (.+?)  \(on the command line", error.fix)
    assert found, error.fix
    spend = {name: float(value) for name, value in re.findall(r"(\w+)=([0-9.e+-]+)", found[1])}
    session.sql(sql, **spend)
    options = re.findall(r"--(\w+) ([0-9.e+-]+)", error.fix)
    assert {name: float(value) for name, value in options} == spend
    return spend


def test_where_delta_is_short_the_fix_changes_delta_and_nothing_else(visits):
    session = dp.Session(visits, dp.Limit.filter(epsilon=4, delta=1e-6, leaks=0.1))
    error = refused(session, BY_WARD, epsilon=0.5, delta=3e-8)
    assert re.search(r"needs δ = [0-9.e-]+, but only [0-9.e-]+ of the budget's δ remains", error.what)
    assert applied(session, BY_WARD, error)["epsilon"] == 0.5


def test_where_epsilon_is_short_the_fix_changes_epsilon(visits):
    session = dp.Session(visits, dp.Limit.filter(epsilon=1))
    error = refused(session, COUNT, epsilon=0.3)
    assert "δ =" not in error.what
    assert applied(session, COUNT, error) == {"epsilon": 0.095}


def test_where_rho_is_short_the_fix_changes_rho(visits):
    session = dp.Session(visits, dp.Limit.filter(rho=0.1))
    error = refused(session, COUNT, rho=0.03)
    assert applied(session, COUNT, error)["rho"] < 0.03


def test_where_both_are_short_the_fix_changes_both(visits):
    session = dp.Session(visits, dp.Limit.filter(epsilon=1, delta=1e-6))
    error = refused(session, MEANS, epsilon=3, delta=1e-5)
    spend = applied(session, MEANS, error)
    assert spend["epsilon"] < 3
    assert spend["delta"] < 1e-5


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 4e-7), (2.0, 1e-7), (0.9, 1e-6)])
@pytest.mark.parametrize("question", [BY_WARD, MEANS])
def test_every_fix_is_admitted(visits, question, epsilon, delta):
    session = dp.Session(visits, dp.Limit.filter(epsilon=1, delta=1e-6))
    error = refused(session, question, epsilon=epsilon, delta=delta)
    if "on the command line" in error.fix:
        applied(session, question, error)
    else:
        # δ is used up: what is left is asked for with keys that are stated, and no δ
        assert error.fix.startswith("ask without delta")
        session.sql(COUNT, epsilon=0.01)


def test_what_is_all_of_the_budget_is_answered(visits):
    for question in (BY_WARD, MEANS):
        session = dp.Session(visits, dp.Limit.filter(epsilon=1, delta=1e-6))
        assert session.sql(question, epsilon=1, delta=1e-6)
        assert session.budget().spent_fraction > 0.99


@pytest.mark.parametrize(
    ("limit", "cost", "fits"),
    [
        (dp.Limit.filter(epsilon=1), {"epsilon": 0.3}, {"epsilon": 0.1}),
        (dp.Limit.filter(rho=0.5), {"rho": 0.2}, {"rho": 0.1}),
        (dp.Limit.filter(epsilon=1), {"epsilon": 0.35}, {"epsilon": 0.3}),
        (dp.Limit.filter(epsilon=1), {"epsilon": 1.5}, {"epsilon": 1.0}),
    ],
)
def test_a_refusal_says_the_greatest_cost_that_fits(visits, limit, cost, fits):
    session = dp.Session(visits, limit)
    error = refused(session, COUNT, **cost)
    assert error.fits == fits
    (word,) = fits
    with pytest.raises(OverBudget):
        session.sql(COUNT, **{word: 1.02 * fits[word]})
    session.sql(COUNT, **error.fits)


def test_what_fits_keeps_the_delta_that_fits(visits):
    session = dp.Session(visits, dp.Limit.filter(epsilon=4, delta=1e-6, leaks=0.1))
    error = refused(session, BY_WARD, epsilon=0.5, delta=3e-8)
    assert error.fits["epsilon"] == 0.5
    assert 0 < error.fits["delta"] < 3e-8
    session.sql(BY_WARD, **error.fits)


def test_where_nothing_smaller_fits_nothing_is_said_to_fit(visits):
    session = dp.Session(visits, dp.Limit.filter(epsilon=1))
    session.sql(COUNT, epsilon=1)
    assert refused(session, COUNT, epsilon=0.1).fits == {}
    assert refused(session, COUNT, epsilon=0.1).fits is OverBudget.fits
    with pytest.raises(OverBudget) as error:
        session.ledger.charge(dp.privacy.pure(0.1, unit="patient"))
    assert error.value.fits == {}

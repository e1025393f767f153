# SPDX-License-Identifier: Apache-2.0
"""Every stored value that concerns accounting, asked of the library and, where it can answer, of the oracle.

A closed form must come back within 1e-9; a composed case must lie inside the certified bracket, and the
bracket must be narrower than a thousandth. The cases of other parts of the library stay in the file, unread.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import exp, mpf, npdf, sqrt

import discreet as dp
from discreet import privacy
from tests import oracle

CASES = json.loads((Path(__file__).parents[1] / "data" / "reference_values.json").read_text())["cases"]
ELSEWHERE = {"pmf", "variance", "epsilon_exact"}  # samplers and smooth sensitivity, not accounting
CLOSED, NARROW = 1e-9, 1e-3
# The table was computed at decimal 0.1, the library is asked at the double nearest to it.
INPUT_ROUNDING = 1e-12


def _smooth_laplace(shift: float, log_scale: float) -> privacy.Guarantee:
    narrow = math.exp(log_scale)
    return privacy.pair_of_densities(
        lambda x: np.exp(-np.abs(x)) / 2,
        lambda x: np.exp(-np.abs(x - shift) / narrow) / (2 * narrow),
        support=(-60.0, 60.0),
    )


MECHANISMS: dict[str, Any] = {
    "gaussian": lambda mu: privacy.gaussian(noise=1 / mu),
    "gaussian_composed": lambda mu, k: k * privacy.gaussian(noise=1 / mu),
    "laplace": lambda eps0: privacy.laplace(scale=1 / eps0),
    "composed_laplace": lambda eps0, k: k * privacy.laplace(scale=1 / eps0),
    "randomized_response": lambda eps0: privacy.randomized_response(epsilon=eps0),
    "kary_rr": lambda eps0, k: privacy.randomized_response(epsilon=eps0, outcomes=k),
    "leaky_rr": lambda eps0, delta0: privacy.leaky_randomized_response(epsilon=eps0, delta=delta0),
    "leaky": lambda delta0: privacy.leaky(delta=delta0),
    "optimal_composition_homogeneous": lambda eps0, delta0, k: k * privacy.approximate(eps0, delta0),
    "optimal_composition_heterogeneous": lambda eps, delta: sum(
        map(privacy.approximate, eps[1:], delta[1:]), start=privacy.approximate(eps[0], delta[0])
    ),
    "discrete_laplace": lambda scale, sensitivity: privacy.discrete_laplace(scale, sensitivity=sensitivity),
    "discrete_gaussian": lambda sigma2, sensitivity: privacy.discrete_gaussian(
        math.sqrt(sigma2), sensitivity=sensitivity
    ),
    "bounded_range": lambda eps0: privacy.exponential(epsilon=eps0),
    "poisson_subsampled_gaussian": lambda q, sigma: privacy.gaussian(sigma).sampled(rate=q),
    "composed_poisson_subsampled_gaussian": lambda q, sigma, k: k * privacy.gaussian(sigma).sampled(rate=q),
    "poisson_subsampled_laplace": lambda q, eps0: privacy.laplace(1 / eps0).sampled(rate=q),
    "zcdp": lambda rho: privacy.concentrated(rho=rho),
    "rdp_point": lambda alpha, rdp: privacy.renyi(order=alpha, epsilon=rdp),
    "smooth_gaussian_pair": lambda shift, log_scale: privacy.two_gaussians(
        shift=shift * math.exp(-log_scale), ratio=math.exp(-log_scale)
    ),
    "smooth_laplace_pair": _smooth_laplace,
}

QUANTITIES: dict[str, Any] = {
    "tv": lambda g: g.advantage(),
    "delta": lambda g, epsilon: g.delta(epsilon=epsilon),
    "epsilon": lambda g, delta: g.epsilon(delta=delta),
    "rdp": lambda g, alpha: g.renyi(order=alpha),
    "kl": lambda g: g.loss().mean,
    "tradeoff": lambda g, alpha: g.tradeoff(false_alarm=alpha),
    "epsilon_pure": lambda g: g.epsilon(delta=0.0),
    "epsilon_basic": lambda g, delta: g.epsilon(delta=delta, route=_basic_route(g)),
    "epsilon_cks": lambda g, delta: g.epsilon(delta=delta, route="zcdp tight"),
}


def _basic_route(guarantee: privacy.Guarantee) -> str:
    return "zcdp" if guarantee.concentrated() < math.inf else "renyi basic"


def _number(text: Any) -> Any:
    if isinstance(text, list):
        return [float(each) for each in text]
    return float(text) if isinstance(text, str) else text


def _numbers(named: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(text) for name, text in named.items()}


def _guarantee(case: dict[str, Any]) -> privacy.Guarantee:
    return MECHANISMS[case["mechanism"]](**_numbers(case["params"]))


def _pick(test: Any) -> list[Any]:
    return [pytest.param(case, id=f"{case['id']}-{case['mechanism']}") for case in CASES if test(case)]


def _is_closed(case: dict[str, Any]) -> bool:
    numeric = case["mechanism"].startswith("composed") or case["mechanism"] == "smooth_laplace_pair"
    return case["quantity"] in QUANTITIES and not numeric


def _is_bracketed(case: dict[str, Any]) -> bool:
    certified = case["mechanism"] != "smooth_laplace_pair"
    return case["quantity"] in {"delta", "epsilon"} and case["value"] != "inf" and certified


def _is_directed(case: dict[str, Any]) -> bool:
    return case["quantity"].endswith(("_remove", "_add"))


def _relative(found: float, truth: mpf) -> mpf:
    return (mpf(found) - truth) / truth if truth else mpf(found)


@pytest.mark.parametrize("case", _pick(_is_closed))
def test_closed_forms_come_back_within_a_billionth_and_on_the_safe_side(case: dict[str, Any]) -> None:
    found = QUANTITIES[case["quantity"]](_guarantee(case), **_numbers(case["at"]))
    if case["value"] == "inf":
        assert found == math.inf
        return
    off = _relative(found, mpf(case["value"]))
    assert abs(off) <= CLOSED
    if case["quantity"] != "kl":
        safe = -off if case["quantity"] == "tradeoff" else off
        assert safe >= -INPUT_ROUNDING


@pytest.mark.parametrize("case", _pick(_is_bracketed))
def test_the_truth_lies_inside_a_narrow_certified_bracket(case: dict[str, Any]) -> None:
    bound = _guarantee(case).bound(**_numbers(case["at"]))
    truth = mpf(case["value"])
    assert bound.lower <= truth * (1 + mpf(INPUT_ROUNDING))
    assert bound.upper >= truth * (1 - mpf(INPUT_ROUNDING))
    assert bound.upper - bound.lower <= NARROW * bound.upper


def test_no_finite_epsilon_where_too_much_leaks() -> None:
    (case,) = (case for case in CASES if case["value"] == "inf")
    bound = _guarantee(case).bound(**_numbers(case["at"]))
    assert bound.lower == bound.upper == math.inf


@pytest.mark.parametrize("case", _pick(lambda case: _is_directed(case) and "at_least" in case))
def test_long_training_runs_lie_inside_a_narrow_certified_bracket(case: dict[str, Any]) -> None:
    bound = _guarantee(case).bound(**_numbers(case["at"]))
    assert bound.upper >= mpf(case["at_least"])
    assert bound.upper - bound.lower <= NARROW * bound.upper
    if case["quantity"] == "delta_remove":  # the worse direction in all of these cases
        assert bound.lower <= mpf(case["value"])


@pytest.mark.parametrize("case", _pick(lambda case: _is_directed(case) and "at_least" not in case))
def test_sampled_gaussian_takes_the_worse_direction(case: dict[str, Any]) -> None:
    q, sigma = case["params"]["q"], case["params"]["sigma"]
    quantity, at = case["quantity"], _numbers(case["at"])
    if quantity.startswith("delta"):
        base = oracle.gaussian(1 / mpf(sigma))
        directions = [make(base, q)(at["epsilon"]) for make in (oracle.poisson_remove, oracle.poisson_add)]
        found = _guarantee(case).delta(epsilon=at["epsilon"])
    else:
        each = ("remove", "add")
        directions = [oracle.renyi_sampled_gaussian(sigma, q, at["alpha"], way) for way in each]
        found = _guarantee(case).renyi(order=at["alpha"])
    given = mpf(case["value"])
    assert any(abs(direction - given) <= mpf("1e-13") * given for direction in directions)
    assert _relative(found, max(directions)) >= -INPUT_ROUNDING
    assert abs(_relative(found, max(directions))) <= CLOSED
    assert found >= given * (1 - mpf(INPUT_ROUNDING))


@pytest.mark.parametrize("case", _pick(lambda case: case["quantity"] == "analytic_sigma"))
def test_calibration_finds_the_least_noise(case: dict[str, Any]) -> None:
    target, least = privacy.approximate(**_numbers(case["at"])), mpf(case["value"])
    assert -INPUT_ROUNDING <= _relative(dp.calibrate(privacy.gaussian, to=target), least) <= 1e-6
    exact = dp.calibrate(privacy.gaussian, to=target, tolerance=1e-10)
    assert -INPUT_ROUNDING <= _relative(exact, least) <= CLOSED


@pytest.mark.parametrize("case", _pick(lambda case: case["mechanism"] == "smooth_laplace_pair"))
def test_densities_that_a_user_gives_are_integrated(case: dict[str, Any]) -> None:
    """Only the user knows the densities, so the answer is close to the truth and says what it assumes."""
    bound = _guarantee(case).bound(**_numbers(case["at"]))
    assert abs(_relative(bound.upper, mpf(case["value"]))) <= NARROW
    assert bound.assumes


def test_every_case_is_asked_or_belongs_to_another_part() -> None:
    others = {"analytic_sigma", "delta"}  # calibration, and densities that a user gives
    asked = [c for c in CASES if _is_closed(c) or _is_bracketed(c) or _is_directed(c)]
    rest = [c for c in CASES if c not in asked and c["quantity"] not in others]
    assert {c["quantity"] for c in rest} == ELSEWHERE
    assert len(CASES) == 140


# --- the oracle is held to the same table ----------------------------------------------------------

ATOMS: dict[str, Any] = {
    "randomized_response": oracle.randomized_response,
    "kary_rr": oracle.randomized_response,
    "leaky_rr": oracle.leaky_randomized_response,
    "leaky": lambda delta0: oracle.leaky_randomized_response(0, delta0),
    "discrete_laplace": oracle.discrete_laplace,
    "discrete_gaussian": lambda sigma2, sensitivity: oracle.discrete_gaussian(sqrt(mpf(sigma2)), sensitivity),
    "optimal_composition_heterogeneous": lambda eps, _: oracle.composed(
        *map(oracle.randomized_response, eps)
    ),
}
PROFILES: dict[str, Any] = {
    "gaussian": oracle.gaussian,
    "gaussian_composed": lambda mu, k: oracle.gaussian(mpf(mu) * sqrt(k)),
    "laplace": oracle.laplace,
    "bounded_range": oracle.bounded_range,
    "optimal_composition_homogeneous": lambda eps0, delta0, k: (
        lambda epsilon: oracle.optimal_composition(eps0, delta0, k, epsilon)
    ),
}
ORACLE: dict[str, Any] = {
    "tv": lambda profile: profile(0),
    "delta": lambda profile, epsilon: profile(mpf(epsilon)),
    "epsilon": lambda profile, delta: oracle.epsilon_of(profile, mpf(delta)),
}


def _oracle_profile(case: dict[str, Any]) -> oracle.Profile:
    name, values = case["mechanism"], case["params"].values()
    return PROFILES[name](*values) if name in PROFILES else oracle.of_atoms(ATOMS[name](*values))


def _oracle_knows(case: dict[str, Any]) -> bool:
    return case["mechanism"] in {*PROFILES, *ATOMS} and case["quantity"] in ORACLE and case["value"] != "inf"


@pytest.mark.parametrize("case", _pick(_oracle_knows))
def test_the_oracle_agrees_with_the_table(case: dict[str, Any]) -> None:
    found = ORACLE[case["quantity"]](_oracle_profile(case), **case["at"])
    assert abs(_relative(found, mpf(case["value"]))) <= mpf("1e-15")


@pytest.mark.parametrize(
    "case", _pick(lambda c: c["quantity"] in {"rdp", "tradeoff"} and c["mechanism"] in ATOMS)
)
def test_the_oracle_agrees_on_finite_mechanisms(case: dict[str, Any]) -> None:
    ask = oracle.renyi_of if case["quantity"] == "rdp" else oracle.miss_rate
    found = ask(ATOMS[case["mechanism"]](*case["params"].values()), case["at"]["alpha"])
    assert abs(_relative(found, mpf(case["value"]))) <= mpf("1e-15")


@pytest.mark.parametrize("case", _pick(lambda case: case["mechanism"] == "composed_laplace"))
def test_the_oracle_integrates_laplace_compositions(case: dict[str, Any]) -> None:
    eps0, count = case["params"]["eps0"], case["params"]["k"]
    found = oracle.laplace_repeated(eps0, count)(case["at"]["epsilon"])
    assert abs(_relative(found, mpf(case["value"]))) <= mpf("1e-13")


def test_the_oracle_integrates_what_has_a_closed_form() -> None:
    """Two Gaussians are one Gaussian √2 apart; a never-sampled person and an always-sampled one are extremes."""
    two = oracle.after_density(
        lambda x: npdf(x, 1, 2), lambda x: (2 * x - 1) / 8, [-24, 0, 1, 25], oracle.gaussian(mpf("0.5"))
    )
    assert abs(two(1) / oracle.gaussian(sqrt(2) / 2)(1) - 1) < mpf("1e-15")
    for direction, make in (("remove", oracle.poisson_remove), ("add", oracle.poisson_add)):
        once = make(oracle.gaussian(1), 0.25)
        nothing_more = oracle.after_sampled_gaussian(1, 0.25, direction, lambda e: max(mpf(0), 1 - exp(e)))
        assert abs(nothing_more(0.1) / once(0.1) - 1) < mpf("1e-3")


def test_the_oracle_knows_the_extremes_of_sampling() -> None:
    """Everyone in the sample: replacing a record moves the centre twice as far as adding one."""
    base = oracle.gaussian(mpf("0.5"))
    for make in (oracle.poisson_remove, oracle.poisson_add, oracle.without_replacement):
        assert abs(make(base, 1)(0.3) / base(0.3) - 1) < mpf("1e-30")
    assert abs(oracle.antipodal(2, 1)(0.3) / oracle.gaussian(1)(0.3) - 1) < mpf("1e-30")
    answer = oracle.randomized_response(1)
    sampled = oracle.hockey_stick(oracle.poisson(answer, 0.25), 0.1)
    assert abs(sampled / oracle.poisson_remove(oracle.of_atoms(answer), 0.25)(0.1) - 1) < mpf("1e-30")
    assert abs(sampled / oracle.hockey_stick(oracle.mirrored(oracle.poisson(answer, 0.25)), 0.1) - 1) < mpf(
        "1e-30"
    )

# SPDX-License-Identifier: Apache-2.0
"""`discreet account` describes what its flags say, in their order, and answers what was asked."""

from __future__ import annotations

import json
import math

import pytest

from discreet import privacy
from discreet.cli.flags import MECHANISMS
from discreet.privacy.routes import ROUTES

KEYS = {
    "command",
    "what",
    "guarantee",
    "unit",
    "relation",
    "asked",
    "epsilon",
    "delta",
    "bound",
    "attacker",
    "routes",
    "calibrated",
    "explanation",
    "plot",
}
ONE = {
    "--gaussian 1.5": privacy.gaussian(1.5),
    "--laplace 10": privacy.laplace(10),
    "--pure .5": privacy.pure(0.5),
    "--approximate 0.5,1e-7": privacy.approximate(0.5, 1e-7),
    "--concentrated 0.1": privacy.concentrated(0.1),
    "--renyi 8,0.5": privacy.renyi(order=8, epsilon=0.5),
    "--exponential 0.5": privacy.exponential(0.5),
    "--randomized-response 1": privacy.randomized_response(1.0),
    "--discrete-laplace 10": privacy.discrete_laplace(10),
    "--discrete-laplace 10,3": privacy.discrete_laplace(10, 3),
    "--discrete-gaussian 3,2": privacy.discrete_gaussian(3, 2),
    "--leaky 1e-7": privacy.leaky(1e-7),
}
STEP = privacy.gaussian(1.0).sampled(0.01)
SEVERAL = {
    "--gaussian 1.0 --sampled 0.01 --times 1000 --laplace 10": 1000 * STEP + privacy.laplace(10),
    "--laplace 10 --gaussian 1.0 --sampled 0.01 --times 1000": 1000 * STEP + privacy.laplace(10),
    "--gaussian 1.0 --times 10 --sampled 0.01": (10 * privacy.gaussian(1.0)).sampled(0.01),
    "--gaussian 1.0 --sampled 0.01 --times 10": 10 * STEP,
    "--gaussian 1.0 --gaussian 2.0 --times 3": privacy.gaussian(1.0) + 3 * privacy.gaussian(2.0),
    "--gaussian=1.0 --times=1e3 --delta=1e-6": 1000 * privacy.gaussian(1.0),
    "--laplace 10 --times 2 --times 3": 6 * privacy.laplace(10),
    "--laplace 10 --group 3": privacy.laplace(10).group(3),
    "--gaussian 2 --relation replace --unit person": privacy.gaussian(2, relation="replace", unit="person"),
    "--relation replace --gaussian 2 --sampled .1 --scheme without-replacement": privacy.gaussian(
        2, relation="replace"
    ).sampled(0.1, scheme="without-replacement"),
}


def described(found):
    return privacy.from_json(json.dumps(found["guarantee"]))


def test_every_mechanism_has_an_example_here():
    assert {line.split()[0] for line in ONE} == set(MECHANISMS)


@pytest.mark.parametrize("flags", ONE | SEVERAL)
def test_the_flags_describe_the_guarantee_in_their_order(discreet, flags):
    guarantee = (ONE | SEVERAL)[flags]
    done = discreet(f"account {flags} --json")
    assert (done.code, done.err) == (0, "")
    assert described(done.object) == guarantee
    assert done.object["epsilon"] == guarantee.epsilon(delta=1e-6)
    assert done.object["relation"] == guarantee.unit.relation
    assert done.object["unit"] == guarantee.unit.protects


@pytest.mark.parametrize("flag", MECHANISMS.values(), ids=lambda flag: flag.name)
def test_the_examples_in_error_messages_are_right(discreet, flag):
    assert discreet(f"account {flag.name} {flag.example} --json").code == 0


@pytest.mark.parametrize(
    "flags",
    [
        "--delta 1e-6",
        "--epsilon 1",
        "--delta 1e-6 --compare",
        "--delta 1e-6 --bound",
        "--delta 1e-6 --route zcdp",
        "--delta 0",
        "--explain",
    ],
)
def test_the_keys_are_the_same_for_every_question(discreet, flags):
    assert set(discreet(f"account --laplace 2 {flags} --json").object) == KEYS


def test_epsilon_at_a_delta_lies_in_its_bracket(discreet):
    found = discreet("account --gaussian 1.0 --delta 1e-6 --json").object
    assert found["asked"] == "epsilon"
    assert found["delta"] == 1e-6
    # Φ(1/2 - ε) - e^ε·Φ(-1/2 - ε) = 1e-6, solved to 40 digits
    assert found["bound"]["lower"] <= 4.88655411745 <= found["bound"]["upper"] == found["epsilon"]


def test_delta_at_an_epsilon(discreet):
    found = discreet("account --gaussian 1.0 --epsilon 1 --json").object
    normal = lambda x: math.erfc(-x / math.sqrt(2)) / 2  # noqa: E731
    truth = normal(-0.5) - math.e * normal(-1.5)
    assert found["asked"] == "delta"
    assert found["epsilon"] == 1.0
    assert found["delta"] == pytest.approx(truth, rel=1e-9)
    assert found["bound"]["lower"] <= found["delta"]


def test_what_is_infinite_is_said_in_json_and_to_the_eye(discreet):
    assert discreet("account --gaussian 1.0 --delta 0 --json").object["epsilon"] == "Infinity"
    assert "ε at δ = 0 ∞" in discreet("account --gaussian 1.0 --delta 0").words


def test_the_eye_sees_what_json_says(discreet):
    line = "account --gaussian 1.0 --sampled 0.01 --times 1000 --laplace 10 --delta 1e-6"
    words, found = discreet(line).words, discreet(f"{line} --json").object
    assert found["what"] in words
    assert "one record added or removed" in words
    assert f"{found['bound']['route']} ({found['bound']['theorem']})" in words
    shown = float(words.partition("ε at δ = 1e-06 ")[2].split()[0])
    assert 0 <= shown - found["epsilon"] < 1e-4
    assert "probability 0.01 (Poisson)" in words
    missed = float(words.partition("misses at least ")[2].split()[0])
    assert 0 <= 100 * found["attacker"]["miss"] - missed < 0.01


def test_the_lower_bound_is_shown_on_request(discreet):
    assert "≤ ε ≤" not in discreet("account --laplace 2 --times 10").words
    words = discreet("account --laplace 2 --times 10 --bound").words
    low, high = words.partition(" certified ")[2].split(" by ")[0].split(" ≤ ε ≤ ")
    bound = (10 * privacy.laplace(2)).bound(delta=1e-6)
    assert float(low) <= bound.lower <= bound.upper <= float(high)


def test_compare_lists_every_route_with_its_theorem(discreet):
    line = "account --randomized-response 0.1 --times 100 --delta 1e-6 --compare"
    words, rows = discreet(line).words, discreet(f"{line} --json").object["routes"]
    expected = (100 * privacy.randomized_response(0.1)).compare(delta=1e-6)
    assert [(row["route"], row["upper"]) for row in rows] == [(row.route, row.upper) for row in expected]
    assert {"basic", "advanced", "optimal", "zcdp", "loss distribution"} <= {row["route"] for row in rows}
    assert "basic 10 parameters add" in words


@pytest.mark.parametrize("route", ["basic", "optimal", "renyi improved"])
def test_a_route_can_be_forced(discreet, route):
    assert route in {known.name for known in ROUTES}
    found = discreet(f"account --randomized-response 0.1 --times 100 --route '{route}' --json").object
    assert found["bound"]["route"] == route
    assert found["epsilon"] == (100 * privacy.randomized_response(0.1)).epsilon(1e-6, route=route)


def test_an_unknown_unit_word_is_printed_as_it_is(discreet):
    assert (
        "one [bold]voter[/bold] replaced"
        in discreet("account --pure 1 --unit '[bold]voter[/bold]' --relation replace").words
    )

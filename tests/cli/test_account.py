# SPDX-License-Identifier: Apache-2.0
"""`discreet account` reads an expression as Python would, and answers what was asked."""

from __future__ import annotations

import json
import math
import re

import pytest

from discreet import errors, privacy
from discreet.cli.expression import FUNCTIONS, METHODS, read_expression
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
STEP = privacy.gaussian(1.0).sampled(0.01)
EXPRESSIONS = {
    "gaussian(1.5)": privacy.gaussian(1.5),
    "gaussian(noise=1.5)": privacy.gaussian(1.5),
    "laplace(10)": privacy.laplace(10),
    "pure(.5)": privacy.pure(0.5),
    "approximate(0.5, 1e-7)": privacy.approximate(0.5, 1e-7),
    "concentrated(0.1)": privacy.concentrated(0.1),
    "approximate_concentrated(1e-7, rho=0.1)": privacy.approximate_concentrated(1e-7, 0.1),
    "renyi(order=8, epsilon=0.5)": privacy.renyi(order=8, epsilon=0.5),
    "renyi_curve({2: 0.1, 8: 0.6})": privacy.renyi_curve({2: 0.1, 8: 0.6}),
    "exponential(0.5)": privacy.exponential(0.5),
    "randomized_response(1, outcomes=3)": privacy.randomized_response(1.0, 3),
    "discrete_laplace(10, 3)": privacy.discrete_laplace(10, 3),
    "discrete_gaussian(3, sensitivity=2)": privacy.discrete_gaussian(3, 2),
    "leaky(1e-7)": privacy.leaky(1e-7),
    "leaky_randomized_response(1.0, 1e-7)": privacy.leaky_randomized_response(1.0, 1e-7),
    "parallel(laplace(1), laplace(2))": privacy.parallel(privacy.laplace(1), privacy.laplace(2)),
    "one_of(laplace(1), 2 * laplace(3))": privacy.one_of(privacy.laplace(1), 2 * privacy.laplace(3)),
    "shuffled(pure(1, relation='replace'), n=100)": privacy.shuffled(
        privacy.pure(1, relation="replace"), 100
    ),
    "gaussian_mixture(1, {0: 0.5, 2: 0.5})": privacy.gaussian_mixture(1, {0: 0.5, 2: 0.5}),
    "truncated_batches(1, 0.1, batch=20, records=90)": privacy.truncated_batches(1, 0.1, 20, 90),
    "3 * gaussian(1).allocated(20, times=2)": 3 * privacy.gaussian(1).allocated(20, 2),
    "selected(laplace(10), mean_runs=10)": privacy.selected(privacy.laplace(10), mean_runs=10),
    "1000 * gaussian(1.0).sampled(0.01) + laplace(10)": 1000 * STEP + privacy.laplace(10),
    "laplace(10) + gaussian(1).sampled(rate=0.01) * 1_000": 1000 * STEP + privacy.laplace(10),
    "(10 * gaussian(1.0)).sampled(0.01)": (10 * privacy.gaussian(1.0)).sampled(0.01),
    "  10*gaussian(1.0).sampled(0.01)  ": 10 * STEP,
    "gaussian(1.0) + 3 * gaussian(2.0)": privacy.gaussian(1.0) + 3 * privacy.gaussian(2.0),
    "1e3 * gaussian(1.0)": 1000 * privacy.gaussian(1.0),
    "2 * (3 * laplace(10))": 6 * privacy.laplace(10),
    "laplace(10).group(3)": privacy.laplace(10).group(3),
    "laplace(10, unit='what?')": privacy.laplace(10, unit="what?"),
    "gaussian(2, relation='replace').sampled(.1, scheme='without-replacement')": privacy.gaussian(
        2, relation="replace"
    ).sampled(0.1, scheme="without-replacement"),
    " + ".join(["laplace(100)"] * 250): 250 * privacy.laplace(100),
}
WITH_FLAGS = {
    "'gaussian(2)' --relation replace --unit person": privacy.gaussian(2, relation="replace", unit="person"),
    "--unit person 'gaussian(2)'": privacy.gaussian(2, unit="person"),
    "--unit person 'gaussian(2, unit=\"patient\")'": privacy.gaussian(2, unit="patient"),
}
LINES = {f'"{text}"': guarantee for text, guarantee in EXPRESSIONS.items()} | WITH_FLAGS
REFUSED = {
    "": "DP107",
    "gaussian(1": "DP107",
    "gaussian(1))": "DP107",
    "gaussian(1) gaussian(1)": "DP107",
    "(" * 300 + ")" * 300: "DP107",
    # Python before 3.13 cannot read that many signs.
    "-" * 3000 + "1": "DP105 or DP107",
    "1 + " * 900 + "1": "DP105",
    "gaussian(1)" + ".group(1)" * 60: "DP107",
    "laplace(1) + " * 400 + "laplace(1)": "DP107",
    "gaussian(1, noise=1)": "DP107",
    "gaussian(noise=1, noise=2)": "DP107",
    "gaussian(1, 2)": "DP107",
    "gaussian()": "DP107",
    "gaussian(**{})": "DP107",
    "gaussian(nose=1)": "DP105",
    "gausian(1)": "DP105",
    "gaussian": "DP105",
    "gaussian + laplace": "DP105",
    "5": "DP105",
    "_": "DP105",
    "2 * 3": "DP105",
    "2 * 3 * gaussian(1)": "DP105",
    "gaussian(1) * gaussian(1)": "DP105",
    "gaussian(1) - gaussian(1)": "DP105",
    "gaussian(1) ** 2": "DP105",
    "-gaussian(1)": "DP105",
    "gaussian(1) if 1 else laplace(1)": "DP105",
    "[gaussian(1)]": "DP105",
    "gaussian(1)[0]": "DP105",
    "gaussian(True)": "DP105",
    "gaussian(None)": "DP105",
    "gaussian(1j)": "DP105",
    "gaussian(b'1')": "DP105",
    "gaussian(2**9)": "DP105",
    "gaussian(*[1])": "DP105",
    "gaussian(x := 1)": "DP105",
    "gaussian(f'1')": "DP105",
    "(lambda: gaussian(1))()": "DP105",
    "__import__('os').system('true')": "DP105",
    "gaussian(1).__class__(1)": "DP105",
    "gaussian(1).__init__.__globals__": "DP105",
    "gaussian(1).epsilon(1)": "DP105",
    "gaussian(1).unit": "DP105",
    "gaussian(open('x'))": "DP105",
    "from_json('{}')": "DP105",
    "calibrate(gaussian, to=pure(1))": "DP105",
    "renyi_curve({2: gaussian(1)})": "DP105",
    "renyi_curve({**{}})": "DP105",
    "gaussian(nan)": "DP105",
    "gaussian(inf)": "DP105",
    "gaussian(1e999)": "DP101",
    "gaussian(-1e999)": "DP101",
    f"gaussian(1{'0' * 400})": "DP101",
    f"1{'0' * 400} * gaussian(1)": "DP102",
    "1e999 * gaussian(1)": "DP103",
    "0 * gaussian(1)": "DP102",
    "2.5 * gaussian(1)": "DP103",
    "'3' * gaussian(1)": "DP105",
    "gaussian('1')": "DP104",
    "gaussian(laplace(1))": "DP104",
    "parallel(1, 2)": "DP104",
    "gaussian(1).sampled(0)": "DP102",
    "gaussian(1).sampled(.1, 'shuffle')": "DP105",
    "gaussian(1).group(1.5)": "DP103",
    "gaussian(1, relation='swap')": "DP105",
    "gaussian(1, unit=7)": "DP104",
}


def described(found):
    return privacy.from_json(json.dumps(found["guarantee"]))


def test_every_function_has_an_example_here():
    assert {name for name in FUNCTIONS if not any(f"{name}(" in text for text in EXPRESSIONS)} == set()


@pytest.mark.parametrize("line", LINES)
def test_an_expression_means_what_it_means_in_python(discreet, line):
    done = discreet(f"account {line} --json --delta 1e-3")
    assert (done.code, done.err) == (0, "")
    assert described(done.object) == LINES[line]
    assert done.object["epsilon"] == LINES[line].epsilon(delta=1e-3)
    assert done.object["relation"] == LINES[line].unit.relation
    assert done.object["unit"] == LINES[line].unit.protects


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_whatever_else_is_written_is_refused_and_never_run(text):
    with pytest.raises(errors.BadParameter) as refused:
        read_expression(text, relation="add-remove", unit="record").guarantee()
    assert refused.value.code in REFUSED[text].split(" or ")
    assert len(str(refused.value)) < 1500
    if text and len(text) < 100:
        position = int(re.search(r"at character (\d+)", refused.value.what)[1])
        assert 1 <= position <= len(text) + 1


def test_the_position_is_where_the_slip_is():
    for text, position in {
        "laplace(1) + gausian(2)": 14,
        "pure(1, unit='é') + pure(0)": 21,
        "pure(1).smpled(1)": 9,
    }.items():
        with pytest.raises(errors.BadParameter, match=f"at character {position}: "):
            read_expression(text, relation="add-remove", unit="record").guarantee()


@pytest.mark.parametrize("name", FUNCTIONS | METHODS)
def test_the_examples_in_error_messages_are_right(discreet, name):
    text = f"{name}({(FUNCTIONS | METHODS)[name][1]})"
    assert discreet(f'account "{f"laplace(1).{text}" if name in METHODS else text}" --json').code == 0


@pytest.mark.parametrize(
    "text",
    ["gausian(1)", "gaussian(-1)", "gaussian", "gaussian(1).smpled(.1)", "2.5 * laplace(1)", "laplace(1"],
)
def test_the_fix_can_be_pasted(discreet, text):
    fix = discreet(f'account "{text}"').err.partition("Fix    discreet ")[2].splitlines()[0]
    assert discreet(fix).code == 0


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
    assert set(discreet(f"account 'laplace(2)' {flags} --json").object) == KEYS


def test_epsilon_at_a_delta_lies_in_its_bracket(discreet):
    found = discreet("account 'gaussian(1.0)' --delta 1e-6 --json").object
    assert found["asked"] == "epsilon"
    assert found["delta"] == 1e-6
    # Φ(1/2 - ε) - e^ε·Φ(-1/2 - ε) = 1e-6, solved to 40 digits
    assert found["bound"]["lower"] <= 4.88655411745 <= found["bound"]["upper"] == found["epsilon"]


def test_account_gives_delta_at_an_epsilon(discreet):
    found = discreet("account 'gaussian(1.0)' --epsilon 1 --json").object
    normal = lambda x: math.erfc(-x / math.sqrt(2)) / 2  # noqa: E731
    truth = normal(-0.5) - math.e * normal(-1.5)
    assert found["asked"] == "delta"
    assert found["epsilon"] == 1.0
    assert found["delta"] == pytest.approx(truth, rel=1e-9)
    assert found["bound"]["lower"] <= found["delta"]


def test_what_is_infinite_is_said_in_json_and_to_the_eye(discreet):
    assert discreet("account 'gaussian(1.0)' --delta 0 --json").object["epsilon"] == "Infinity"
    assert "ε at δ = 0 ∞" in discreet("account 'gaussian(1.0)' --delta 0").words


def test_the_eye_sees_what_json_says(discreet):
    line = "account '1000 * gaussian(1.0).sampled(0.01) + laplace(10)' --delta 1e-6"
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
    assert "≤ ε ≤" not in discreet("account '10 * laplace(2)'").words
    words = discreet("account '10 * laplace(2)' --bound").words
    low, high = words.partition(" certified ")[2].split(" by ")[0].split(" ≤ ε ≤ ")
    bound = (10 * privacy.laplace(2)).bound(delta=1e-6)
    assert float(low) <= bound.lower <= bound.upper <= float(high)


def test_compare_lists_every_route_with_its_theorem(discreet):
    line = "account '100 * randomized_response(0.1)' --delta 1e-6 --compare"
    words, rows = discreet(line).words, discreet(f"{line} --json").object["routes"]
    expected = (100 * privacy.randomized_response(0.1)).compare(delta=1e-6)
    assert [(row["route"], row["upper"]) for row in rows] == [(row.route, row.upper) for row in expected]
    assert {"basic", "advanced", "optimal", "zcdp", "loss distribution"} <= {row["route"] for row in rows}
    assert "basic 10 parameters add" in words


@pytest.mark.parametrize("route", ["basic", "optimal", "renyi improved"])
def test_a_route_can_be_forced(discreet, route):
    assert route in {known.name for known in ROUTES}
    found = discreet(f"account '100 * randomized_response(0.1)' --route '{route}' --json").object
    assert found["bound"]["route"] == route
    assert found["epsilon"] == (100 * privacy.randomized_response(0.1)).epsilon(1e-6, route=route)


def test_an_unknown_unit_word_is_printed_as_it_is(discreet):
    assert (
        "one [bold]voter[/bold] replaced"
        in discreet("account 'pure(1)' --unit '[bold]voter[/bold]' --relation replace").words
    )

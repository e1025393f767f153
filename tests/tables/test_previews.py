# SPDX-License-Identifier: Apache-2.0
"""A preview speaks of the δ that was asked for, and what it advises is true: each advice is applied and compared."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

import discreet as dp
from discreet import mechanisms as m
from discreet import privacy
from discreet.privacy.show import least_epsilon, point, rows, short
from discreet.tables.ask.question import Question
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables.small import dataset, number, question

X, SIGNED, WIDE = number(0, 60), number(-7, 100), number(0, 2**20)
MEDIAN = ("quantile", X, {"fraction": (1, 2)})
ASKED = {
    "units": [("units",)],
    "count": [("count",)],
    "count and units": [("count",), ("units",)],
    "many": [("count",), ("sum", X), ("mean", X), ("variance", SIGNED)],
    "sums": [("sum", X), ("sum", SIGNED), ("sum", WIDE)],
    "median": [MEDIAN],
    "median and units": [MEDIAN, ("units",)],
}
KEYS = {"one": None, "public": ("a", "b", "c"), "found": "unknown"}
SPENDS = [Spend(0.3), Spend(1.0, 1e-7), Spend(rho=0.02), Spend(rho=0.02, delta=1e-7)]
WHO = [{"at_most": 1}, {"at_most": 7}, {"at_most": 200}, {"at_most": 7, "groups": 2}]
CASES = [
    (name, keys, spend, who)
    for name in ASKED
    for keys in KEYS
    for spend in SPENDS
    for who in WHO
    if keys != "found" or spend.delta is not None
]


def made(name, keys, spend, who):
    return compile_question(question(*ASKED[name], keys=KEYS[keys]), dataset(**who), spend)


def ratios(after, before):
    """What is left of the error of each column that both have."""
    new, old = after.expected_errors(), before.expected_errors()
    return {name: new[name] / old[name] for name in new if old.get(name)}


def number_in(text: str, pattern: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


@pytest.mark.parametrize(("name", "keys", "spend", "who"), CASES)
def test_every_advice_is_as_good_as_it_says_when_it_is_taken(name, keys, spend, who):
    before = made(name, keys, spend, who)
    for advice in before.preview().cheaper:
        if advice.startswith("with at_most="):
            rows = int(number_in(advice, r"at_most=(\d+)"))
            _assert_fewer_rows_help(advice, before, made(name, keys, spend, {**who, "at_most": rows}))
        elif advice.startswith("with groups="):
            groups = int(number_in(advice, r"groups=(\d+)"))
            _assert_fewer_rows_help(advice, before, made(name, keys, spend, {**who, "groups": groups}))
        elif advice.startswith("the sum of"):
            _assert_the_total_is_off_by(advice, before, who, spend)
        else:
            after = _applied(advice, name, keys, spend, who)
            said = number_in(advice, r"about (\d+) %") / 100
            assert max(ratios(after, before).values()) <= said + 0.005 < 0.91


def _assert_fewer_rows_help(advice, before, after):
    said, seen = number_in(advice, r"about (\d+) %") / 100, ratios(after, before)
    named = re.search(r"the margin of error of (.+?) would", advice)
    better = set(seen) if named is None else set(named[1].split(", "))
    assert max(seen[column] for column in better) <= said + 0.005 < 0.91
    assert max(seen.values()) <= 1
    errors = {column: (after.error()[column], before.error()[column]) for column in better}
    assert all(new < old for new, old in errors.values() if old is not None)


def _assert_the_total_is_off_by(advice, before, who, spend):
    column = before.question.aggregates[0 if before.question.aggregates[0].kind != "units" else 1]
    asked = Question(before.scope.rows, (column,))
    alone = compile_question(asked, dataset(**who), spend).error()[column.name]
    assert number_in(advice, r"by at most ([\d.e+]+)\.") == pytest.approx(alone, rel=1e-3)
    each, groups = before.error()[column.name], len(before.groups)
    added = number_in(advice, r"off by about ([\d.e+]+);")
    assert added == pytest.approx(each * math.sqrt(groups), rel=1e-3)
    assert alone < added


def _applied(advice, name, keys, spend, who):
    if advice.startswith("with delta="):
        return made(name, keys, replace(spend, delta=number_in(advice, r"delta=([\de-]+)")), who)
    if advice.startswith("without delta"):
        return made(name, keys, replace(spend, delta=None), who)
    mechanism = made(name, keys, spend, who)
    dropped = re.match(r"without (.+?) the margins", advice)[1]
    one = next(one for one in mechanism.question.aggregates if one.text == dropped)
    return min(
        (
            mechanism.variant(
                question=replace(
                    mechanism.question,
                    aggregates=tuple(x for x in mechanism.question.aggregates if x is not other),
                )
            )
            for other in mechanism.question.aggregates
            if other.text == one.text  # the texts of two sums are the same here
        ),
        key=lambda after: max(ratios(after, mechanism).values()),
    )


def test_a_number_of_units_is_not_advised_to_count_fewer_rows():
    for spend in SPENDS:
        assert not [
            text
            for text in made("units", "one", spend, {"at_most": 400}).preview().cheaper
            if "at_most" in text
        ]
    (advice,) = made("count", "one", SPENDS[0], {"at_most": 10}).preview().cheaper
    assert advice.startswith("with at_most=5 instead of 10 all margins of error would be about 50 % of this")
    mixed = made("count and units", "one", SPENDS[0], {"at_most": 10}).preview().cheaper[-1]
    assert "the margin of error of count0 would" in mixed


# --- δ ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-12, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"rho": 0.01}], ids=str)
@pytest.mark.parametrize("keys", KEYS)
def test_every_view_of_a_preview_is_at_the_delta_that_was_asked_for(keys, spend, delta):
    asked = Spend(**spend, delta=delta)
    preview = made("many", keys, asked, {"at_most": 3}).preview()
    place, epsilon = point(preview.cost, delta)
    assert place == delta or math.isinf(preview.cost.epsilon(delta))
    if asked.epsilon is not None:
        assert place == delta
        assert epsilon <= asked.epsilon
    said = f"at δ = {place:g}"
    assert dict(preview.lines())["epsilon"].endswith(said)
    assert said in str(preview)
    assert said in preview._repr_html_()
    assert preview.to_dict()["epsilon"].endswith(said)
    assert preview.to_dict()["delta"] == place
    json.dumps(preview.to_dict())
    for text in (str(preview), preview._repr_html_(), json.dumps(preview.to_dict(), ensure_ascii=False)):
        assert set(re.findall(r"at δ = ([\de.-]+\d)", text)) == {f"{place:g}"}


def test_a_session_and_sql_preview_at_the_delta_that_was_asked_for():
    pa = pytest.importorskip("pyarrow")
    data = dp.open(
        pa.table({"who": [1, 2], "ward": ["a", "b"]}), protect=dp.each("who", at_most=3), name="visits"
    )
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-5))
    text = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    for preview in (
        session.preview(text, epsilon=0.5, delta=1e-7),
        session.preview(f"EXPLAIN PRIVACY {text}", epsilon=0.5, delta=1e-7),
        session.preview(data.count(), error="±50", delta=1e-7),
    ):
        assert dict(preview.lines())["epsilon"].endswith("at δ = 1e-07")


@pytest.mark.parametrize(
    "mechanism",
    [
        m.Gaussian(epsilon=1, delta=1e-8, sensitivity=1),
        m.Gaussian(epsilon=1, delta=1e-8, sensitivity=1).then(abs),
        m.queries.sum((0, 1)).gaussian(epsilon=1, delta=1e-8),
        m.StabilityHistogram(epsilon=1, delta=1e-8),
        m.StableMode(epsilon=1, delta=1e-8),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_release_shows_epsilon_at_the_delta_of_its_mechanism(mechanism):
    data = {"StabilityHistogram": {"a": 3}, "StableMode": ["a"], "QueryAnswer": [0.5]}.get(
        type(mechanism).__name__, 3.0
    )
    shown = dict(mechanism(data)._lines())["epsilon"]
    assert shown.endswith("at δ = 1e-08")
    assert float(shown.split()[0]) <= 1


@pytest.mark.parametrize(
    "guarantee",
    [
        privacy.pure(1.0),
        privacy.gaussian(2.0),
        privacy.approximate(1.0, 1e-4),
        privacy.leaky(1e-6) + privacy.gaussian(3.0),
        privacy.leaky(0.3) + privacy.laplace(3.0),
        privacy.approximate_concentrated(1e-3, 0.1),
    ],
    ids=repr,
)
def test_a_guarantee_that_has_a_finite_epsilon_shows_one_and_never_less_than_it(guarantee):
    place, epsilon = point(guarantee)
    assert math.isfinite(epsilon)
    assert epsilon == guarantee.epsilon(place)
    assert float(least_epsilon(guarantee).split()[0]) >= epsilon * (1 - 1e-9)
    shown = {name: text for name, text in rows(guarantee) if name.startswith("ε at δ = ")}
    assert any(text != "∞" for text in shown.values())
    for name, text in shown.items():
        exact = guarantee.epsilon(float(name.removeprefix("ε at δ = ")))
        assert text == "∞" or float(text) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("noise", [4.224678890657337, 123456.789, 1e-3 / 7])
def test_a_guarantee_with_fewer_digits_claims_no_more(noise):
    shown = eval(short(privacy.gaussian(noise=noise)), {"gaussian": privacy.gaussian})
    assert shown.epsilon(1e-6) >= privacy.gaussian(noise=noise).epsilon(1e-6)
    assert len(short(privacy.gaussian(noise=noise))) <= len("gaussian(noise=0.000142857)")
    assert short(privacy.pure(0.1)) == "pure(epsilon=0.1)"

# SPDX-License-Identifier: Apache-2.0
"""What a question becomes as a stream: the rows that are kept, the noise, the guarantee, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import polars as pl
import pytest

import discreet as dp
from discreet import privacy
from discreet.errors import DiscreetError
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, upper_tail
from discreet.streams import Participation
from discreet.tables.ask.sql import parse
from discreet.tables.plan.spend import Spend
from discreet.tables.streams.calendar import EVERY, Calendar, first_day_of
from discreet.tables.streams.entry import entry_threshold
from discreet.tables.streams.plan import plan_stream
from discreet.tables.streams.row import (
    StreamRow,
    appearances,
    digest_of_sums,
    draw_row,
    sums_by_period,
)
from discreet.tables.streams.stored import plan_from_dict, plan_to_dict
from tests.streams.world import START, data, day, kept, visits

WEEKS = Calendar("week", START, 52)
BOTH = Spend(epsilon=1, delta=1e-6)
BOUNDS = [
    Participation(1),
    Participation(3),
    Participation(2, 1),
    Participation(1, 3),
    Participation(2, 4, 3),
    Participation(1, 12),
]


def planned(sql="SELECT COUNT(*) AS n FROM visits", spend=BOTH, dataset=None, **words):
    dataset = data() if dataset is None else dataset
    return plan_stream(parse(sql, dataset).question, dataset, spend, WEEKS, **words)


# --- rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS, ids=repr)
def test_the_kept_rows_are_those_of_the_bound(bound, tmp_path):
    frame = visits()
    path = tmp_path / "visits.parquet"
    frame.write_parquet(path)
    protect, columns = dp.each("id", at_most=3), {"day": dp.column(bounds=(day(0), day(2000)))}
    expected = Counter(period for period, _, _ in kept(frame, bound))
    for source in (frame, str(path)):
        with dp.open({"visits": source}, protect=protect, columns=columns) as opened:
            plan = planned(dataset=opened, participation=bound)
            sums = sums_by_period(plan, opened.engine, 12)
            counts = {period: numbers[()][0] for period, numbers in enumerate(sums) if () in numbers}
            scaled = 1 if plan.noise == "laplace" else plan.layout.reach[0]
            assert counts == {period: count * scaled for period, count in expected.items()}


@pytest.mark.parametrize("bound", BOUNDS, ids=repr)
def test_later_rows_change_no_earlier_period(bound):
    frame = visits()
    earlier = frame.filter(pl.col("day") < day(42))
    for whole, part in ((frame, earlier),):
        sums = [
            sums_by_period(planned(dataset=opened, participation=bound), opened.engine, 6)
            for opened in (data(whole), data(part))
        ]
        assert sums[0] == sums[1]


@pytest.mark.parametrize("bound", BOUNDS, ids=repr)
@pytest.mark.parametrize(
    "sql", ["SELECT SUM(cost) AS s FROM visits", "SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward"]
)
def test_a_unit_moves_the_encoded_sums_within_the_sensitivity(bound, sql):
    """Each person removed in turn, over all periods, for each coordinate."""
    frame = visits(rows=120, people=9)
    opened = data(frame)
    plan = planned(sql, Spend(rho=0.1), opened, participation=bound)
    sensitivity = plan.participation.squared_sensitivity(plan.factor)
    whole = sums_by_period(plan, opened.engine, 12)
    for who in range(9):
        others = data(frame.filter(pl.col("id") != who))
        less = sums_by_period(planned(sql, Spend(rho=0.1), others, participation=bound), others.engine, 12)
        cost = Fraction(0)
        for place, distribution in enumerate(plan.distributions):
            moved = 0
            for group in plan.groups:
                columns = [[period.get(group, (0,) * 9)[place] for period in sums] for sums in (whole, less)]
                rows = [[plan.factor.encode(column[: t + 1]) for t in range(12)] for column in columns]
                moved += sum((a - b) ** 2 for a, b in zip(*rows, strict=True))
            assert moved <= sensitivity * plan.layout.reach[place] ** 2
            cost += Fraction(moved) / Fraction(distribution.scale) ** 2
        # The guarantee is that of Gaussian noise of 1/√cost.
        assert plan.guarantee.concentrated() >= float(cost) / 2


# --- noise and guarantee --------------------------------------------------------------------------------


SQLS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits",
    "SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward",
    "SELECT COUNT(*) FILTER (WHERE ward = 'A') AS a, COUNT(*) FILTER (WHERE ward = 'B') AS b FROM visits",
]


@pytest.mark.parametrize("sql", SQLS)
@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "spend", [Spend(epsilon=0.5), BOTH, Spend(rho=0.02), Spend(rho=0.02, delta=1e-7)], ids=repr
)
def test_the_guarantee_implies_the_spend(sql, keys, relation, spend):
    dataset = data(keys=keys, relation=relation)
    if not keys and "GROUP BY" in sql and spend.delta is None:
        with pytest.raises(DiscreetError, match="DP704"):
            planned(sql, spend, dataset)
        return
    plan = planned(sql, spend, dataset)
    assert plan.guarantee.implies(spend.target(dataset.unit))
    assert (plan.entry is None) == (keys or "GROUP BY" not in sql)


def noise_of(plan):
    """σ of a count in sensitivities: scale over the root of the squared sensitivity."""
    return plan.distributions[0].scale / math.sqrt(plan.participation.squared_sensitivity(plan.factor))


def test_the_noise_is_that_of_the_guarantee():
    plan = planned(participation=Participation(3))
    assert plan.noise == "gaussian"
    assert plan.guarantee == privacy.gaussian(noise_of(plan) * (1 - 1e-11), unit="id") or math.isclose(
        noise_of(plan), 4.2247, rel_tol=1e-4
    )
    replaced = planned(dataset=data(relation="replace"))
    assert noise_of(replaced) / noise_of(planned()) == pytest.approx(math.sqrt(2), rel=1e-9)
    signed = [
        planned("SELECT AVG(cost) AS m FROM visits", Spend(rho=0.1), data(relation=relation))
        for relation in ("add-remove", "replace")
    ]
    assert noise_of(signed[1]) / noise_of(signed[0]) == pytest.approx(2, rel=1e-9)


def test_columns_that_no_row_counts_in_together_share_their_noise():
    one = planned("SELECT COUNT(*) FILTER (WHERE ward = 'A') AS a FROM visits", Spend(rho=0.1))
    both = planned(SQLS[3], Spend(rho=0.1))
    assert both.distributions[0].scale == pytest.approx(one.distributions[0].scale, rel=1e-9)


def test_few_periods_of_units_that_come_once_get_laplace_noise():
    """At ε = 1 and δ = 1e-6, 12 periods: 4.70 against 8.39; at 52 about equal; at 365 13.3 or less against 25.9."""
    dataset = data(at_most=1)
    question = parse("SELECT COUNT(*) AS n FROM visits", dataset).question
    chosen = [
        plan_stream(question, dataset, BOTH, Calendar("day", START, periods)).noise for periods in (12, 365)
    ]
    assert chosen == ["laplace", "gaussian"]


def test_the_stored_stream_is_the_same():
    for sql in SQLS:
        for spend in (Spend(epsilon=1), BOTH):
            dataset = data(keys="GROUP" not in sql or spend.delta is None)
            plan = planned(sql, spend, dataset, participation=Participation(1, 4, 3))
            again = plan_from_dict(plan_to_dict(plan), plan.question, dataset, plan.guarantee)
            assert again == plan


def test_a_row_is_the_encoded_sums_plus_one_draw_for_each_number(monkeypatch):
    plan = planned("SELECT ward, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY ward", Spend(rho=0.1))
    sums = sums_by_period(plan, data().engine, 4)
    drawn = []

    def draw(self, size=None):
        noise = type(self)(self.scale)._draw(size)
        drawn.append(noise)
        return noise

    monkeypatch.setattr(GaussianDistribution, "_draw", GaussianDistribution.draw, raising=False)
    monkeypatch.setattr(GaussianDistribution, "draw", draw)
    row = draw_row(plan, appearances(plan, []), sums, b"secret")
    width = len(plan.layout.features)
    assert [len(noise) for noise in drawn] == [3] * width
    for at, group in enumerate(plan.groups):
        for place in range(width):
            column = [period[group][place] if group in period else 0 for period in sums]
            assert row.noisy[at][place] == plan.factor.encode(column) + drawn[place][at]
    assert StreamRow.from_json(row.to_json()) == row


def test_a_digest_tells_sums_apart_and_needs_the_secret():
    sums = {("A",): (3, 1), ("B",): (0, 0)}
    assert digest_of_sums(0, sums, b"x") == digest_of_sums(0, {("A",): (3, 1)}, b"x")
    others = [{("A",): (3, 2)}, {("B",): (3, 1)}, {}, {(None,): (3, 1)}, {(True,): (3, 1)}, {(1,): (3, 1)}]
    digests = {digest_of_sums(0, each, b"x") for each in [sums, *others]}
    assert len(digests) == 1 + len(others)
    assert digest_of_sums(0, sums, b"y") not in digests


# --- private keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [GaussianDistribution(9.0), LaplaceDistribution(4.0)], ids=repr)
@pytest.mark.parametrize("rows", [1, 3, 40, 1000])
def test_the_threshold_bounds_every_way_to_spread_rows_over_cells(distribution, rows):
    """The greatest chance that a cell of one unit passes, over all partitions of its rows, by dynamic programming."""
    delta = 1e-6
    threshold = entry_threshold(distribution, rows, delta)
    few = min(rows, 60)
    best = [0.0] * (few + 1)
    for size in range(1, few + 1):
        best[size] = max(
            upper_tail(distribution, threshold - cell) + best[size - cell] for cell in range(1, size + 1)
        )
    assert best[few] <= delta
    if rows <= 60:
        lower = entry_threshold(distribution, rows, 4 * delta)
        assert lower <= threshold
        # It is not far from the least threshold.
        slack = max(
            upper_tail(distribution, threshold - 2 - cell) * (rows // cell) for cell in range(1, rows + 1)
        )
        assert slack > delta / 3


def test_groups_of_one_unit_do_not_appear_and_large_ones_do():
    frame = pl.concat(
        [
            pl.DataFrame(
                {"id": list(range(900)), "ward": ["A"] * 900, "day": [day(8)] * 900, "cost": [1] * 900}
            ),
            pl.DataFrame({"id": [1000], "ward": ["solo"], "day": [day(1)], "cost": [1]}),
        ]
    )
    dataset = data(frame, keys=False, at_most=1)
    plan = planned("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", BOTH, dataset)
    sums = sums_by_period(plan, dataset.engine, 4)
    rows: list[StreamRow] = []
    for period in range(4):
        rows.append(draw_row(plan, appearances(plan, rows), sums[: period + 1], b"s"))
    assert appearances(plan, rows) == {("A",): 1}
    assert [len(row.noisy) for row in rows] == [0, 1, 1, 1]


# --- calendar and refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("every", EVERY)
def test_periods_cover_each_day_once(every):
    calendar = Calendar(every, first_day_of(every, day(26)), 7)
    assert all(before < after for before, after in zip(calendar.edges, calendar.edges[1:], strict=False))
    for period in range(7):
        first, last = calendar.edges[period], calendar.last_day(period)
        assert calendar.period_of(first) == calendar.period_of(last) == period
        assert calendar.ended_by(last) == period
        assert first_day_of(every, last) == first
    assert calendar.period_of(day(-400)) == -1
    assert calendar.ended_by(day(10**5)) == 7


REFUSED = {
    "SELECT MEDIAN(cost) FROM visits": "DP708",
    "SELECT COUNT(DISTINCT id) FROM visits": "DP708",
    "SELECT STDDEV(cost) FROM visits": "DP708",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3": "DP708",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n": "DP708",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 1": "DP708",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) AS u WHERE n > 1": "DP708",
    "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.id = b.id": "DP708",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_added_up_is_refused(sql):
    with pytest.raises(DiscreetError) as refusal:
        planned(sql)
    assert refusal.value.code == REFUSED[sql]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"time": "cost"}, "DP708"),
        ({"time": "nothing"}, "DP708"),
        ({"dataset": data(at_most="auto")}, "DP107"),
        ({"dataset": data(visits().drop("day").with_columns(day=pl.lit(1)), day=dp.column())}, "DP708"),
        ({"dataset": data(arrived=dp.column(), frame=visits().with_columns(arrived=pl.col("day")))}, "DP708"),
        ({"dataset": data(day=dp.column("date", bounds=(day(0), day(100))))}, "DP708"),
        ({"dataset": data(day=dp.column("date", bounds=(day(1), day(1000))))}, "DP708"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_stream_needs_a_date_and_bounds(words, code):
    with pytest.raises(DiscreetError) as refusal:
        planned(**words)
    assert refusal.value.code == code


def test_the_bound_is_that_of_the_table_of_the_question():
    columns = {"day": dp.column(bounds=(day(0), day(2000)))}
    protect = dp.each("id", at_most={"visits": 2, "calls": 7})
    tables = {"visits": visits(), "calls": visits()}
    with dp.open(tables, protect=protect, columns={"visits": columns, "calls": columns}) as both:
        for table, rows in (("visits", 2), ("calls", 7)):
            plan = planned(f"SELECT COUNT(*) AS n FROM {table}", dataset=both)
            assert plan.participation == Participation(rows)


def test_rows_that_are_units_take_no_bound():
    dataset = dp.open(
        {"visits": visits()}, protect=dp.each_row(), columns={"day": dp.column(bounds=(day(0), day(2000)))}
    )
    assert planned(dataset=dataset).participation == Participation()
    with pytest.raises(DiscreetError, match="DP107"):
        planned(dataset=dataset, participation=Participation(2))

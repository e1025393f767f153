# SPDX-License-Identifier: Apache-2.0
"""Bounds that are chosen privately, and what the declared ones cut off: paid once, recorded, and noted with later answers."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError, OverBudget
from discreet.tables.plan.suggest import BoundsMechanism, suggest_bounds, value_edges

#: 4,000 people with 1 to 8 rows, 4.5 in the mean.
PEOPLE = np.repeat(np.arange(4000), np.arange(4000) % 8 + 1)
ROWS = pa.table(
    {
        "p": PEOPLE,
        "cost": (PEOPLE % 100).astype(float) * 4,
        "shift": PEOPLE % 50 - 60,
        "word": ["x"] * len(PEOPLE),
    }
)


def opened(at_most=3, cost=(0, 200), **more):
    return dp.open(
        ROWS, dp.each("p", at_most=at_most, **more), name="visits", columns={"cost": dp.column(bounds=cost)}
    )


def session(data=None, epsilon=100.0, **more):
    return dp.Session(data or opened(), dp.Limit.filter(epsilon), **more)


def spent(one):
    return float(one.ledger.spent["epsilon"])


def test_bounds_are_suggested_near_the_best():
    one = session()
    found = one.suggest_bounds("visits", ["cost", "shift"], epsilon=3.0)
    assert spent(one) == pytest.approx(3.0, rel=1e-6)
    assert spent(one) <= 3.0
    assert found.at_most == 8
    # 396 is the greatest cost; -60 and -11 are the ends of shift.
    assert found.bounds["cost"][0] <= 4
    assert 320 <= found.bounds["cost"][1] <= 512
    assert -64 <= found.bounds["shift"][0] <= -60
    assert -12 <= found.bounds["shift"][1] <= 0
    # Of the rows beyond three: 5 + 4 + 3 + 2 + 1 of 36. Of the people those with more than 200: 49 of 100.
    assert found.beyond == pytest.approx(15 / 36, abs=0.05)
    assert found.clipped["cost"] == pytest.approx(0.49, abs=0.05)
    assert "shift" not in found.clipped


def test_the_code_of_a_suggestion_is_taken_as_it_is():
    found = session().suggest_bounds(columns=["cost", "shift"], epsilon=3.0)
    arguments = eval(f"dict({found.code})", {"dp": dp})
    again = session(dp.open(ROWS, name="visits", **arguments))
    assert again.data.protect.at_most == found.at_most
    assert again.sql("SELECT AVG(shift) FROM visits", epsilon=10).value == pytest.approx(-35.5, abs=2)


def test_each_histogram_is_paid_once_and_everybody_sees_it(tmp_path):
    place = tmp_path / "a.ledger"
    one = session(ledger=place)
    first = one.suggest_bounds("visits", ["cost"], epsilon=1.0)
    again = dp.Session(opened(), ledger=place, analyst="ana")
    assert str(again.suggest_bounds("visits", ["cost"], epsilon=1.0)) == str(first)
    assert spent(again) <= 1.0
    again.suggest_bounds("visits", ["cost", "shift"], epsilon=1.0)
    assert 1.99 <= spent(again) <= 2.0


def test_later_answers_note_what_is_cut_off_and_exports_have_it(tmp_path):
    one = session()
    text = "SELECT AVG(cost) AS m FROM visits"
    assert not any("private estimate" in note for note in one.sql(text, epsilon=1).notes)
    one.suggest_bounds("visits", ["cost"], epsilon=3.0)
    answer = one.sql(text, epsilon=1, key="monday")
    notes = [note for note in answer.notes if "private estimate" in note]
    assert len(notes) == 2
    assert "of the rows of visits are beyond at_most" in notes[0]
    assert "a value of cost outside its bounds" in notes[1]
    assert notes[1] in answer.to_json()
    assert one.sql(text, epsilon=1, key="monday").notes == answer.notes
    batch = one.release_batch({"a": ("SELECT COUNT(*) FROM visits", {"epsilon": 1})})
    assert notes[0] in batch["a"].notes
    assert notes[1] not in batch["a"].notes
    answer.to_csv(tmp_path / "a.csv", sidecar=True)
    assert any(notes[1] in path.read_text(encoding="utf-8") for path in tmp_path.iterdir())


def test_a_suggestion_that_does_not_fit_costs_nothing():
    one = session(epsilon=1.0)
    with pytest.raises(OverBudget):
        one.suggest_bounds("visits", ["cost", "shift"], epsilon=1.5)
    assert spent(one) == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"table": "trips"}, "DP105"),
        ({"columns": ["none"]}, "DP701"),
        ({"columns": ["word"]}, "DP706"),
        ({"columns": [7]}, "DP104"),
        ({"columns": "cost"}, "DP104"),
        ({"epsilon": 0}, None),
        ({"epsilon": float("nan")}, None),
        ({"epsilon": float("inf")}, None),
        ({"epsilon": "1"}, None),
        ({"epsilon": -1.0}, None),
    ],
    ids=str,
)
def test_bad_requests_are_refused_and_cost_nothing(words, code):
    one = session()
    with pytest.raises(DiscreetError) as refused:
        one.suggest_bounds(**{"table": "visits", "epsilon": 1.0, **words})
    assert code in {refused.value.code, None}
    assert spent(one) == 0


def test_rows_that_are_units_have_bounds_of_columns_only():
    data = dp.open(ROWS, dp.each_row(), name="visits")
    one = session(data)
    with pytest.raises(DiscreetError) as refused:
        one.suggest_bounds("visits", epsilon=1.0)
    assert (refused.value.code, spent(one)) == ("DP104", 0)
    found = eval(refused.value.fix, {"session": one})
    assert found.at_most is None
    assert found.beyond is None


def test_an_empty_table_has_no_suggestion():
    data = dp.open(ROWS.slice(0, 0), dp.each("p", at_most=3), name="visits")
    found = session(data).suggest_bounds("visits", ["cost"], epsilon=1.0)
    assert found.bounds == {"cost": None}
    assert found.beyond is None
    assert "too few units" in str(found)


def exact(rows, column, relation="add-remove"):
    """The histograms without noise."""
    data = dp.open(
        pa.table(
            {
                "p": pa.array([p for p, _ in rows], pa.int64()),
                "x": pa.array([x for _, x in rows], pa.float64()),
            }
        ),
        dp.each("p", at_most=2, relation=relation),
        name="t",
        columns={"x": dp.column(bounds=(-1, 2))},
    )
    mechanism = BoundsMechanism(data, "t", column, epsilon=1.0)
    mechanism._noise = lambda count: [0] * count
    drawn = mechanism.draw(data)
    return mechanism, [drawn[name] for name in ("rows", "min", "max") if name in drawn]


@pytest.mark.parametrize("column", [None, "x"])
def test_no_unit_moves_a_histogram_by_more_than_its_guarantee_says(column):
    values = [None, float("nan"), float("inf"), -3.0, 0.5, 1e300]
    for some in [(), *((value,) for value in values), *itertools.combinations(values, 2), tuple(values) * 20]:
        base = [(1, 0.5), (1, 7.0), (2, -4.0)]
        mechanism, before = exact(base, column)
        _, after = exact([*base, *((3, value) for value in some)], column)
        moved = [
            sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in zip(before, after, strict=True)
        ]
        assert max(moved) <= 1
        loss = sum(moved) / mechanism._distribution.scale
        assert loss <= mechanism.guarantee.epsilon(delta=0) * (1 + 1e-9)
    assert mechanism.guarantee.epsilon(delta=0) <= 1.0
    replaced, _ = exact(base, column, "replace")
    assert replaced._distribution.scale == pytest.approx(2 * mechanism._distribution.scale)
    assert replaced.guarantee.epsilon(delta=0) <= 1.0


def test_edges_hold_the_declared_bounds_and_nothing_of_the_data():
    data = opened()
    edges = value_edges(data.tables["visits"], "cost")
    assert list(edges) == sorted(set(edges))
    assert edges == value_edges(opened().tables["visits"], "cost")
    few = dp.open(
        ROWS.slice(0, 1), dp.each("p", at_most=3), name="visits", columns={"cost": dp.column(bounds=(0, 200))}
    )
    assert edges == value_edges(few.tables["visits"], "cost")


@pytest.mark.parametrize("noise", [0.1, 10.0, 1000.0])
def test_a_suggested_bound_has_the_least_loss_among_the_edges(noise):
    data = opened()
    histogram = {"edges": [1, 2, 4, 8], "scale": 0.001, "min": [0, 90, 0, 0, 0], "max": [0, 50, 30, 8, 2]}
    found = suggest_bounds(data, "visits", {"shift": histogram}, noise=noise).bounds["shift"]
    uppers, counts = [1, 2, 4, 8, 16], [0, 50, 30, 8, 2]

    def loss(end):
        return (
            sum(many * max(0, upper - end) for many, upper in zip(counts, uppers, strict=True)) + noise * end
        )

    high = max(2, min((2, 4, 8, 16), key=loss) - 1)
    # 0 is taken for an end that is near it.
    assert found == (0 if high > 2 else 1, high)

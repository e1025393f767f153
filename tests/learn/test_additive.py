# SPDX-License-Identifier: Apache-2.0
"""Additive models: what one record moves, what is spent, and what they learn."""

from __future__ import annotations

import math
import pickle
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import noise, plot, privacy, testing
from discreet.errors import BadParameter, DiscreetError
from discreet.learn import (
    AdditiveClassifier,
    AdditiveRegressor,
    LogisticRegression,
    additive_fit,
    shapes,
    tune,
)
from discreet.learn import bins as bins_module
from discreet.learn.bins import CELLS, Feature, release_bins
from discreet.learn.calibration import Calibration
from discreet.learn.interactions import PairBins, noisy_pair_counts, strongest_pairs
from discreet.learn.shapes import table_sums
from tests.chance import may_fail
from tests.learn.accounts import Account

LOOSE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
DRAWN = np.random.default_rng(11)


def moons(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arcs that no line divides."""
    draw = np.random.default_rng(seed)
    labels, angles = draw.integers(0, 2, count), draw.uniform(0, np.pi, count)
    arcs = np.where(
        labels[:, None] == 1,
        np.stack([1 - np.cos(angles), 0.5 - np.sin(angles)], axis=1),
        np.stack([np.cos(angles), np.sin(angles)], axis=1),
    )
    return arcs + draw.normal(0, 0.25, (count, 2)), labels


def crossed(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight features; the sign of a product decides, and nothing else."""
    draw = np.random.default_rng(seed)
    rows = draw.uniform(-1, 1, (count, 8))
    chances = 1 / (1 + np.exp(-3 * np.sign(rows[:, 0] * rows[:, 1])))
    return rows, (draw.uniform(size=count) < chances).astype(int)


def curves(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten features without interactions; six of them do not matter."""
    draw = np.random.default_rng(seed)
    rows = draw.uniform(-1, 1, (count, 10))
    scores = 2 * np.sin(3 * rows[:, 0]) + 3 * rows[:, 1] ** 2 - 1 + 2 * (rows[:, 2] > 0.3) - rows[:, 3]
    return rows, (draw.uniform(size=count) < 1 / (1 + np.exp(-scores))).astype(int)


@pytest.fixture
def whole_sums(monkeypatch):
    """What every release adds noise to, and the standard deviation of that noise, in the order of drawing."""
    drawn: list[tuple[float, int]] = []

    def without(scale: Any, size: Any = None) -> Any:
        drawn.append((float(scale), 1 if size is None else int(np.prod(size))))
        return 0 if size is None else np.zeros(size, np.int64)

    monkeypatch.setattr(noise, "rounded_gaussian", without)
    return drawn


# what one record moves ---------------------------------------------------------------------------


def test_the_column_of_a_cell_is_as_long_as_claimed(whole_sums):
    """Every cell, and what is missing: added, and exchanged for every other of a sample of cells."""
    strategy = bins_module._strategy()
    columns = [strategy.matrix[:, cell] for cell in range(CELLS)]
    lengths = [math.sqrt(sum(int(entry) ** 2 for entry in column.tolist())) for column in columns]
    assert max(lengths) <= strategy.norm <= max(lengths) * (1 + 1e-11)
    assert strategy.missing <= strategy.norm
    some = [*range(0, CELLS, 37), CELLS - 1]
    exchanged = [np.linalg.norm((columns[a] - columns[b]).astype(float)) for a, b in product(some, some)]
    assert max(exchanged) <= math.sqrt(2) * strategy.norm


def test_bins_are_drawn_with_the_noise_that_their_sensitivity_needs(whole_sums):
    features = [Feature("a", 0.0, 1.0), Feature("b", values=np.array(["x", "y"]))]
    cells = [np.array([0, 5, CELLS]), np.array([0, 1, 2])]
    for relation, root in (("add-remove", 1.0), ("replace", math.sqrt(2))):
        whole_sums.clear()
        release_bins(features, cells, noise=3.0, relation=relation, known_count=None)
        numeric, missing, category = whole_sums
        norm = bins_module._strategy().norm
        assert numeric == (pytest.approx(3 * root * norm), CELLS)
        assert missing == (pytest.approx(3 * root * norm), 1)
        assert category == (pytest.approx(3 * root), 3)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("clip", [0.35, 1.0])
def test_one_record_moves_one_bin_by_the_clip_at_most(whole_sums, classes, clip):
    slopes = DRAWN.normal(size=(40, classes)) * 2
    slopes[:4] = np.array([np.nan, np.inf, -np.inf, 0.0])[:, None]
    places = DRAWN.integers(0, 4, 40)
    whole = table_sums(slopes.copy(), places, 4, clip=clip, multiplier=1.0, relation="add-remove").sums
    longest = 0.0
    for record in range(40):
        others = np.delete(np.arange(40), record)
        without = table_sums(
            slopes[others].copy(), places[others], 4, clip=clip, multiplier=1.0, relation="add-remove"
        )
        moved = whole - without.sums
        assert not moved[np.arange(4) != places[record]].any()
        longest = max(longest, float(np.linalg.norm(moved)))
    assert clip * (1 - 1e-5) < longest <= clip
    assert {round(scale) for scale, _ in whole_sums} == {math.floor(clip * 2**20)}
    table_sums(slopes.copy(), places, 4, clip=clip, multiplier=1.0, relation="replace")
    assert whole_sums[-1][0] == pytest.approx(2 * math.floor(clip * 2**20))


def test_one_record_moves_one_cell_of_each_pair_and_one_bin_of_scores(whole_sums):
    features = [Feature(name, 0.0, 1.0) for name in "abc"]
    columns = [DRAWN.integers(0, CELLS, 3_000) for _ in features]
    binned, *_ = release_bins(features, columns, noise=1.0, relation="add-remove", known_count=None)
    pairs = [PairBins.of(a, b, binned, 8) for a, b in ((0, 1), (0, 2), (1, 2))]
    places = [one.bin_of_cell[column] for one, column in zip(binned, columns, strict=True)]
    for pair in pairs:
        cells = pair.cells(places[pair.first], places[pair.second])
        assert 0 <= cells.min() <= cells.max() < np.prod(pair.shape)
    whole_sums.clear()
    noisy_pair_counts(pairs, places, multiplier=2.0, relation="replace")
    assert [scale for scale, _ in whole_sums] == [pytest.approx(2 * math.sqrt(3) * math.sqrt(2))] * 3
    whole_sums.clear()
    strongest_pairs(
        np.ones((3_000, 1)),
        places,
        binned,
        clip=0.5,
        multiplier=2.0,
        relation="add-remove",
        variances=np.ones(1),
    )
    assert [scale for scale, _ in whole_sums] == [pytest.approx(2**19 * 2 * math.sqrt(3))] * 3
    whole_sums.clear()
    Calibration.release(np.linspace(-9, 9, 50), np.ones(50), multiplier=2.0, relation="add-remove")
    assert whole_sums == [(pytest.approx(2 * math.sqrt(5)), 28)]


# what is spent -----------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("make", "interactions"), [(crossed, "auto"), (curves, "auto"), (curves, 0), (moons, [(0, 1)])]
)
def test_all_releases_together_cost_the_budget(monkeypatch, relation, make, interactions):
    """Each release is caught with the multiplier it was asked for, and the squares of their inverses add up."""
    spent: list[float] = []

    def catch(module: Any, name: str, share_of: Any) -> None:
        real = getattr(module, name)

        def caught(*positional: Any, **named: Any) -> Any:
            spent.append(share_of(positional, named))
            return real(*positional, **named)

        monkeypatch.setattr(module, name, caught)

    def per_table(_: Any, named: Any) -> float:
        return float(1 / named["multiplier"] ** 2)

    catch(additive_fit, "release_bins", lambda positional, named: len(positional[0]) / named["noise"] ** 2)
    catch(additive_fit, "noisy_pair_counts", per_table)
    catch(additive_fit, "strongest_pairs", per_table)
    catch(shapes, "table_sums", per_table)
    real = Calibration.release.__func__

    def calibrated(cls, *positional, **named):
        spent.append(per_table(positional, named))
        return real(cls, *positional, **named)

    monkeypatch.setattr(Calibration, "release", classmethod(calibrated))
    rows, labels = make(6_000, 3)
    model = AdditiveClassifier(
        epsilon=4, delta=1e-5, bounds=(-3, 3), classes=[0, 1], relation=relation, interactions=interactions
    )
    with testing.seeded(5):
        model.fit(rows, labels)
    assert not model._fit_.is_lines
    whole = privacy.gaussian(sum(spent) ** -0.5, relation=relation)
    assert 3.9 < whole.epsilon(delta=1e-5) <= 4


def test_the_charge_comes_first_and_does_not_depend_on_the_plan():
    rows, labels = moons(2_000, 1)
    paid = []
    for count in (0, 40, 2_000):
        account = Account()
        model = AdditiveClassifier(**LOOSE, bounds=(-3, 3), classes=[0, 1], session=account)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows[:count], labels[:count])
        paid.append(account.paid[0][0].to_json())
        assert model.guarantee_.epsilon(delta=1e-5) <= 1
    assert len(set(paid)) == 1
    with pytest.raises(DiscreetError):
        AdditiveClassifier(**LOOSE, bounds=(-3, 3), classes=[0, 1], session=Account(refuses=True)).fit(
            rows, labels
        )


# what they learn ---------------------------------------------------------------------------------


@may_fail(1e-12, "a pair's table would have to be hidden by noise of a hundredth of it")
def test_an_interaction_is_found_and_used():
    rows, labels = crossed(15_000, 1)
    more, truth = crossed(4_000, 2)
    model = AdditiveClassifier(**LOOSE, bounds=(-1, 1), classes=[0, 1]).fit(rows, labels)
    assert ("pair", (0, 1)) in [(term.kind, term.features) for term in model.terms_]
    assert model.score(more, truth) > 0.86
    assert (
        LogisticRegression(**LOOSE, bounds=(-1, 1), classes=[0, 1]).fit(rows, labels).score(more, truth) < 0.6
    )


def test_curves_beat_lines_where_the_truth_is_curved():
    rows, labels = curves(20_000, 1)
    more, truth = curves(5_000, 2)
    with testing.seeded(1):
        model = AdditiveClassifier(**LOOSE, bounds=(-1, 1), classes=[0, 1]).fit(rows, labels)
        line = LogisticRegression(**LOOSE, bounds=(-1, 1), classes=[0, 1]).fit(rows, labels)
    assert model.score(more, truth) > line.score(more, truth) + 0.04
    ranked = sorted(model.terms_, key=lambda term: -term.importance)
    assert {term.features[0] for term in ranked[:4]} == {0, 1, 2, 3}
    chances = model.predict_proba(more)[np.arange(len(truth)), truth]
    assert -np.log(chances).mean() < 0.46


def test_a_rare_class_is_learned_better_with_more_budget():
    """Where chances are tiny the loss is far from quadratic, and steps by the mean curvature go too far."""
    draw = np.random.default_rng(6)
    rows = draw.normal(size=(16_000, 2))
    labels = draw.uniform(size=16_000) < 1 / (1 + np.exp(6.5 - 2.7 * rows[:, 0]))
    losses = []
    for epsilon in (0.5, 50):
        with testing.seeded(1):
            model = AdditiveClassifier(epsilon=epsilon, delta=1e-5, bounds=(-5, 5), classes=[False, True])
            chances = model.fit(rows[:12_000], labels[:12_000]).predict_proba(rows[12_000:])
        losses.append(-np.log(chances[np.arange(4_000), labels[12_000:].astype(int)]).mean())
    exact = 1 / (1 + np.exp(6.5 - 2.7 * rows[12_000:, 0]))
    best = -np.log(np.where(labels[12_000:], exact, 1 - exact)).mean()
    assert best * 0.9 < losses[1] < min(losses[0], 1.16 * best)


def test_without_interactions_a_crossed_truth_stays_hidden():
    rows, labels = crossed(15_000, 1)
    more, truth = crossed(4_000, 2)
    with testing.seeded(1):
        model = AdditiveClassifier(**LOOSE, bounds=(-1, 1), classes=[0, 1], interactions=0).fit(rows, labels)
    assert model.score(more, truth) < 0.6
    assert all(term.kind == "numbers" for term in model.terms_)


def test_targets_are_learned_with_wide_bounds():
    rows = np.random.default_rng(3).uniform(0, 1, (12_000, 5))
    targets = 10 * np.sin(np.pi * rows[:, 0] * rows[:, 1]) + 20 * (rows[:, 2] - 0.5) ** 2 + 10 * rows[:, 3]
    with testing.seeded(2):
        model = AdditiveRegressor(**LOOSE, bounds=(0, 1), target_bounds=(-100, 100)).fit(
            rows[:9_000], targets[:9_000]
        )
    assert model.score(rows[9_000:], targets[9_000:]) > 0.9
    assert "(0, 1)" in str([term.features for term in model.terms_])


def test_few_records_get_straight_lines():
    rows, labels = moons(300, 1)
    with testing.seeded(1):
        model = AdditiveClassifier(**LOOSE, bounds=(-3, 3), classes=[0, 1]).fit(rows, labels)
    assert {term.kind for term in model.terms_} == {"line"}
    assert "straight lines" in model.explain()
    assert model.predict_proba([[np.nan, 0.0], [9.0, -9.0]]).shape == (2, 2)


def test_three_classes_and_categories():
    draw = np.random.default_rng(4)
    frame = pd.DataFrame({"x": draw.uniform(0, 1, 12_000), "kind": draw.choice(["a", "b", "?"], 12_000)})
    labels = np.where(frame.kind == "a", 0, np.where(frame.x > 0.5, 1, 2))
    model = AdditiveClassifier(
        **LOOSE, bounds={"x": (0, 1)}, categories={"kind": ["a", "b"]}, classes=[0, 1, 2], interactions=0
    )
    with testing.seeded(1):
        model.fit(frame, labels)
    assert model.score(frame, labels) > 0.95
    assert model.terms_[1].labels == ("a", "b")
    assert model.terms_[1].values.shape == (3, 3)
    assert model.predict_proba(frame[:5]).sum(axis=1) == pytest.approx(1)
    # what was not declared has the bin of what is missing
    odd = pd.DataFrame({"x": [0.2, 0.2], "kind": ["?", None]})
    assert (model.decision_function(odd)[0] == model.decision_function(odd)[1]).all()


def test_what_is_missing_has_its_own_bin():
    draw = np.random.default_rng(5)
    x = draw.uniform(0, 1, 10_000)
    labels = np.where(np.isnan(np.where(x < 0.3, np.nan, x)), 1, draw.integers(0, 2, 10_000))
    rows = np.where(x < 0.3, np.nan, x)[:, None]
    with testing.seeded(1):
        model = AdditiveClassifier(**LOOSE, bounds=(0, 1), classes=[0, 1]).fit(rows, labels)
    assert model.predict_proba([[np.nan], [0.6]])[0, 1] > 0.9
    assert 0.4 < model.predict_proba([[np.nan], [0.6]])[1, 1] < 0.6


def test_a_monotone_curve_is_monotone():
    rows, labels = curves(8_000, 1)
    with testing.seeded(1):
        model = AdditiveClassifier(
            **LOOSE, bounds=(-1, 1), classes=[0, 1], monotone={2: 1, 3: -1}, interactions=0
        ).fit(rows, labels)
    assert (np.diff(model.terms_[2].values[:-1, 0]) >= 0).all()
    assert (np.diff(model.terms_[3].values[:-1, 0]) <= 0).all()
    assert (np.diff(model.terms_[1].values[:-1, 0]) < 0).any()


def test_bands_hold_the_curves_without_noise():
    """The fit at a huge budget stands for the fit without noise."""
    rows, labels = curves(20_000, 1)
    options: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1], "interactions": 0, "delta": 1e-5}
    with testing.seeded(1):
        model = AdditiveClassifier(epsilon=1, bands=True, **options).fit(rows, labels)
    grid = np.linspace(-0.99, 0.99, 200)
    truth = 2 * np.sin(3 * grid)
    term = model.terms_[0]
    at = np.searchsorted(term.edges, grid) - 1
    inside = np.abs(term.values[at, 0] - (truth - truth.mean())) < 2.6 * term.deviations[at, 0]
    assert inside.mean() > 0.8
    assert model._fit_.clip == 1
    assert all(
        other.deviations is None
        for other in AdditiveClassifier(epsilon=1, **options).fit(rows, labels).terms_
    )


def test_scores_are_sums_of_terms():
    rows, labels = moons(4_000, 1)
    with testing.seeded(1):
        model = AdditiveRegressor(**LOOSE, bounds=(-3, 3), target_bounds=(0, 1), interactions=0).fit(
            rows, labels
        )
    at = [
        np.clip(np.searchsorted(term.edges, rows[:, j], "right") - 1, 0, len(term.values) - 2)
        for j, term in enumerate(model.terms_)
    ]
    sums = model.intercept_[0] + sum(
        term.values[where, 0] for term, where in zip(model.terms_, at, strict=True)
    )
    assert np.mean(np.abs(sums - model.predict(rows)) < 1e-9) > 0.999
    assert all(abs(term.shares @ term.values[:, 0]) < 0.02 for term in model.terms_)


# everything else ---------------------------------------------------------------------------------


def test_it_travels_and_is_drawn():
    rows, labels = crossed(6_000, 1)
    with testing.seeded(1):
        model = AdditiveClassifier(epsilon=4, delta=1e-5, bounds=(-1, 1), classes=[0, 1], bands=True).fit(
            rows, labels
        )
    twin = pickle.loads(pickle.dumps(model))
    assert (twin.predict_proba(rows[:50]) == model.predict_proba(rows[:50])).all()
    figure = model.plot()
    assert len(figure.axes) >= 9
    assert "what 0 × 1 adds together" in plot.alt_text(figure)
    assert "what 2 adds" in plot.alt_text(model.plot(2))
    assert "from" in plot.alt_text(model.plot((0, 1)))
    with pytest.raises(BadParameter, match="no term 'age'"):
        model.plot("age")


def test_the_order_of_the_records_does_not_matter():
    """With noise that is the same in both, so is all that is released, but for the order of the rows."""
    rows, labels = moons(2_000, 1)
    order = np.random.default_rng(1).permutation(2_000)
    released = []
    for at in (np.arange(2_000), order):
        with testing.seeded(3):
            model = AdditiveClassifier(epsilon=4, delta=1e-5, bounds=(-3, 3), classes=[0, 1]).fit(
                rows[at], labels[at]
            )
        released.append(np.concatenate([term.values.ravel() for term in model.terms_]))
    assert (released[0] == released[1]).all()


def test_a_search_can_choose_one():
    rows, labels = moons(3_000, 1)
    shared: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (-3, 3), "classes": [0, 1]}
    with testing.seeded(2):
        best = tune(
            [AdditiveClassifier(**shared), AdditiveClassifier(**shared, interactions=0)],
            rows,
            labels,
            mean_runs=3,
        )
    assert best.score(rows, labels) > 0.8


FRAME = pd.DataFrame({"age": [20.0, 30.0], "sex": ["f", "m"]})
GOOD: dict[str, Any] = {
    **LOOSE,
    "bounds": {"age": (0, 100)},
    "categories": {"sex": ["f", "m"]},
    "classes": [0, 1],
}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"bounds": None}, "DP107"),
        ({"bounds": {}}, "DP107"),
        ({"bounds": {"age": (0, math.inf)}}, "DP101"),
        ({"bounds": {"age": (9, 1)}}, "DP102"),
        ({"bounds": {"age": "wide"}}, "DP104"),
        ({"bounds": {"size": (0, 1)}}, "DP105"),
        ({"categories": None}, "DP107"),
        ({"categories": ["sex"]}, "DP104"),
        ({"categories": {"sex": "fm"}}, "DP104"),
        ({"categories": {"sex": []}}, "DP104"),
        ({"categories": {"sex": ["f", "f"]}}, "DP104"),
        ({"categories": {"sex": ["f", 1]}}, "DP104"),
        ({"categories": {"sex": [0, 1]}}, "DP104"),
        ({"categories": {"sexx": ["f"]}}, "DP105"),
        ({"interactions": "all"}, "DP104"),
        ({"interactions": 3}, "DP104"),
        ({"interactions": [("age", "size")]}, "DP105"),
        ({"interactions": [("age", "age")]}, "DP102"),
        ({"interactions": [("age", "sex"), ("sex", "age")]}, "DP102"),
        ({"monotone": {"sex": 1}}, "DP102"),
        ({"monotone": {"age": 2}}, "DP102"),
        ({"monotone": ["age"]}, "DP104"),
        ({"bands": 1}, "DP104"),
        ({"classes": None}, "DP107"),
        ({"epsilon": None}, "DP107"),
        ({"epsilon": -1}, "DP102"),
        ({"epsilon": math.nan}, "DP101"),
        ({"delta": 0}, "DP102"),
        ({"relation": "both"}, "DP105"),
    ],
)
def test_what_is_wrong_is_refused_before_it_costs(wrong, code):
    account = Account()
    with pytest.raises(DiscreetError) as refused:
        AdditiveClassifier(**GOOD | wrong, session=account).fit(FRAME, [0, 1])
    assert refused.value.code == code
    assert not account.paid


@pytest.mark.filterwarnings("ignore:The released number")
def test_odd_rows_are_no_errors():
    odd = pd.DataFrame(
        {
            "age": [np.nan, np.inf, -np.inf, 1e308, -5.0],
            "sex": pd.Series(["f", None, "x", 3.5, ("m",)], dtype=object),
        }
    )
    model = AdditiveClassifier(**GOOD).fit(odd, pd.Series([0, 1, None, "x", 1], dtype=object))
    assert np.isfinite(model.predict_proba(odd)).all()
    assert len(model.predict(odd)) == 5
    with pytest.raises(DiscreetError):
        model.predict(FRAME[["age"]])

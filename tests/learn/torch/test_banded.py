# SPDX-License-Identifier: Apache-2.0
"""Correlated noise: its algebra to the last cell, its guarantee by integrating the true distributions, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from discreet import privacy, testing
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import Adaptive, CorrectedAdam, plan_of
from discreet.learn.torch.banded import BandedNoise, Cycle
from discreet.learn.torch.bands import factor, prefix_error, variances
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.noise import StepNoise, scales_for
from discreet.learn.torch.sums import FloatSums
from tests.chance import may_fail
from tests.learn.torch.reference import loop, small, start_run
from tests.statistical import fit
from tests.statistical.constants import ALPHA

# --- the factor --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bands", [1, 2, 3, 8, 64, 1000])
def test_columns_are_within_one_exactly(bands):
    total = sum(Fraction(float(c)) ** 2 for c in factor(bands))
    assert 1 - Fraction(1, 10**9) < total <= 1


def matrix(bands, steps):
    rows = np.zeros((steps, steps))
    for k, c in enumerate(factor(bands)[:steps]):
        rows += c * np.eye(steps, k=-k)
    return rows


@pytest.mark.parametrize("bands", [1, 2, 3, 8])
def test_errors_are_those_of_the_matrices(bands):
    steps = 6
    inverse = np.linalg.inv(matrix(bands, steps))
    sums = np.tril(np.ones((steps, steps))) @ inverse
    assert variances(bands, steps) == pytest.approx((inverse**2).sum(1))
    assert prefix_error(bands, steps) == pytest.approx(np.sqrt((sums**2).sum() / steps))


def test_many_bands_are_the_square_root_of_prefix_sums():
    """Then the error is that of the best factor up to a constant, log T and not T."""
    root = matrix(50, 50) / factor(50)[0]
    assert root @ root == pytest.approx(np.tril(np.ones((50, 50))))


# --- the guarantee: the true distributions of tiny runs, integrated ---------------------------------------------


def delta_of(columns, turns, *, sigma, rate, epsilon, gradient, points=25, reach=5.0):
    """δ of one record against none, over four rows: `columns[s]` are the rows that step s moves, `turns` the steps of each group.

    The rows Y are normal without the record; gradients may look at earlier rows. Integrated over a grid of rows.
    """
    line = np.linspace(-reach * sigma, reach * sigma, points)
    rows = np.stack(np.meshgrid(*[line] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    distribution = np.exp(-(rows**2).sum(1) / (2 * sigma**2))
    distribution /= distribution.sum()
    ratio = np.zeros(len(rows))
    for steps in turns:
        for coins in itertools.product([0, 1], repeat=len(steps)):
            moved = np.zeros_like(rows)
            for s, coin in zip(steps, coins, strict=True):
                moved += coin * gradient(rows, s)[:, None] * columns[s]
            chance = np.prod([rate if coin else 1 - rate for coin in coins])
            exponent = ((rows * moved).sum(1) - (moved**2).sum(1) / 2) / sigma**2
            ratio += chance * np.exp(exponent) / len(turns)
    there = (distribution * np.maximum(ratio - np.exp(epsilon), 0)).sum()
    back = (distribution * np.maximum(1 - np.exp(epsilon) * ratio, 0)).sum()
    return max(there, back)


def steady(rows, s):
    return np.ones(len(rows))


def contrary(rows, s):
    """Away from where the last row went, so that the gradient is a function of what was released."""
    return np.where(rows[:, s - 1] > 0, -1.0, 1.0) if s else np.ones(len(rows))


SIGMA, RATE = 1.0, 0.6
TWO_GROUPS = [(0, 2), (1, 3)]


@pytest.mark.parametrize("gradient", [steady, contrary])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_four_steps_of_two_bands_keep_two_rounds(gradient, epsilon):
    claim = (2 * privacy.gaussian(SIGMA).sampled(RATE)).delta(epsilon)
    columns = matrix(2, 4).T
    truth = delta_of(columns, TWO_GROUPS, sigma=SIGMA, rate=RATE, epsilon=epsilon, gradient=gradient)
    assert truth <= claim
    alone = delta_of(columns, TWO_GROUPS[:1], sigma=SIGMA, rate=RATE, epsilon=epsilon, gradient=gradient)
    assert 0.97 * claim < alone <= claim * (1 + 1e-3)  # the group that begins uses all of it


@pytest.mark.parametrize(
    ("columns", "turns"),
    [
        (matrix(4, 4).T / np.sqrt((matrix(4, 4) ** 2).sum(0).max()), [(0, 2)]),
        (matrix(2, 4).T, [(0, 1)]),
        (1.2 * matrix(2, 4).T, [(0, 2)]),
    ],
    ids=["more bands than groups", "turns too close", "columns too long"],
)
def test_the_integral_finds_what_the_proof_forbids(columns, turns):
    claim = (2 * privacy.gaussian(SIGMA).sampled(RATE)).delta(1.0)
    assert delta_of(columns, turns, sigma=SIGMA, rate=RATE, epsilon=1.0, gradient=steady) > 1.05 * claim


# --- the noise ---------------------------------------------------------------------------------------


SCALES = scales_for(noise=1.5, clip=2.0, dimension=50)


def released(bands, sums, seed=1):
    """What a run of so many sums releases, in cells."""
    noise = BandedNoise(Cycle(bands, 3))
    buffer = torch.zeros(50, dtype=torch.float64)
    rows = []
    with testing.seeded(seed):
        for each in sums:
            buffer.copy_(each)
            noise.add_(buffer, SCALES, divide=4.0)
            rows.append((buffer * 4.0 / SCALES.cell).clone())
    return torch.stack(rows)


def fresh(steps, seed=1):
    """The independent normals of the same seed, in cells."""
    rows, plain = torch.zeros(steps, 50, dtype=torch.float64), StepNoise()
    with testing.seeded(seed):
        for row in rows:
            plain.add_(row, SCALES, divide=1.0)
    return rows / SCALES.cell


@pytest.mark.parametrize("bands", [1, 2, 3, 5, 9])
def test_noise_times_the_factor_is_fresh_noise_and_rounding_does_not_pile_up(bands):
    found = released(bands, torch.zeros(40, 50))
    assert torch.equal(found, found.round())
    back = torch.from_numpy(matrix(bands, 40)) @ found
    assert (back - fresh(40)).abs().max() <= 1.001 + 1e-5 * (bands == 1)


@pytest.mark.parametrize("bands", [1, 2, 5])
def test_a_sum_is_rounded_and_moves_its_own_release_only(bands):
    """Lemma 1: what is released is the sum in whole cells plus noise that does not look at it."""
    sums = torch.linspace(-3, 3, 12 * 50, dtype=torch.float64).view(12, 50)
    sums[3, 4], sums[4, 5] = torch.nan, torch.inf
    clean = torch.nan_to_num(sums, 0.0, 0.0, 0.0)
    assert torch.equal(
        released(bands, sums) - released(bands, torch.zeros(12, 50)), (clean / SCALES.cell).round()
    )


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_the_spread_is_that_of_ordinary_noise():
    noise, buffer = BandedNoise(Cycle(3, 1)), torch.zeros(40_000, dtype=torch.float64)
    noise.add_(buffer, SCALES, divide=1.0)
    cells = (buffer * (factor(3)[0] * 10 / (SCALES.spread * SCALES.cell))).round().long().numpy()
    fit.accepts(cells, lambda k: fit.rounded_gaussian(k, 10.0), lambda k: fit.rounded_gaussian(k, 11.0))


def test_several_parts_keep_their_own_past():
    cycle = Cycle(3, 1)
    noise, shown = BandedNoise(cycle), {50: [], 30: []}
    with testing.seeded(1):
        for turn in range(5):
            assert cycle.turn == turn
            for part, size in enumerate(shown):  # a new tensor every time, as a run has it
                buffer = torch.zeros(size, dtype=torch.float64)
                noise.add_(buffer, SCALES, divide=1.0, part=part)
                shown[size].append(buffer / SCALES.cell)
    plain = StepNoise()
    with testing.seeded(1):
        for turn in range(5):
            for size, rows in shown.items():
                fresh = torch.zeros(size, dtype=torch.float64)
                plain.add_(fresh, SCALES, divide=1.0)
                back = torch.from_numpy(matrix(3, 5))[turn] @ torch.stack(rows)
                assert (back - fresh / SCALES.cell).abs().max() <= 1.001


def test_an_interrupted_release_and_another_scale_are_refused():
    noise, one, two = BandedNoise(Cycle(3, 1)), torch.zeros(50), torch.zeros(50, dtype=torch.float64)
    noise.add_(one, SCALES, divide=1.0)
    noise.add_(two, SCALES, divide=1.0, part=1)
    with pytest.raises(RefusedTraining, match="DP911"):
        noise.add_(two, SCALES, divide=1.0, part=1)  # before its turn
    noise.add_(one, SCALES, divide=1.0)
    with pytest.raises(RefusedTraining, match="DP911"):
        noise.add_(two, scales_for(noise=1.5, clip=2.1, dimension=50), divide=1.0, part=1)
    with pytest.raises(RefusedTraining, match="DP911"):
        noise.add_(one, SCALES, divide=1.0)  # the other part has missed its turn


def test_another_size_is_not_the_same_part():
    noise = BandedNoise(Cycle(3, 1))
    noise.add_(torch.zeros(50), SCALES, divide=1.0)
    with pytest.raises(RefusedTraining, match="DP911"):
        noise.add_(torch.zeros(30), SCALES, divide=1.0)


# --- the groups --------------------------------------------------------------------------------------


@may_fail(ALPHA, "one distribution fits")
def test_groups_are_fair_and_have_their_turns():
    cycle, everybody = Cycle(4, 20_000), np.arange(20_000)
    seen = []
    for turn in range(8):
        cycle.turn = turn
        seen.append(set(cycle.select(everybody).tolist()))
    assert set().union(*seen[:4]) == set(range(20_000))
    assert sum(map(len, seen[:4])) == 20_000
    assert seen[:4] == seen[4:]
    groups = np.repeat(np.arange(4), [len(each) for each in seen[:4]])
    fit.accepts(groups, lambda k: np.full(k.size, 0.25))


def test_a_run_goes_round_the_groups_and_waits_for_a_batch_that_was_left():
    run, optimizer = start_run(steps=6, bands=3, batch=20, records=numbered())
    assert run.plan.rate == 1.0  # so a batch is a whole group
    seen = [turn(run, optimizer) for _ in range(3)]
    assert sorted(itertools.chain(*seen)) == list(range(60))
    left = sorted(next(run.batches(1)).flatten().tolist())
    assert left == seen[0]
    assert turn(run, optimizer) == seen[0]  # nothing was released, so it is still this group's turn
    assert turn(run, optimizer) == seen[1]


def numbered():
    return torch.arange(60.0)[:, None]


def turn(run, optimizer):
    """One private step; the records of its batch."""
    for x in run.batches(1):
        run.backward(run.model(x.repeat(1, 3) / 60).sum(1))
        optimizer.step()
        places = sorted(x.flatten().tolist())
    return places


# --- plans -------------------------------------------------------------------------------------------

PLAIN = {"size": 1000, "batch": 50, "steps": 10}


def test_a_plan_with_bands_pays_for_turns():
    plan = plan_of(**PLAIN, noise=2.0, bands=4)
    assert plan.guarantee == 3 * privacy.gaussian(2.0).sampled(0.2)
    assert [plan.rounds_of(steps) for steps in (0, 1, 4, 5, 10)] == [0, 1, 1, 2, 3]
    assert plan_of(**PLAIN, noise=2.0, bands=1) == plan_of(**PLAIN, noise=2.0)
    every = plan_of(**PLAIN, noise=2.0, bands=20)
    assert every.guarantee.epsilon(1e-5) == pytest.approx(privacy.gaussian(2.0).epsilon(1e-5), rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "bands"),
    [
        ({"size": 50_000, "batch": 100, "epochs": 1, "epsilon": 3}, 64),
        ({"size": 50_000, "batch": 500, "epochs": 10, "epsilon": 3}, 8),
        ({"size": 50_000, "batch": 500, "epochs": 10, "epsilon": 0.5}, 1),
        ({"size": 100, "batch": 100, "epochs": 3, "epsilon": 3}, 1),
    ],
)
def test_auto_has_the_least_error(settings, bands):
    best = plan_of(**settings, delta=1e-5, bands="auto")
    assert best.bands == bands
    assert best.guarantee.epsilon(1e-5) <= settings["epsilon"]
    others = [each for each in (bands // 2, 2 * bands) if 1 <= each <= min(64, best.size // best.batch)]
    for other in others:
        assert plan_of(**settings, delta=1e-5, bands=other).error > best.error


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "2", "Auto", None, float("nan"), 21])
def test_bands_that_are_none_are_refused(bad):
    with pytest.raises(BadParameter):
        plan_of(**PLAIN, noise=1.0, bands=bad)


@pytest.mark.parametrize(
    "settings",
    [
        {"bands": "auto"},
        {"bands": 2, "sampling": "fixed"},
        {"bands": 2, "sampling": "full"},
        {"bands": 2, "exact": True},
        {"bands": 2, "adaptive": True},
        {"bands": 2, "adaptive": Adaptive(quantile=0.4)},
        {"bands": 7},
    ],
    ids=repr,
)
def test_what_is_not_proved_is_refused(settings):
    with pytest.raises(BadParameter, match="DP107"):
        start_run(**settings)


# --- runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("physical", [None, 4])
def test_a_run_with_bands_counts_turns(physical):
    run, optimizer = start_run(steps=7, bands=3, physical=physical)
    assert run.guarantee is None
    loop(run, optimizer)
    assert run.steps == 7
    assert run.guarantee == run.plan.guarantee == 3 * privacy.gaussian(1.0).sampled(0.5)


def test_what_is_said():
    run, _ = start_run(bands=3)
    assert "3 bands: the noise of 2 steps is kept, 416 bytes" in run.report()
    assert "one of 3 groups" in run.explain()
    assert "probability 0.5" in run.explain()
    assert "takes back" in run.explain()
    plain, _ = start_run()
    assert "bands" not in plain.report()
    assert "groups" not in plain.explain()


def test_released_gradients_are_those_of_the_noise():
    """Without gradients, the factor times what is released is fresh noise."""
    run, optimizer = start_run(steps=400, bands=4, batch=10, model=torch.nn.Linear(3, 20))
    shown = []
    for x, _ in run:
        run.backward(run.model(x).sum(1) * 0)
        optimizer.step()
        shown.append(torch.cat([p.grad.flatten() for p in run.parameters]).double().clone())
    rows = torch.stack(shown) * 10
    cells = (torch.from_numpy(matrix(4, 400)) @ rows * 10).round().long().flatten().numpy()
    fit.accepts(cells, lambda k: fit.rounded_gaussian(k, 10.0))
    with pytest.raises(AssertionError):
        fit.accepts((rows * 10).round().long().flatten().numpy(), lambda k: fit.rounded_gaussian(k, 10.0))


def test_a_run_with_bands_is_not_resumed():
    banded, optimizer = start_run(steps=4, bands=2)
    turn_once(banded, optimizer)
    plain, optimizer = start_run(steps=4)
    turn_once(plain, optimizer)
    for state, bands in ((banded.state_dict(), 2), (banded.state_dict(), 1), (plain.state_dict(), 2)):
        with pytest.raises(RefusedTraining, match="DP914"):
            start_run(steps=4, bands=bands, resume=state)


def turn_once(run, optimizer):
    for x, y in run.batches(1):
        run.backward(torch.nn.functional.cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()


def test_another_clipping_norm_in_the_middle_is_refused():
    run, optimizer = start_run(bands=2)
    turn_once(run, optimizer)
    run.clip = 2.0
    with pytest.raises(RefusedTraining, match="DP911"):
        turn_once(run, optimizer)


def test_canaries_have_groups_too():
    run, optimizer = start_run(steps=8, bands=2, canaries=10, noise=0.01, batch=30)
    loop(run, optimizer)
    assert run.canaries.scores[run.canaries.included].min() > 0.5 / 30
    assert abs(run.canaries.scores[~run.canaries.included]).max() < 0.5 / 30


def test_adam_knows_how_wide_the_noise_is():
    model = small()
    run, optimizer = start_run(model, optimizer=CorrectedAdam(model.parameters()), bands=3, batch=20)
    seen = []
    for x, _ in run:
        run.backward(model(x).sum(1))
        optimizer.step()
        seen.append(float(optimizer.noise_variance))
    assert seen == pytest.approx(variances(3, 3) / 400)


def test_each_precision_of_a_model_is_a_part_with_a_past_of_its_own():
    model, cycle = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64)]), Cycle(3, 1)
    sums = FloatSums(Clipper(model), list(model.parameters()), BandedNoise(cycle))
    for turn in range(3):
        assert cycle.turn == turn
        sums.begin()
        sums.release(noise=1.0, clip=1.0, divide=1.0)
    sums.close()

# SPDX-License-Identifier: Apache-2.0
"""Ways in which training with privacy goes wrong: each is refused, or accounted for as what it is.

M-01   shuffled batches accounted as Poisson samples        M-05   layers that mix records
M-02   a divisor that is computed from the data             M-07   a gradient that is no number
M-03   an empty batch that is skipped                       M-12   the best of many runs, paid for as one
M-04   clipping that is not of each record
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet import privacy
from discreet.errors import DiscreetError, UnsupportedGuarantee
from discreet.learn.torch import Training, plan_of, private
from discreet.mechanisms.combine import select_best
from tests.learn.torch.broken import ClippedAfterAveraging, NotClipped, with_noise_for_the_mean, without_noise
from tests.learn.torch.reference import data, loop, small, start_run
from tests.refusals import assert_refused
from tests.statistical.constants import ALPHA

TRIALS, MANY = 300, 5_000


def released(records, count, **settings):
    """What one step shows of one weight, so many times: the whole path, with a learning rate of zero."""
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    plain = {"noise": 1.0, "batch": 2, "size": 4, "steps": count}
    run = private(model, optimizer, torch.tensor(records).reshape(-1, 1), **(plain | settings))
    shown = []
    for x in run:
        run.backward(model(x).sum(1))
        optimizer.step()
        if run.stepped:
            shown.append(model.weight.grad.double().item())
    run.close()
    return np.array(shown), run.plan.one_round()


def audited(one, other, trials=TRIALS, **settings):
    """The two-sample game on one step of the whole path, against what that step guarantees."""
    mechanism = dp.audit.batched(lambda records, count: released(records, count, **settings)[0])
    claim = released(one, 1, **settings)[1]
    return dp.audit(mechanism, one, other, claim=claim, trials=trials, confidence=1 - ALPHA)


# --- the whole path of one step, audited -----------------------------------------------------------------------

HUGE = [1e6, 1e6, 1e6]  # gradients are the records: these are far beyond the clipping norm


WAYS = pytest.mark.parametrize(
    "settings", [{}, {"physical": 1}, {"exact": True}, {"sampling": "full"}], ids=str
)


@WAYS
def test_one_step_keeps_its_guarantee(settings):
    assert not audited([*HUGE, 1e6], HUGE, **settings).refutes()


@pytest.mark.slow
@WAYS
def test_one_step_keeps_its_guarantee_in_many_trials(settings):
    report = audited([*HUGE, 1e6], HUGE, trials=MANY, **settings)
    assert not report.refutes()
    if settings == {"sampling": "full"}:  # of sampled batches so few trials prove little
        assert report.epsilon_at_least(1e-3) > 0.1  # the pair is a telling one


@pytest.mark.parametrize("break_noise", [without_noise, with_noise_for_the_mean])
def test_m_02_noise_that_is_missing_or_divided_away_is_found(break_noise, monkeypatch):
    break_noise(monkeypatch)
    assert audited([*HUGE, 1e6], HUGE, sampling="full").refutes()


@pytest.mark.parametrize("clipper", [ClippedAfterAveraging, NotClipped])
def test_m_04_clipping_that_is_not_of_each_record_is_found(clipper):
    """Others pull one way by much; one record turns the mean around."""
    assert audited([1.0, 1.0, 1.0, -1e6], [1.0, 1.0, 1.0], clipper=clipper, sampling="full").refutes()


# --- M-01: how batches are made -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [True, False])
def test_m_01_a_loader_gains_nothing_from_its_shuffling(shuffle):
    """The same noise and epochs: Poisson batches are worth 0.2, a loader is told that it costs far more."""
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data(1000)
    loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=shuffle)
    loaded = private(model, optimizer, loader, noise=2.0, epochs=2)
    loaded.close()
    drawn = private(model, optimizer, (x, y), noise=2.0, epochs=2, batch=10, size=1000)
    assert loaded.plan.guarantee == 2 * privacy.gaussian(1.0, relation="replace")
    assert drawn.plan.guarantee.epsilon(1e-5) < 0.3
    assert loaded.plan.guarantee.epsilon(1e-5) > 5


def test_m_01_batches_are_drawn_afresh_and_do_not_take_turns():
    """In an epoch of shuffled batches everybody comes once; in Poisson batches some come twice, and some never."""
    run, optimizer = start_run(None, data(200), size=200, batch=20, epochs=1, steps=None)
    seen = torch.zeros(200)
    x = data(200)[0]
    for batch, y in run:
        seen += torch.cdist(batch, x).eq(0).float().sum(0).clamp(max=1)
        run.backward(cross_entropy(run.model(batch), y, reduction="none"))
        optimizer.step()
    assert float(seen.max()) >= 2
    assert float(seen.min()) == 0


# --- M-02, M-03: nothing is computed from how many there are -------------------------------------------------------


def test_m_02_one_more_record_changes_no_number_of_the_run():
    plans = []
    for count in (99, 100, 101):
        run, _ = start_run(None, data(count), size=100, batch=7, epochs=2, steps=None)
        plans.append(run.plan)
        run.close()
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("exact", [False, True])
def test_m_02_a_step_divides_by_the_public_number_not_by_the_batch(exact):
    """k records of gradient 1 are released as k over the public divisor."""
    for count in (1, 5, 40):
        shown, _ = released([1.0] * count, 1, sampling="full", size=8, batch=8, noise=0.001, exact=exact)
        assert shown[0] == pytest.approx(count / 8, abs=1e-2)


def test_m_03_no_records_at_all_are_a_step_like_any_other():
    assert not audited([1e6], [], sampling="full").refutes()
    shown, _ = released([], 3, sampling="full")
    assert (shown != 0).all()


# --- M-05: records that look at each other ---------------------------------------------------------------------------


class Centred(torch.nn.Module):
    """Statistics of the batch, made by hand, through which gradients flow, or do not."""

    def __init__(self, *, detached):
        super().__init__()
        self.inner, self.detached = torch.nn.Linear(3, 2), detached

    def forward(self, x):
        mean = x.mean(0, keepdim=True)
        return self.inner(x - (mean.detach() if self.detached else mean))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)),
        Centred(detached=False),
        Centred(detached=True),
    ],
    ids=["BatchNorm", "by hand", "by hand, detached"],
)
def test_m_05_a_model_that_mixes_records_is_refused_before_its_first_step(model, exact):
    run, optimizer = start_run(model, exact=exact)
    with pytest.raises(DiscreetError) as caught:
        loop(run, optimizer)
    assert caught.value.code.startswith("DP92")
    assert run.steps == 0
    run.close()


# --- M-07: gradients that are no numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_m_07_a_record_without_a_gradient_adds_exactly_nothing(bad, exact):
    """And nobody hears of it: no error, no warning, and what is released is what the others give."""
    shown, _ = released([0.5, bad, 0.25], 1, sampling="full", batch=1, noise=0.001, exact=exact)
    assert shown[0] == pytest.approx(0.75, abs=1e-2)


# --- M-12: many runs ---------------------------------------------------------------------------------------------------


def candidate(lr, **changed):
    """Training with one learning rate, as a mechanism."""
    plan = plan_of(size=60, batch=20, steps=2, noise=4.0)

    def train(records):
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        settings = {
            "noise": plan.noise,
            "steps": plan.steps,
            "batch": plan.batch,
            "size": plan.size,
        } | changed
        return loop(private(model, optimizer, records, **settings), optimizer)

    return Training(plan, train)


def score(state):
    """On public records."""
    model = small()
    model.load_state_dict(state)
    x, y = data(10)
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def test_m_12_a_search_is_paid_for_by_select_best():
    search = select_best(candidates=[candidate(0.01), candidate(1.0)], score=score, mean_runs=3)
    one = candidate(0.01).guarantee
    assert search.guarantee.epsilon(1e-5) > one.epsilon(1e-5)
    best = search(data()).value
    assert best.candidate in {0, 1}
    assert set(best.value) == set(small().state_dict())


@pytest.mark.parametrize("changed", [{"noise": 3.9}, {"steps": 3}, {"batch": 30}], ids=str)
def test_m_12_a_run_that_costs_more_than_its_plan_is_not_released(changed):
    with pytest.raises(UnsupportedGuarantee) as caught:
        candidate(0.1, **changed).draw(data())
    assert caught.value.code == "DP205"
    assert_refused(
        "DP205", Training(plan_of(size=60, batch=20, steps=2, noise=4.0), lambda _: None).draw, data()
    )


def test_m_12_a_run_that_costs_less_is():
    assert set(candidate(0.1, steps=1).draw(data())) == set(small().state_dict())


# --- B-11: seeds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_torch_seeds_repeat_nothing(exact):
    weights = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 - the seed that must have no say
        model = small()
        run, optimizer = start_run(model, exact=exact, sampling="full", size=60, batch=60)
        loop(run, optimizer)
        assert run.private
        run.close()
        weights.append(model[0].weight.detach().clone())
    assert not torch.equal(*weights)

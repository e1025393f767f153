# SPDX-License-Identifier: Apache-2.0
"""The loop of the manual does what DP-SGD is: clipped sums over drawn batches, noise, a public divisor, a count."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, TensorDataset

from discreet import privacy, testing
from discreet.errors import RefusedTraining
from discreet.learn.torch import CorrectedAdam, private
from tests.learn.torch.reference import Reference, data, loop, small, start_run
from tests.statistical.constants import ALPHA

CLIPPERS = pytest.mark.parametrize(
    "settings", [{}, {"clipper": Reference}, {"exact": True}], ids=["ours", "plain", "exact"]
)


def released(model):
    return torch.cat([parameter.grad.flatten().clone() for parameter in model.parameters()])


def textbook(model, x, y, clip):
    """The sum of clipped gradients, by hand."""
    copy = small()
    copy.load_state_dict(model.state_dict())
    total = 0.0
    for place in range(len(x)):
        copy.zero_grad()
        cross_entropy(copy(x[place : place + 1]), y[place : place + 1]).backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in copy.parameters()])
        total = total + gradient * min(1.0, clip / float(gradient.norm()))
    return total


@CLIPPERS
@pytest.mark.parametrize("physical", [None, 7])
def test_a_step_is_the_clipped_sum_over_the_public_divisor(settings, physical):
    """With next to no noise the released gradient is the textbook's, whatever the micro-batches."""
    run, optimizer = start_run(noise=0.001, clip=0.05, batch=20, steps=2, physical=physical, **settings)
    seen = []
    for x, y in run:
        seen.append((x, y))
        before = {name: value.clone() for name, value in run.model.state_dict().items()}
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        if run.stepped:
            got = released(run.model)
            was = small()
            was.load_state_dict(before)
            whole = [torch.cat(part) for part in zip(*seen, strict=True)]
            torch.testing.assert_close(got * 20, textbook(was, *whole, 0.05), atol=5e-4, rtol=1e-3)
            seen = []
    assert run.steps == 2


@CLIPPERS
def test_the_noise_has_the_width_that_is_guaranteed(settings):
    """All gradients zero: what is released is noise, with standard deviation noise·clip/batch."""
    model = torch.nn.Linear(200, 10, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    records = torch.zeros(30, 200)
    run = private(model, optimizer, records, noise=3.0, clip=0.5, steps=3, batch=6, size=30, **settings)
    drawn = []
    for x in run:
        run.backward(model(x).sum(1))
        optimizer.step()
        if run.stepped:
            drawn.append(released(model))
    sample = torch.cat(drawn).double().numpy() / (3.0 * 0.5 / 6)
    low, high = _band(sample.size)
    assert low < (sample**2).sum() < high
    assert not low < (sample**2).sum() * 1.2**2 < high
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 6.2 / math.sqrt(2000)


def _band(count):
    from scipy import stats

    return stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], count)


@CLIPPERS
def test_an_empty_batch_is_a_step_of_noise(settings):
    """So is one on no data at all."""
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    run = private(model, optimizer, (x[:0], y[:0]), noise=1.0, steps=3, batch=10, size=60, **settings)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loop(run, optimizer)
    assert run.steps == 3
    assert all(bool((p != b).any()) for p, b in zip(model.parameters(), before, strict=True))


def test_the_count_is_of_what_was_drawn():
    run, optimizer = start_run(steps=5)
    assert run.guarantee is None
    assert run.epsilon(1e-5) == 0.0
    batches = iter(run)
    for taken in range(1, 4):
        x, y = next(batches)
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        assert run.guarantee == (taken * privacy.gaussian(1.0).sampled(run.plan.rate))
    assert run.epsilon(1e-5) == run.guarantee.epsilon(1e-5)


def test_the_whole_run_keeps_what_was_asked_for():
    run, optimizer = start_run(noise=None, epsilon=2, delta=1e-5, steps=4)
    loop(run, optimizer)
    assert 1.9 < run.epsilon() <= 2
    assert run.guarantee == run.plan.guarantee


def test_epochs_one_after_the_other():
    run, optimizer = start_run(steps=None, epochs=2)
    assert run.plan.per_epoch == 6
    for _ in range(3):  # the third has nothing left
        for x, y in run.batches(run.plan.per_epoch):
            run.backward(cross_entropy(run.model(x), y, reduction="none"))
            optimizer.step()
    assert run.steps == 12


def test_records_in_memory_are_bounded_and_none_is_left_out():
    run, optimizer = start_run(batch=30, physical=4, steps=3)
    sizes, totals = [], [0]
    for x, y in run:
        sizes.append(len(x))
        totals[-1] += len(x)
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        if run.stepped:
            totals.append(0)
    assert max(sizes) <= 4
    assert len(totals) == 4
    assert sum(totals) == sum(sizes)


class Words(Dataset):
    """A data set that gives records of several kinds one by one."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        return {"x": torch.full((3,), float(place)), "y": place % 2, "name": f"record {place}"}


def test_a_data_set_of_any_kind():
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = private(model, optimizer, Words(20), noise=1.0, steps=4, batch=1, size=20)
    for batch in run:  # some of these batches are empty
        run.backward(cross_entropy(model(batch["x"]), batch["y"], reduction="none"))
        optimizer.step()
    assert run.steps == 4


@pytest.mark.parametrize("sampling", ["fixed", "full"])
def test_other_ways_to_sample_have_their_batch_sizes(sampling):
    settings = {"sampling": sampling, "size": None} | ({"batch": None} if sampling == "full" else {})
    run, optimizer = start_run(**settings)
    for x, y in run:
        assert len(x) == (10 if sampling == "fixed" else 60)
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
    assert run.guarantee == run.plan.guarantee


def test_a_loader_pays_for_the_epochs_that_were_begun():
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*data()), batch_size=16, shuffle=True)
    run = private(model, optimizer, loader, noise=4.0, epochs=3)
    assert run.plan.steps == 12
    batches = iter(run)
    for _ in range(5):
        x, y = next(batches)
        run.backward(cross_entropy(model(x), y, reduction="none"))
        optimizer.step()
    assert run.guarantee == 2 * privacy.gaussian(2.0, relation="replace")
    assert any("at most once" in words for words in run.assumes)


@pytest.mark.parametrize(
    "make", [torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, CorrectedAdam], ids=str
)
@pytest.mark.parametrize("exact", [False, True])
def test_any_optimizer_steps(make, exact):
    model = small()
    run, optimizer = start_run(model, optimizer=make(model.parameters(), lr=0.01), exact=exact)
    loop(run, optimizer)
    assert run.steps == 3


def test_several_optimizers_and_groups_may_step():
    model = small()
    first = torch.optim.SGD(
        [{"params": [model[0].weight], "lr": 0.1}, {"params": [model[0].bias], "lr": 0.2}]
    )
    second = torch.optim.Adam(model[2].parameters(), lr=0.1)
    run, _ = start_run(model, optimizer=[first, second], physical=6)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for x, y in run:
        run.backward(cross_entropy(model(x), y, reduction="none"))
        first.step()
        second.step()
    assert run.steps == 3
    assert all(bool((p != b).any()) for p, b in zip(model.parameters(), before, strict=True))


def test_what_is_frozen_stays():
    model = small()
    model[0].requires_grad_(False)
    run, optimizer = start_run(model)
    before = model[0].weight.clone()
    loop(run, optimizer)
    assert torch.equal(model[0].weight, before)
    assert run.parameters == tuple(model[2].parameters())


@pytest.mark.parametrize("exact", [False, True])
def test_a_closed_run_gives_everything_back(exact):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    real = optimizer.step
    with start_run(model, optimizer=optimizer, exact=exact)[0] as run:
        loop(run, optimizer)
    assert optimizer.step == real
    assert all(type(p) is torch.nn.Parameter and p.requires_grad for p in model.parameters())
    model(data()[0]).sum().backward()  # an ordinary step again
    optimizer.step()
    loop(*start_run(model, optimizer=optimizer, exact=exact))  # and another run


def test_evaluation_in_between_and_eval_mode_change_nothing():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    run, optimizer = start_run(model)
    model.eval()
    for x, y in run:
        with torch.no_grad():
            model(data()[0])
        run.backward(cross_entropy(model(x), y, reduction="none"))
        optimizer.step()
        model.train(not model.training)
    assert run.steps == 3


def test_progress_is_told_after_every_step_and_not_of_micro_batches():
    told = []
    run, optimizer = start_run(physical=3, progress=lambda run: told.append(run.steps))
    loop(run, optimizer)
    assert told == [1, 2, 3]


@pytest.mark.parametrize("before", [True, False])
def test_schedulers_keep_the_time_of_private_steps(before):
    """Made before or after the run; a scheduler that follows it does not count micro-batches."""
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) if before else None
    run, _ = start_run(model, optimizer=optimizer, physical=3)
    scheduler = scheduler or torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    run.follow(scheduler)
    for x, y in run:
        run.backward(cross_entropy(model(x), y, reduction="none"))
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize(
    "settings", [{}, {"exact": True}, {"sampling": "fixed", "size": None}], ids=["c", "a", "fixed"]
)
def test_a_seeded_run_repeats_itself_and_says_that_it_is_not_private(settings):
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        model = small()
        with testing.seeded(5):
            run = loop(*start_run(model, **settings))
        assert not run.private
        assert "NOT PRIVATE" in run.explain()
        weights.append(model[0].weight.detach().clone())
    assert torch.equal(*weights)


def test_half_precision_weights_get_noise_before_they_are_rounded():
    model = small().to(torch.bfloat16)
    x, y = data()
    run, optimizer = start_run(model, (x.to(torch.bfloat16), y))
    loop(run, optimizer)
    assert run.steps == 3
    assert model[0].weight.dtype == torch.bfloat16


def test_a_run_says_its_level_and_what_it_assumes():
    run, optimizer = start_run(noise=None, epsilon=1, delta=1e-5, size=None)
    assert run.level == "C"
    assert "layer" in run.report()
    assert "26" in run.report()
    assert run.explain().startswith("1. Training has taken 0 steps")
    assert any("the number of records is public" in words for words in run.assumes)
    loop(run, optimizer)
    assert "ε = " in run.explain()
    assert run.tested is True
    assert [line.split(".")[0] for line in run.explain().splitlines()] == [
        str(number) for number in range(1, 1 + len(run.explain().splitlines()))
    ]


def test_allocated_epochs_see_every_record_once_and_are_paid_when_they_begin():
    run, optimizer = start_run(noise=1.0, batch=20, steps=5, sampling="allocated", physical=7)
    epoch = privacy.gaussian(1.0).allocated(run.plan.per_epoch)
    records, paid = 0, []
    for x, y in run:
        records += 0 if run._turn.batch.blank else len(x)
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        paid += [run.guarantee] if run.stepped else []
        if run.stepped and run.steps == run.plan.per_epoch:
            assert records == run.plan.size
    epochs = [1 + step // run.plan.per_epoch for step in range(5)]
    assert paid == [count * epoch for count in epochs]
    assert "draws in secret one of its" in run.explain()


def test_batches_that_are_drawn_and_left_end_an_allocated_run_and_resuming_plans_the_rest():
    words = {"noise": 1.0, "batch": 20, "steps": 6, "sampling": "allocated"}
    run, optimizer = start_run(**words)
    x, y = next(iter(run))
    run.backward(cross_entropy(run.model(x), y, reduction="none"))
    optimizer.step()
    with pytest.raises(RefusedTraining) as refused:
        [next(iter(run)) for _ in range(9)]
    assert refused.value.code == "DP913"
    assert "resume=run.state_dict()" in refused.value.fix
    resumed, optimizer = start_run(**words, resume=run.state_dict())
    assert loop(resumed, optimizer).steps == words["steps"] - run.steps

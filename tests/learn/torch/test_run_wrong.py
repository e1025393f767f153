# SPDX-License-Identifier: Apache-2.0
"""Wrong set-ups: each is refused with its code, or is accounted for as what it is. Never silently something else."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from discreet.errors import BadParameter, DiscreetError, OverBudget
from discreet.learn.torch import private
from discreet.ledger import Ledger, Limit
from discreet.privacy import gaussian
from tests.learn.torch.reference import data, loop, small, start_run
from tests.refusals import assert_refused

LEVELS = pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])


def losses(run, x, y):
    return cross_entropy(run.model(x), y, reduction="none")


# --- steps that are not private -------------------------------------------------------------------------------


@LEVELS
def test_an_ordinary_backward_pass_gives_no_step(exact):
    run, optimizer = start_run(exact=exact)
    x, y = next(iter(run))
    before = run.model[0].weight.detach().clone()
    if exact:
        assert_refused("DP911", losses(run, x, y).mean().backward)
    else:
        losses(run, x, y).mean().backward()
    assert run.model[0].weight.grad is None
    assert_refused("DP911", optimizer.step)
    assert torch.equal(run.model[0].weight.detach(), before)
    assert run.steps == 0


@LEVELS
def test_an_optimizer_that_the_run_does_not_know_finds_nothing_to_step_on(exact):
    run, _ = start_run(exact=exact)
    raw = torch.optim.SGD(run.model.parameters(), lr=1.0)
    before = run.model[0].weight.detach().clone()
    for x, y in run:
        run.backward(losses(run, x, y))
        raw.step()  # nothing is released yet: there is no gradient anywhere
        assert torch.equal(run.model[0].weight.detach(), before)
        break
    assert run.steps == 0


def test_steps_without_a_batch_of_their_own():
    run, optimizer = start_run()
    assert_refused("DP911", optimizer.step)
    x, y = next(iter(run))
    assert_refused("DP911", optimizer.step)
    run.backward(losses(run, x, y))
    assert_refused("DP911", run.backward, losses(run, x, y))  # a record would count twice
    optimizer.step()
    assert_refused("DP911", optimizer.step)
    assert run.steps == 1


def test_a_step_with_a_closure():
    run, optimizer = start_run()
    x, y = next(iter(run))
    run.backward(losses(run, x, y))
    assert_refused("DP911", optimizer.step, lambda: 0.0)
    assert run.steps == 0


@pytest.mark.parametrize("skipped", ["backward", "step"])
def test_a_batch_that_is_skipped(skipped):
    """Whether to skip it would depend on its records."""
    run, _ = start_run()
    batches = iter(run)
    x, y = next(batches)
    if skipped == "step":
        run.backward(losses(run, x, y))
    assert_refused("DP911", next, batches)


@pytest.mark.parametrize("bands", [1, 2])
def test_two_loops_at_once(bands):
    """The rest of a batch, after another was released, would be added to what was released: a step without noise."""
    run, optimizer = start_run(steps=4, batch=30, physical=2, bands=bands)

    def body(x, y):
        run.backward(losses(run, x, y))
        optimizer.step()

    one, other = run.batches(1), run.batches(2)
    body(*next(one))
    while not run.stepped:
        body(*next(other))
    with pytest.raises(DiscreetError, match="DP911"):
        next(one)


def test_after_the_last_step_there_is_none():
    run, optimizer = start_run(steps=1)
    loop(run, optimizer)
    assert list(run) == []
    assert_refused("DP911", optimizer.step)
    assert run.guarantee == gaussian(1.0).sampled(run.plan.rate)


def test_no_sum_without_noise_is_ever_in_sight():
    """`.grad` is empty from the first record of a batch on, until noise has been added."""
    run, optimizer = start_run(steps=3, physical=4, noise=0.001)
    for x, y in run:
        run.backward(losses(run, x, y))
        assert all(parameter.grad is None for parameter in run.model.parameters())
        optimizer.step()


# --- losses -----------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    "spoil",
    [
        torch.mean,
        torch.sum,
        lambda each: each[:, None],
        lambda each: each[1:],
        lambda each: each.tolist(),
        lambda _: None,
    ],
    ids=["mean", "sum", "two axes", "one less", "list", "nothing"],
)
def test_a_loss_that_is_not_one_for_each_record(exact, spoil):
    run, _ = start_run(exact=exact, sampling="fixed", size=None)
    x, y = next(iter(run))
    error = assert_refused("DP912", run.backward, spoil(losses(run, x, y)))
    assert "10" not in str(error), "the size of the batch is a secret"


@LEVELS
def test_losses_that_know_nothing_of_the_model(exact):
    run, _ = start_run(exact=exact, sampling="fixed", size=None)
    x, y = next(iter(run))
    with torch.no_grad():
        blind = losses(run, x, y)
    assert_refused("DP911", run.backward, blind)


@LEVELS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 3e38])
def test_records_that_are_no_numbers_count_for_nothing(exact, bad):
    """One such record among others: the step is that of the others, and nothing is said."""
    x, y = data(12)
    x[5] = bad
    run, optimizer = start_run(
        None, (x, y), exact=exact, sampling="full", size=None, batch=None, noise=0.001, clip=0.05, steps=1
    )
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    loop(run, optimizer)
    run.close()
    moved = torch.cat(
        [(p.detach() - b).flatten() for p, b in zip(run.model.parameters(), before, strict=True)]
    )
    assert bool(torch.isfinite(moved).all())
    assert float(moved.norm()) * 12 / 0.1 <= 12 * 0.05 + 0.01


# --- optimizers and models ----------------------------------------------------------------------------------------


def test_an_optimizer_of_something_else():
    model, other = small(), small()
    assert_refused("DP916", start_run, model, optimizer=torch.optim.SGD(other.parameters(), lr=0.1))
    both = torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    assert_refused("DP916", start_run, model, optimizer=both)
    assert_refused("DP104", start_run, model, optimizer="sgd")
    assert_refused("DP104", start_run, model, optimizer=[])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_parameter_that_is_added_later():
    run, optimizer = start_run()
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    x, y = next(iter(run))
    run.backward(losses(run, x, y))
    assert_refused("DP916", optimizer.step)


@LEVELS
def test_a_second_run_on_what_is_in_use(exact):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, _ = start_run(model, optimizer=optimizer, exact=exact)
    with pytest.raises(DiscreetError):
        start_run(model, optimizer=optimizer, exact=exact)
    first.close()
    start_run(model, optimizer=optimizer, exact=exact)[0].close()


def test_a_model_that_has_nothing_to_train():
    assert_refused(
        "DP107", start_run, small().requires_grad_(False), optimizer=torch.optim.SGD(small().parameters())
    )
    assert_refused("DP104", private, "model", None, data(), noise=1.0, steps=1, batch=1)


@LEVELS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that torch has for itself
def test_a_model_that_was_compiled_or_does_not_know_its_shape_is_refused_before_anything_is_spent(exact):
    lazy = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Linear(4, 2))
    for model, code in ((torch.compile(small()), "DP921"), (lazy, "DP107")):
        ledger = Ledger(":memory:", limit=Limit.filter(epsilon=5, delta=1e-4), unit="record")
        opened, optimizer = len(ledger), torch.optim.SGD(model.parameters(), lr=0.1)
        settings = {"noise": 1.0, "steps": 2, "batch": 10, "exact": exact, "session": ledger}
        assert_refused(code, private, model, optimizer, data(), **settings)
        assert len(ledger) == opened


@LEVELS
def test_a_step_that_moves_nothing_is_loud(exact):
    model = small()
    run, optimizer = start_run(model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-30), exact=exact)
    assert_refused("DP915", loop, run, optimizer)


def test_a_schedule_may_begin_at_zero():
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loop(*start_run(model, optimizer=optimizer))
    assert model[0].weight.grad is None or not model[0].weight.grad.any()


def test_a_scheduler_that_counts_micro_batches():
    model = small()
    run, optimizer = start_run(model, batch=40, physical=5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def train():
        for x, y in run:
            run.backward(losses(run, x, y))
            optimizer.step()
            scheduler.step()

    assert_refused("DP916", train)


# --- data -----------------------------------------------------------------------------------------------------------


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


SET = TensorDataset(*data())
LOADERS = {
    "with replacement": DataLoader(SET, batch_size=8, sampler=RandomSampler(SET, replacement=True)),
    "weighted": DataLoader(SET, batch_size=8, sampler=WeightedRandomSampler([1.0] * 60, 60)),
    "a sampler of batches": DataLoader(SET, batch_sampler=BatchSampler([0, 0, 1], 2, drop_last=False)),
    "a stream": DataLoader(Stream(), batch_size=8),
    "no batches": DataLoader(SET, batch_size=None),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_a_loader_that_may_show_a_record_twice(kind):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert_refused("DP913", private, model, optimizer, LOADERS[kind], noise=1.0, epochs=1)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_loader_that_says_less_than_it_gives():
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = DataLoader(SET, batch_size=16)
    assert_refused("DP107", private, model, optimizer, plain, noise=1.0, epochs=1, batch=64)
    assert_refused("DP107", private, model, optimizer, plain, noise=1.0, epochs=1, size=60)
    assert_refused("DP107", private, model, optimizer, plain, noise=1.0, epochs=1, relation="add-remove")
    assert_refused("DP107", private, model, optimizer, plain, noise=1.0, epochs=1, canaries=10)
    assert_refused("DP107", private, model, optimizer, plain, noise=1.0, epochs=1, exact=True)


@pytest.mark.parametrize(
    "bad",
    [None, 3, Stream(), iter([]), (torch.zeros(3), torch.zeros(4)), (torch.tensor(1.0),)],
    ids=lambda bad: type(bad).__name__,
)
def test_what_has_no_records(bad):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert_refused("DP104", private, model, optimizer, bad, noise=1.0, steps=1, batch=1)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[("clip", bad) for bad in (0, -1, math.nan, math.inf, True, "1", None)],
        *[("physical", bad) for bad in (0, -1, 1.5, True, "1")],
        *[("canaries", bad) for bad in (0, 1, -1, 1.5, True)],
        ("exact", 1),
        ("exact", "yes"),
        ("sampling", "shuffle"),
        ("unit", ""),
    ],
)
def test_settings_that_are_none(name, bad):
    model = small()
    with pytest.raises(BadParameter):
        start_run(model, **{name: bad})
    assert all(type(p) is torch.nn.Parameter and p.requires_grad for p in model.parameters())


def test_noise_that_is_too_small_for_whole_numbers():
    assert_refused("DP108", start_run, exact=True, noise=1e-6)


# --- money ------------------------------------------------------------------------------------------------------------


def test_a_session_is_charged_before_anything_and_a_refusal_changes_nothing():
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=2, delta=1e-4), unit="record")
    opened = len(ledger)
    run, optimizer = start_run(noise=None, epsilon=1, delta=1e-5, session=ledger)
    assert len(ledger) == opened + 1
    assert run.receipt.guarantee == run.plan.guarantee
    loop(run, optimizer)
    assert len(ledger) == opened + 1
    model = small()
    with pytest.raises(OverBudget):
        start_run(model, noise=None, epsilon=3, delta=1e-5, session=ledger)
    assert all(type(p) is torch.nn.Parameter and p.requires_grad for p in model.parameters())


def test_a_run_is_not_copied():
    run, _ = start_run()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        assert_refused("DP914", copied, run)

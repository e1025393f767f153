# SPDX-License-Identifier: Apache-2.0
"""State beside the output: what a step leaves anywhere but in what it releases must not depend on the records."""

# ruff: noqa: NPY002 - what the generators of a program tell is the question here

from __future__ import annotations

import random
import re
from collections import deque

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from discreet.errors import RefusedTraining
from discreet.learn.torch import Adaptive, private
from discreet.learn.torch.batches import DrawnBatches, LoaderBatches
from discreet.learn.torch.snapshot import Snapshot
from discreet.testing import seeded
from tests.learn.torch.reference import data, loop, small, start_run

# --- models that write --------------------------------------------------------------------------------------------


class Writer(nn.Module):
    """A model whose forward pass also keeps something, in one of the ways that people use."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.layer = kind, nn.Linear(3, 2)
        self.codebook = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.register_buffer("centre", torch.zeros(3))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))
        self.plain, self.history, self.table, self.number = torch.zeros(3), [], {}, 0.0
        self.array, self.meter = np.zeros(3), Meter()

    def get_extra_state(self):
        return {"seen": SEEN[-1].tolist() if self.kind == "extra state" and SEEN else None}

    def set_extra_state(self, state):
        pass

    def keep(self, mean, rows):
        ways = {
            "frozen": lambda: self.codebook.mul_(0.9).add_(mean),
            "frozen through data": lambda: self.codebook.data.copy_(mean),
            "frozen replaced": lambda: setattr(self, "codebook", nn.Parameter(mean, requires_grad=False)),
            "frozen with other memory": lambda: setattr(self.codebook, "data", mean.clone()),
            "trained": lambda: self.layer.bias.copy_(mean[:2]),
            "trained through data": lambda: self.layer.bias.data.add_(mean[:2]),
            "buffer if a gradient is wanted": lambda: self.centre.copy_(mean) if self.grad else None,
            "buffer through data": lambda: self.centre.data.add_(mean),
            "buffer replaced": lambda: setattr(self, "centre", 0.9 * self.centre + mean),
            "count of records": lambda: self.count.add_(rows),
            "attribute": lambda: setattr(self, "plain", mean),
            "attribute in place": lambda: self.plain.add_(mean),
            "list": lambda: self.history.append(float(mean[0])),
            "dictionary": lambda: self.table.update(last=mean),
            "number": lambda: setattr(self, "number", float(mean[0])),
            "array": lambda: np.copyto(self.array, mean.numpy()),
            "object": lambda: self.meter.values.append(mean),
            "new attribute": lambda: setattr(self, "fresh", mean),
            "extra state": lambda: SEEN.append(mean),
        }
        ways[self.kind]()

    def forward(self, x):
        self.grad = None
        del self.grad
        vars(self)["grad"] = torch.is_grad_enabled()
        with torch.no_grad():
            self.keep(x.mean(0), len(x))
        del vars(self)["grad"]
        return self.layer(x)


class Meter:
    def __init__(self):
        self.values = deque()


SEEN: list[torch.Tensor] = []
WAYS = [
    "frozen",
    "frozen through data",
    "frozen replaced",
    "frozen with other memory",
    "trained",
    "trained through data",
    "buffer if a gradient is wanted",
    "buffer through data",
    "buffer replaced",
    "count of records",
    "attribute",
    "attribute in place",
    "list",
    "dictionary",
    "number",
    "array",
    "object",
    "new attribute",
    "extra state",
]


def contents(model):
    return {name: repr(value) for name, value in reachable(model).items()}


@pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_keeps_what_it_saw_is_refused_and_keeps_nothing(way, exact):
    SEEN.clear()
    model = Writer(way)
    before = contents(model)
    run, optimizer = start_run(model, exact=exact)
    with pytest.raises(RefusedTraining) as refusal:
        loop(run, optimizer)
    run.close()
    SEEN.clear()
    assert refusal.value.code == "DP922"
    assert contents(model) == before
    assert run.steps == 0


@pytest.mark.parametrize("way", [way for way in WAYS if way != "extra state"])
def test_what_made_up_records_do_not_show_is_seen_at_the_batch_that_does_it(way):
    """A model that keeps nothing until later: what it wrote is gone, and no mean of records is left."""

    class Late(Writer):
        def keep(self, mean, rows):
            if self.armed:
                super().keep(mean, rows)

    model = Late(way)
    model.armed = False
    x, y = data()
    run, optimizer = start_run(model, (x + 1000, y), steps=4)

    def late(a, b):
        model.armed = run.steps == 1
        return cross_entropy(model(a), b, reduction="none")

    with pytest.raises(RefusedTraining) as refusal:
        loop(run, optimizer, late)
    run.close()
    assert refusal.value.code == "DP922"
    assert run.steps == 1
    left = [value for value in reachable(model).values() if isinstance(value, torch.Tensor | np.ndarray)]
    assert not any((torch.as_tensor(value).double().abs() > 500).any() for value in left)


def test_a_loop_that_writes_into_the_model_is_refused_before_the_step():
    run, _ = start_run()
    x, y = next(iter(run))
    losses = cross_entropy(run.model(x), y, reduction="none")
    with torch.no_grad():
        run.model[0].bias.copy_(torch.ones(4))
    with pytest.raises(RefusedTraining) as refusal:
        run.backward(losses)
    assert refusal.value.code == "DP922"


class Harmless(nn.Module):
    """Writes that depend on no record."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.layer, self.slow = kind, nn.Linear(3, 2), nn.Linear(3, 2).requires_grad_(False)
        self.register_buffer("passes", torch.zeros(()))
        self.calls, self.cache, self.shape = 0, {}, None

    def forward(self, x):
        if self.kind == "counter":
            self.passes += 1
            self.calls += 1
        elif self.kind == "cache by shape":
            self.cache[x.shape[1]] = torch.arange(x.shape[1])
            self.shape = x.shape[1:]
        elif self.kind == "momentum encoder":
            with torch.no_grad():
                self.slow.weight.mul_(0.9).add_(self.layer.weight, alpha=0.1)
            return self.layer(x) + self.slow(x)
        return self.layer(x)


@pytest.mark.parametrize("kind", ["counter", "cache by shape", "momentum encoder"])
def test_a_model_that_writes_what_is_public_is_not_refused(kind):
    model = Harmless(kind)
    run, optimizer = start_run(model, steps=3)
    loop(run, optimizer)
    assert run.steps == 3
    assert run.tested
    assert kind != "counter" or (model.calls, float(model.passes)) == (3, 3.0)


def test_the_number_of_micro_batches_is_not_counted_by_the_model():
    run, optimizer = start_run(Harmless("counter"), physical=2)
    with pytest.raises(RefusedTraining, match="micro-batch"):
        loop(run, optimizer)
    run, optimizer = start_run(Harmless("cache by shape"), physical=2)
    loop(run, optimizer)


@pytest.mark.parametrize("kind", ["marks", "prints", "copies"])
def test_a_snapshot_sees_what_was_written_and_takes_it_out(kind):
    model = Writer("attribute")
    model.own = torch.Generator().manual_seed(1)
    model.dice, model.rng = random.Random(1), np.random.default_rng(1)
    before = getattr(Snapshot, kind)(model)
    assert before.changed_names() == set()
    model.history.append(1)
    model.table["a"] = 1
    model.meter.values.append(2)
    torch.rand(1, generator=model.own), model.dice.random(), model.rng.random()
    with torch.no_grad():
        model.centre += 1
    assert before.changed_names() == {
        "history.0",
        "table.a",
        "meter.values.0",
        "own",
        "dice",
        "rng",
        "centre",
    }
    before.undo()
    assert (model.history, model.table, len(model.meter.values)) == ([], {}, 0)
    assert torch.equal(model.own.get_state(), torch.Generator().manual_seed(1).get_state())
    assert model.centre.isnan().all() if kind != "copies" else not model.centre.any()
    assert kind == "marks" or "codebook" not in before.changed_names()


# --- all that can be reached --------------------------------------------------------------------------------------


#: Addresses, and numbers that torch gives to hooks.
NUMBERED = re.compile(
    r"(_known\[\d+\]|_handles?\[\d+\]\.id|_handle\.id|\._birth|(names|hooks\w*)\.key\[\d+\])$"
).search


def reachable(root):
    """Everything that an object leads to, by path; records themselves, which a run must have, aside."""
    found, todo, seen = {}, [("", root)], set()
    while todo:
        path, thing = todo.pop()
        if (
            isinstance(thing, DrawnBatches | LoaderBatches)
            or callable(getattr(thing, "__next__", None))
            or NUMBERED(path)
        ):
            continue
        if isinstance(thing, torch.Tensor | np.ndarray | int | float | str | bytes | type(None)):
            found[path] = thing
            if isinstance(thing, torch.Tensor) and thing.is_leaf:
                todo += [(f"{path}.grad", thing.grad)]
        elif id(thing) not in seen:
            seen.add(id(thing))
            todo += [(path + name, each) for name, each in inside(thing)]
    return found


def inside(thing):
    """What an object leads to at once."""
    if isinstance(thing, dict):
        keys = [(f".key[{place}]", each) for place, each in enumerate(thing) if not isinstance(each, tuple)]
        return keys + [(f"[{place}]", each) for place, each in enumerate(thing.values())]
    if isinstance(thing, list | tuple | deque | set | frozenset):
        return [(f"[{place}]", each) for place, each in enumerate(thing)]
    if getattr(thing, "__closure__", None):
        return [("()", cell.cell_contents) for cell in thing.__closure__]
    if hasattr(thing, "__dict__") and not isinstance(thing, type):
        return [(f".{name}", each) for name, each in vars(thing).items()]
    return []


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and one.detach().numpy().tobytes() == other.detach().numpy().tobytes()
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    return one == other or one is other


SETTINGS = {
    "plain": {},
    "exact": {"exact": True},
    "micro-batches": {"physical": 3},
    "adaptive": {"adaptive": Adaptive()},
    "adaptive and exact": {"adaptive": Adaptive(), "exact": True},
    "bands": {"bands": 2, "sampling": "poisson", "batch": 4},
    "canaries": {"canaries": 4},
}
#: Records that add nothing: what is released is then the same, whatever they are and whether they are there.
NOTHING = [torch.tensor([torch.nan, 1.0, 2.0]), torch.tensor([5.0, torch.inf, 0.0]), None]


def after_a_run(nothing, settings, *, closed):
    """All state after two steps, with the noise of one seed, where one record is as stated, or is missing."""
    x, y = data(12)
    if nothing is None:
        x, y = torch.cat([x[:4], x[5:]]), torch.cat([y[:4], y[5:]])
    else:
        x[4] = nothing
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    model = small()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with seeded(3):
        plain = {"noise": 1.0, "steps": 4, "size": 12, "sampling": "full"}
        run = private(model, optimizer, (x, y), **(plain | settings))
        for a, b in run:
            run.backward(cross_entropy(model(a), b, reduction="none"))
            optimizer.step()
            if run.steps == 2:
                break
    if closed:
        run.close()
    shared = (torch.get_rng_state(), repr(np.random.get_state()), repr(random.getstate()))
    return reachable({"model": model, "optimizer": optimizer, "run": run, "generators": shared})


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_nothing_but_the_release_depends_on_the_records(kind, closed):
    # Elsewhere one record less takes other words from the source, so that the noise is not the same.
    others = NOTHING if kind == "plain" else NOTHING[:2]
    first, *rest = [after_a_run(nothing, SETTINGS[kind], closed=closed) for nothing in others]
    for other in rest:
        assert first.keys() == other.keys()
        assert [path for path in first if not same(first[path], other[path])] == []


def test_the_property_sees_a_sum_that_is_kept(monkeypatch):
    """The same records, with a run that keeps its sums: the test above must be able to fail."""
    from discreet.learn.torch.run import Run

    real = Run.backward

    def keeping(self, losses):
        self.kept = losses.detach()
        real(self, losses)

    monkeypatch.setattr(Run, "backward", keeping)
    one, other = (after_a_run(nothing, {}, closed=True) for nothing in NOTHING[:2])
    assert [path for path in one if not same(one[path], other[path])] == ["[2].kept"]


@pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])
def test_no_sum_without_noise_is_left_behind(exact):
    """Neither after a release nor after a loop that was left in the middle."""
    for left in ("after the step", "before the step"):
        run, optimizer = start_run(exact=exact, clip=1.0, noise=1.0)
        for x, y in run:
            run.backward(cross_entropy(run.model(x), y, reduction="none"))
            if left == "before the step":
                run.close()
                break
            optimizer.step()
            if run.stepped:
                break
        sums = run._parts.sums
        held = [sums._total] if exact else [flat._sum for flat in sums._flats]
        assert not any(each is not None and each.any() for each in held)


# --- optimizers that have a past --------------------------------------------------------------------------------------

OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_averages_of_gradients_without_noise_are_refused(kind):
    model, (x, y) = small(), data()
    optimizer = OPTIMIZERS[kind](model.parameters())
    cross_entropy(model(x), y).backward()
    optimizer.step()
    with pytest.raises(RefusedTraining) as refusal:
        start_run(model, optimizer=optimizer)
    assert refusal.value.code == "DP916"
    start_run(model, optimizer=OPTIMIZERS[kind](model.parameters()))[0].close()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_averages_that_a_run_made_are_not(kind):
    model = small()
    optimizer = OPTIMIZERS[kind](model.parameters())
    run, _ = start_run(model, optimizer=optimizer, steps=2)
    loop(run, optimizer)
    state = run.state_dict()
    run.close()
    start_run(model, optimizer=optimizer)[0].close()
    resumed = OPTIMIZERS[kind](model.parameters())
    resumed.load_state_dict(optimizer.state_dict())
    start_run(model, optimizer=resumed, steps=5, resume=state)[0].close()
    x, y = data()
    cross_entropy(model(x), y).backward()
    optimizer.step()
    with pytest.raises(RefusedTraining):
        start_run(model, optimizer=optimizer)

# SPDX-License-Identifier: Apache-2.0
"""Training that is spread over devices or processes is refused, before anything is spent and at every step."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
from torch.nn.functional import cross_entropy

from discreet.errors import RefusedTraining
from discreet.learn.torch import private
from discreet.learn.torch.refusals import refuse_copies
from discreet.ledger import Ledger, Limit
from tests.learn.torch.reference import data, small, start_run


@pytest.fixture
def group(tmp_path):
    """A group of one process, which is no group."""
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def assert_refused(model, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=5, delta=1e-4), unit="record")
    opened = len(ledger)
    with pytest.raises(RefusedTraining) as refusal:
        private(model, optimizer, data(), noise=1.0, steps=1, batch=10, session=ledger)
    assert refusal.value.code == "DP917"
    assert len(ledger) == opened
    return refusal.value


def test_copies_on_several_devices_are_refused():
    assert "DataParallel" in assert_refused(torch.nn.DataParallel(small())).what
    assert_refused(torch.nn.Sequential(torch.nn.DataParallel(small())))


def test_copies_in_several_processes_are_refused(group):
    assert_refused(torch.nn.parallel.DistributedDataParallel(small()))
    mesh = init_device_mesh("cpu", (1,))
    model = small()
    model[0].weight = torch.nn.Parameter(DTensor.from_local(model[0].weight.data, mesh, [Replicate()]))
    assert_refused(model)


@pytest.mark.parametrize("name", ["AcceleratedOptimizer", "ZeroRedundancyOptimizer", "_DistributedOptimizer"])
def test_optimizers_of_several_processes_by_name(name):
    """The name is enough, also of a class that is derived from it."""
    kind = type("Own", (type(name, (torch.optim.SGD,), {}),), {})
    model = small()
    assert name in assert_refused(model, kind(model.parameters(), lr=0.1)).what


def test_a_process_of_a_group(group, monkeypatch):
    """A group of one is none; one that grows while a run is open stops it at the next batch."""
    run, optimizer = start_run(steps=2)
    batches = iter(run)
    x, y = next(batches)
    run.backward(cross_entropy(run.model(x), y, reduction="none"))
    optimizer.step()
    monkeypatch.setattr(dist, "get_world_size", lambda *_: 2)
    with pytest.raises(RefusedTraining) as refusal:
        next(batches)
    assert refusal.value.code == "DP917"
    assert_refused(small())


def test_what_is_one_process_is_not_refused(group):
    model = small()
    refuse_copies(model, [torch.optim.Adam(model.parameters())])
    run, _ = start_run(model)
    assert run.plan.steps == 3

# SPDX-License-Identifier: Apache-2.0
"""The ways to take a training step: without privacy, with discreet, and with each mode of opacus.

A step is the whole of it: forward, backward, clipping, noise, the optimizer's step (SGD with momentum for all), and
forgetting the gradients. Every way gets the same model, the same records and the same batch size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from tasks import PerRecord, Task
from torch.utils.data import DataLoader, TensorDataset

CLIP, NOISE = 1.0, 1.0
PLAIN, OURS = "non-private", "discreet"
_MANY_STEPS = 1_000_000  # planned, never taken

Step = Callable[[], None]


def plain(task: Task, device: str, precision: str) -> Step:
    """Training as it is without privacy."""
    model, (inputs, targets) = task.build(device), task.data(device)
    optimizer, loss_of = _optimizer(model), PerRecord()

    def step() -> None:
        with _cast(device, precision):
            loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def discreet(task: Task, device: str, precision: str) -> Step:
    """The loop of discreet's documentation; every record is in every batch, so that all batches are of one size."""
    from discreet.learn.torch import private

    model, records = task.build(device), TensorDataset(*task.data(device))
    optimizer, loss_of = _optimizer(model), PerRecord("none")
    run = private(
        model, optimizer, records, size=task.batch, batch=task.batch, sampling="full",
        steps=_MANY_STEPS, noise=NOISE, clip=CLIP, delta=1e-5,
    )  # fmt: skip
    batches = iter(run)

    def step() -> None:
        inputs, targets = next(batches)
        with _cast(device, precision):
            losses = loss_of(run.model(inputs), targets)
        run.backward(losses)
        optimizer.step()
        optimizer.zero_grad()

    return step


def opacus(mode: str) -> Callable[[Task, str, str], Step]:
    """Opacus by its own entrance, without Poisson sampling, for the same reason."""

    def build(task: Task, device: str, precision: str) -> Step:
        from opacus import PrivacyEngine

        warnings.simplefilter("ignore")
        model, (inputs, targets) = task.build(device), task.data(device)
        loader = DataLoader(TensorDataset(inputs, targets), batch_size=task.batch)
        criterion = PerRecord()
        found = PrivacyEngine().make_private(
            module=model, optimizer=_optimizer(model), criterion=criterion, data_loader=loader,
            noise_multiplier=NOISE, max_grad_norm=CLIP, poisson_sampling=False, grad_sample_mode=mode,
        )  # fmt: skip
        model, optimizer = found[0], found[1]
        loss_of = found[2] if mode == "ghost" else criterion

        def step() -> None:
            with _cast(device, precision):
                loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return build


WAYS: dict[str, Callable[[Task, str, str], Step]] = {
    PLAIN: plain,
    OURS: discreet,
    "opacus ghost": opacus("ghost"),
    "opacus hooks": opacus("hooks"),
    "opacus functorch": opacus("functorch"),
    "opacus expanded weights": opacus("ew"),
}


def _optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def _cast(device: str, precision: str) -> AbstractContextManager[object]:
    return torch.autocast(device, dtype=torch.bfloat16) if precision == "bf16" else nullcontext()

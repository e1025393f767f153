# SPDX-License-Identifier: Apache-2.0
"""Refusals of a training loop: what was done, why it is not private, and a line that is.

One process, one model, one run. Where training is spread over several processes, each would clip,
add noise and count separately. Then its copies of the model would diverge, or hooks that no run
sees would add up their gradients. What all processes reveal together is more than one of them
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch.optim import Optimizer

from discreet.errors import RefusedTraining

__all__ = [
    "UNTESTED",
    "UNTRIED",
    "check_losses",
    "no_gradient_error",
    "refuse_copies",
    "refuse_ordinary_gradients",
    "refuse_processes",
    "refuse_reentrant_checkpoints",
]

UNTESTED = (
    "The model could not be tested on made-up records. The guarantee assumes that it keeps records apart."
)
UNTRIED = (
    "The losses could not be tried on a changed batch. The guarantee assumes that they keep records apart."
)
#: By name, so that libraries that are not installed need not be imported.
_COPIES = {
    "DataParallel",
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "FSDPModule",
    "DeepSpeedEngine",
    "DTensor",
    "ShardedTensor",
    "AcceleratedOptimizer",
    "DeepSpeedOptimizerWrapper",
    "ZeroRedundancyOptimizer",
    "DistributedOptimizer",
    "_DistributedOptimizer",
}
_LOOP = "for x, y in run: run.backward(loss(model(x), y)); optimizer.step()"


def no_gradient_error(what: str, fix: str = _LOOP) -> RefusedTraining:
    """The refusal of a step that would not be private."""
    return RefusedTraining(
        "DP911",
        what,
        why="a private step uses every record of its batch once, clipped, with noise, and nothing else.",
        fix=fix,
        spent="what the steps before it cost",
    )


def check_losses(losses: object, records: int) -> Tensor:
    """Check that there is one loss for each record of the batch. The refusal does not say how many
    records there are.
    """
    if not isinstance(losses, Tensor) or losses.dim() != 1 or losses.shape[0] != records:
        raise RefusedTraining(
            "DP912",
            "run.backward needs one loss for each record of the batch, in one dimension.",
            why="a mean or a sum over the batch does not show what each record contributes, so no record can be clipped.",
            fix='loss = F.cross_entropy(model(x), y, reduction="none")   (several terms: losses.view(len(x), -1).sum(1))',
            spent="what the steps before it cost",
        )
    if not losses.requires_grad:
        raise no_gradient_error(
            "the losses do not depend on the parameters of the model.",
            "compute them inside the loop, with run.model, and not under torch.no_grad()",
        )
    return losses


def refuse_ordinary_gradients(parameters: Iterable[Parameter]) -> list[Any]:
    """Make `loss.backward()` fail on these parameters; the handles undo it."""

    def refuse(parameter: Tensor) -> None:
        parameter.grad = None
        raise no_gradient_error("loss.backward() was called, which neither clips nor adds noise.")

    return [_add_hook(parameter, refuse) for parameter in parameters]


def _add_hook(parameter: Any, hook: Any) -> Any:
    return parameter.register_post_accumulate_grad_hook(hook)


@contextmanager
def refuse_reentrant_checkpoints() -> Iterator[None]:
    """Turn the error of torch about reentrant checkpoints into a refusal with a fix."""
    try:
        yield
    except RuntimeError as failed:
        if "use_reentrant" not in str(failed):
            raise
    else:
        return
    raise RefusedTraining(
        "DP921",
        "a part of the model runs under torch.utils.checkpoint with use_reentrant=True.",
        why="it recomputes its layers in a separate backward pass, where the gradients of single records cannot be seen.",
        fix="torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)",
        spent="what the steps before it cost",
    )


def refuse_copies(model: Module, optimizers: Iterable[Optimizer]) -> None:
    """Refuse wrappers that spread a model, its parameters or its optimizer."""
    things: list[Any] = [*model.modules(), *model.parameters(), *model.buffers(), *optimizers]
    for kind in {type(thing) for thing in things}:
        wrapper = next((base.__name__ for base in kind.__mro__ if base.__name__ in _COPIES), None)
        if wrapper is not None:
            raise _several_processes_error(f"the model, a parameter or the optimizer is a {wrapper}.")


def refuse_processes() -> None:
    """Refuse if torch knows of other processes that train with this one."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise _several_processes_error("this process belongs to a group of processes that train together.")


def _several_processes_error(what: str) -> RefusedTraining:
    return RefusedTraining(
        "DP917",
        what,
        why="each process would add noise and count separately, and no theorem here covers what they reveal together.",
        fix="private(model, …)   with the model itself, in one process and before any wrapper; physical=64 saves memory",
        spent="what the steps before it cost",
    )

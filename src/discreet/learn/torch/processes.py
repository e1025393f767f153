# SPDX-License-Identifier: Apache-2.0
"""One process, one model, one run: what spreads training over several processes is refused.

Each process would clip, add noise and count separately. Then its copies of the model would diverge,
or hooks that no run sees would add up their gradients. What all processes reveal together is more
than one of them counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer

from discreet.errors import RefusedTraining

__all__ = ["refuse_copies", "refuse_processes"]

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

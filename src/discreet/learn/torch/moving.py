# SPDX-License-Identifier: Apache-2.0
"""Checks once that a step moves the weights, so that a run that trains nothing fails at once.

A released gradient has noise in every coordinate, so the first step with a learning rate above zero
moves every parameter that an optimizer holds. If none moved, the optimizer holds other parameters,
or the step is too small for the precision of the weights. The check reads weights before and after
a step. They are released anyway, so the error reveals nothing. It runs once, because reading makes
a GPU wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer

from discreet.errors import RefusedTraining

__all__ = ["MovementCheck"]

#: How many numbers of each parameter are compared.
_FIRST = 1024


class MovementCheck:
    """Compares parameters before and after a step, once."""

    def __init__(self) -> None:
        self.done = False

    @contextmanager
    def observe(self, optimizer: Optimizer) -> Iterator[None]:
        """Compare the parameters of an optimizer before and after."""
        if self.done or not _can_move(optimizer):
            yield
            return
        before = _sample(optimizer)
        yield
        self.done = True
        if all(torch.equal(one, other) for one, other in zip(before, _sample(optimizer), strict=True)):
            raise RefusedTraining(
                "DP915",
                "the first step changed no parameter.",
                why="every gradient has noise in it, so a working step moves all parameters.",
                fix="raise lr; keep weights in float32; make the optimizer after model.to(device)",
                spent="one step",
            )


def _can_move(optimizer: Optimizer) -> bool:
    """Whether a step would move anything: a schedule may begin at zero."""
    return any(float(group.get("lr", 1.0)) > 0 for group in optimizer.param_groups)


@torch.no_grad()
def _sample(optimizer: Optimizer) -> list[Tensor]:
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return [parameter.detach().flatten()[:_FIRST].clone() for parameter in held]

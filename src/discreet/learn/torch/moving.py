# SPDX-License-Identifier: Apache-2.0
"""Do the weights move? A run that trains nothing should say so at once, and loudly.

A released gradient has noise in every coordinate, so the first step with a learning rate above zero moves every
parameter that an optimizer holds. If none has moved, the optimizer holds others, or the step is too small for the precision of the
weights. That is seen from weights before and after a step, which are released anyway, so saying it reveals nothing. It
is looked at once, because looking makes a GPU wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer

from discreet.errors import RefusedTraining

__all__ = ["Watch"]

_FIRST = 1024  # numbers of each parameter that are compared


class Watch:
    """Looks at steps until one has moved something."""

    def __init__(self) -> None:
        self.done = False

    @contextmanager
    def looking_at(self, optimizer: Optimizer) -> Iterator[None]:
        """Compare the parameters of an optimizer before and after."""
        if self.done or not _warm(optimizer):
            yield
            return
        before = _sample(optimizer)
        yield
        self.done = True
        if all(torch.equal(one, other) for one, other in zip(before, _sample(optimizer), strict=True)):
            raise RefusedTraining(
                "DP915",
                "the first step changed no parameter.",
                why="every gradient has noise in it, so a step that does something moves all of them.",
                fix="raise lr; keep weights in float32; make the optimizer after model.to(device)",
                spent="one step",
            )


def _warm(optimizer: Optimizer) -> bool:
    """Whether a step would move anything: a schedule may begin at zero."""
    return any(float(group.get("lr", 1.0)) > 0 for group in optimizer.param_groups)


@torch.no_grad()
def _sample(optimizer: Optimizer) -> list[Tensor]:
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return [parameter.detach().flatten()[:_FIRST].clone() for parameter in held]

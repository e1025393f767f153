# SPDX-License-Identifier: Apache-2.0
"""Checks the first losses before they are differentiated: does each depend on one record, and on watched parameters only?

About half of the losses are differentiated alone. Where layers use parameters, the rows of the
other records must then get no gradient. A gradient that is not zero comes from a loss that looks at
several records, such as a contrastive loss, or from mixed inputs. NaN and infinity say nothing,
because they spread by themselves. If every loss depends on one record, every such number is 0, so
nothing is refused, whatever the records are.

**Guarantee.** A refusal means that the losses mix records. The reverse is not guaranteed: `shadow`
looks for values of other records that have no gradient (`detach`).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Parameter

from discreet.errors import RefusedTraining

__all__ = ["Probe", "refuse_unwatched_parameters"]


class Probe:
    """Hears the gradients of some of the losses, and notes whether others got any."""

    def __init__(self, losses: Tensor) -> None:
        chosen = torch.rand(losses.shape[0], generator=torch.Generator().manual_seed(1)) < 0.5
        chosen[0], chosen[-1] = True, False
        self.signal, self._others = chosen.to(losses), (~chosen).nonzero().squeeze(1).to(losses.device)
        self._records, self._mixed = losses.shape[0], torch.zeros((), dtype=torch.bool, device=losses.device)

    def hear(self, gradient: Tensor) -> None:
        """A gradient at the output of a layer."""
        if gradient.dim() and gradient.shape[0] and gradient.shape[0] % self._records == 0:
            rows = (
                gradient.detach().reshape(self._records, -1).index_select(0, self._others.to(gradient.device))
            )
            self._mixed |= ((rows != 0) & rows.isfinite()).any().to(self._mixed.device)

    def judge(self) -> None:
        """Refuse, if a record got a gradient of the loss of another."""
        if bool(self._mixed):
            raise RefusedTraining(
                "DP922",
                "the losses mix records: the loss of one record has a gradient at another.",
                why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
                fix="compute the loss of each record from its own row; put several views of a record on a second axis",
            )


def refuse_unwatched_parameters(losses: Tensor, known: Tensor) -> None:
    """Refuse losses that have a trainable parameter in their graph that is not watched."""
    todo, seen = [losses.grad_fn], {losses.grad_fn}
    while todo:
        node = todo.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not known and isinstance(leaf, Parameter):
            raise RefusedTraining(
                "DP921",
                "the losses depend on a trainable parameter that is not part of the run.",
                why="its gradient would be neither clipped nor noisy.",
                fix="put it into the model before private(model, …), or freeze it: parameter.requires_grad_(False)",
            )
        following = {each for each, _ in node.next_functions if each is not None} - seen if node else set()
        seen |= following
        todo += following

# SPDX-License-Identifier: Apache-2.0
"""Canaries: made-up records whose gradients are known, each in the data by the toss of a coin, to
audit a run by itself.

    run = private(model, optimizer, data, …, canaries=1000)
    …                                                                 # the loop as always
    audit.one_run(run.canaries.included, run.canaries.scores, delta=1e-5).refutes(run.guarantee)

Canary j has a gradient along a direction of its own, much longer than the clipping norm, in a
parameter that is watched like all others and that no optimizer moves. It is drawn into batches,
clipped, summed, and hidden by noise as a record is; its score is the sum of the released gradients
along its direction. If the guarantee of the run holds, the scores say little about which coins came
up heads, and `audit.one_run` says how little. What it finds: noise that is missing or too small, a
divisor that takes noise away, gradients that are clipped after they were averaged, a batch that is
drawn too often.

Canaries use fresh coins and no record, so the audit costs no privacy; but they take a part of every
batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import Module, Parameter

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_class
from discreet.learn.torch.sampler import Indices
from discreet.noise.source import current

__all__ = ["Canaries"]

#: The norm of the gradient of a canary, in clipping norms.
_LONG = 1000.0


@checked_class
class Canaries(Module):
    """Made-up records that audit a run. `included` are their coins, `scores` what the run has
    revealed of each so far.

    **Guarantee.** Canaries use fresh coins and no record, so the audit costs no privacy. What would
    break it: showing `included` while others may still rely on the canaries.

    >>> canaries = Canaries(count=4, clip=1.0, device=torch.device("cpu"))
    >>> canaries.included.shape, canaries.scores.tolist()
    ((4,), [0.0, 0.0, 0.0, 0.0])
    """

    def __init__(self, count: int, clip: float, device: torch.device) -> None:
        super().__init__()
        self.count = check.whole(at_least=2, canaries=count)
        words = current().words(self.count)
        self.included: npt.NDArray[np.bool_] = (words & np.uint64(1)).astype(np.bool_)
        self.weight = Parameter(torch.zeros(self.count + 1, 1, device=_device(device)))
        self.clip = check.moderate(clip=clip)
        self._seen = torch.zeros(self.count, dtype=torch.float64, device=device)

    def extra_repr(self) -> str:
        """The arguments, which torch puts between the parentheses of its representation."""
        return f"count={self.count}, clip={self.clip}, device=torch.device('{self.weight.device}')"

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """For each canary, how far the released gradients went along its direction."""
        return self._seen.cpu().numpy().copy()

    def select_included(self, indices: Indices, records: int) -> Indices:
        """The indices without canaries that are not in the data."""
        is_canary = indices >= records
        return indices[~is_canary | self.included[np.where(is_canary, indices - records, 0)]]

    def losses(self, losses: Tensor, indices: Indices, records: int) -> Tensor:
        """The losses of the records. A canary, whose record is a blank, gets a loss of its own
        instead.
        """
        if indices.size == 0:
            return losses
        is_canary = torch.from_numpy(indices >= records).to(losses.device, non_blocking=True)
        columns = np.where(indices >= records, indices - records, self.count)
        rows = torch.from_numpy(columns).to(losses.device, non_blocking=True)
        canary_losses = torch.nn.functional.embedding(rows, self.weight, padding_idx=self.count).sum(1) * (
            _LONG * self.clip
        )
        return torch.where(is_canary, -canary_losses, losses)

    def note(self) -> None:
        """Add what the last release reveals of each canary. Its loss falls along its direction,
        hence the sign.
        """
        gradient: Any = self.weight.grad
        self._seen -= gradient[: self.count, 0].double()


def _device(device: Any) -> torch.device:
    """A device of torch, or a refusal."""
    if isinstance(device, torch.device):
        return device
    raise BadParameter(
        "DP104",
        "device must be a torch.device.",
        why="canaries are on the device of the model.",
        fix='device=torch.device("cpu")',
    )

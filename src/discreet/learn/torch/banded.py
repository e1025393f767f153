# SPDX-License-Identifier: Apache-2.0
"""Noise that later steps partly take back, and batches that take groups of records in turn, so that
this costs nothing.

    cycle = Cycle(bands=8, records=60_000)
    noise = BandedNoise(cycle)
    cycle.select(indices)                            # of a Poisson batch, the indices whose group's turn it is
    noise.add_(buffer, scales, divide=256.0)        # as StepNoise.add_; then it is the next group's turn

**Guarantee.** A record belongs to one of `bands` groups, by a coin of its own that is never shown,
and only every `bands`-th release sees it. Release t is R_t·γ/divide, where R_t = K_t + W_t, K_t =
round(S/γ) and W_t = round((Z_t − c_1·W_{t−1} − … − c_{b−1}·W_{t−b+1})/c_0), with the coefficients
of `bands.factor` and fresh normals Z_t of the spread that `noise.scales_for` gives. A run of T
steps reveals no more than ⌈T/b⌉ Poisson steps with independent noise.

Why it holds: `banded.proof.md`. In short: R_t is a function of R_{t−1}, R_{t−2}, … and of c_0·K_t +
… + c_{b−1}·K_{t−b+1} + Z_t; a record moves b of these sums in a row, together by the norm of one
column, and by its next turn the last turn is over. K_t is whole, so rounding W_t is rounding the
ideal output, and earlier W go into it as they were rounded: no rounding is left over. That rounding
S moves neighbours apart by √d·γ is in the spread, as in `noise`.

What would break it: a group with two turns less than `bands` releases apart; a step whose noise
later steps do not take into account; showing the groups or W. So the noise itself counts the turns.
After a release that was interrupted, or that has another scale than the first, every release is
refused. The W of the last b − 1 steps are kept in memory, eight bytes for each number of the sums.
They are never stored, so a run with bands cannot be resumed.
"""

from __future__ import annotations

import math

import torch

from discreet.errors import RefusedTraining
from discreet.learn.torch.bands import factor
from discreet.learn.torch.noise import GridScales, StepNoise
from discreet.learn.torch.sampler import Indices
from discreet.noise.integer import uniform

__all__ = ["BandedNoise", "Cycle"]

#: The grid of standard normals: all the bits that a double has below 16.
_STANDARD = GridScales(1.0, math.ldexp(1.0, 49), math.ldexp(1.0, -49))


class Cycle:
    """The group of each record, and the number of releases so far, which says whose turn it is."""

    def __init__(self, bands: int, records: int) -> None:
        self.bands, self.turn = bands, 0
        self._groups: Indices = uniform(bands, records)

    def select(self, indices: Indices) -> Indices:
        """The indices that belong to the group whose turn it is."""
        group_indices: Indices = indices[self._groups[indices] == self.turn % self.bands]
        return group_indices


class _Past:
    """The last noises of one part, in cells, the oldest overwritten first, and how many there were
    in all.
    """

    def __init__(self, buffer: torch.Tensor, lags: int) -> None:
        self.turn = 0
        device = buffer.device if buffer.device.type == "cuda" else torch.device("cpu")
        self.noises = torch.zeros(lags, buffer.numel(), dtype=torch.float64, device=device)


class BandedNoise(StepNoise):
    """The correlated noise of one run. The first part that it sees begins each turn."""

    def __init__(self, cycle: Cycle) -> None:
        super().__init__()
        self._cycle = cycle
        self._first, *self._rest = (float(c) for c in factor(cycle.bands))
        self._pasts: dict[int, _Past] = {}
        self._scales: GridScales | None = None

    def add_(self, buffer: torch.Tensor, scales: GridScales, *, divide: float, part: int = 0) -> None:
        """Noise on a flat buffer, in place, that knows the noises that this part had before."""
        past = self._begin(part, buffer, scales)
        noises = past.noises
        noise = noises.new_zeros(noises.shape[1])
        super().add_(noise, _STANDARD, divide=1.0)
        noise.mul_(scales.spread)
        lags = len(self._rest)
        if lags:
            weights = [self._rest[(past.turn - 1 - slot) % lags] for slot in range(lags)]
            noise -= noises.new_tensor(weights) @ noises
        noise.div_(self._first).round_()
        cells = buffer.to(noise).nan_to_num_(0.0, 0.0, 0.0).mul_(scales.per_cell).round_()
        cells += noise
        buffer.copy_(cells.mul_(scales.cell / divide).to(buffer.dtype))
        if lags:
            noises[past.turn % lags].copy_(noise)
        past.turn += 1

    def _begin(self, part: int, buffer: torch.Tensor, scales: GridScales) -> _Past:
        """The past of a part, if every release before this one was finished on the same grid."""
        if part not in self._pasts:
            self._pasts[part] = _Past(buffer, self._cycle.bands - 1)
        past = self._pasts[part]
        leads = past is next(iter(self._pasts.values()))
        self._scales = self._scales or scales
        checked_pasts = self._pasts.values() if leads else [past]
        # In a turn the first part counts it, and the others follow.
        is_late = any(earlier.turn != self._cycle.turn - (not leads) for earlier in checked_pasts)
        if is_late or scales != self._scales or buffer.numel() != past.noises.shape[1]:
            raise RefusedTraining(
                "DP911",
                "a release was interrupted, or the clipping norm was changed, in a run with bands.",
                why="every step takes back a part of earlier noise, and the guarantee is about all steps together.",
                fix="private(…, bands=8)   begins a new run",
                spent="what the steps before it cost",
            )
        self._cycle.turn += leads
        return past

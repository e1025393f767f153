# SPDX-License-Identifier: Apache-2.0
"""From a pair to finitely many losses, on the safe side in either direction.

**Guarantee.** `spread` returns P-masses at given knots whose pair dominates the given one;
`contract` returns masses whose pair is dominated by it. Both leave a mass at loss l_j of P' = m and
Q' = m·e^{-l_j}.

Why it holds. H_γ does not fall if P grows or Q shrinks as a measure, and both are inherited by
products.

- *Spread.* The mass (p, q) of a cell goes to the two ends of the cell, with p and q preserved. That
  replaces the convex function γ ↦ H_γ by its chords ("connect the dots", Doroshenko et al. 2022).
- *Contract.* Merging outcomes is post-processing. Each cell is merged to one point and split
  between the two knots at its ends such that what arrives at a knot, merged again, has exactly that
  knot's loss. What cannot be balanced is rounded down, that is, Q is raised.

Both cost a term of second order in the cell width, where rounding the loss would cost one of first
order. What would break it: cumulative masses that are less accurate than `_ULP` says. They are used
with that much slack, always in the safe direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.logarithms import Array
from discreet.privacy.pairs import Pair

#: Relative error allowed to each cumulative mass: scipy's ndtr and exp are within a few ulp
#: (2.2e-16).
_ULP = 4e-15
#: Cells of equal width on either side of the centre: at least, and at most.
_NEAR, _MOST_DENSE = 512, 1 << 16
#: Atoms this close to a knot are put on it; `drift` below accounts for the move.
_SNAP = 4e-15


@dataclass(frozen=True, eq=False)
class Masses:
    """P-masses at increasing losses; Q has e^{-loss} times as much. `infinite` is P-mass without
    Q-mass.
    """

    losses: Array
    p: Array
    infinite: float

    @cached_property
    def log_p(self) -> Array:
        """log p, -inf where there is no mass."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.p))

    def tilt_masses(self, tilt: float) -> Array:
        """The masses times e^{tilt·loss}, as probabilities."""
        exponent = self.log_p + tilt * self.losses
        weights = np.exp(exponent - exponent.max())
        return np.asarray(weights / weights.sum())


#: How far a loss may have moved by rounding, relative to 1 + |loss|, for each composed mechanism.
DRIFT = 8e-15


def knots_around(centre: float, least: float, greatest: float, finest: float, growth: float) -> Array:
    """Cell ends that are `finest` apart at the centre and `growth`·distance apart further out.

    A cell of width w at distance d adds variance of at most mass·w²/4, so relative widths keep the
    added variance a fixed small share of the second moment around the centre, whatever the range.
    """

    def side(length: float) -> Array:
        if length <= 0:
            return np.zeros(0)
        flat = finest / growth
        near = np.arange(1, int(np.ceil(min(length, flat) / finest)) + 1) * finest
        if length <= flat:
            return near
        far = near[-1] * np.exp(
            np.log1p(growth) * np.arange(1, int(np.ceil(np.log(length / flat) / np.log1p(growth))) + 2)
        )
        return np.concatenate([near, far])

    return centre + np.concatenate([-side(centre - least)[::-1], [0.0], side(greatest - centre)])


def lattice_knots(pair: Pair, centre: float, flat: float, step: float, origin: float) -> NDArray[np.int64]:
    """Whole multiples of `step` above `origin` that cover the pair: every one within `flat` of the
    centre, then every second, every fourth, … as the distance doubles (and at least `_NEAR` of each
    kind).
    """
    middle = round((centre - origin) / step)
    # one more knot on either side, so that rounding leaves nothing outside
    first = math.floor((pair.least - origin) / step) - 1
    last = math.ceil((pair.greatest - origin) / step) + 1
    middle = min(max(middle, first), last)
    dense = max(_NEAR, math.ceil(min(flat / step, _MOST_DENSE)))

    def side(length: int) -> NDArray[np.int64]:
        runs, start, stride = [], 0, 1
        while start < length:
            stop = min(max(dense * stride, start + stride), length)
            run = np.arange(start + stride, stop + stride, stride, dtype=np.int64)
            runs.append(run)
            start, stride = int(run[-1]), 2 * stride
        return np.concatenate(runs) if runs else np.zeros(0, np.int64)

    below, above = side(middle - first), side(last - middle)
    return np.concatenate([middle - below[::-1], [middle], middle + above])


def densest(pair: Pair, centre: float, step: float) -> float:
    """The loss of the heaviest stretch of two steps near the centre, merged to one point.

    A lattice through it lets `contract` keep that mass where it is; for `spread` any lattice will
    do.
    """
    if pair.losses.size:
        return float(pair.losses[np.argmax(pair.p)])
    assert pair.smooth is not None
    edges = np.clip(centre + step * np.arange(-32, 33) / 4, pair.low, pair.high)
    p_le, p_gt, q_le, q_gt = pair.smooth(edges)
    p, q = (
        np.where(le[8:] < gt[:-8], le[8:] - le[:-8], gt[:-8] - gt[8:])
        for le, gt in ((p_le, p_gt), (q_le, q_gt))
    )
    best = int(np.argmax(p))
    return math.log(p[best] / q[best]) if q[best] > 0 and p[best] > 0 else centre


def spread(pair: Pair, losses: Array) -> Masses:
    """The least pair on these losses that dominates `pair` (see the module docstring)."""
    weights = np.zeros(losses.size)
    infinite = pair.infinite
    if pair.smooth is not None:
        p, q, p_slack, q_slack = _cells(pair, losses)
        weights += spread_cells(p + p_slack, np.maximum(q - q_slack, 0.0), losses)
        below, above = _masses_outside(pair, losses)
        weights[0] += below * (1 + _ULP)
        infinite += above * (1 + _ULP)
    if pair.losses.size:
        infinite += _spread_atoms(pair, losses, weights)
    return Masses(losses, weights, infinite)


def spread_cells(p: Array, q: Array, losses: Array) -> Array:
    """P-masses at the knots that dominate the masses p and q of the cells between them."""
    weights = np.zeros(losses.size)
    with np.errstate(over="ignore", invalid="ignore"):
        lifted = np.where(q > 0, q * np.exp(losses[:-1]), 0.0)
    rounding = _ULP * p * (1 + np.abs(losses[:-1]))
    up = np.clip((p - lifted + rounding) / -np.expm1(-np.diff(losses)), 0.0, p)
    weights[:-1] += p - up
    weights[1:] += up
    return weights


def contract_cells(p: Array, q: Array, losses: Array) -> Array:
    """P-masses at the knots that the masses p and q of the cells between them dominate."""
    weights = np.zeros(losses.size)
    up = _share_sent_up(p, q, losses)
    weights[:-1] += (1 - up) * p
    weights[1:] += up * p
    return weights


def contract(pair: Pair, losses: Array) -> Masses:
    """A pair on these losses that `pair` dominates, as great as merging allows."""
    size = losses.size
    p: Array = np.zeros(size - 1)
    q, p_slack, q_slack = p.copy(), p.copy(), p.copy()
    weights = np.zeros(size)
    if pair.smooth is not None:
        p, q, p_slack, q_slack = _cells(pair, losses)
        weights[-1] += _masses_outside(pair, losses)[1] * (1 - _ULP)
    if pair.losses.size:
        knot, on_knot, cell = _place(pair.losses, losses)
        np.add.at(weights, knot[on_knot], pair.p[on_knot])
        inside = ~on_knot & (cell >= 0) & (cell < size - 1)
        np.add.at(p, cell[inside], pair.p[inside])
        np.add.at(q, cell[inside], pair.q[inside])
        over = ~on_knot & (cell >= size - 1)
        weights[-1] += float(pair.p[over].sum())
    weights += contract_cells(np.maximum(p - p_slack, 0.0), q + q_slack, losses)
    return Masses(losses, weights, pair.infinite)


def _share_sent_up(p: Array, q: Array, losses: Array) -> Array:
    """Which share of each merged cell goes to its upper knot, such that every knot stays in
    balance.

    `over` is the P-surplus of a cell with respect to its lower knot, `under` its deficit with
    respect to the upper one. A knot is in balance if the surplus that stays above it pays for the
    deficit sent up.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = _ULP * (1 + np.abs(losses))
        usable = (q > 1e-290) & (p > 0)
        over = np.where(usable, np.maximum(p - q * np.exp(losses[:-1]) * (1 + rounding[:-1]), 0.0), 0.0)
        under = np.where(usable, np.maximum(q * np.exp(losses[1:]) * (1 + rounding[1:]) - p, 0.0), np.inf)
    stay = _balance(over, under, int(np.argmax(p)))
    paid = np.append(stay[1:] * over[1:], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        affordable = np.where(under > 0, paid / under, 1.0)
    share = np.minimum(1.0 - stay, np.where(np.isfinite(affordable), affordable, 0.0))
    return np.asarray(share * (1 - 1e-12))


def _balance(over: Array, under: Array, mode: int) -> Array:
    """Shares that stay at the lower knot, from stay[j]·over[j] = (1 - stay[j-1])·under[j-1].

    The recursion damps errors as long as masses grow, so it runs from both ends towards the mode.
    """
    stay = np.full(over.size, 0.5)
    surplus, lack = over.tolist(), np.where(np.isfinite(under), under, 0.0).tolist()
    share = 0.5
    for j in range(1, mode):
        share = min(1.0, (1.0 - share) * lack[j - 1] / surplus[j]) if surplus[j] > 0 else 1.0
        stay[j] = share
    share = 0.5
    for j in range(over.size - 2, mode - 1, -1):
        share = 1.0 - min(1.0, share * surplus[j + 1] / lack[j]) if lack[j] > 0 else 0.0
        stay[j] = share
    return stay


def _cells(pair: Pair, losses: Array) -> tuple[Array, Array, Array, Array]:
    """P- and Q-mass of the smooth part in each cell, with an error bound for each."""
    assert pair.smooth is not None
    p_le, p_gt, q_le, q_gt = pair.smooth(np.clip(losses, pair.low, pair.high))
    p, p_slack = _differences(p_le, p_gt)
    q, q_slack = _differences(q_le, q_gt)
    return p, q, p_slack, q_slack


def mass_between(pair: Pair, losses: Array) -> tuple[Array, Array, float]:
    """P- and Q-mass below the first knot, in each cell and above the last knot, and by how much,
    relatively, each of them may be off.
    """
    p, q = np.zeros(losses.size + 1), np.zeros(losses.size + 1)
    error = _ULP
    if pair.smooth is not None:
        p_le, p_gt, q_le, q_gt = pair.smooth(np.clip(losses, pair.low, pair.high))
        for masses, below, above in ((p, p_le, p_gt), (q, q_le, q_gt)):
            inner, slack = _differences(below, above)
            masses[0], masses[1:-1], masses[-1] = max(below[0], 0.0), inner, max(above[-1], 0.0)
            error = max(error, float(np.max(slack[inner > 0] / inner[inner > 0], initial=0.0)))
    cell = np.searchsorted(losses, pair.losses, side="left")
    return p + np.bincount(cell, pair.p, p.size), q + np.bincount(cell, pair.q, q.size), error


def _masses_outside(pair: Pair, losses: Array) -> tuple[float, float]:
    """P-mass of the smooth part below the first and above the last knot, as far as it lies in its
    range.
    """
    assert pair.smooth is not None
    p_le, _, _, _ = pair.smooth(np.array([max(losses[0], pair.low)]))
    _, p_gt, _, _ = pair.smooth(np.array([min(losses[-1], pair.high)]))
    return max(0.0, float(p_le[0])), max(0.0, float(p_gt[0]))


def _differences(below: Array, above: Array) -> tuple[Array, Array]:
    """Masses between consecutive points, from whichever tail is smaller, so that little cancels."""
    from_left = below[1:] < above[:-1]
    mass = np.where(from_left, below[1:] - below[:-1], above[:-1] - above[1:])
    slack = _ULP * np.where(from_left, below[1:], above[:-1])
    return np.maximum(mass, 0.0), slack


def _place(atoms: Array, losses: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """For each atom: the nearest knot, whether it lies on it, and the cell (knot j, knot j+1] it is
    in.
    """
    cell = np.searchsorted(losses, atoms, side="left") - 1
    left = np.clip(cell, 0, losses.size - 1)
    right = np.clip(cell + 1, 0, losses.size - 1)
    nearer_right = np.abs(losses[right] - atoms) <= np.abs(losses[left] - atoms)
    knot = np.where(nearer_right, right, left)
    on_knot = np.abs(losses[knot] - atoms) <= _SNAP * (1 + np.abs(atoms))
    return knot.astype(np.int64), on_knot, cell.astype(np.int64)


def _spread_atoms(pair: Pair, losses: Array, weights: Array) -> float:
    """Add the atoms of the pair to the weights; return the P-mass above the last knot."""
    knot, on_knot, cell = _place(pair.losses, losses)
    np.add.at(weights, knot[on_knot], pair.p[on_knot])
    low = ~on_knot & (cell < 0)
    weights[0] += float(pair.p[low].sum())
    inside = ~on_knot & (cell >= 0) & (cell < losses.size - 1)
    at, start, mass = pair.losses[inside], cell[inside], pair.p[inside]
    width = losses[start + 1] - losses[start]
    up = np.clip(np.expm1(losses[start] - at) / np.expm1(-width) + _ULP / width, 0.0, 1.0) * mass
    np.add.at(weights, start, mass - up)
    np.add.at(weights, start + 1, up)
    return float(pair.p[~on_knot & (cell >= losses.size - 1)].sum())

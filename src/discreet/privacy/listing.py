# SPDX-License-Identifier: Apache-2.0
"""Compositions of few outcomes, by listing them: exact where an FFT would be approximate."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, xlogy

from discreet.privacy.moments import Array
from discreet.privacy.pairs import Pair

#: Most outcomes that are listed.
_MOST = 100_000


def enumerate_outcomes(entries: list[tuple[Pair, int]]) -> Pair | None:
    """The product of the pairs as one pair of atoms, or None if it has too many."""
    if any(pair.smooth is not None for pair, _ in entries) or _size(entries) > _MOST:
        return None
    losses, log_p, log_safe = np.zeros(1), np.zeros(1), 0.0
    for pair, count in entries:
        more, log_more = _repeat(pair, count)
        losses = (losses[:, None] + more[None, :]).ravel()
        log_p = (log_p[:, None] + log_more[None, :]).ravel()
        log_safe += count * math.log1p(-pair.infinite) if pair.infinite < 1 else -math.inf
    p = np.exp(log_p)
    infinite = -math.expm1(log_safe)
    return Pair(losses=losses, p=p, q=np.exp(log_p - losses), infinite=infinite, vanishing=infinite)


def _size(entries: list[tuple[Pair, int]]) -> float:
    logs = [
        math.log(count + 1) if pair.losses.size == 2 else count * math.log(max(pair.losses.size, 1))
        for pair, count in entries
    ]
    return math.exp(min(math.fsum(logs), 100.0))


def _repeat(pair: Pair, count: int) -> tuple[Array, Array]:
    """Losses and log masses of `count` draws: a binomial distribution for two atoms, else every
    sequence.
    """
    if pair.losses.size < 2:
        loss, p = (float(pair.losses[0]), float(pair.p[0])) if pair.losses.size else (0.0, 0.0)
        return np.array([count * loss]), np.array([count * math.log(p) if p > 0 else -np.inf])
    with np.errstate(divide="ignore"):
        log_p = np.log(pair.p)
    if pair.losses.size == 2:
        second = np.arange(count + 1.0)
        first = count - second
        log_ways = gammaln(count + 1.0) - gammaln(first + 1) - gammaln(second + 1)
        total = first * pair.losses[0] + second * pair.losses[1]
        return np.asarray(total), np.asarray(log_ways + xlogy(first, pair.p[0]) + xlogy(second, pair.p[1]))
    losses, logs = np.zeros(1), np.zeros(1)
    for _ in range(count):
        losses = (losses[:, None] + pair.losses[None, :]).ravel()
        logs = (logs[:, None] + log_p[None, :]).ravel()
    return losses, logs

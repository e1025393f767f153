# SPDX-License-Identifier: Apache-2.0
"""Exact randomness: integers whose distribution is the stated one, to the last bit, from a
cryptographic source.

Read in this order:

    source.py      uniform words, fork-safe and thread-safe; who draws, and whether the draw is private
    enclosure.py   exp, log and the normal tail as integer intervals of any precision
    lazy.py        a uniform real of which 64 bits are known and more are drawn on demand  (+ lazy.proof.md)
    coin.py        Bernoulli(p), Bernoulli(exp(-x))
    integer.py     uniform, geometric, discrete Laplace, rounded Gaussian, discrete Gaussian
    wide.py        the same noise at large scales: a block of numbers, and a place in it
    tails.py       powers, Student's t and the inverse of sinh as integer intervals
    heavy.py       Cauchy, Student's t, Lomax, log-normal mixtures: any real scale, rounded           (+ heavy.proof.md)
    race.py        which of many noisy scores is the largest
    grid.py        reals to a lattice and back

Nothing here knows what the randomness is for.
"""

from __future__ import annotations

from discreet.noise.coin import bernoulli, bernoulli_exp_minus
from discreet.noise.grid import Grid
from discreet.noise.integer import discrete_gaussian, discrete_laplace, geometric, rounded_gaussian, uniform
from discreet.noise.race import largest

__all__ = [
    "Grid",
    "bernoulli",
    "bernoulli_exp_minus",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "largest",
    "rounded_gaussian",
    "uniform",
]

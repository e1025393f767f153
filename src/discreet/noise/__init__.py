# SPDX-License-Identifier: Apache-2.0
"""Exact noise: integers with exactly the stated distribution, from a cryptographic source.

Read in this order:

    source.py      uniform words, fork-safe and thread-safe, and whether they are private
    enclosure.py   exp, log and the normal tail as integer intervals of any precision
    lazy.py        a uniform real whose bits are drawn on demand
    coin.py        Bernoulli(p), Bernoulli(exp(-x))
    integer.py     uniform, geometric, discrete Laplace, rounded Gaussian, discrete Gaussian
    wide.py        the same noise at large scales: a block of numbers, and a position in it
    tails.py       powers, Student's t and the inverse of sinh as integer intervals
    heavy.py       Cauchy, Student's t, Lomax, log-normal mixtures: any real scale, rounded
    race.py        the largest of many noisy scores
    grid.py        rounding of reals to multiples of a power of two, and back

Mechanisms decide how the noise is used. The proofs are in lazy.proof.md and heavy.proof.md.
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

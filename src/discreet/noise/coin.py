# SPDX-License-Identifier: Apache-2.0
"""Coins with exactly the stated probability.

    bernoulli(Fraction(1, 3))  # True with probability 1/3
    bernoulli(0.1, size=1_000_000)  # with the exact value of the float 0.1 as probability
    bernoulli_exp_minus(0.5)  # True with probability exp(-1/2)

Why it holds: a coin is `U < p` for a uniform real U. 64 bits of U decide it unless they equal the
first 64 bits of p; then more bits are drawn. A probability of 0 or 1 gives a certain result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio
from discreet.noise import lazy
from discreet.noise.enclosure import exp_minus, ratio
from discreet.noise.lazy import Floats, Uniform
from discreet.noise.scales import (
    Number,
    Numbers,
    Size,
    as_floats,
    broadcast,
    count_of,
    in_shape,
    is_many,
    shape_of,
)
from discreet.noise.source import Source, Words, current

Bools = npt.NDArray[np.bool_]

SLACK = 2.0**-34  # the greatest error of a floating-point exp(-x)


@overload
def bernoulli(p: Number, size: None = None) -> bool: ...
@overload
def bernoulli(p: Numbers, size: int | Sequence[int]) -> Bools: ...
@overload
def bernoulli(p: Numbers, size: Size = None) -> bool | Bools: ...
def bernoulli(p: Numbers, size: Size = None) -> bool | Bools:
    """True with probability p: a number in [0, 1], or an array of floats of which each is one.

    **Guarantee.** Exactly that probability, to the last bit, and independent of every other coin.

    >>> bernoulli(1), bernoulli(Fraction(1, 3), size=4).shape
    (True, (4,))
    """
    shape = shape_of(p, size)
    if not is_many(p):
        check.probability(p=p)
        return cast("bool | Bools", in_shape(_same_coins(as_ratio(p), count_of(shape), current()), shape))
    chances = as_floats(broadcast(p, shape))
    if not ((chances >= 0) & (chances <= 1)).all():
        raise _not_probabilities_error()
    return cast("bool | Bools", in_shape(_coins(chances, current()), shape))


@overload
def bernoulli_exp_minus(x: Number, size: None = None) -> bool: ...
@overload
def bernoulli_exp_minus(x: Numbers, size: int | Sequence[int]) -> Bools: ...
@overload
def bernoulli_exp_minus(x: Numbers, size: Size = None) -> bool | Bools: ...
def bernoulli_exp_minus(x: Numbers, size: Size = None) -> bool | Bools:
    """True with probability exp(-x): x a number that is zero or more, or an array of such floats.

    **Guarantee.** Exactly that probability, to the last bit, and independent of every other coin.

    >>> bernoulli_exp_minus(0), bernoulli_exp_minus(0.5, size=4).dtype
    (True, dtype('bool'))
    """
    shape = shape_of(x, size)
    if not is_many(x):
        number, ratio_of_x = check.not_negative(x=x), as_ratio(x)
        if shape is None:
            return head_exp_minus(number, lambda: ratio_of_x, current())
        heads = heads_exp_minus(np.full(count_of(shape), number), lambda _: ratio_of_x, current())
        return cast("bool | Bools", in_shape(heads, shape))
    exponents = as_floats(broadcast(x, shape))
    if not (np.isfinite(exponents).all() and (exponents >= 0).all()):
        raise _not_probabilities_error()
    exact = exponents.copy()
    heads = heads_exp_minus(exponents, lambda i: Fraction(float(exact[i])), current())
    return cast("bool | Bools", in_shape(heads, shape))


def heads_exp_minus(x: Floats, exact: Callable[[int], Fraction], source: Source) -> Bools:
    """One coin of probability exp(-x) per element; overwrites x, which may be slightly rounded.

    lazy.proof.md, §3, bounds the rounding.
    """
    words = source.words(x.size)
    u = lazy.unit(words)
    u -= np.exp(np.negative(x, out=x), out=x)
    heads: Bools = u < 0.0
    unclear = np.abs(u, out=u) < SLACK
    if unclear.any():
        for i in map(int, np.flatnonzero(unclear)):
            heads[i] = _exactly(int(words[i]), exact(i), source)
    return heads


def head_exp_minus(x: float, exact: Callable[[], Fraction], source: Source) -> bool:
    """`heads_exp_minus` for one coin."""
    word = source.bits(64)
    gap = lazy.unit_of(word) - math.exp(-x)
    return gap < 0.0 if abs(gap) >= SLACK else _exactly(word, exact(), source)


def _exactly(word: int, exponent: Fraction, source: Source) -> bool:
    return Uniform(source, word >> 1, lazy.KNOWN_BITS).below(lambda bits: exp_minus(exponent, bits))


def flip(p: Fraction, uniform: Uniform) -> bool:
    """The coin of probability p that this uniform real decides: the definition of all others."""
    return p > 0 and (p >= 1 or uniform.below(lambda bits: ratio(p, bits)))


def _same_coins(p: Fraction, count: int, source: Source) -> Bools:
    words = source.words(count)
    first, rest = divmod(p.numerator << 64, p.denominator)
    if first >> 64:
        return np.ones(words.size, np.bool_)
    heads: Bools = words < np.uint64(first)
    if rest:
        _decide(heads, words, np.uint64(first), lambda _: p, source)
    return heads


def _coins(chances: Floats, source: Source) -> Bools:
    words = source.words(chances.size)
    certain = chances == 1.0
    # exact, then rounded down
    first = np.ldexp(np.where(certain, 0.0, chances), 64).astype(np.uint64)
    heads: Bools = words < first
    _decide(heads, words, first, lambda i: Fraction(float(chances[i])), source)
    heads |= certain
    return heads


def _decide(heads: Bools, words: Words, first: Any, p: Callable[[int], Fraction], source: Source) -> None:
    """Decides the coins whose 64 bits equal the first 64 bits of their probability."""
    for i in map(int, np.flatnonzero(words == first)):
        heads[i] = flip(p(i), Uniform(source, int(words[i]), 64))


def _not_probabilities_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "every probability must lie in [0, 1], and every exponent must be finite and zero or more.",
        why="no coin has another probability.",
        fix="pass numbers in that range, for example 0.5",
    )

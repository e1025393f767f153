# SPDX-License-Identifier: Apache-2.0
"""Queries about records, each with its sensitivity under both relations.

    from discreet.mechanisms import queries

    queries.count(lambda age: age >= 65).geometric(epsilon=0.5)(ages).value
    queries.histogram(["A", "B", "AB", "0"]).laplace(epsilon=1)(blood_groups).value
    queries.mean((0, 120)).laplace(epsilon=1)(ages).value  # the number of records is protected
    queries.mean((0, 120), size=1_000).laplace(epsilon=1)(ages).value  # the number is public
    queries.sum((0, 500)).gaussian(epsilon=1, delta=1e-6)(baskets).value

Records are a list, a numpy array or another sequence. Bounds are public and part of the query.
exact.py defines what each record counts as.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet import check
from discreet.mechanisms.counting import Count, Counts, Histogram, count, counts, histogram
from discreet.mechanisms.exact import Function
from discreet.mechanisms.moments import FromShares, Mean, ProtectedMean, ProtectedVariance, Sum, Variance
from discreet.mechanisms.query import ClippingBounds, QueryAnswer, RecordQuery

__all__ = [
    "Count",
    "Counts",
    "FromShares",
    "Histogram",
    "Mean",
    "ProtectedMean",
    "ProtectedVariance",
    "QueryAnswer",
    "RecordQuery",
    "Sum",
    "Variance",
    "count",
    "counts",
    "histogram",
    "mean",
    "statistical",
    "sum",
    "variance",
]


def sum(  # noqa: A001 - read as queries.sum
    bounds: Sequence[float] | ClippingBounds | None = None, *, of: Function | None = None
) -> Sum:
    """The sum of the records, or of a function of each record.

    **Guarantee.** Sensitivity max(|low|, |high|) under add-remove and high - low under replace, for
    all records. The sum before noise is the mathematical sum of the clipped floats: it does not
    overflow, and order does not matter.

    Why it holds: exact.py. Records beyond the bounds are clipped. No margin of error includes the
    bias from clipping.

    >>> sum((-2, 5)).sensitivity("add-remove"), sum((-2, 5)).sensitivity("replace")
    (5.0, 7.0)
    >>> sum((0, 100)).laplace(epsilon=1).scale
    100.0
    """
    return Sum(ClippingBounds.of(bounds), None if of is None else check.function(of=of))


def mean(
    bounds: Sequence[float] | ClippingBounds | None = None,
    *,
    size: int | None = None,
    of: Function | None = None,
) -> Mean | ProtectedMean:
    """The mean of the records, or of a function of each; `size` is their number, if it is public.

    **Guarantee.** With a public size: sensitivity (high - low) / size under replace; add-remove is
    refused, because it changes the size. Without it: a noisy mean and a noisy number of records
    under one guarantee, from two sums with the sensitivities of moments.py. The answer lies within
    the bounds. Empty records are answered like any others.

    >>> mean((0, 120), size=1_000).sensitivity("replace")
    0.12
    >>> mean((0, 120), size=1_000).laplace(epsilon=1).scale
    0.12
    >>> mean((0, 1)).sample_size(error=0.01, confidence=0.75, epsilon=1)
    202
    >>> answer = mean((0, 120)).laplace(epsilon=1)([20, 40, 60])
    >>> answer.interval[0] <= answer.value <= answer.interval[1]
    True
    """
    clipping, value = ClippingBounds.of(bounds), None if of is None else check.function(of=of)
    if size is None:
        return ProtectedMean(clipping, value)
    return Mean(clipping, check.whole(size=size), value)


def variance(
    bounds: Sequence[float] | ClippingBounds | None = None,
    *,
    size: int | None = None,
    of: Function | None = None,
) -> Variance | ProtectedVariance:
    """The variance of the records about their mean, divided by their number; `size` as for `mean`.

    **Guarantee.** With a public size n of 2 or more: sensitivity (high - low)²(n - 1)/n² under
    replace. Without it: three noisy sums under one guarantee.

    Why it holds: moments.py has the proofs. The answer lies in [0, (high - low)²/4].

    >>> variance((0, 10), size=100).sensitivity("replace")
    0.99
    >>> variance((0, 10)).sensitivity("add-remove"), variance((0, 10)).sensitivity("replace")
    (1.0, 2.0)
    """
    clipping, value = ClippingBounds.of(bounds), None if of is None else check.function(of=of)
    if size is None:
        return ProtectedVariance(clipping, value)
    return Variance(clipping, check.whole(at_least=2, size=size), value)


def statistical(phi: Function, *, size: int) -> Mean:
    """A statistical query: the mean of φ over `size` records, where φ maps a record into [0, 1].

    **Guarantee.** One replaced record moves the mean by at most 1 / size. `guarantee.advantage()`
    is the total variation distance between the answers of neighbours; it bounds how far an analyst
    who sees the answer can overfit. With Gaussian noise of standard deviation σ it is exactly
    2Φ(1/(2·size·σ)) - 1, with Laplace noise for ε at most 1 - e^(-ε/2), and for any ε-private
    answer at most tanh(ε/2).

    Values of φ are clipped to [0, 1]. A value that is not a number, or an error, counts as 1/2.

    >>> answer = statistical(lambda x: x > 3, size=50).gaussian(scale=0.1)
    >>> round(answer.guarantee.advantage(), 7)
    0.0796557
    """
    return Mean(ClippingBounds(0.0, 1.0), check.whole(size=size), check.function(phi=phi))

# SPDX-License-Identifier: Apache-2.0
"""Questions about records, each with its sensitivity under both relations.

    from discreet.mechanisms import queries

    queries.count(lambda age: age >= 65).geometric(epsilon=0.5)(ages).value
    queries.histogram(["A", "B", "AB", "0"]).laplace(epsilon=1)(blood_groups).value
    queries.mean((0, 120)).laplace(epsilon=1)(ages).value              # the number of records is protected
    queries.mean((0, 120), size=1_000).laplace(epsilon=1)(ages).value  # it is public, and nobody comes or goes
    queries.sum((0, 500)).gaussian(epsilon=1, delta=1e-6)(baskets).value

Records are a list, a numpy array or another sequence. Bounds are public and come with the question; what each record
counts as is said in exact.py.
"""

from __future__ import annotations

from typing import Any

from discreet import check
from discreet.mechanisms.counting import Count, Counts, Histogram, count, counts, histogram
from discreet.mechanisms.exact import Function
from discreet.mechanisms.moments import Mean, Sum, Variance
from discreet.mechanisms.query import ClippingBounds, QueryAnswer, RecordQuery
from discreet.mechanisms.shares import FromShares, ProtectedMean, ProtectedVariance

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


def sum(bounds: Any = None, *, of: Function | None = None) -> Sum:  # noqa: A001 - read as queries.sum
    """The sum of the records, or of a function of each record.

    **Guarantee.** Sensitivity max(|low|, |high|) under add-remove and high - low under replace, for all records. The
    sum before noise is the mathematical sum of the clipped floats: it does not overflow, and order does not matter.

    Why it holds: exact.py. Records beyond the bounds count as the bounds, which is a bias that no error includes.

    >>> sum((-2, 5)).sensitivity("add-remove"), sum((-2, 5)).sensitivity("replace")
    (5.0, 7.0)
    >>> sum((0, 100)).laplace(epsilon=1).scale
    100.0
    """
    return Sum(ClippingBounds.of(bounds), None if of is None else check.function(of=of))


def mean(bounds: Any = None, *, size: int | None = None, of: Function | None = None) -> Mean | ProtectedMean:
    """The mean of the records, or of a function of each record; `size` is their number, if that is public.

    **Guarantee.** With a public size: sensitivity (high - low) / size under replace, and add-remove is refused, since
    somebody who comes or goes would change the size. Without: a noisy mean and a noisy number of records under one
    guarantee, whose two sums have the sensitivities of shares.py. The answer lies within the bounds; no records at all
    are answered like any others.

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
    within, value = ClippingBounds.of(bounds), None if of is None else check.function(of=of)
    if size is None:
        return ProtectedMean(within, value)
    return Mean(within, check.whole(size=size), value)


def variance(
    bounds: Any = None, *, size: int | None = None, of: Function | None = None
) -> Variance | ProtectedVariance:
    """The variance of the records about their mean, divided by their number; `size` as for `mean`.

    **Guarantee.** With a public size n of 2 or more: sensitivity (high - low)²(n - 1)/n² under replace. Without: three
    noisy sums under one guarantee, whose sensitivities are those of shares.py.

    Why it holds: moments.py and shares.py have the proofs. The answer lies in [0, (high - low)²/4].

    >>> variance((0, 10), size=100).sensitivity("replace")
    0.99
    >>> variance((0, 10)).sensitivity("add-remove"), variance((0, 10)).sensitivity("replace")
    (1.0, 2.0)
    """
    within, value = ClippingBounds.of(bounds), None if of is None else check.function(of=of)
    if size is None:
        return ProtectedVariance(within, value)
    return Variance(within, check.whole(at_least=2, size=size), value)


def statistical(phi: Function, *, size: int) -> Mean:
    """A statistical query: the mean of φ over `size` records, for a function φ of one record with values in [0, 1].

    **Guarantee.** One replaced record moves the mean by at most 1 / size. The total variation distance between the
    answers to neighbours, which bounds how far an analyst who sees the answer can overfit, is `guarantee.advantage()`:
    with Gaussian noise of standard deviation σ exactly 2Φ(1/(2·size·σ)) - 1; with Laplace noise for ε at most
    1 - e^(-ε/2); for any ε-private answer at most tanh(ε/2).

    What φ returns outside [0, 1] counts as the nearest of 0 and 1; what is no number, or an error, counts as 1/2.

    >>> answer = statistical(lambda x: x > 3, size=50).gaussian(scale=0.1)
    >>> round(answer.guarantee.advantage(), 7)
    0.0796557
    """
    return Mean(ClippingBounds(0.0, 1.0), check.whole(size=size), check.function(phi=phi))

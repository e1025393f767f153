# SPDX-License-Identifier: Apache-2.0
"""What one given record loses on one given data set: a diagnostic, and a secret.

    losses = per_instance_losses(Laplace(epsilon=1, sensitivity=100), sum, payments)
    losses                                              # <secret: what each record loses>
    losses.reveal(because="the data are synthetic")     # array of ε, none above 1

A mechanism's guarantee is the worst case over all data. Per-instance privacy (Wang 2019) asks about
these data and this record, and is often far smaller; but it is a function of private data, so it is
a `Secret`, and no guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet import check, privacy
from discreet.errors import UnsupportedGuarantee
from discreet.mechanisms.additive import Additive, Gaussian, Geometric, Laplace
from discreet.mechanisms.secret import Secret
from discreet.mechanisms.stability import answer_of
from discreet.noise.scales import Number

__all__ = ["per_instance_loss", "per_instance_losses"]

_SHOWN = (Laplace, Geometric, Gaussian)


def per_instance_loss(
    mechanism: Additive, answer: Number, other: Number, *, delta: float = 0.0
) -> Secret[float]:
    """The least ε at this δ for two data sets with these exact answers: 0 if they are the same.

    **Guarantee.** Rounded up, for the answers as they are on the mechanism's grid; the result is a
    `Secret`. For Laplace noise at δ = 0 it is |difference| / scale, for Gaussian noise it is
    infinite at δ = 0 unless the answers are the same.

    >>> loss = per_instance_loss(Laplace(epsilon=1, sensitivity=100), 1_250, 1_225)
    >>> loss
    <secret: what one record loses>
    >>> round(loss.reveal(because="made-up numbers"), 9)
    0.25
    """
    delta = check.delta(delta=delta)
    _require_additive(mechanism)
    return Secret(_loss(mechanism, answer, other, delta), "what one record loses")


def per_instance_losses(
    mechanism: Additive, query: Callable[[Any], Any], records: Sequence[Any], *, delta: float = 0.0
) -> Secret[Any]:
    """`per_instance_loss` of each record, between these records and the same without it.

    A query that raises, or answers no finite number, counts as if it had answered 0: its error
    could quote a record.

    >>> losses = per_instance_losses(Laplace(epsilon=1, sensitivity=100), sum, [10, 20, 90])
    >>> losses.apply(lambda each: each.max().item() <= 1).reveal(because="made-up numbers")
    True
    """
    delta = check.delta(delta=delta)
    _require_additive(mechanism)
    listed = list(records)
    whole = answer_of(query, listed)
    others = (answer_of(query, listed[:index] + listed[index + 1 :]) for index in range(len(listed)))
    losses = np.array([_loss(mechanism, whole, other, delta) for other in others])
    return Secret(losses, "what each record loses")


def _loss(mechanism: Additive, answer: Any, other: Any, delta: float) -> float:
    distance = abs(int(mechanism.cells_of(answer)) - int(mechanism.cells_of(other)))
    if not distance:
        return 0.0
    if isinstance(mechanism, Laplace):
        return privacy.discrete_laplace(mechanism.distribution.scale, distance).epsilon(delta)
    if not delta:
        return math.inf
    return privacy.gaussian(mechanism.distribution.scale / distance * (1 - 1e-15)).epsilon(delta)


def _require_additive(mechanism: Any) -> None:
    if type(mechanism) not in _SHOWN or mechanism.dimension != 1:
        raise UnsupportedGuarantee(
            "DP203",
            "the loss of one record is computed for Laplace, Geometric and Gaussian noise on one number.",
            why="for other mechanisms no formula for a given pair of data sets was proved here.",
            fix="per_instance_loss(Laplace(epsilon=1, sensitivity=100), answer, answer_without)",
        )

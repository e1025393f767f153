# SPDX-License-Identifier: Apache-2.0
"""A mechanism: data in, a release out; its guarantee is known before it sees any data.

    mechanism.guarantee              # what one protected unit loses at most; never needs data
    mechanism.guarantee_at(distance=3)    # the same for three units at once
    mechanism.error(confidence=0.95)   # the margin of error; never needs data
    release = mechanism(data)          # draws: .value, .guarantee, .error, .interval

Whoever writes a mechanism of their own implements `guarantee`, `draw` and, if it can be said, `error`, and runs
`discreet.mechanisms.check_mechanism` on it.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from discreet import check
from discreet.mechanisms.digits import number_cells
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import least_epsilon, short
from discreet.privacy.unit import Unit

__all__ = ["CONFIDENCE", "Mechanism", "Refusal", "Release"]

CONFIDENCE = 0.95  # of every error and interval that a release carries
NOT_PRIVATE = "NOT PRIVATE: drawn from a repeatable source"


@dataclass(frozen=True)
class Refusal:
    """An answer that was not given. It is an outcome like any other: it was drawn, and it is paid for.

    **Guarantee.** A refusal is drawn under the guarantee of its mechanism. `reason` is one fixed text of the mechanism and does
    not depend on data.

    >>> bool(Refusal("the data seem too close to data on which the bound does not hold"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Release:
    """A released value (or a refusal), with its guarantee and its margin of error.

    `error` is the mechanism's `error` at 95 % confidence; `interval` holds the exact answer with that confidence,
    where the released value is a number or numbers. Neither depends on data other than through `value`. `error_unit`
    says what `error` counts, where that is not the unit of the value: records, for a quantile. `delta` is the δ that the
    mechanism was made for, at which its ε is shown.
    `private` is False for everything drawn inside `discreet.testing.seeded()`.

    **Guarantee.** The value was drawn under `guarantee`; everything else follows from the value and public parameters.

    Why it holds: post-processing. What would break it: to draw again and to publish the better of two releases; see
    `select_best`, which pays for that.

    >>> from discreet.mechanisms import Geometric
    >>> release = Geometric(epsilon=1, sensitivity=1)(42)
    >>> release.refused, release.error, release.interval[0] <= release.value <= release.interval[1]
    (False, 3.0, True)
    """

    value: Any
    guarantee: Guarantee
    error: Any = None
    interval: tuple[Any, Any] | None = None
    receipt: ChargeReceipt | None = None
    private: bool = field(default=True, kw_only=True)
    error_unit: str = field(default="", kw_only=True)
    delta: float | None = field(default=None, kw_only=True)

    @property
    def refused(self) -> bool:
        """Whether the mechanism declined to answer."""
        return isinstance(self.value, Refusal)

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        return f"<table>{rows}</table>"

    def _lines(self) -> list[tuple[str, str]]:
        low, high = self.interval or (None, None)
        number, least, most = number_cells(self.value, low, high)
        plain = isinstance(self.value, float | np.floating)
        lines = [("value", number if plain else _short(self.value))]
        if self.interval is not None:
            ends = (least, most) if plain else (_short(low), _short(high))
            lines.append(("interval", f"{ends[0]} to {ends[1]} ({CONFIDENCE:.0%})"))
        elif self.error is not None:
            amount = f"{_short(self.error)} {self.error_unit}".strip()
            lines.append(("error", f"at most {amount} ({CONFIDENCE:.0%})"))
        lines.append(("guarantee", f"{short(self.guarantee)} for {self.guarantee.unit}"))
        lines.append(("epsilon", least_epsilon(self.guarantee, self.delta)))
        if not self.private:
            lines.append(("warning", NOT_PRIVATE))
        return lines


class ChargeReceipt(Protocol):
    """What a ledger hands out for a charge; `discreet.ledger.Receipt` is one."""

    @property
    def number(self) -> int:
        """The row of the ledger."""
        ...

    @property
    def hash(self) -> str:
        """The hash of that row."""
        ...


class Mechanism(ABC):
    """A random map from data to an answer, with a guarantee that holds for all data.

    **Guarantee.** `guarantee_at(distance)` bounds what the answer reveals of any `distance` protected units, for every
    pair of data sets that differ in so many, whatever else an attacker knows. It is a function of the parameters
    alone. Calling the mechanism draws fresh noise every time, and every call costs the whole guarantee.

    What would break it, in a mechanism of your own: noise from elsewhere than `discreet.noise`, an exception that depends on
    the data, or a `guarantee` that no theorem supports. `check_mechanism` looks for what a program can find.

    >>> from discreet.mechanisms import Laplace
    >>> mechanism = Laplace(epsilon=1, sensitivity=1)
    >>> mechanism.guarantee.epsilon(delta=0), mechanism.guarantee_at(distance=3).epsilon(delta=0)
    (1.0, 3.0)
    """

    #: What `error` counts, where that is not the unit of the value; it follows the number: "3.2 records".
    error_unit: str = ""
    #: The δ that it was made for, if one was stated.
    stated_delta: float | None = None

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "__init__" in vars(cls):
            cls.__init__ = check.arguments(cls.__init__)  # type: ignore[method-assign]

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee for one protected unit."""

    @abstractmethod
    def draw(self, data: object) -> object:
        """The random answer, or a Refusal."""

    def guarantee_at(self, distance: int) -> Guarantee:
        """The guarantee for `distance` protected units at once."""
        return self.guarantee.at_distance(check.whole(distance=distance))

    def error(self, confidence: float = CONFIDENCE) -> object:
        """How far the answer is from the exact one, at most, with this confidence; None where saying it would leak."""
        check.inner_probability(confidence=confidence)
        return None

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any] | None:
        """Where the exact answer lies with this confidence, given the released value; None if not a number."""
        return None

    def then(
        self, function: Callable[[Any], Any], *, error: Callable[[float], Any] | None = None
    ) -> Mechanism:
        """The mechanism that releases `function(value)` instead, at the same price; see `combine.then`."""
        from discreet.mechanisms.combine import then

        return then(self, function, error=error)

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.guarantee.unit

    def __call__(self, data: object) -> Release:
        sized = self.for_size_of(data)
        return sized.release_of(sized.draw(data), data)

    def for_size_of(self, data: object) -> Self:
        """The mechanism that is run on data of this public length and declared type; refuses what it can never be run on.

        A session asks for it before it charges, so that a vector of the wrong length costs nothing.
        """
        return self

    def _error_at_size(self, data: object) -> object:
        """The `error` of a release on these data, of which nothing but the public length may enter: it is not paid for."""
        return self.error()

    def release_of(self, value: object, data: object, *, receipt: ChargeReceipt | None = None) -> Release:
        """The release of a value that was drawn on `data`, with all that is known of it. Nothing else builds a release."""
        refused = isinstance(value, Refusal)
        return Release(
            value,
            self.guarantee,
            error=None if refused else self._error_at_size(data),
            interval=None if refused else self.interval(value),
            receipt=receipt,
            private=is_private(),
            error_unit="" if refused else self.error_unit,
            delta=self.stated_delta,
        )


def _short(value: Any) -> str:
    if isinstance(value, Refusal):
        return f"refused: {value.reason}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, threshold=8)
    return str(value)

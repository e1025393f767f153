# SPDX-License-Identifier: Apache-2.0
"""A mechanism: data in, a release out; its guarantee is known before it sees any data.

    mechanism.guarantee                  # what one protected unit loses at most; needs no data
    mechanism.guarantee_at(distance=3)   # the same for three units at once
    mechanism.error(confidence=0.95)     # the margin of error; needs no data
    release = mechanism(data)            # draws: .value, .guarantee, .error, .interval

A mechanism of your own implements `guarantee`, `draw` and, if the margin of error is public,
`error`. Run `discreet.mechanisms.check_mechanism` on it.
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
from discreet.mechanisms.expression import CallRepr
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import least_epsilon, short
from discreet.privacy.unit import Unit

__all__ = ["CONFIDENCE", "Mechanism", "Refusal", "Release"]

CONFIDENCE = 0.95  # of every error and interval that a release carries
NOT_PRIVATE = "NOT PRIVATE: drawn from a repeatable source"
#: The fix where a proof covers records that are added or removed, but not one that is replaced.
REPLACE_AS_TWO_CHANGES = (
    "leave out relation=, with epsilon / 2 and delta / (1 + exp(epsilon / 2)):"
    " a replacement is one removal and one addition"
)


@dataclass(frozen=True)
class Refusal:
    """An answer that the mechanism declined to give. It is drawn and charged like any other answer.

    **Guarantee.** A refusal has the guarantee of its mechanism. `reason` is a fixed text of the
    mechanism and does not depend on data.

    >>> bool(Refusal("the data seem too close to data on which the bound does not hold"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Release:
    """A released value (or a refusal), with its guarantee and its margin of error.

    - `error`: the margin of error at 95 % confidence.
    - `interval`: a confidence interval for the exact answer, if the value is a number or numbers.
    - `error_unit`: what `error` counts, if that is not the unit of the value. A quantile counts
      records.
    - `delta`: the δ at which ε is shown; it is the one that the mechanism was made for.
    - `private`: False for noise drawn inside `discreet.testing.seeded()`.

    **Guarantee.** The value was drawn under `guarantee`. Everything else is a function of the value
    and of public parameters.

    Why it holds: post-processing. What would break it: a second draw, if the better of the two is
    published. `select_best` pays for that.

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
        value_text, low_text, high_text = number_cells(self.value, low, high)
        is_float = isinstance(self.value, float | np.floating)
        lines = [("value", value_text if is_float else _short(self.value))]
        if self.interval is not None:
            ends = (low_text, high_text) if is_float else (_short(low), _short(high))
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
    """The receipt that a ledger gives for a charge, such as `discreet.ledger.Receipt`."""

    @property
    def number(self) -> int:
        """The row of the ledger."""
        ...

    @property
    def hash(self) -> str:
        """The hash of that row."""
        ...


class Mechanism(CallRepr, ABC):
    """A random map from data to an answer, with a guarantee that holds for all data.

    **Guarantee.** `guarantee_at(distance)` bounds what the answer reveals about `distance`
    protected units, for every pair of data sets that differ in that many units, whatever else an
    attacker knows. It depends on the parameters alone. Each call draws fresh noise and costs the
    whole guarantee.

    What would break it, in a mechanism of your own: noise that does not come from `discreet.noise`,
    an exception that depends on the data, or a `guarantee` without a theorem. `check_mechanism`
    finds what a program can find.

    >>> from discreet.mechanisms import Laplace
    >>> mechanism = Laplace(epsilon=1, sensitivity=1)
    >>> mechanism.guarantee.epsilon(delta=0), mechanism.guarantee_at(distance=3).epsilon(delta=0)
    (1.0, 3.0)
    """

    #: What `error` counts, if that is not the unit of the value: "3.2 records".
    error_unit: str = ""
    #: The δ that it was made for, if one was stated.
    stated_delta: float | None = None

    def __init_subclass__(cls, **named: Any) -> None:
        if "__init__" in vars(cls):
            cls.__init__ = check.arguments(cls.__init__)  # type: ignore[method-assign]
        super().__init_subclass__(**named)

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
        """The margin of error at this confidence; None if it depends on data."""
        check.inner_probability(confidence=confidence)
        return None

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any] | None:
        """A confidence interval for the exact answer, given the released value; None if there is
        none.
        """
        return None

    def then(
        self, function: Callable[[Any], Any], *, error: Callable[[float], Any] | None = None
    ) -> Mechanism:
        """The mechanism that releases `function(value)`, at the same cost; see `combine.then`."""
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
        """This mechanism for data of this public length and declared type; other data are refused.

        A session asks for it before it charges, so a vector of the wrong length costs nothing.
        """
        return self

    def _error_at_size(self, data: object) -> object:
        """The `error` of a release on these data; it may depend on their public length alone."""
        return self.error()

    def release_of(self, value: object, data: object, *, receipt: ChargeReceipt | None = None) -> Release:
        """The release of a value drawn on `data`. Every release is built here."""
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

# SPDX-License-Identifier: Apache-2.0
"""What remains of a limit, for people: totals by track, the fractions spent and remaining, and what
still fits.

Nothing here is a privacy claim about a moment in mid-course; the claim is the limit's own (see
`Limit.describe`).
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial

from discreet import check
from discreet.errors import BadParameter, DiscreetError
from discreet.exact import bisect
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.costs import Amount, read_amount
from discreet.privacy.constructors import concentrated, gaussian, pure
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, compose
from discreet.privacy.primitives import LeakyGuarantee
from discreet.privacy.wire import from_json, read_list, read_text, read_texts, read_versioned, write_versioned

#: The words of `Budget.remaining`.
_WORDS = ("epsilon", "rho", "delta")
#: Between these amounts the most that fits is searched.
_LEAST, _MOST = 2.0**-40, 2.0**20
#: Halvings that leave less than 1e-5 of an interval.
_HALVINGS = 17


@dataclass(frozen=True)
class TrackBudget:
    """One running total: its name in words, its budget (`math.inf`: none), and what was spent of
    it.
    """

    name: str
    total: Amount
    spent: Amount

    @property
    def remaining(self) -> Amount:
        """What is left; nothing, once it is overdrawn."""
        if self.total == math.inf:
            return math.inf
        return self.total - self.spent if self.spent <= self.total else Fraction(0)

    @property
    def spent_fraction(self) -> float:
        """How much of it is spent, from 0 to 1."""
        if self.total == 0 or self.spent >= self.total:
            return 0.0 if self.spent == 0 else 1.0
        return float(self.spent / self.total) if self.total < math.inf else 0.0

    @property
    def is_open(self) -> bool:
        """Whether something can still be counted here: not once it is overdrawn, or has no end."""
        return self.spent <= self.total and self.spent < math.inf

    @property
    def track(self) -> str:
        """The way of counting that it is, whatever its order: "pure track", "Rényi track"."""
        return self.name.split(" of order")[0].removesuffix(" (ε)").replace("lane", "track")

    def __str__(self) -> str:
        if self.spent > self.total:
            return f"{self.name}: closed"
        if self.total == math.inf:
            return f"{self.name}: {_number(self.spent)} spent"
        return f"{self.name}: {_number(self.remaining)} of {_number(self.total)} remaining"


@dataclass(frozen=True)
class Budget:
    """What remains of a limit (and of the allocations, window and lifetime that apply).

    `spent_fraction` is 0 for an untouched limit and 1 where nothing fits any more;
    `remaining_fraction` is the rest of 1. `remaining` is the most that one more question may cost,
    as it is asked. `like(guarantee)` counts how many more such answers would be admitted, one after
    another, if nothing else is charged. `last` is the guarantee of the last answer that was
    charged, where a ledger knows one; `fits` says how many more like it there is room for.

    >>> from discreet import privacy
    >>> from discreet.ledger import Limit
    >>> limit = Limit.filter(epsilon=1)
    >>> budget = limit.budget(limit.admit(limit.start(), limit.cost(privacy.pure(0.2))))
    >>> budget.spent_fraction, budget.remaining_fraction, budget.remaining["epsilon"]
    (0.2, 0.8, 0.8)
    """

    tracks: tuple[TrackBudget, ...]
    spent_fraction: float
    count: Callable[[Guarantee], float] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    last: Guarantee | None = field(default=None, repr=False, compare=False)
    #: `remaining` and `fits` of a budget that was read from JSON.
    stated: tuple[dict[str, float], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)

    @property
    def remaining_fraction(self) -> float:
        """How much is not spent yet, from 0 to 1."""
        return 1 - self.spent_fraction

    @property
    def remaining(self) -> dict[str, float]:
        """The most that the next question may cost, in the words in which it is asked.

        `epsilon` of a question without δ; `rho`, where the limit counts in ρ or μ; `delta`, of what
        may fail with that probability. Each alone, to four digits and rounded down, so that it
        fits; `math.inf` where there is no limit, and no word for what the limit does not take.
        Empty where a limit has allocations and nobody is named.
        """
        if self.stated is not None:
            return dict(self.stated[0])
        converted = any("Rényi" in track.name for track in self.tracks)
        words: dict[str, Callable[[float], Guarantee]]
        words = {"epsilon": pure} if converted else {"epsilon": pure, "rho": _of_rho}
        amounts = {}
        for word, costs in words.items():
            with suppress(DiscreetError):
                amounts[word] = self._most(costs)
        accounts = [track.remaining for track in self.tracks if track.name.endswith("δ")]
        return amounts | ({"delta": _down(float(min(accounts)))} if amounts and accounts else {})

    def _most(self, costs: Callable[[float], Guarantee]) -> float:
        """The greatest amount of which one answer is admitted."""
        amount = _MOST
        if self.count(costs(amount)) >= 1:
            return math.inf
        while amount > _LEAST and self.count(costs(amount)) < 1:
            amount /= 2
        if amount <= _LEAST:
            return 0.0
        low, high = bisect(
            lambda each: self.count(costs(each)) >= 1, yes=amount, no=2 * amount, steps=_HALVINGS
        )
        nearest = float(f"{high:.4g}")  # an ε of 0.3 leaves 0.7 of 1, and not 0.6999
        return nearest if self.count(costs(nearest)) >= 1 else _down(low)

    def like(self, guarantee: Guarantee) -> float:
        """How many more of these fit; a whole number, or `math.inf` where there is no limit."""
        return self.count(guarantee)

    @property
    def fits(self) -> tuple[str, ...]:
        """How many more answers like the last one fit, with the keys that it had to find and
        without.
        """
        if self.stated is not None:
            return self.stated[1]
        if self.last is None:
            return ()
        try:
            more, quiet = _many(self.like(self.last)), without_key_selection(self.last)
            if quiet is None:
                return (f"{more} like the last one fit",)
            declared = f"{_many(self.like(quiet))} like the last one fit, with declared keys (no δ)"
        except DiscreetError:  # A limit with allocations cannot be asked for all of them together.
            return ()
        return f"{more} like the last one fit, with keys found by key selection", declared

    def to_json(self) -> str:
        """One line of JSON with everything that this budget shows; amounts are exact.

        >>> from discreet.ledger import Limit
        >>> limit = Limit.filter(epsilon=1)
        >>> budget = limit.budget(limit.start())
        >>> Budget.from_json(budget.to_json()) == budget
        True
        """
        tracks: list[JsonObject] = [
            {"name": track.name, "total": str(track.total), "spent": str(track.spent)}
            for track in self.tracks
        ]
        fields: JsonObject = {
            "tracks": tracks,
            "spent_fraction": self.spent_fraction,
            "remaining": {word: repr(amount) for word, amount in self.remaining.items()},
            "notes": list(self.notes),
            "last": None if self.last is None else self.last.to_json(),
            "fits": list(self.fits),
        }
        return write_versioned("budget", fields)

    @classmethod
    @check.arguments
    def from_json(cls, text: str, count: Callable[[Guarantee], float] | None = None) -> Budget:
        """The budget that `to_json` wrote; any other text is refused (DP401, DP402).

        `count` answers `like` where the ledger is, for example over a network. Without it `like` is
        refused (DP107), and everything else is as it was written.
        """
        return read_versioned(text, "budget", partial(_budget_of, count=count or _refuse_count))

    def __str__(self) -> str:
        return "\n".join([self.headline, *map(str, self.tracks), *self.notes, *self.fits])

    @property
    def headline(self) -> str:
        """What is spent and what remains, rounded to the careful side."""
        endless = any(track.total == math.inf for track in self.tracks)
        scope = " of δ, the rest has no limit" if endless else ""
        spent = percent(self.spent_fraction, ROUND_CEILING)
        return f"{spent} spent, {percent(self.remaining_fraction, ROUND_FLOOR)} remaining{scope}"

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(line)}</li>" for line in str(self).splitlines()[1:])
        return f"<p><b>{html.escape(self.headline)}</b></p><ul>{items}</ul>"


def _budget_of(fields: JsonFacts, count: Callable[[Guarantee], float]) -> Budget:
    tracks = tuple(
        TrackBudget(read_text(track["name"]), read_amount(track["total"]), read_amount(track["spent"]))
        for track in read_list(fields["tracks"])
    )
    spent = float(fields["spent_fraction"])
    amounts = dict(fields["remaining"].items())
    remaining = {word: float(amounts.pop(word)) for word in _WORDS if word in amounts}
    if not 0 <= spent <= 1 or amounts or not all(map(_is_amount, remaining.values())):
        raise ValueError("an amount")
    notes, fits = read_texts(fields["notes"]), read_texts(fields["fits"])
    last = None if fields["last"] is None else from_json(fields["last"])
    return Budget(tracks, spent, count, notes, last, (remaining, fits))


def _is_amount(amount: float) -> bool:
    # NaN is no amount.
    return amount >= 0


def _refuse_count(_: Guarantee) -> float:
    raise BadParameter(
        "DP107",
        "this budget was read from JSON, which does not say how many more answers fit.",
        why="that follows from the exact totals of the ledger and its limit.",
        fix="budget = session.budget()   where the ledger is",
    )


def percent(fraction: float, rounding: str) -> str:
    """A fraction as a percentage with one decimal: something spent is never 0 %, something that
    remains never 100 %.

    >>> percent(0.0004, ROUND_CEILING), percent(0.9996, ROUND_FLOOR), percent(0.2, ROUND_CEILING)
    ('0.1 %', '99.9 %', '20 %')
    """
    plain = Decimal(f"{100 * fraction:.9f}")  # so that the nudge of a float does not become a digit
    return f"{float(plain.quantize(Decimal('0.1'), rounding=rounding)):g} %"


def closed_tracks(before: Budget, after: Budget) -> tuple[str, ...]:
    """The ways of counting that were open before some charges and are not after them, by name."""
    still = {track.track for track in after.tracks if track.is_open}
    return tuple(track.track for track in before.tracks if track.is_open and track.track not in still)


def closing_notes(before: Budget, after: Budget) -> tuple[str, ...]:
    """What charges take from everybody who shares a limit, beyond what they cost: a track that is
    closed stays closed.
    """
    return tuple(f"{_closing(name)}{_fewer(name, before, after)}" for name in closed_tracks(before, after))


def _closing(name: str) -> str:
    return f"This closes the {name} of the budget, for good and for everybody who shares it"


def _fewer(name: str, before: Budget, after: Budget) -> str:
    """How many answers of the kind that the track is good for fit before and after; nothing where
    nobody may ask.
    """
    (total, *_) = [track.total for track in before.tracks if track.track == name]
    if not 0 < total < math.inf:
        return "."
    tenth = float(f"{float(total) / 10:.1g}")
    kind = pure(tenth) if "pure" in name else concentrated(tenth / 10)
    words = f"ε = {tenth:g}" if "pure" in name else f"ρ = {tenth / 10:g}"
    try:
        had, has = (budget.like(kind) for budget in (before, after))
    except DiscreetError:  # A limit with allocations cannot be asked for all of them together.
        return "."
    return f": before it {_number(had)} answers at {words} fit, after it {_number(has)}."


def without_key_selection(guarantee: Guarantee) -> Guarantee | None:
    """The same without the δ that finding keys takes; None if it takes none, or is nothing else."""
    parts = guarantee.parts if isinstance(guarantee, ComposedGuarantee) else ((guarantee, 1),)
    quiet = [(part, count) for part, count in parts if not isinstance(part, LeakyGuarantee)]
    return compose(quiet) if 0 < len(quiet) < len(parts) else None


def _many(count: float) -> str:
    if count == math.inf:
        return "any number of answers"
    return f"{int(count):,} more answer{'' if count == 1 else 's'}"


def _of_rho(rho: float) -> Guarantee:
    return gaussian(noise=1 / math.sqrt(2 * rho))


def _down(amount: float) -> float:
    return float(Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(repr(amount))))


def _number(amount: Amount) -> str:
    return f"{float(amount):.6g}"

# SPDX-License-Identifier: Apache-2.0
"""The totals of a ledger, charge by charge, fast enough for a hundred thousand of them.

**Guarantee.** If `follow` returns true, the limit admits the charge in `state`, the amounts after
it are written exactly as they were stated, and `state` is what follows. If it returns false nothing
has changed: the caller admits the charge itself and passes on the state that follows.

Why it holds: a `Repetition` says up to which amounts a limit admits a cost again and what it adds.
Up to there a sum of fractions is a sum of whole numbers over a common denominator, which is too
small for totals to be rounded, and the text of a total is that of the reduced fraction. What would
break it: a limit whose `repetition` promises more than its `admit` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from discreet.ledger.asker import Asker
from discreet.ledger.costs import DENOMINATOR_BITS, Amount, Cost, Repetition, State
from discreet.ledger.limit import Limit

#: Charges that are remembered.
_REMEMBERED = 1000
#: Repetitions of a charge from one look at how it is paid to the next, while that is not known.
_PATIENCE = 16


@dataclass(frozen=True, eq=False)
class RepeatableCharge:
    """A cost and who pays it; the same object where charges are to be recognised as the same."""

    cost: Cost
    asker: Asker


class _Step(NamedTuple):
    """A repetition in whole numbers: the addend and the denominator of each name, and the greatest
    totals.
    """

    added: tuple[tuple[str, int, int], ...]
    until: tuple[tuple[str, int], ...]
    ends: datetime | None


class RunningTotals:
    """The running totals under a limit; see the module docstring."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._state: State | None = limit.start()
        self._repetitions: dict[RepeatableCharge, Repetition] = {}
        self._sightings: dict[RepeatableCharge, int] = {}
        # The same totals as whole numbers and as texts, and the repetitions in whole numbers.
        # Totals without an end have a text only.
        self._is_counted = False
        self._numerators: dict[str, int] = {}
        self._denominators: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._steps: dict[RepeatableCharge, _Step] = {}

    @property
    def state(self) -> State:
        """The totals."""
        if self._state is None:
            amounts: dict[str, Amount] = dict.fromkeys(self._texts, math.inf)
            for name, numerator in self._numerators.items():
                amounts[name] = Fraction(numerator, self._denominators[name])
            self._state = State(amounts)
        return self._state

    @state.setter
    def state(self, after: State) -> None:
        before = self.state
        if after is before:
            return
        if after.keys() != before.keys() or any(after[name] < before[name] for name in before):
            self._repetitions.clear()
            self._steps.clear()
        self._state, self._is_counted = after, False

    def follow(self, charge: RepeatableCharge, time: str, stated: Mapping[str, object]) -> bool:
        """Add a charge, if it is paid as it was before and leads to the stated totals."""
        step = self._step(charge)
        if step is None or not (step.ends is None or _is_before(time, step.ends)):
            return False
        numerators = self._numerators
        for name, most in step.until:
            if numerators[name] > most:
                return False
        texts, sums = self._texts.copy(), {}
        for name, addend, denominator in step.added:
            sums[name] = total = numerators[name] + addend
            common = gcd(total, denominator)
            whole = total // common
            texts[name] = str(whole) if common == denominator else f"{whole}/{denominator // common}"
        if texts != stated:
            return False
        numerators.update(sums)
        self._texts, self._state = texts, None
        return True

    def learn(self, charge: RepeatableCharge, time: str) -> None:
        """Find out how a charge is paid again that the limit has just admitted, from its second
        time on.
        """
        if len(self._sightings) > _REMEMBERED:
            self._sightings.clear()
            self._repetitions.clear()
            self._steps.clear()
        sightings = self._sightings[charge] = self._sightings.get(charge, 0) + 1
        if sightings % _PATIENCE != 2:
            return
        self._steps.pop(charge, None)
        repetition = self._limit.repetition(self.state, charge.cost, asker=charge.asker, now=time)
        if repetition is None:
            self._repetitions.pop(charge, None)
        else:
            self._repetitions[charge] = repetition
            # When it ends, the next charge is looked at.
            self._sightings[charge] = 1

    def _step(self, charge: RepeatableCharge) -> _Step | None:
        """How a charge is paid again, in whole numbers over the present denominators."""
        if charge not in self._repetitions:
            return None
        if not self._is_counted:
            self._count({})
        step = self._steps.get(charge)
        if step is None:
            repetition = self._repetitions[charge]
            self._count(repetition.added)
            step = self._whole(repetition)
            if step is None:
                del self._repetitions[charge]
            else:
                self._steps[charge] = step
        return step

    def _count(self, added: Mapping[str, Amount]) -> None:
        """The totals in whole numbers, over denominators that suit these amounts as well."""
        denominators = {}
        for name, amount in self.state.items():
            if isinstance(amount, Fraction):
                more = added.get(name, 0)
                addend = more.denominator if isinstance(more, Fraction) else 1
                denominators[name] = math.lcm(self._denominators.get(name, 1), amount.denominator, addend)
                if denominators[name].bit_length() > DENOMINATOR_BITS:
                    denominators[name] = math.lcm(amount.denominator, addend)
        if denominators != self._denominators:
            self._steps.clear()
        self._denominators = denominators
        self._numerators = {
            name: int(self.state[name] * denominator) for name, denominator in denominators.items()
        }
        self._texts = self.state.to_dict()
        self._is_counted = True

    def _whole(self, repetition: Repetition) -> _Step | None:
        """A repetition in whole numbers; None if amounts without an end or rounded totals come in."""
        added, until = [], []
        for name, amount in repetition.added.items():
            denominator = self._denominators.get(name)
            if denominator is not None and amount:
                if amount == math.inf or denominator.bit_length() > DENOMINATOR_BITS:
                    return None
                added.append((name, int(amount * denominator), denominator))
        for name, amount in repetition.until.items():
            denominator = self._denominators.get(name)
            if denominator is None:
                if amount != math.inf:
                    return None
            elif amount != math.inf:
                until.append((name, math.floor(amount * denominator)))
        return _Step(tuple(added), tuple(until), repetition.ends)


def _is_before(time: str, ends: datetime) -> bool:
    """Whether a time is before another; not if it cannot be read or has no zone."""
    try:
        return datetime.fromisoformat(time) < ends
    except (ValueError, TypeError):
        return False

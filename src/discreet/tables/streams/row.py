# SPDX-License-Identifier: Apache-2.0
"""One row of a stream: the encoded sums of every shown group, plus noise; and a digest of the sums.

**Guarantee.** A row is a function of the kept rows of data up to its period, and of fresh noise.
The digest says nothing to whoever does not have the secret, nor do all digests together.

Why it holds: sums are exact whole numbers (`algebra/sums.py`), the noise is drawn after all of them
are known, and the digest is HMAC-SHA-256 under a random secret of the stream, of the period with
its sums: no two rows have the same input, so equal sums do not show. What would break it: a secret
that is published, with which guesses of the sums can be tested; one secret for two streams.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.sums import ExactSums, GroupKey, sorted_groups
from discreet.tables.answer.frames import plain_value, value_of
from discreet.tables.streams.plan import StreamPlan

__all__ = ["PeriodSums", "StreamRow", "appearances", "digest_of_sums", "draw_row", "sums_by_period"]

#: The sums of each period: of every group that has kept rows in it.
PeriodSums = Sequence[ExactSums]


@dataclass(frozen=True)
class StreamRow:
    """A published row: its period, the groups that appear in it, and one list of noisy numbers for
    each group that is shown, in the order in which they appeared.
    """

    period: int
    appearing: tuple[GroupKey, ...]
    noisy: tuple[tuple[int, ...], ...]
    digest: str

    def to_json(self) -> str:
        """A line of JSON for the ledger."""
        groups = [[plain_value(part) for part in group] for group in self.appearing]
        stored = {
            "period": self.period,
            "groups": groups,
            "rows": [list(numbers) for numbers in self.noisy],
            "digest": self.digest,
        }
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StreamRow:
        """What `to_json` wrote."""
        stored = json.loads(text)
        return cls(
            int(stored["period"]),
            tuple(tuple(value_of(part) for part in group) for group in stored["groups"]),
            tuple(tuple(map(int, numbers)) for numbers in stored["rows"]),
            str(stored["digest"]),
        )


def sums_by_period(plan: StreamPlan, engine: Engine, periods: int) -> list[ExactSums]:
    """The exact sums of the first periods, group by group; nothing of them may be shown."""
    sums: ExactSums = guard_engine(engine.sums, plan.request(periods))
    by_period: list[ExactSums] = [{} for _ in range(periods)]
    for (period, *group), numbers in sums.items():
        by_period[int(period) - 1][tuple(group)] = tuple(map(int, numbers))
    return by_period


def digest_of_sums(period: int, sums: ExactSums, secret: bytes) -> str:
    """A keyed digest of a period and its sums.

    Digests of two periods never tell whether their sums are equal: the period is part of them.
    """
    lines = sorted(
        json.dumps([[_text(part) for part in group], list(numbers)], ensure_ascii=True)
        for group, numbers in sums.items()
        if any(numbers)
    )
    return hmac.new(secret, "\n".join([str(period), *lines]).encode(), hashlib.sha256).hexdigest()


def appearances(plan: StreamPlan, rows: Sequence[StreamRow]) -> dict[GroupKey, int]:
    """The period in which each shown group has appeared, in the order of their numbers in a row."""
    if plan.groups is not None:
        return dict.fromkeys(plan.groups, 0)
    return {group: row.period for row in rows for group in row.appearing}


def draw_row(plan: StreamPlan, before: Mapping[GroupKey, int], sums: PeriodSums, secret: bytes) -> StreamRow:
    """The row of the last of these periods; `before` says which groups have appeared, and when."""
    period = len(sums) - 1
    appearing = _appearing(plan, before, sums[period])
    shown = {**before, **dict.fromkeys(appearing, period)}
    width = len(plan.layout.features)
    noise = np.zeros((len(shown), width), np.int64)
    for place, distribution in enumerate(plan.distributions):
        noise[:, place] = distribution.draw(len(shown))
    noisy = tuple(
        tuple(
            plan.factor.encode(_column(sums, group, place, since)) + int(noise[at, place])
            for place in range(width)
        )
        for at, (group, since) in enumerate(shown.items())
    )
    return StreamRow(period, tuple(appearing), noisy, digest_of_sums(period, sums[period], secret))


def _appearing(plan: StreamPlan, before: Mapping[GroupKey, int], sums: ExactSums) -> list[GroupKey]:
    """The groups that pass the test in this period: of those with rows in it that have not
    appeared.
    """
    if plan.entry is None:
        return []
    tested = sorted_groups(
        group for group, numbers in sums.items() if group not in before and numbers[-1] > 0
    )
    passing = plan.entry.passing([sums[group][-1] for group in tested])
    return [group for group, passes in zip(tested, passing, strict=True) if passes]


def _column(sums: PeriodSums, group: GroupKey, place: int, since: int) -> list[int]:
    """The sums of one coordinate of a group, from the period in which it appeared; the first is of
    all periods until then.
    """
    numbers = [period[group][place] if group in period else 0 for period in sums]
    return [sum(numbers[: since + 1]), *numbers[since + 1 :]]


def _text(part: Any) -> Any:
    return part.isoformat() if isinstance(part, date | datetime) else part

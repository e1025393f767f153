# SPDX-License-Identifier: Apache-2.0
"""What was measured, judged against the certified bracket."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cases import Case

OURS = "discreet"
PLD = "dp-accounting PLD"
_ROUNDING = 1e-6  # relative: a shortfall below this is a root finder's tolerance, not a wrong theorem
_CLOSE = 0.01  # a peer this close to the truth counts as tight


@dataclass(frozen=True)
class Answer:
    """One accountant's answer to one case: a value with its cost, or the reason why there is none."""

    value: float = math.nan
    cold: float = math.nan
    cpu: float = math.nan
    wall: float = math.nan
    megabytes: float = math.nan
    trouble: str = ""

    @property
    def given(self) -> bool:
        return not self.trouble and math.isfinite(self.value)


@dataclass
class Result:
    """All answers to one case."""

    case: Case
    bracket: tuple[float, float] | None = None
    answers: dict[str, Answer] = field(default_factory=dict)

    def verdict(self, answer: Answer) -> str:
        if answer.trouble:
            return answer.trouble
        if not math.isfinite(answer.value):
            return "no finite bound"
        if self.bracket is None:
            return "no certified bracket"
        lower, upper = self.bracket
        if answer.value < lower:
            short = 1 - answer.value / lower
            return f"**UNDER** by {short:.2%}" if short > _ROUNDING else f"low by rounding, {short:.0e}"
        return f"ok, {_loose(answer.value / upper - 1)}"

    def sound(self, answer: Answer) -> bool:
        lower = self.bracket[0] if self.bracket else 0.0
        return answer.given and answer.value >= lower * (1 - _ROUNDING)

    def ours(self) -> Answer | None:
        answer = self.answers.get(OURS)
        return answer if answer and answer.given else None

    def fastest(self, *, tight: bool = False) -> tuple[str, Answer] | None:
        """The peer that gives a sound answer (within 1 % of the truth, if `tight`) in the least CPU time."""
        limit = self.bracket[1] * (1 + _CLOSE) if tight and self.bracket else math.inf
        sound = [
            (name, answer)
            for name, answer in self.answers.items()
            if name != OURS and self.sound(answer) and answer.value <= limit
        ]
        return min(sound, key=lambda pair: pair[1].cpu, default=None)

    def tightest(self) -> tuple[str, Answer] | None:
        sound = [(n, a) for n, a in self.answers.items() if n != OURS and self.sound(a)]
        return min(sound, key=lambda pair: pair[1].value, default=None)


def _loose(excess: float) -> str:
    if abs(excess) < 1e-9:
        return "tight"
    return f"{excess:+.1e}" if abs(excess) < 1e-3 else f"{excess:+.1%}"


def shortcomings(result: Result, slow: float, factor: float) -> list[str]:
    """Where discreet is not what it means to be, in this case."""
    title, ours = result.case.title, result.ours()
    if ours is None:
        trouble = result.answers.get(OURS, Answer(trouble="not asked")).trouble
        return [f"{title}: discreet gives no answer ({trouble})"]
    found = [*_wrong(result, ours), *_looser(result, ours), *_slower(result, ours)]
    reference = result.answers.get(PLD)
    if result.case.trains and reference and reference.given and reference.cpu < factor * ours.cpu:
        found.append(f"only ×{reference.cpu / ours.cpu:.1f} faster than {PLD}")
    if len(result.case.parts) == 1 and ours.cpu > slow:
        found.append(f"takes {ours.cpu:.2f} s")
    return [f"{title}: {reason}" for reason in found]


def _wrong(result: Result, ours: Answer) -> list[str]:
    if result.bracket is None:
        return ["no certified bracket"]
    found = []
    if ours.value < result.bracket[0]:
        found.append(f"the answer {ours.value!r} is below our own lower bound {result.bracket[0]!r}")
    if (known := result.case.known) is not None:
        lower, upper = result.bracket
        if min(upper, ours.value) < known[0] or lower > known[1]:
            found.append(f"[{lower!r}, {upper!r}] contradicts the independent bracket {list(known)}")
    return found


def _looser(result: Result, ours: Answer) -> list[str]:
    tightest = result.tightest()
    if tightest is None or ours.value <= tightest[1].value * (1 + 1e-9):
        return []
    return [f"looser than {tightest[0]} by {ours.value / tightest[1].value - 1:.1e}"]


def _slower(result: Result, ours: Answer) -> list[str]:
    """Slower than the fastest sound peer, however loose, and than the fastest tight one."""
    found = dict(filter(None, (result.fastest(), result.fastest(tight=True))))
    return [
        f"slower than {name} warm, ×{ours.cpu / answer.cpu:.1f}, cold ×{ours.cold / answer.cold:.1f}"
        f" (whose answer is {_loose(answer.value / ours.value - 1)})"
        for name, answer in found.items()
        if ours.cpu > answer.cpu
    ]

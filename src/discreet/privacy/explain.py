# SPDX-License-Identifier: Apache-2.0
"""A guarantee in plain sentences: who is protected, what an attacker can do, and what is not
protected.

**Guarantee.** Every number is an upper bound on what any attacker achieves, read from the whole
trade-off curve (not from one ε) and rounded up in the sentence. It holds for an attacker who knows
everything except the one protected unit.

Three of the numbers are points of the ROC curve D, the greatest detection rate at each false-alarm
rate:

- a guess from even odds is right with probability at most (1 + max(D(α) - α))/2, which is (1 +
  total variation)/2;
- with 1 % false alarms a detection rate of at most D(0.01);
- an event after which an even prior is above 90 % has P > 9·Q, so P is at most where the line of
  slope 9 through the origin leaves the region under D. This holds for whatever is computed from the
  answer, because D does.

Why these sentences: people judge a risk better by counts of possible answers with and without them
than by ε or by examples of noisy output (Nanayakkara, Smart, Cummings, Kaptchuk, Redmiles 2023).
Why not "e^ε times as likely": most answers never come near that, and under Gaussian noise there is
no such factor at all.

A guarantee that protects hardly anybody says so: `cautions` come first.

What would break it: explaining another guarantee than that of the mechanisms that were run.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

from discreet import check
from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.svg import hundred_squares_svg
from discreet.privacy.unit import Unit

__all__ = ["Explanation", "cautions", "explain"]

_ALARM, _PRIOR, _SURE = 0.01, 0.5, 0.9
#: From these shares of right guesses on, a guarantee protects little, or next to nothing.
_LITTLE, _NOTHING = 0.95, 0.999
#: From this δ on it is named, whatever the number of units.
_LARGE_DELTA = 1e-3
#: Smaller chances than one in this many are not told apart.
_MANY = 10**9


@dataclass(frozen=True)
class Explanation:
    """What a guarantee means for one protected unit, as numbers and as sentences.

    `right`: how often a guess from even odds is right; `caught`: the detection rate at 1 % false
    alarms; `sure`: the probability that a posterior from even odds exceeds 90 %; `never_above`: the
    greatest posterior from even odds, 1 if there is no bound. All are probabilities, and upper
    bounds. `failure` is the δ with which the guarantee may fail altogether, `units` the public
    number of protected units, if the caller stated one.

    >>> from discreet import privacy
    >>> told = privacy.gaussian(noise=2.0).explain()
    >>> print(told.sentences[1])
    An attacker who knows everything else and guesses whether the record is in the data is right at most 59.9 times in 100.
    A coin toss is right 50 times in 100.
    """

    unit: Unit
    right: float
    caught: float
    sure: float
    never_above: float
    assumes: tuple[str, ...] = ()
    group_size: int = 1
    failure: float = 0.0
    units: int | None = None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Where this guarantee protects little or nothing; empty if there is no such concern."""
        return cautions(self.right, self.failure, self.unit, self.units)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is protected and what an attacker can do, in four paragraphs."""
        return (_who(self.unit, self.group_size), _guess(self), _odds(self), _certainty(self))

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the guarantee does not cover."""
        return tuple(text.format(unit=self.unit.protects) for text in _limits(self.unit))

    @property
    def conditions(self) -> str:
        """What the guarantee depends on."""
        assumptions = "".join(f"; it assumes: {words}" for words in self.assumes)
        return f"This holds if the mechanisms that ran are the ones described, with parameters fixed in advance{assumptions}."

    def to_dict(self) -> dict[str, Any]:
        """The whole explanation, ready for JSON; probabilities are upper bounds with all their
        digits.
        """
        return {
            "protects": self.unit.protects,
            "relation": self.unit.relation,
            "guess": {"prior": _PRIOR, "right": self.right},
            "odds": {"false_alarm": _ALARM, "detection": self.caught},
            "certainty": {
                "prior": _PRIOR,
                "above": _SURE,
                "chance": self.sure,
                "never_above": self.never_above,
            },
            "cautions": list(self.cautions),
            "sentences": list(self.sentences),
            "not_protected": list(self.not_protected),
            "conditions": self.conditions,
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)

    def __str__(self) -> str:
        limits = "\n".join(f"- {text}" for text in self.not_protected)
        warned = [f"Caution: {text}" for text in self.cautions]
        return "\n".join([*warned, *self.sentences, self.conditions, "", "Not protected:", limits])

    def _repr_html_(self) -> str:
        warned = "".join(f"<p><strong>Caution:</strong> {escape(text)}</p>" for text in self.cautions)
        paragraphs = warned + "".join(f"<p>{escape(text)}</p>" for text in [*self.sentences, self.conditions])
        limits = "".join(f"<li>{escape(text)}</li>" for text in self.not_protected)
        counted = math.ceil(100 * Fraction(self.right))
        words = f"At most {counted} of 100 guesses are right. A coin toss gets 50 right, above the line."
        return (
            "<div style='display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap;max-width:60em'>"
            f"<div>{hundred_squares_svg(counted, words)}</div><div style='flex:1;min-width:20em'>{paragraphs}"
            f"<p>What is not protected:</p><ul>{limits}</ul></div></div>"
        )


def explain(guarantee: Guarantee, units: int | None = None) -> Explanation:
    """See `Guarantee.explain`."""
    return Explanation(
        unit=guarantee.unit,
        right=_up((1 + guarantee.advantage()) / 2),
        caught=_up(1 - guarantee.tradeoff(_ALARM)),
        sure=_chance_of_certainty(guarantee),
        never_above=guarantee.posterior(_PRIOR),
        assumes=tuple(sorted(guarantee.assumes)),
        group_size=guarantee.group_size,
        failure=max(0.0, *(bag.failure for bag in alternatives(guarantee))),
        units=None if units is None else check.whole(units=units),
    )


def cautions(right: float, delta: float, unit: Unit, units: int | None = None) -> tuple[str, ...]:
    """The concerns about a guarantee with this δ, under which a guess from even odds is right with
    probability `right`.

    **Guarantee.** Nothing here is read off data: `units`, the number of protected units, is public
    or not given.

    >>> cautions(0.6, 1e-6, Unit("patient"), units=100)
    ()
    >>> print(*cautions(1.0, 0.0, Unit("patient")))
    This is next to no protection: an attacker may be right about one patient 100 times in 100.
    """
    name, concerns = unit.protects, []
    if right >= _LITTLE:
        much = "next to no" if right >= _NOTHING else "little"
        counted = _of_hundred(right)
        concerns.append(
            f"This is {much} protection: an attacker may be right about one {name} {counted} times in 100."
        )
    if delta >= _LARGE_DELTA:
        concerns.append(
            f"δ = {delta:.6g} is large: with up to this probability a {name} has no protection at all."
        )
    if units is not None and delta * units >= 1:
        concerns.append(
            f"δ = {delta:.6g} is not below 1/{units:,}, and the data have {units:,} {name}s: publishing everything about "
            f"one or more {name}s picked at random would satisfy this guarantee."
        )
    return tuple(concerns)


def _chance_of_certainty(guarantee: Guarantee) -> float:
    """Where the line of slope 9 leaves the ROC region: by the profile, and by the points of the
    curve beyond the line.

    D is concave, so if D(α) ≤ 9α at some α > 0 then the two meet before, and no higher than D(α).
    """
    slope = _SURE / (1 - _SURE) * (1 - 1e-15)
    curve = guarantee.roc(401)
    beyond = curve.detection[(curve.false_alarm > 0) & (curve.detection <= slope * curve.false_alarm)]
    return min(1.0, guarantee.posterior_exceeds(_SURE, _PRIOR), *map(float, beyond[:1]))


def _up(share: float) -> float:
    return min(1.0, math.nextafter(share, math.inf))


def _who(unit: Unit, group_size: int) -> str:
    name, many = unit.protects, f"{group_size:,} {unit.protects}s"
    if unit.relation == "replace":
        what = f"two possible values of one {name}" if group_size == 1 else f"two possible values of {many}"
    elif unit.relation == "zero-out":
        what = (
            f"the data with one {name} and the same data with a blank in its place"
            if group_size == 1
            else f"the data with {many} and the same data with blanks in their place"
        )
    else:
        what = (
            f"the data with one {name} and the same data without that {name}"
            if group_size == 1
            else f"the data with {many} and the same data without them"
        )
    whom = f"each {name}" if group_size == 1 else f"every {many} at once"
    return f"This guarantee protects {whom}. The numbers below compare {what}."


def _guess(explanation: Explanation) -> str:
    name, are, have = _unit_words(explanation)
    question = (
        f"whether the {name} {are} in the data"
        if explanation.unit.relation != "replace"
        else f"which of two values the {name} {have}"
    )
    return (
        f"An attacker who knows everything else and guesses {question} is right at most "
        f"{_of_hundred(explanation.right)} times in 100. A coin toss is right 50 times in 100."
    )


def _unit_words(explanation: Explanation) -> tuple[str, str, str]:
    name = explanation.unit.protects
    return (name, "is", "has") if explanation.group_size == 1 else (f"{name}s", "are", "have")


def _odds(explanation: Explanation) -> str:
    (name, are, _), detected = _unit_words(explanation), _of_hundred(explanation.caught)
    if explanation.unit.relation != "replace":
        return (
            f"If the attacker wrongly says that the {name} {are} in the data for 1 of 100 answers without the {name}, the "
            f"attacker rightly says so for at most {detected} of 100 answers with the {name}."
        )
    return (
        f"If the attacker mistakes the first value of the {name} for the second in 1 of 100 answers, the attacker "
        f"recognises the second value in at most {detected} of 100 answers."
    )


def _certainty(explanation: Explanation) -> str:
    start = "An attacker who starts undecided, at odds of 1 to 1,"
    limit = f"more than {_of_hundred(explanation.never_above)} % sure, odds of {_odds_of(explanation.never_above)} to 1"
    if explanation.sure == 0:
        return f"{start} is never {limit}."
    chance = f"{start} becomes more than 90 % sure of the truth, odds of 9 to 1, with a probability of at most {_chance(explanation.sure)}"
    return f"{chance}, and is never {limit}." if explanation.never_above < 0.9995 else f"{chance}."


def _limits(unit: Unit) -> tuple[str, ...]:
    size = (
        ("Participation: the number of {unit}s counts as public.",) if unit.relation != "add-remove" else ()
    )
    return (
        "Facts about groups: what the data say about a group also says something about its members, in the data or not.",
        "More than one {unit}: a family, or somebody who appears as several {unit}s, has the weaker guarantee of guarantee.group(k).",
        *size,
        "Other sources: the same fact published elsewhere, or answers that are not counted here.",
        "The system around the answers: stolen data, logs, running times, and mistakes in code outside the mechanisms.",
        "Consequences: a decision based on the answers may harm people, whether or not they are in the data.",
    )


def _of_hundred(share: float) -> str:
    """A share as a count out of 100, rounded up to one decimal.

    >>> _of_hundred(0.59871), _of_hundred(0.5), _of_hundred(1.0)
    ('59.9', '50', '100')
    """
    return f"{math.ceil(1000 * Fraction(share)) / 10:g}"


def _odds_of(probability: float) -> str:
    """Odds to one, rounded up."""
    exact = Fraction(probability)
    return f"{math.ceil(10 * exact / (1 - exact)) / 10:,g}" if exact < 1 else "∞"


def _chance(share: float) -> str:
    """A probability in words, rounded up: out of 100 if it is that likely, else one in so many.

    >>> _chance(0.0123), _chance(4.307e-5), _chance(1e-300)
    ('1.3 in 100', '1 in 23,000', '1 in 1,000,000,000')
    """
    if share >= 0.01:
        return f"{_of_hundred(share)} in 100"
    many = min(_MANY, math.floor(1 / Fraction(share)))
    unit = 10 ** max(0, len(str(many)) - 2)
    return f"1 in {many // unit * unit:,}"

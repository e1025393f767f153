# SPDX-License-Identifier: Apache-2.0
"""From what was asked for, (ε, δ), ρ or μ, to a filter with its constants; see `filters` for what each kind proves."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly, float_below
from discreet.ledger import pinned
from discreet.ledger.candidates import Candidates, expecting
from discreet.ledger.embed import Lane
from discreet.ledger.filters import Filter
from discreet.ledger.lanes import GRID, floor
from discreet.privacy import constructors as make
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee

KINDS = ("lanes", "basic", "pure", "zcdp", "gdp")
#: The share of δ that pays for mechanisms which may fail, and what it was in earlier releases.
LEAK = Fraction(3, 4)
FORMER_LEAK = Fraction(1, 10)
#: The shares among which the first charge chooses, the usual one first.
SPLITS = (LEAK, Fraction(1, 2), Fraction(9, 10))
#: The ε that a limit with δ may have.
_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**9)


def single(
    *,
    epsilon: Any,
    delta: Any,
    rho: Any,
    mu: Any,
    kind: str | None,
    leaks: Any = None,
    expects: Iterable[Guarantee] | None = None,
) -> Filter | Candidates:
    """The filter that these parameters ask for; candidates, if the first charge is to choose."""
    given = {"epsilon": epsilon, "rho": rho, "mu": mu}
    stated = [name for name, value in given.items() if value is not None]
    if len(stated) != 1:
        raise _contradiction("a filter needs exactly one of epsilon, rho and mu.")
    usual = {"rho": "zcdp", "mu": "gdp", "epsilon": "lanes" if delta else "pure"}[stated[0]]
    named = check.choice(KINDS, kind=usual if kind is None else kind)
    allowed = {"rho": ("zcdp",), "mu": ("gdp",), "epsilon": ("pure",) if delta is None else KINDS}[stated[0]]
    if named not in allowed:
        raise _contradiction(
            f"a filter of kind {named!r} is not given by {stated[0]}{'' if delta else ' alone'}."
        )
    (total,) = [exact_positive(**{name: given[name]}) for name in stated]
    chance = Fraction(0) if delta is None else _exact_delta(delta)
    share = _split(leaks, expects, kind, is_split=stated == ["epsilon"] and bool(chance))
    if stated == ["rho"]:
        return Filter("zcdp", None, chance, chance, (Lane("rho", total),))
    if stated == ["mu"]:
        if chance:
            raise _contradiction("a Gaussian filter has no δ of its own.")
        return Filter("gdp", None, chance, chance, (Lane("mu2", total * total),))
    if kind is None and share is None and chance:
        candidates = _candidates(total, chance)
        return candidates if expects is None else expecting(candidates, expects)
    return _of_epsilon(named, total, chance, LEAK if share is None else share)


def _split(leaks: Any, expects: Any, kind: str | None, *, is_split: bool) -> Fraction | None:
    """The share of δ that was stated for mechanisms that may fail; None if none was."""
    if leaks is not None and not (is_split and expects is None and kind in (None, "lanes", "zcdp")):
        raise _contradiction(
            "leaks= splits the δ of a filter of lanes, or of a concentrated one, and nothing else."
        )
    if expects is not None and not (is_split and kind is None):
        raise _contradiction("expects= chooses how the δ of an (ε, δ) filter is split, and nothing else.")
    return None if leaks is None else exactly(check.inner_probability(leaks=leaks))


def _candidates(epsilon: Fraction, delta: Fraction) -> Candidates:
    """Those whose totals have names of their own; at the far ends of what a limit may be two orders can be the same."""
    listed = [*(_of_epsilon("lanes", epsilon, delta, share) for share in SPLITS)]
    listed.append(_of_epsilon("basic", epsilon, delta, Fraction(1)))
    return Candidates(tuple({frozenset(one.start()): one for one in reversed(listed)}.values())[::-1])


def _of_epsilon(kind: str, epsilon: Fraction, delta: Fraction, share: Fraction) -> Filter:
    """What (ε, δ) leaves room for, if that share of δ is for mechanisms that may fail."""
    if kind == "pure" or not delta:
        if delta or kind in ("basic", "zcdp", "gdp"):
            raise _contradiction(
                f"a filter of kind {kind!r} cannot promise ε = {epsilon} with δ = {float(delta):g}."
            )
        return Filter("pure", epsilon, Fraction(0), Fraction(0), (Lane("epsilon", epsilon),))
    if kind == "basic":
        return Filter("basic", epsilon, delta, delta, (Lane("epsilon", epsilon),))
    if not _LEAST <= epsilon <= _MOST:
        raise BadParameter(
            "DP102",
            f"epsilon of a limit with δ must lie between {float(_LEAST):g} and {float(_MOST):g}, not {float(epsilon):g}.",
            why="beyond that no Rényi order has a budget that fifty digits can prove.",
            fix="Limit.filter(epsilon=1, delta=1e-6), or leave delta out",
        )
    if kind == "gdp":
        return Filter("gdp", epsilon, delta, Fraction(0), (Lane("mu2", _squared_mu(epsilon, delta)),))
    leak = share * delta
    rest = (delta - leak) / (1 - leak)
    order = pinned.best_order(epsilon, rest)
    budget = pinned.budget(epsilon, rest, order)
    if kind == "zcdp":
        rho = floor(budget / Fraction(order), GRID)
        return Filter("zcdp", epsilon, delta, leak, (Lane("rho", rho),))
    return Filter("lanes", epsilon, delta, leak, (Lane("epsilon", epsilon), Lane("renyi", budget, order)))


def former_split(limit: Filter) -> Filter | None:
    """The filter that earlier releases made of the same call, a tenth of δ for mechanisms that may fail."""
    if limit.epsilon is None or limit.sort not in ("lanes", "renyi", "zcdp"):
        return None
    kind = "zcdp" if limit.sort == "zcdp" else "lanes"
    former = _of_epsilon(kind, limit.epsilon, limit.delta, FORMER_LEAK)
    return without_pure_lane(former) if limit.sort == "renyi" else former


def without_pure_lane(limit: Filter) -> Filter:
    """The same with the Rényi lane alone: then what several people spend in it adds up."""
    lanes = tuple(lane for lane in limit.lanes if lane.kind != "epsilon")
    return Filter("renyi", limit.epsilon, limit.delta, limit.leak, lanes) if limit.sort == "lanes" else limit


def exact_positive(**named: Any) -> Fraction:
    """A parameter above zero, as the ratio or the decimal that was written."""
    check.moderate(**named)
    (value,) = named.values()
    return exactly(value)


def _exact_delta(delta: Any) -> Fraction:
    check.delta(delta=delta)
    return exactly(delta)


@lru_cache(maxsize=64)
def _squared_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """μ² of the least Gaussian noise that is (ε, δ)-private, rounded down."""
    target = make.approximate(float_below(epsilon), float_below(delta))
    # a little more noise than needed, so that the proof survives the roundings of μ² back to a noise
    noise = Fraction(calibrate(make.gaussian, to=target)) * (1 + Fraction(1, 1 << 40))
    return floor(1 / noise**2, GRID)


def _contradiction(what: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="each kind of filter has its own theorem, and proves its own kind of promise.",
        fix="Limit.filter(epsilon=1, delta=1e-6), Limit.filter(epsilon=1), Limit.filter(rho=0.5) or Limit.filter(mu=1)",
    )

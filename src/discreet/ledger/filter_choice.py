# SPDX-License-Identifier: Apache-2.0
"""From the parameters of `Limit.filter`, (ε, δ), ρ or μ, to a filter with its constants; `filters`
says what each proves.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly, float_below
from discreet.ledger import pinned
from discreet.ledger.candidates import Candidates, choose_expected
from discreet.ledger.costs import GRID, Number, floor
from discreet.ledger.filters import Filter
from discreet.ledger.pricing import Track
from discreet.privacy import constructors as make
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee

KINDS = ("tracks", "basic", "pure", "zcdp", "gdp")
#: The fraction of δ that pays for mechanisms which may fail, and what it was in earlier releases.
LEAK = Fraction(3, 4)
FORMER_LEAK = Fraction(1, 10)
#: The fractions among which the first charge chooses, the usual one first.
SPLITS = (LEAK, Fraction(1, 2), Fraction(9, 10))
#: The ε that a limit with δ may have.
_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**9)


def make_filter(
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    mu: Number | None,
    kind: str | None,
    leaks: Number | None = None,
    expects: Iterable[Guarantee] | None = None,
) -> Filter | Candidates:
    """The filter that these parameters ask for; candidates, if the first charge is to choose."""
    amounts = {
        name: value for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None
    }
    if len(amounts) != 1:
        raise _contradiction_error("a filter needs exactly one of epsilon, rho and mu.")
    ((measure, amount),) = amounts.items()
    default = {"rho": "zcdp", "mu": "gdp", "epsilon": "tracks" if delta else "pure"}[measure]
    # "lanes" was the word for "tracks", and stands in descriptions that were written with it.
    kind = "tracks" if kind == "lanes" else kind
    chosen = check.choice(KINDS, kind=default if kind is None else kind)
    allowed = {"rho": ("zcdp",), "mu": ("gdp",), "epsilon": ("pure",) if delta is None else KINDS}[measure]
    if chosen not in allowed:
        raise _contradiction_error(
            f"a filter of kind {chosen!r} cannot be made from {measure}{'' if delta else ' alone'}."
        )
    total = exact_positive(measure, amount)
    chance = Fraction(0) if delta is None else _exact_delta(delta)
    fraction = _leak_fraction(leaks, expects, kind, is_split=measure == "epsilon" and bool(chance))
    if measure == "rho":
        return Filter("zcdp", None, chance, chance, (Track("rho", total),))
    if measure == "mu":
        if chance:
            raise _contradiction_error("a Gaussian filter has no δ of its own.")
        return Filter("gdp", None, chance, chance, (Track("mu2", total * total),))
    if kind is None and fraction is None and chance:
        candidates = _candidates(total, chance)
        return candidates if expects is None else choose_expected(candidates, expects)
    return _of_epsilon(chosen, total, chance, LEAK if fraction is None else fraction)


def _leak_fraction(
    leaks: Number | None, expects: Iterable[Guarantee] | None, kind: str | None, *, is_split: bool
) -> Fraction | None:
    """The fraction of δ that was given for mechanisms that may fail; None if none was."""
    if leaks is not None and not (is_split and expects is None and kind in (None, "tracks", "zcdp")):
        raise _contradiction_error(
            "leaks= belongs to a filter of kind 'tracks' or 'zcdp' with a δ, and to no other."
        )
    if expects is not None and not (is_split and kind is None):
        raise _contradiction_error(
            "expects= belongs to an (ε, δ) filter whose kind is not given, and to no other."
        )
    return None if leaks is None else exactly(check.inner_probability(leaks=leaks))


def _candidates(epsilon: Fraction, delta: Fraction) -> Candidates:
    """Those whose totals have names of their own; at the far ends of what a limit may be two orders
    can be the same.
    """
    candidates = [*(_of_epsilon("tracks", epsilon, delta, fraction) for fraction in SPLITS)]
    candidates.append(_of_epsilon("basic", epsilon, delta, Fraction(1)))
    return Candidates(
        tuple({frozenset(candidate.start()): candidate for candidate in reversed(candidates)}.values())[::-1]
    )


def _of_epsilon(kind: str, epsilon: Fraction, delta: Fraction, fraction: Fraction) -> Filter:
    """The filter for (ε, δ), if that fraction of δ is for mechanisms that may fail."""
    if kind == "pure" or not delta:
        if delta or kind in ("basic", "zcdp", "gdp"):
            raise _contradiction_error(
                f"a filter of kind {kind!r} cannot guarantee ε = {epsilon} with δ = {float(delta):g}."
            )
        return Filter("pure", epsilon, Fraction(0), Fraction(0), (Track("epsilon", epsilon),))
    if kind == "basic":
        return Filter("basic", epsilon, delta, delta, (Track("epsilon", epsilon),))
    if not _LEAST <= epsilon <= _MOST:
        raise BadParameter(
            "DP102",
            f"epsilon of a limit with δ must lie between {float(_LEAST):g} and {float(_MOST):g}, not {float(epsilon):g}.",
            why="beyond that no Rényi order has a budget that fifty digits can prove.",
            fix="Limit.filter(epsilon=1, delta=1e-6), or leave delta out",
        )
    if kind == "gdp":
        return Filter("gdp", epsilon, delta, Fraction(0), (Track("mu2", _squared_mu(epsilon, delta)),))
    leak = fraction * delta
    rest = (delta - leak) / (1 - leak)
    order = pinned.best_order(epsilon, rest)
    budget = pinned.budget(epsilon, rest, order)
    if kind == "zcdp":
        rho = floor(budget / Fraction(order), GRID)
        return Filter("zcdp", epsilon, delta, leak, (Track("rho", rho),))
    return Filter("lanes", epsilon, delta, leak, (Track("epsilon", epsilon), Track("renyi", budget, order)))


def former_filter(limit: Filter) -> Filter | None:
    """The filter that earlier releases made of the same call, a tenth of δ for mechanisms that may
    fail.
    """
    if limit.epsilon is None or limit.sort not in ("lanes", "renyi", "zcdp"):
        return None
    kind = "zcdp" if limit.sort == "zcdp" else "tracks"
    former = _of_epsilon(kind, limit.epsilon, limit.delta, FORMER_LEAK)
    return without_pure_track(former) if limit.sort == "renyi" else former


def without_pure_track(limit: Filter) -> Filter:
    """The same filter with the Rényi track alone: then what several people spend in it adds up."""
    tracks = tuple(track for track in limit.tracks if track.kind != "epsilon")
    return Filter("renyi", limit.epsilon, limit.delta, limit.leak, tracks) if limit.sort == "lanes" else limit


def exact_positive(name: str, value: Number) -> Fraction:
    """A parameter above zero, as the ratio or the decimal that was written."""
    check.moderate(**{name: value})
    return exactly(value)


def _exact_delta(delta: Number) -> Fraction:
    check.delta(delta=delta)
    return exactly(delta)


@lru_cache(maxsize=64)
def _squared_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """μ² of the least Gaussian noise that is (ε, δ)-private, rounded down."""
    target = make.approximate(float_below(epsilon), float_below(delta))
    # a little more noise than needed, so that the proof survives the roundings of μ² back to a
    # noise
    noise = Fraction(calibrate(make.gaussian, to=target)) * (1 + Fraction(1, 1 << 40))
    return floor(1 / noise**2, GRID)


def _contradiction_error(what: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="each kind of filter has its own theorem, and proves its own kind of guarantee.",
        fix="Limit.filter(epsilon=1, delta=1e-6), Limit.filter(epsilon=1), Limit.filter(rho=0.5) or Limit.filter(mu=1)",
    )

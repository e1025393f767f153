# SPDX-License-Identifier: Apache-2.0
"""How a budget is divided among the parts of an answer, and with which noise.

    pure ε            every part gets the share of its weight, as a decimal that is rounded down; they add up to ε at most
    ρ, or (ε, δ)      every part gets the share of its weight of one ρ; for (ε, δ) the greatest ρ is searched for which the
                      composition of all parts, with the leak of the selection, is proved to be (ε, δ)

For (ε, δ) both are made, and the one with the smaller errors is kept: at ε = 1 and δ = 1e-6 Laplace noise is a third of
Gaussian noise on one number, and more on forty. Errors that are compared are of the noise and of what a group needs to be
named. Counts and sums, by groups, of units with many rows do not decide: what the weights cut off of them is mostly more
than noise, depends on data, and is never more under Gaussian noise. Where groups are public they keep Gaussian noise
even if the others are better off with Laplace noise: the ε of those comes first, and the greatest ρ is searched for
which both together are (ε, δ).

Equal weights are the best division where each column is measured against how much one row can move it: for variances
Δ²/ε² and weights w, ε ∝ (wΔ²)^{1/3} and ρ ∝ Δ√w are best, and with w = 1/Δ² both are equal (compile.proof.md, § 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import privacy
from discreet.errors import BadParameter
from discreet.mechanisms.distributions import GaussianDistribution, exactly
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.distinct import DistinctRecipe
from discreet.tables.plan.part import Part, Recipe, Scope
from discreet.tables.plan.selection import Selection, counts_units, gaussian_selection, laplace_selection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals, TotalsRecipe

__all__ = ["Ready", "divided"]

Recipes = Callable[[bool], list[Recipe]]
# Of δ for the selection, where Gaussian noise needs the rest: a tenth costs it less than 1 % of its scale, and a limit
# that counts what selections may fail by holds ten such questions for one at all of δ.
_LEAK = 0.1
_ALL = 1 - 1e-9  # where nothing else needs δ; the rest is for rounding
_TOLERANCE = 1e-9
_FEWEST = 0.05  # the least share of finding groups, and of everything else
_NEGLIGIBLE = 1e-9  # an error that is as good as none
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)  # the mean of |z| for a standard normal z


@dataclass(frozen=True)
class Ready:
    """The parts of an answer, each with its noise; `selection` finds the groups where they are not public."""

    parts: tuple[Part, ...]
    selection: Selection | None = None


def divided(recipes: Recipes, scope: Scope, spend: Spend, *, found: bool) -> Ready:
    """All parts at that cost; `found` says whether groups have to be found."""
    if spend.is_pure:
        return _pure(recipes(True), scope, spend, found=False)
    gaussian = _gaussian(recipes(False), scope, spend, found=found)
    if spend.epsilon is None:
        return gaussian
    try:
        other = (
            _pure(recipes(True), scope, spend, found=True) if found else _mixed(recipes(True), scope, spend)
        )
    except BadParameter:  # its noise cannot be drawn
        return gaussian
    return min((gaussian, other or gaussian), key=lambda ready: _badness(ready, scope))


def _pure(asked: Sequence[Recipe], scope: Scope, spend: Spend, *, found: bool) -> Ready:
    assert spend.epsilon is not None
    if not found:
        return Ready(_shared(asked, exactly(spend.epsilon), 0.0)[0])
    assert spend.delta is not None
    who, delta = scope.contribution, spend.delta * _ALL
    recipes, counted = _without_counts(asked, scope)
    load = who.rows / who.groups / math.log(1 / (2 * min(delta, 0.1)))
    parts, rest = _shared(recipes, exactly(spend.epsilon), _finding(recipes, load, 2))
    return Ready(parts, laplace_selection(scope, rest, delta, counted))


def _mixed(asked: Sequence[Recipe], scope: Scope, spend: Spend) -> Ready | None:
    """Gaussian noise for what weights cut something off, a pure ε for all else; None where there is nothing else."""
    assert spend.epsilon is not None
    recipes = [_as_totals(recipe) for recipe in asked]
    cut = [recipe for recipe in recipes if _is_cut(recipe)]
    if len(cut) == len(recipes):
        return None
    total = sum(recipe.weight for recipe in cut)
    pure = iter(_shared([one for one in recipes if not _is_cut(one)], exactly(spend.epsilon), total)[0])
    parts = {place: next(pure) for place, one in enumerate(recipes) if not _is_cut(one)}
    if cut:
        shares = [math.sqrt(total / recipe.weight) for recipe in cut]

        def promised(noise: float) -> Guarantee:
            drawn = [recipe.promised(noise * share) for recipe, share in zip(cut, shares, strict=True)]
            return compose([*((part.guarantee, 1) for part in parts.values()), *((one, 1) for one in drawn)])

        noise = calibrate(promised, to=spend.target(scope.contribution.unit), tolerance=_TOLERANCE)
        made = (recipe.gaussian(noise * share) for recipe, share in zip(cut, shares, strict=True))
        parts |= {place: next(made) for place, one in enumerate(recipes) if _is_cut(one)}
    return Ready(tuple(parts[place] for place in range(len(recipes))))


def _as_totals(recipe: Recipe) -> Recipe:
    """Numbers of units in groups as totals: Gaussian noise cuts less off them too."""
    if not isinstance(recipe, DistinctRecipe):
        return recipe
    totals = TotalsRecipe(recipe.scope, recipe.aggregates)
    return totals if totals.cut else recipe


def _is_cut(recipe: Recipe) -> bool:
    return isinstance(recipe, TotalsRecipe) and recipe.cut


def _shared(
    recipes: Sequence[Recipe], epsilon: Fraction, finding: float
) -> tuple[tuple[Part, ...], Fraction]:
    """The parts, each with the share of ε that its weight says; and the share of finding groups."""
    unit = epsilon / exactly(sum(recipe.weight for recipe in recipes) + finding)
    return tuple(recipe.pure(unit * exactly(recipe.weight)) for recipe in recipes), unit * exactly(finding)


def _gaussian(asked: Sequence[Recipe], scope: Scope, spend: Spend, *, found: bool) -> Ready:
    words, who = scope.contribution.words, scope.contribution
    recipes, leak, finding = asked, 0.0, 0.0
    counted: list[Aggregate] = []
    if found:
        assert spend.delta is not None
        leak = spend.delta * (_LEAK if spend.epsilon is not None else _ALL)
        recipes, counted = _without_counts(asked, scope)
        load = (
            _MEAN_OF_NORMAL * who.rows / GaussianDistribution(1.0).guess(2 * min(leak, 0.1))
        ) ** 2 / who.groups
        finding = _finding(recipes, load, 3)
    total = sum(recipe.weight for recipe in recipes) + finding
    shares = [math.sqrt(total / recipe.weight) for recipe in recipes]

    def promised(noise: float) -> Guarantee:
        parts = [recipe.promised(noise * share) for recipe, share in zip(recipes, shares, strict=True)]
        if found:
            alone = privacy.gaussian(noise * math.sqrt(total / finding), **words)
            parts += [privacy.leaky(leak, **words), alone]
        return compose([(part, 1) for part in parts])

    noise = calibrate(promised, to=spend.target(who.unit), tolerance=_TOLERANCE)
    parts = tuple(recipe.gaussian(noise * share) for recipe, share in zip(recipes, shares, strict=True))
    if not found:
        return Ready(parts)
    return Ready(parts, gaussian_selection(scope, noise * math.sqrt(total / finding), leak, counted))


def _without_counts(recipes: Sequence[Recipe], scope: Scope) -> tuple[list[Recipe], list[Aggregate]]:
    """What is left to be released beside the numbers by which groups are found, and the counts that these are."""
    rest: list[Recipe] = []
    counted: list[Aggregate] = []
    for recipe in recipes:
        if not isinstance(recipe, TotalsRecipe | DistinctRecipe):
            rest.append(recipe)
            continue
        free = [one for one in recipe.aggregates if counts_units(scope, one)]
        paid = tuple(one for one in recipe.aggregates if not counts_units(scope, one))
        counted += free
        if paid:
            rest.append(replace(recipe, aggregates=paid))
    return rest, counted


def _finding(recipes: Sequence[Recipe], load: float, power: int) -> float:
    """The weight of finding groups, as a share f of all with (1 - f)^power = load · (weight of the others) · f.

    That f makes what is lost with groups that are not named, and what noise there is on those that are, the least
    together for sizes as of Zipf's law (compile.proof.md, § 5). It is a matter of use, not of privacy.
    """
    others = sum(recipe.weight for recipe in recipes)
    if not others:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        f = (low + high) / 2
        low, high = (f, high) if (1 - f) ** power > load * others * f else (low, f)
    share = min(max(low, _FEWEST), 1 - _FEWEST)
    return share / (1 - share) * others


def _badness(ready: Ready, scope: Scope) -> float:
    """The sum of the logarithms of all errors that are compared, and of the units that a group needs."""
    sizes = 0.0
    if ready.selection is not None:
        most = min(scope.contribution.groups, ready.selection.most)
        sizes = math.log(ready.selection.needed(1) * ready.selection.needed(most)) / 2
    parts: list[Part | Selection] = [*ready.parts, *([ready.selection] if ready.selection else [])]
    errors = [error for part in parts for error in _compared(part, scope)]
    return sizes + sum(math.log(max(error, _NEGLIGIBLE)) for error in errors)


def _compared(part: Part | Selection, scope: Scope) -> Iterator[float]:
    """The errors in which noises differ alone: nothing is cut off a mean or a choice, nor off rows that are units, and
    as much under both off what is not grouped.
    """
    weighed = isinstance(part, Totals) and bool(scope.keys) and not scope.contribution.alone
    for name, error in part.expected().items():
        if not (weighed and isinstance(part, Totals) and part.estimates[name].form is not None):
            yield error

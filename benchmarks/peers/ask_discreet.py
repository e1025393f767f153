# SPDX-License-Identifier: Apache-2.0
"""How discreet is asked, and how its certified bracket is found."""

from __future__ import annotations

import importlib
import pkgutil

from cases import Case, Part, Unsupported

import discreet
from discreet import privacy

# Modules that load on first use are loaded now, as the peers' are: importing is not part of the question.
for _module in pkgutil.walk_packages(privacy.__path__, "discreet.privacy."):
    importlib.import_module(_module.name)

_FINE = 1e-6  # how closely the certified lower end of a calibration is searched for


def _guarantee(part: Part, relation: str) -> privacy.Guarantee:
    if part.kind == "response":
        return part.count * privacy.randomized_response(epsilon=part.scale, outcomes=2)
    if part.kind == "laplace":
        return part.count * privacy.laplace(scale=part.scale)
    once = privacy.gaussian(noise=part.scale)
    return part.count * (once if part.rate == 1 else once.sampled(part.rate, relation=relation))


def _composed(case: Case) -> privacy.Guarantee:
    first, *rest = (_guarantee(part, case.relation) for part in case.parts)
    composed = sum(rest, start=first)
    return composed.group(case.group) if case.group > 1 else composed


def epsilon(case: Case) -> float:
    """The upper value, which is what a user is told."""
    if case.target is None:
        return _composed(case).epsilon(delta=case.delta)
    return discreet.calibrate(
        lambda noise: _with_noise(case, noise), to=privacy.approximate(case.target, case.delta)
    )


def certificate(case: Case) -> tuple[float, float]:
    """The certified bracket of the truth; of the least noise, for a calibration."""
    if case.target is None:
        bound = _composed(case).bound(delta=case.delta)
        return bound.lower, bound.upper
    enough = epsilon(case)
    too_little, low = 0.5 * enough, enough
    while low - too_little > _FINE * enough:
        middle = (too_little + low) / 2
        if _with_noise(case, middle).bound(delta=case.delta).lower > case.target:
            too_little = middle
        else:
            low = middle
    return too_little, enough


def _with_noise(case: Case, noise: float) -> privacy.Guarantee:
    part = case.single
    if part.kind != "gaussian":
        raise Unsupported("only Gaussian noise is calibrated here")
    return _guarantee(Part(part.kind, noise, part.rate, part.count), case.relation)


ACCOUNTANTS = {"discreet": epsilon, "discreet certificate": certificate}

# SPDX-License-Identifier: Apache-2.0
"""How autodp is asked: exact Gaussians where all parts are Gaussian, Rényi for the rest."""

from __future__ import annotations

import math

from autodp import mechanism_zoo, transformer_zoo
from autodp.autodp_core import Mechanism
from autodp.calibrator_zoo import generalized_eps_delta_calibrator
from cases import Case, Part, Unsupported, no_groups


def _mechanism(part: Part) -> Mechanism:
    if part.kind == "response":
        return mechanism_zoo.RandresponseMechanism(p=1 / (1 + math.exp(-part.scale)))
    if part.kind == "laplace":
        return mechanism_zoo.LaplaceMechanism(b=part.scale)
    if part.rate == 1:
        return mechanism_zoo.ExactGaussianMechanism(sigma=part.scale)
    sample = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
    return sample(mechanism_zoo.GaussianMechanism(sigma=part.scale), part.rate, improved_bound_flag=True)


def best_route(case: Case) -> float:
    """The tightest route of the library that is meant to be a bound."""
    no_groups(case)
    if case.relation != "add-remove":
        raise Unsupported("Poisson sampling is add-remove only")
    if case.target is not None:
        return _calibrated(case)
    mechanisms = [_mechanism(part) for part in case.parts]
    counts = [part.count for part in case.parts]
    if len(mechanisms) == 1 and counts == [1]:
        return mechanisms[0].get_approxDP(case.delta)
    gaussian = all(part.kind == "gaussian" and part.rate == 1 for part in case.parts)
    compose = transformer_zoo.ComposeGaussian() if gaussian else transformer_zoo.Composition()
    return compose(mechanisms, counts).get_approxDP(case.delta)


def _calibrated(case: Case) -> float:
    part = case.single
    found = generalized_eps_delta_calibrator()(
        mechanism_zoo.SubsampleGaussianMechanism,
        case.target,
        case.delta,
        [1.0, 10.0],
        params={"prob": part.rate, "sigma": None, "coeff": part.count},
        para_name="sigma",
    )
    return found.params["sigma"]


ACCOUNTANTS = {"autodp": best_route}

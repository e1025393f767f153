# SPDX-License-Identifier: Apache-2.0
"""How prv-accountant is asked: its upper estimate, with an error of 0.01 in ε and δ/1000 in δ."""

from __future__ import annotations

import prv_accountant
from cases import Case, Part, Unsupported, no_groups
from prv_accountant import dpsgd

_EPSILON_ERROR = 0.01


def _variable(part: Part) -> prv_accountant.PrivacyRandomVariable:
    if part.rate < 1:
        return prv_accountant.PoissonSubsampledGaussianMechanism(part.rate, part.scale)
    if part.kind == "gaussian":
        return prv_accountant.GaussianMechanism(part.scale)
    if part.kind == "laplace":
        return prv_accountant.LaplaceMechanism(1 / part.scale)
    return prv_accountant.PureDPMechanism(part.scale)


def privacy_random_variables(case: Case) -> float:
    """The upper end of the interval the library reports."""
    no_groups(case)
    if case.relation != "add-remove":
        raise Unsupported("add-remove only")
    if case.target is not None:
        part = case.single
        return dpsgd.find_noise_multiplier(
            part.rate, part.count, case.target, case.delta, eps_error=_EPSILON_ERROR
        )
    counts = [part.count for part in case.parts]
    accountant = prv_accountant.PRVAccountant(
        prvs=[_variable(part) for part in case.parts],
        eps_error=_EPSILON_ERROR,
        delta_error=case.delta / 1000,
        max_self_compositions=counts,
    )
    return accountant.compute_epsilon(case.delta, counts)[2]


ACCOUNTANTS = {"prv-accountant": privacy_random_variables}

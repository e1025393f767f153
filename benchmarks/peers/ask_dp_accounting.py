# SPDX-License-Identifier: Apache-2.0
"""How dp-accounting is asked: loss distributions (two ways in) and Rényi."""

from __future__ import annotations

import math
from collections.abc import Callable

import dp_accounting
from cases import Case, Part, Unsupported, no_groups
from dp_accounting import pld, rdp
from dp_accounting.pld import privacy_loss_distribution

_RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def _event(part: Part) -> dp_accounting.DpEvent:
    if part.kind == "response":
        noise = 2 / (1 + math.exp(part.scale))  # the probability of answering with a fair coin
        event = dp_accounting.RandomizedResponseDpEvent(noise, 2)
    elif part.kind == "laplace":
        event = dp_accounting.LaplaceDpEvent(part.scale)
    else:
        event = dp_accounting.GaussianDpEvent(part.scale)
    if part.rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(part.rate, event)
    return dp_accounting.SelfComposedDpEvent(event, part.count)


def _relation(case: Case) -> dp_accounting.NeighboringRelation:
    # Randomized response is defined under replace-one there; for two answers both relations agree.
    responds = any(part.kind == "response" for part in case.parts)
    return _RELATIONS["replace" if responds else case.relation]


def _through(make: Callable[..., dp_accounting.PrivacyAccountant], case: Case) -> float:
    relation = _relation(case)
    if case.target is not None:
        return _calibrated(lambda: make(relation), case)
    accountant = make(relation)
    for part in case.parts:
        accountant.compose(_event(part))
    return accountant.get_epsilon(case.delta)


def _calibrated(fresh: Callable[[], dp_accounting.PrivacyAccountant], case: Case) -> float:
    part = case.single
    return dp_accounting.calibrate_dp_mechanism(
        fresh,
        lambda noise: _event(Part(part.kind, noise, part.rate, part.count)),
        case.target,
        case.delta,
        bracket_interval=dp_accounting.ExplicitBracketInterval(1.0, 10.0),  # kind: without it this takes 40 s
        tol=1e-4,
    )


def loss_distribution(case: Case) -> float:
    """Randomized response goes in as a loss distribution: the event forgets the count (see below)."""
    if case.group > 1:
        return _of_group(case)
    if case.parts[0].kind != "response":
        return _through(pld.PLDAccountant, case)
    noise = 2 / (1 + math.exp(case.single.scale))
    once = privacy_loss_distribution.from_randomized_response(noise, 2)
    return once.self_compose(case.single.count).get_epsilon_for_delta(case.delta)


def _of_group(case: Case) -> float:
    """As a mixture of Gaussians: so many of the group are in the sample."""
    part, size = case.single, case.group
    present = [math.comb(size, j) * part.rate**j * (1 - part.rate) ** (size - j) for j in range(size + 1)]
    once = privacy_loss_distribution.from_mixture_gaussian_mechanism(part.scale, range(size + 1), present)
    return once.self_compose(part.count).get_epsilon_for_delta(case.delta)


def loss_distribution_by_event(case: Case) -> float:
    """The documented way in, where it differs from the one above."""
    no_groups(case)
    if case.parts[0].kind != "response":
        raise Unsupported("the same as the loss distribution")
    return _through(pld.PLDAccountant, case)


def renyi(case: Case) -> float:
    """Rényi at the library's own orders."""
    no_groups(case)
    return _through(lambda relation: rdp.RdpAccountant(neighboring_relation=relation), case)


ACCOUNTANTS = {
    "dp-accounting PLD": loss_distribution,
    "dp-accounting PLD (event)": loss_distribution_by_event,
    "dp-accounting RDP": renyi,
}

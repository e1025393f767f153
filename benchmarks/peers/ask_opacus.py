# SPDX-License-Identifier: Apache-2.0
"""How the accountants of opacus are asked: Rényi, privacy random variables and the Gaussian limit."""

from __future__ import annotations

import functools

from cases import Case, Unsupported, no_groups
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier


def _ask(name: str, case: Case) -> float:
    no_groups(case)
    if case.relation != "add-remove":
        raise Unsupported("add-remove only")
    if any(part.kind != "gaussian" for part in case.parts):
        raise Unsupported("sampled Gaussians only")
    part = case.single
    if case.target is not None:
        return get_noise_multiplier(
            target_epsilon=case.target,
            target_delta=case.delta,
            sample_rate=part.rate,
            steps=part.count,
            accountant=name,
        )
    accountant = create_accountant(name)
    accountant.history = [(part.scale, part.rate, part.count)]
    return accountant.get_epsilon(delta=case.delta)


ACCOUNTANTS = {
    f"opacus {label}": functools.partial(_ask, name)
    for label, name in {"RDP": "rdp", "PRV": "prv", "GDP": "gdp"}.items()
}

# SPDX-License-Identifier: Apache-2.0
"""The amount of noise: stated in exactly one way, such as epsilon, or epsilon and delta, or rho."""

from __future__ import annotations

from collections.abc import Mapping

from discreet import check
from discreet.errors import BadParameter

__all__ = ["APPROXIMATE", "CONCENTRATED", "PURE", "SCALE", "one_amount"]

PURE, APPROXIMATE, CONCENTRATED, SCALE = ("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",)


def one_amount(amounts: Mapping[str, float | None], *combinations: tuple[str, ...]) -> dict[str, float]:
    """The amounts that are not None, validated; together they must be one of the combinations.

    >>> one_amount({"epsilon": 1.0, "rho": None}, PURE, CONCENTRATED)
    {'epsilon': 1.0}
    """
    known = {name: value for name, value in amounts.items() if value is not None}
    if tuple(known) not in combinations:
        raise BadParameter(
            "DP107",
            f"state the amount of noise in one way: {', or '.join(' and '.join(names) for names in combinations)}.",
            why="two amounts can contradict each other, and without an amount there is no noise.",
            fix=", ".join(f"{name}=1e-6" if name == "delta" else f"{name}=1.0" for name in combinations[0]),
        )
    return {
        name: check.inner_probability(delta=value) if name == "delta" else check.moderate(**{name: value})
        for name, value in known.items()
    }

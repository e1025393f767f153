# SPDX-License-Identifier: Apache-2.0
"""An entry for the public registry of differential-privacy deployments, in its columns.

**Promise.** Every field is taken from the statement; what the ledger cannot know (who publishes it, and for what use) is
left for the curator to fill in, as null. The tier is the highest whose information is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["entry"]


def entry(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The registry's columns for a statement."""
    described, claim, released = facts["description"], facts["claim"], facts["released"]
    return {
        "tier": 2 if described is None else 3,
        "product": facts["dataset"] if described is None else described.get("name", facts["dataset"]),
        "curator": None,
        "intended_use": None,
        "description": _description(facts),
        "year": int((released[-1] if released else facts["ledger"] | {"time": facts["made"]})["time"][:4]),
        "flavour": claim["flavour"],
        "privacy_loss": {
            "unit": facts["unit"]["protects"],
            "relation": facts["unit"]["relation"],
            "epsilon": claim["epsilon"],
            "delta": claim["delta"],
            "over": claim["over"],
        },
        "model": "Central",
        "accounting": facts["limit"]["theorem"],
        "implementation": f"discreet {facts['discreet']['version']}: exact integer noise from the operating system's "
        "generator; charged before it is drawn; hash-chained ledger",
    }


def _description(facts: Mapping[str, Any]) -> str:
    count = len(facts["released"])
    answers = "1 answer" if count == 1 else f"{count} answers"
    about = f" about {facts['dataset']}" if facts["dataset"] else ""
    return f"{answers}{about}, drawn with noise; numbers with intervals where their noise has any."

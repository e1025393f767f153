# SPDX-License-Identifier: Apache-2.0
"""The [budget] section of a description: the limit, its allocations and windows, and the ledger.

Here it stays a mapping of plain values; the session makes a limit of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.paths import expanded
from discreet.tables.data import rules

__all__ = ["validate_budget"]

_AMOUNTS = ("epsilon", "delta", "rho", "mu")
_KEYS = (*_AMOUNTS, "filter", "leaks", "per_analyst", "window", "lifetime", "ledger")
_FILTERS = ("tracks", "basic", "pure", "zcdp", "gdp")
#: The former word for "tracks", which stands in descriptions that were written with it.
_FORMER_FILTERS = ("lanes",)
_WINDOW = re.compile(r"none|([1-9]\d{0,4} )?(hour|day|week|month|year)s?")


def validate_budget(section: Any, folder: Path | None = None) -> dict[str, Any]:
    """The validated section; the path of the ledger is relative to `folder`."""
    _amounts("[budget]", section, _KEYS)
    budget = dict(section)
    if "filter" in budget and budget["filter"] not in (*_FILTERS, *_FORMER_FILTERS):
        near = rules.closest(budget["filter"], _FILTERS)
        raise rules.description_error("[budget] filter", "it must be a known filter.", f'filter = "{near}"')
    if "leaks" in budget and (not _is_share(budget["leaks"]) or budget["leaks"] == 1):
        what = "it must be a share of delta above 0 and below 1, for mechanisms that may fail."
        raise rules.description_error("[budget] leaks", what, "leaks = 0.75")
    if "window" in budget and not (isinstance(budget["window"], str) and _WINDOW.fullmatch(budget["window"])):
        raise rules.description_error(
            "[budget] window", "it must be a period of time.", 'window = "month"   or  "30 days"'
        )
    if "lifetime" in budget:
        _amounts("[budget] lifetime", budget["lifetime"], _AMOUNTS)
    if "per_analyst" in budget:
        _shares(budget["per_analyst"])
    if "ledger" in budget:
        ledger = rules.word_of("[budget] ledger", budget["ledger"])
        budget["ledger"] = ledger if folder is None or "://" in ledger else str(folder / expanded(ledger))
    return budget


def _amounts(where: str, section: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(section, Mapping):
        raise rules.description_error(
            where, "it must be a section with keys.", "[budget]\n       epsilon = 1.0"
        )
    for key in section:
        if key not in keys:
            raise rules.description_error(
                where, f"{key!r} is not a known key.", f"{rules.nearest(key, keys)}   (did you mean this?)"
            )
    try:
        for name in _AMOUNTS:
            if name in section:
                (check.delta if name == "delta" else check.positive)(**{name: section[name]})
    except BadParameter as slip:
        raise rules.description_error(where, slip.what, slip.fix) from None
    if section and len({"epsilon", "rho", "mu"} & set(section)) != 1:
        raise rules.description_error(
            where, "it must have exactly one of epsilon, rho and mu.", "epsilon = 1.0\n       delta = 1e-6"
        )


def _shares(budget: Any) -> None:
    if not isinstance(budget, Mapping) or not all(_is_share(share) for share in budget.values()):
        what = "each allocation must be a share above 0 and at most 1."
        raise rules.description_error("[budget] per_analyst", what, "per_analyst = {ana = 0.5, ben = 0.25}")


def _is_share(share: Any) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1

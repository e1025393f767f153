# SPDX-License-Identifier: Apache-2.0
"""Who asks: the names under which a charge is made, for the allocations of a limit and for the
record.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOBODY", "Asker"]


@dataclass(frozen=True)
class Asker:
    """The analyst and the project that a charge is made for, and its purpose; each is None if it is
    not named.

    **Guarantee.** A limit with allocations charges the allocation of this analyst and this project,
    and a ledger shows an answer again to the same analyst and project only. The purpose is recorded
    and changes nothing.

    Why it holds: the names are written into the row of the charge, which the hash chain covers.
    What would break it: somebody who uses another person's name; a ledger does not check who calls
    it.

    >>> from discreet import privacy
    >>> from discreet.ledger import Limit
    >>> limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.5})
    >>> state = limit.admit(limit.start(), limit.cost(privacy.pure(0.5)), asker=Asker("ana"))
    >>> limit.budget(state, asker=Asker("bo")).like(privacy.pure(0.5))
    1
    """

    analyst: str | None = None
    project: str | None = None
    purpose: str | None = None

    def name_in(self, group: str) -> str | None:
        """The name that an allocation to this group ("analyst" or "project") is looked up by."""
        return self.analyst if group == "analyst" else self.project


#: Nobody is named.
NOBODY = Asker()

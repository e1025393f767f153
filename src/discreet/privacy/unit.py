# SPDX-License-Identifier: Apache-2.0
"""Who is protected, and what "neighbour" means."""

from __future__ import annotations

from dataclasses import dataclass

from discreet import check
from discreet.errors import BadParameter, UnitMismatch

#: How two data sets differ, as tables and mechanisms know it.
RELATIONS = ("add-remove", "replace")
#: The same for guarantees, which may also be about a record that is blanked.
UNIT_RELATIONS = (*RELATIONS, "zero-out")


@check.named_fields
@dataclass(frozen=True)
class Unit:
    """One protected unit and the neighbouring relation.

    **Guarantee.** Two data sets are neighbours if they differ in one `protects`: it is present in
    one and absent in the other ("add-remove"), has other values in it ("replace", where the size is
    public), or has its values in one and a blank that counts for nothing in the other ("zero-out",
    where the size is public too). Relations differ by up to a factor of two in ε, so guarantees
    under different ones never mix.

    >>> Unit("patient", "replace")
    Unit(protects='patient', relation='replace')
    """

    protects: str = "record"
    relation: str = "add-remove"

    def __post_init__(self) -> None:
        if not isinstance(self.protects, str) or not self.protects.strip():
            raise BadParameter(
                "DP104",
                "protects must be a word for the privacy unit.",
                why="an ε without a protected unit cannot be compared with anything.",
                fix="Unit(protects='patient')",
            )
        check.choice(UNIT_RELATIONS, relation=self.relation)

    def __str__(self) -> str:
        changes = {"add-remove": "added or removed", "replace": "replaced", "zero-out": "blanked"}
        change = changes[self.relation]
        return f"one {self.protects} {change}"


def unit_of(unit: str | Unit, relation: str | None = None) -> Unit:
    """The unit that a caller named: a `Unit`, or a word for the privacy unit and a relation.

    A word alone is protected under "add-remove". Beside a `Unit`, `relation` is left out or repeats
    the unit's own.

    >>> unit_of("patient"), unit_of(Unit("patient", "replace"))
    (Unit(protects='patient', relation='add-remove'), Unit(protects='patient', relation='replace'))
    """
    if not isinstance(unit, Unit):
        return Unit(unit, RELATIONS[0] if relation is None else relation)
    if relation is not None and check.choice(UNIT_RELATIONS, relation=relation) != unit.relation:
        raise BadParameter(
            "DP107",
            f"unit has the relation {unit.relation!r}, but relation is {relation!r}.",
            why="the two relations compare different neighbours, so only one of them can hold.",
            fix=f"unit=Unit({unit.protects!r}, {relation!r})",
        )
    return unit


def same_unit(units: list[Unit]) -> Unit:
    """The common unit, or an error that names the two that differ."""
    first = units[0]
    for other in units[1:]:
        if other != first:
            raise UnitMismatch(
                "DP201",
                f"these guarantees protect different things: {first}; {other}.",
                why="their losses are about different neighbours, so a sum of them bounds neither.",
                fix=f"compute the other one for {first} too, and state it so:  "
                f"unit={first.protects!r}, relation={first.relation!r}",
            )
    return first

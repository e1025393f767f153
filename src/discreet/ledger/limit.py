# SPDX-License-Identifier: Apache-2.0
"""A limit: how much may be spent on one data set, and which theorem makes the sum of it a promise.

A trade-off curve says what a mechanism reveals. It is not something to pay with: if the next question, and how much is
spent on it, may depend on the answers so far, then "compose what was run and stop when the curve is crossed" promises
more than it keeps (docs/explain/spending.md runs the counterexample). So spending has its own type:

- `Limit.filter(epsilon, delta)`: what is asked, and at what price, may depend on all earlier answers.
- `Limit.plan(guarantee)`: slots fixed in advance, used in any order; tight, because they are accounted for jointly.
- `Limit.odometer(delta)`: no limit, and a line that says at all times which (ε, δ) was reached.

A limit is pure mathematics. It holds no state: `start` makes one, `cost` prices a guarantee, `admit` returns the
state after it, or refuses. The ledger stores states and costs; it never decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import check
from discreet.errors import BadDescription, BadParameter, DiscreetError, OverBudget
from discreet.exact import bisect_whole
from discreet.ledger.lanes import Amount, Cost, Row, State, unreadable
from discreet.ledger.left import Left
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: Of descriptions that this release writes and reads.
VERSION = 1
#: Counting how many more answers fit goes answer by answer up to here.
_MANY = 1_000
#: A δ that is so many times smaller than what was asked for is as good as none.
_HARDLY = 1_000


class Limit(ABC):
    """How much may be spent; see the module docstring.

    **Guarantee.** Whatever an analyst asks, in whatever order and however it depends on earlier answers, as long as each
    question was admitted before its noise was drawn, all answers together keep `claim` (by `theorem`). A refusal is a
    function of what was charged before, never of the data, and costs nothing.

    What would break it: drawing before charging, giving back what was charged, or pricing a mechanism by anything
    that the data decided.

    >>> from discreet import privacy
    >>> limit = Limit.filter(epsilon=1)
    >>> state = limit.start()
    >>> for _ in range(10):
    ...     state = limit.admit(state, limit.cost(privacy.pure(0.1)))
    >>> limit.left(state).like(privacy.pure(0.1)), limit.claim
    (0, pure(epsilon=1.0))
    """

    #: The word that stored descriptions know this kind of limit by.
    kind: ClassVar[str]
    readers: ClassVar[dict[str, type[Limit]]] = {}

    def __init_subclass__(cls) -> None:
        Limit.readers[cls.kind] = cls

    def __new__(cls, *_: Any, **__: Any) -> Self:
        if cls is Limit:
            raise BadParameter(
                "DP107",
                "a limit is a filter, a plan or an odometer.",
                why="each of them has its own theorem.",
                fix="Limit.filter(epsilon=1, delta=1e-6)",
            )
        return super().__new__(cls)

    @property
    @abstractmethod
    def theorem(self) -> str:
        """Why the promise holds."""

    @abstractmethod
    def guarantee_for(self, unit: Unit) -> Guarantee | None:
        """What holds at the end for one such unit; None if nothing is promised of the whole."""

    @property
    def claim(self) -> Guarantee | None:
        """What holds at the end, for a record added or removed; the ledger states it for its own unit."""
        return self.guarantee_for(Unit())

    @abstractmethod
    def describe(self) -> list[str]:
        """What is promised, in plain sentences."""

    @abstractmethod
    def start(self) -> State:
        """Nothing spent."""

    def knows(self, state: State) -> bool:
        """Whether a stored state has an amount for everything that this limit counts."""
        return state.keys() >= self.start().keys()

    def along(self, cost: Cost, state: State) -> Cost:
        """A cost without the ways that are not open to whoever has come to that state."""
        return cost

    @property
    def former(self) -> Limit | None:
        """What earlier releases made of the same call, with the same claim; None if they made the same."""
        return None

    @abstractmethod
    def cost(self, guarantee: Guarantee) -> Cost:
        """What an answer with this guarantee would add, as a menu of ways to pay."""

    @abstractmethod
    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> State:
        """The state after paying, in the way after which most is left; `OverBudget` if none fits.

        `analyst` and `project` name whose shares are charged; `now` is the public time, for limits with windows.
        """

    @abstractmethod
    def left(
        self,
        state: State,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> Left:
        """What is left, for people."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The constants of the limit, as JSON; `read` takes them back."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Mapping[str, Any]) -> Limit:
        """The limit with these constants, which are proved again before they are believed."""

    def to_dict(self) -> dict[str, Any]:
        """A versioned description that `from_dict` reads back to an equal limit."""
        return {"discreet": VERSION, "limit": self.kind, **self.fields()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Limit:
        """The limit that `to_dict` described; the constants are checked again, and what fails is refused.

        >>> Limit.from_dict(Limit.filter(epsilon=1, delta=1e-6).to_dict()) == Limit.filter(epsilon=1, delta=1e-6)
        True
        """
        from discreet.ledger import kinds  # noqa: F401 - every kind of limit says how it is read

        try:
            fields = dict(data)
            version, kind = fields.pop("discreet"), fields.pop("limit")
            if isinstance(version, int) and version > VERSION:
                raise _from_the_future(version)
            return Limit.readers[kind].read(fields)
        except BadDescription:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, DiscreetError) as error:
            raise unreadable("a limit") from error

    # --- the three ways to make one ------------------------------------------------------------------

    @staticmethod
    @check.arguments
    def filter(
        epsilon: Any = None,
        delta: Any = None,
        *,
        rho: Any = None,
        mu: Any = None,
        kind: str | None = None,
        leaks: Any = None,
        expects: Iterable[Guarantee] | None = None,
        analysts: Mapping[str, Any] | None = None,
        projects: Mapping[str, Any] | None = None,
        reserved: bool = False,
        window: str | None = None,
        lifetime: Limit | None = None,
    ) -> Limit:
        """A limit on adaptive spending: (ε, δ), or ε alone, or ρ, or μ; see `discreet.ledger.filters`.

        Of (ε, δ) some δ pays for mechanisms that may fail, as key selection does, and the rest for Rényi accounting. The first
        charge decides how much (`discreet.ledger.candidates`), or `expects`, a list of guarantees that you expect to
        ask for in turn, or `leaks`, the share itself, as `leaks=0.75`. `kind="basic"` adds up ε and δ and nothing else.

        `analysts` and `projects` give shares of it; `window` renews it by the calendar, under a `lifetime` limit.
        """
        from discreet.ledger.kinds import assembled

        return assembled(
            {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu, "kind": kind, "leaks": leaks},
            expects=expects,
            shares={"analyst": analysts, "project": projects},
            reserved=reserved,
            window=window,
            lifetime=lifetime,
        )

    @staticmethod
    @check.arguments
    def plan(slots: Guarantee, within: Guarantee | None = None) -> Limit:
        """Slots fixed in advance, used in any order; see `discreet.ledger.plan`."""
        from discreet.ledger.plan import planned

        return planned(slots, within)

    @staticmethod
    @check.arguments
    def odometer(delta: Any, rho: Any = 0.1) -> Limit:
        """No limit, and the (ε, δ) that was reached, at all times at once; see `discreet.ledger.odometer`."""
        from discreet.ledger.odometer import odometer

        return odometer(delta, rho)


def as_guarantee(guarantee: Any) -> Guarantee:
    """A guarantee, and nothing that is only like one."""
    if isinstance(guarantee, Guarantee):
        return guarantee
    raise BadParameter(
        "DP104",
        f"a limit prices guarantees, not {type(guarantee).__name__}.",
        why="what an answer costs follows from what its mechanism promises.",
        fix="privacy.pure(0.1)   or  privacy.laplace(scale=10)",
    )


def pay(state: State, row: Row) -> State:
    """The state with the row's amounts added; both have to be of one limit."""
    if state.keys() == row.amounts.keys():
        return state.plus(row.amounts)
    raise another_limit()


def another_limit() -> BadParameter:
    """The error for amounts that do not belong together."""
    return BadParameter(
        "DP107",
        "this state or this cost was made by another limit.",
        why="amounts of different measures, or of different Rényi orders, do not add up.",
        fix="limit.admit(state, limit.cost(guarantee)) with one and the same limit",
    )


@dataclass(frozen=True)
class Shortage:
    """What an answer lacks: the δ that it needs at least and the δ that is left; and, if its loss fits no lane, about how
    much of its ε would.
    """

    needed: Amount
    left: Amount
    loss_part: float | None = None

    @property
    def delta(self) -> bool:
        """Whether δ does not fit."""
        return self.needed > self.left


def over_budget_together(left: Left, refused: OverBudget, many: int) -> OverBudget:
    """The refusal of several answers of which one, after those before it, was refused; of one answer its own."""
    if many == 1:
        return refused
    error = over_budget(left, subject="these answers together")
    if refused.delta_part is not None:
        error.what = error.what.replace("do not fit what is left", "need more δ than is left")
        error.fix = (
            "ask with a smaller delta, or for fewer of them together:  session.budget()  says what remains."
        )
    error.delta_part, error.loss_part = refused.delta_part, refused.loss_part
    return error


def over_budget(left: Left, short: Shortage | None = None, subject: str = "this answer") -> OverBudget:
    """The refusal: it names what does not fit, and its fix changes that."""
    details = "; ".join(map(str, left.lanes))
    does = f"{subject} {'do' if subject.endswith('together') else 'does'}"
    what = f"{does} not fit what is left ({details})."
    fix = "ask with a smaller epsilon (more noise), or less often:  session.budget()  and  discreet budget  say what remains."
    if short is not None and short.delta:
        need = "need" if subject.endswith("together") else "needs"
        what = (
            f"{subject} {need} δ = {rounded(short.needed, ROUND_CEILING)}, but only "
            f"{rounded(short.left, ROUND_FLOOR)} of the budget's δ remains ({details})."
        )
        fix = _less_delta(short)
    refused = OverBudget(
        "DP601",
        what,
        why="with it, all answers together would reveal more than the limit promises.",
        fix=fix,
    )
    if short is not None:
        refused.delta_part = float(short.left / short.needed) if short.delta else None
        refused.loss_part = short.loss_part
    return refused


def _less_delta(short: Shortage) -> str:
    smaller = ", and a smaller epsilon" if short.loss_part is not None else ""
    if short.left * _HARDLY < short.needed:
        return f"ask without delta, with the keys declared in the description or listed in the question{smaller}."
    return f"ask with  delta={rounded(short.left, ROUND_FLOOR)}  or less{smaller}."


def rounded(amount: Amount, towards: str) -> str:
    """Three digits of an amount, rounded up or down."""
    exact = (
        Decimal(amount.numerator) / Decimal(amount.denominator)
        if isinstance(amount, Fraction)
        else Decimal(amount)
    )
    return f"{float(Context(prec=3, rounding=towards).create_decimal(exact)):g}"


def how_many(admit: Callable[[State, Cost], State], state: State, cost: Cost) -> int:
    """How many more such answers are admitted, one after another.

    Beyond a thousand as many are paid at once as fit, all in one way.
    """
    for done in range(_MANY):
        try:
            state = admit(state, cost)
        except OverBudget:
            return done
    low, high = 0, 1
    while high < 1 << 62 and _fits(admit, state, cost.times(high)):
        low, high = high, 2 * high
    return _MANY + bisect_whole(lambda count: _fits(admit, state, cost.times(count)), yes=low, no=high)


def how_many_like(
    admit: Callable[[State, Cost], State],
    state: State,
    cost_of: Callable[[Guarantee], Cost],
    guarantee: Guarantee,
) -> int:
    """How many more answers with this guarantee are admitted."""
    return how_many(admit, state, cost_of(guarantee))


def _fits(admit: Callable[[State, Cost], State], state: State, cost: Cost) -> bool:
    try:
        admit(state, cost)
    except OverBudget:
        return False
    return True


def _from_the_future(version: int) -> BadDescription:
    return BadDescription(
        "DP402",
        f"this limit has version {version}, and this release reads up to {VERSION}.",
        why="a newer version may mean something that this one would misread.",
        fix="upgrade discreet.",
    )


__all__ = ["Limit"]

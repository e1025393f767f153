# SPDX-License-Identifier: Apache-2.0
"""A limit: how much may be spent on one data set, and which theorem makes the sum of it a
guarantee.

A trade-off curve says what a mechanism reveals. It is not something to pay with: if the next
question, and how much is spent on it, may depend on the answers so far, then "compose what was run
and stop when the curve is crossed" claims more than it keeps (docs/explain/spending.md runs the
counterexample). So spending has its own type:

- `Limit.filter(epsilon, delta)`: what is asked, and at what price, may depend on all earlier
  answers.
- `Limit.plan(guarantee)`: slots fixed in advance, used in any order; tight, because they are
  accounted for jointly.
- `Limit.odometer(delta)`: no limit, and a line that says at all times which (ε, δ) was reached.

A limit is pure mathematics. It holds no state: `start` makes one, `cost` prices a guarantee,
`admit` returns the state after it, or refuses. The ledger stores states and costs; it never
decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import ClassVar, Self

from discreet import check
from discreet.errors import BadDescription, BadParameter, DiscreetError, OverBudget
from discreet.exact import bisect_whole
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget
from discreet.ledger.costs import Amount, Cost, CostRow, Number, Repetition, State, unreadable_error
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

    **Guarantee.** Whatever an analyst asks, in whatever order and however it depends on earlier
    answers, as long as each question was admitted before its noise was drawn, all answers together
    keep `guarantee` (by `theorem`). A refusal is a function of what was charged before, never of
    the data, and costs nothing.

    What would break it: drawing before charging, giving back what was charged, or pricing a
    mechanism by anything that the data decided.

    >>> from discreet import privacy
    >>> limit = Limit.filter(epsilon=1)
    >>> state = limit.start()
    >>> for _ in range(10):
    ...     state = limit.admit(state, limit.cost(privacy.pure(0.1)))
    >>> limit.budget(state).like(privacy.pure(0.1)), limit.guarantee
    (0, pure(epsilon=1.0))
    """

    #: The word that stored descriptions know this kind of limit by.
    kind: ClassVar[str]
    readers: ClassVar[dict[str, type[Limit]]] = {}

    def __init_subclass__(cls) -> None:
        Limit.readers[cls.kind] = cls

    def __new__(cls, *_: object, **__: object) -> Self:
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
        """Why the guarantee holds."""

    @abstractmethod
    def guarantee_for(self, unit: Unit) -> Guarantee | None:
        """What holds at the end for one such unit; None if nothing is guaranteed for the whole."""

    @property
    def guarantee(self) -> Guarantee | None:
        """What holds at the end, for a record added or removed; the ledger states it for its own
        unit.
        """
        return self.guarantee_for(Unit())

    @abstractmethod
    def describe(self) -> list[str]:
        """What is guaranteed, in plain sentences."""

    @abstractmethod
    def start(self) -> State:
        """Nothing spent."""

    def knows(self, state: State) -> bool:
        """Whether a stored state has an amount for everything that this limit counts."""
        return state.keys() >= self.start().keys()

    def open_ways(self, cost: Cost, state: State) -> Cost:
        """A cost without the ways that are not open to whoever has come to that state."""
        return cost

    @property
    def former_limit(self) -> Limit | None:
        """What earlier releases made of the same call, with the same claim; None if they made the
        same.
        """
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
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        """The state after paying, in the way after which most is left; `OverBudget` if none fits.

        `asker` names whose allocations are charged; `now` is the public time, for limits with
        windows.
        """

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        """How `admit` pays a cost again that it has just paid, in this state and later ones; None
        if that is not known.
        """
        return None

    @abstractmethod
    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        """What is spent and what remains, for people."""

    @abstractmethod
    def fields(self) -> JsonObject:
        """The constants of the limit, as JSON; `from_fields` takes them back."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: JsonFacts) -> Limit:
        """The limit with these constants, which are proved again before they are believed."""

    def to_dict(self) -> JsonObject:
        """A versioned description that `from_dict` reads back to an equal limit."""
        return {"discreet": VERSION, "limit": self.kind, **self.fields()}

    @staticmethod
    def from_dict(data: JsonFacts) -> Limit:
        """The limit that `to_dict` described; the constants are checked again, and what fails is
        refused.

        >>> Limit.from_dict(Limit.filter(epsilon=1, delta=1e-6).to_dict()) == Limit.filter(epsilon=1, delta=1e-6)
        True
        """
        from discreet.ledger import kinds  # noqa: F401 - every kind of limit says how it is read

        try:
            fields = dict(data)
            version, kind = fields.pop("discreet"), fields.pop("limit")
            if isinstance(version, int) and version > VERSION:
                raise _newer_version_error(version)
            return Limit.readers[kind].from_fields(fields)
        except BadDescription:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, DiscreetError) as error:
            raise unreadable_error("a limit") from error

    def __repr__(self) -> str:
        from discreet.ledger.call import call_of

        return call_of(self)

    # --- the three ways to make one ---------------------------------------------------------------

    @staticmethod
    @check.arguments
    def filter(
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        mu: Number | None = None,
        kind: str | None = None,
        leaks: Number | None = None,
        expects: Iterable[Guarantee] | None = None,
        analysts: Mapping[str, Number] | None = None,
        projects: Mapping[str, Number] | None = None,
        reserved: bool = False,
        window: str | None = None,
        lifetime: Limit | None = None,
    ) -> Limit:
        """A limit on adaptive spending: (ε, δ), or ε alone, or ρ, or μ.

        Part of δ pays for mechanisms that may fail, as key selection does; the rest is for Rényi
        accounting. The first charge decides how δ is split. `leaks=0.75` fixes the fraction for
        failures, and `expects`, a list of guarantees that you will ask for in turn, chooses it.
        `kind="basic"` adds up ε and δ and nothing else. `analysts` and `projects` map names to
        allocations, each a fraction of the budget; with `reserved=True` nobody is refused because
        of what others spent. `window` ("month") renews the limit by the calendar, under a
        `lifetime` limit.

        **Guarantee.** All answers together keep the parameters that were given, even if every
        question and its price depend on earlier answers.

        Why it holds: costs add up in exact ratios, and each kind of filter has its theorem
        (`discreet.ledger.filters`; Rogers et al. 2016; Feldman, Zrnic 2021; Whitehouse et al.
        2023). What would break it: answers about the same people that are not charged here.

        >>> limit = Limit.filter(epsilon=1, delta=1e-6)
        >>> limit.guarantee
        approximate(epsilon=1.0, delta=1e-06)
        """
        from discreet.ledger.filter_choice import make_filter
        from discreet.ledger.kinds import build_limit

        return build_limit(
            make_filter(
                epsilon=epsilon, delta=delta, rho=rho, mu=mu, kind=kind, leaks=leaks, expects=expects
            ),
            allocations={"analyst": analysts, "project": projects},
            reserved=reserved,
            window=window,
            lifetime=lifetime,
        )

    @staticmethod
    @check.arguments
    def plan(slots: Guarantee, within: Guarantee | None = None) -> Limit:
        """Slots fixed in advance, used in any order; `within` is a guarantee that they must keep
        together.

        **Guarantee.** All answers together keep the composition of the slots, with its whole curve.
        Order and use of the slots may depend on earlier answers.

        Why it holds: products of dominating pairs dominate adaptive compositions (Zhu, Dong, Wang
        2022, Theorem 10). What would break it: a slot whose noise is chosen after an answer was
        seen.

        >>> from discreet import privacy
        >>> limit = Limit.plan(5 * privacy.gaussian(10.0), within=privacy.approximate(1, 1e-6))
        >>> limit.budget(limit.start()).like(privacy.gaussian(12.0))
        5
        """
        from discreet.ledger.plan import make_plan

        return make_plan(slots, within)

    @staticmethod
    @check.arguments
    def odometer(delta: Number, rho: Number = 0.1) -> Limit:
        """No limit, but the (ε, δ) that was reached at any time; `rho` is the total at which ε is
        tight.

        **Guarantee.** At whatever moment it is read, all answers so far are (ε, δ)-private with the
        ε that `describe` and the budget of a ledger show. Only the δ of mechanisms that may fail is
        limited.

        Why it holds: Ville's inequality for a supermartingale (`discreet.ledger.odometer`; Rogers
        et al. 2016). What would break it: to read ε as a bound on the loss itself.

        >>> from discreet import privacy
        >>> limit = Limit.odometer(delta=1e-6)
        >>> state = limit.admit(limit.start(), limit.cost(privacy.gaussian(noise=20.0)))
        >>> print(limit.budget(state).notes[0])
        all answers so far: ε = 1.30429 at δ = 1e-06
        """
        from discreet.ledger.odometer import make_odometer

        return make_odometer(delta, rho)


def as_guarantee(guarantee: object) -> Guarantee:
    """A guarantee, and nothing that is only like one."""
    if isinstance(guarantee, Guarantee):
        return guarantee
    raise BadParameter(
        "DP104",
        f"a limit prices guarantees, not {type(guarantee).__name__}.",
        why="what an answer costs follows from the guarantee of its mechanism.",
        fix="privacy.pure(0.1)   or  privacy.laplace(scale=10)",
    )


def pay_row(state: State, row: CostRow) -> State:
    """The state with the row's amounts added; both have to be of one limit."""
    if state.keys() == row.amounts.keys():
        return state.plus(row.amounts)
    raise another_limit_error()


def another_limit_error() -> BadParameter:
    """The error for amounts that do not belong together."""
    return BadParameter(
        "DP107",
        "this state or this cost was made by another limit.",
        why="amounts of different measures, or of different Rényi orders, do not add up.",
        fix="limit.admit(state, limit.cost(guarantee)) with one and the same limit",
    )


@dataclass(frozen=True)
class Shortage:
    """What an answer lacks: the δ that it needs at least, the δ that remains, and the fraction of
    its ε that would fit about, if its loss fits no track.
    """

    needed: Amount
    remaining: Amount
    loss_part: float | None = None

    @property
    def delta(self) -> bool:
        """Whether δ does not fit."""
        return self.needed > self.remaining


def over_budget_error(budget: Budget, short: Shortage | None = None) -> OverBudget:
    """The refusal of one query: it names what does not fit, and its fix changes that."""
    details = "; ".join(map(str, budget.tracks))
    if short is not None and short.delta:
        needed, remaining = (
            round_digits(short.needed, ROUND_CEILING),
            round_digits(short.remaining, ROUND_FLOOR),
        )
        what = f"this query needs δ = {needed}, but only {remaining} of the budget's δ remains (details: {details})."
        error = _over_limit_error(what, _delta_fix(short))
    else:
        error = _over_limit_error(
            f"this query does not fit the remaining budget (details: {details}).", _EPSILON_FIX
        )
    if short is not None:
        error.delta_part = float(short.remaining / short.needed) if short.delta else None
        error.loss_part = short.loss_part
    return error


def batch_over_budget_error(budget: Budget, refused: OverBudget, count: int) -> OverBudget:
    """The refusal of a batch of queries of which one, after those before it, was refused; of one
    query its own.
    """
    if count == 1:
        return refused
    details = "; ".join(map(str, budget.tracks))
    if refused.delta_part is None:
        error = _over_limit_error(
            f"these queries together do not fit the remaining budget (details: {details}).", _EPSILON_FIX
        )
    else:
        error = _over_limit_error(
            f"these queries together need more δ than remains of the budget's δ (details: {details}).",
            _BATCH_FIX,
        )
    error.delta_part, error.loss_part = refused.delta_part, refused.loss_part
    return error


_EPSILON_FIX = "ask with a smaller epsilon (more noise), or less often:  session.budget()  and  discreet budget  say what remains."
_BATCH_FIX = "ask with a smaller delta, or for fewer of them together:  session.budget()  says what remains."


def _over_limit_error(what: str, fix: str) -> OverBudget:
    return OverBudget(
        "DP601",
        what,
        why="with it, all answers together would reveal more than the limit guarantees.",
        fix=fix,
    )


def _delta_fix(short: Shortage) -> str:
    smaller = ", and a smaller epsilon" if short.loss_part is not None else ""
    if short.remaining * _HARDLY < short.needed:
        return f"ask without delta, with the keys declared in the description or listed in the question{smaller}."
    return f"ask with  delta={round_digits(short.remaining, ROUND_FLOOR)}  or less{smaller}."


def round_digits(amount: Amount, towards: str) -> str:
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


def _newer_version_error(version: int) -> BadDescription:
    return BadDescription(
        "DP402",
        f"this limit has version {version}, and this release reads up to {VERSION}.",
        why="a newer version may mean something that this one would misread.",
        fix="upgrade discreet.",
    )


__all__ = ["Limit"]

# SPDX-License-Identifier: Apache-2.0
"""Questions to mechanisms; where a description says at_most="auto", how many rows count is chosen once and paid for once.

**Guarantee.** Nothing here is drawn but that choice, and it is charged first, like any other answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.ledger import Wanted
from discreet.session.account import Account, Due, Settled, value_of
from discreet.session.stated import OWN, check_error
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.data.dataset import Dataset
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.plan.accuracy import TwoSteps
    from discreet.tables.plan.cap import CapMechanism
    from discreet.tables.plan.compile import TableMechanism

_KEY = f"{OWN}at_most"  # the key under which the choice of at_most="auto" is kept
_GUESS = 10  # the at_most that previews show before it is chosen


@dataclass(frozen=True)
class Maker:
    """Makes mechanisms for one data set, with what was chosen for it in one ledger."""

    data: Dataset
    account: Account

    @property
    def is_auto(self) -> bool:
        """Whether how many rows of a unit count is chosen from the rows."""
        return self.data.protect.at_most == "auto"

    def compiled(self, question: Question, amount: Spend, cap: int | None = None) -> TableMechanism:
        """The mechanism that answers a question at a cost."""
        from discreet.tables.plan.compile import compile_question

        return compile_question(question, self.data, amount, cap=cap)

    def due(
        self,
        mechanism: TableMechanism,
        key: str | None,
        after: Callable[[], object] = lambda: None,
        named: str = "",
    ) -> Due:
        """An answer to be paid for, under the text of its question or another name."""
        text = named or mechanism.question.text
        wanted = Wanted(mechanism.guarantee, text, key, type(mechanism).__name__)
        return Due(wanted, lambda: mechanism.draw(self.data), Answer.to_json, after)

    def least(self, question: Question, cap: int | None, error: Any, **more: Any) -> Spend | TwoSteps:
        """What a question with a stated error costs."""
        from discreet.tables.plan.accuracy import least_spend

        check_error(more)
        return least_spend(question, self.data, error, cap=cap, **more)

    def cap_or_guess(self) -> tuple[int | None, str]:
        """The number that was chosen for at_most="auto", or one to show figures for."""
        if not self.is_auto:
            return None, ""
        if (kept := self.account.ledger.find_for_all(self._key)) is not None:
            return int(value_of(kept.answer)), ""
        said = f"at_most is not chosen yet: figures are for {_GUESS}. The first answer chooses it, for a tenth more."
        return _GUESS, said

    def cap(self, amount: Spend) -> int | None:
        """How many rows of one unit count, where the description says "auto": chosen if need be, for a tenth of a cost."""
        mechanism = self.choice(amount)
        if mechanism is not None:
            ready = self.data.ready
            released = self.account.release(mechanism, self.data, self._key, ready=ready, compiled=True)
            return int(released.value)
        return self.cap_or_guess()[0]

    def choice(self, amount: Spend) -> CapMechanism | None:
        """The choice that has to be made before a question at this cost; None if there is none to make."""
        if not self.is_auto or self.account.ledger.find_for_all(self._key) is not None:
            return None
        from discreet.tables.plan.cap import CapMechanism

        tenth = _tenth(amount)
        return CapMechanism(self.data, epsilon=tenth, noise=1 / (10 * tenth))

    @property
    def _key(self) -> str:
        """One choice for all; but where shares are reserved, nobody may see what only another has paid for."""
        ledger = self.account.ledger
        key = _KEY if ledger.dataset is not None else f"{_KEY} of {self.data.name}"
        inner: Any = getattr(ledger.limit, "each", ledger.limit)
        if not getattr(inner, "reserved", False):
            return key
        ((group, _),) = inner.shares
        return f"{key} for {self.account.who[group] or ''}"


def answer_of(settled: Settled) -> Answer:
    """A table, or what the ledger keeps of it."""
    drawn: Answer | None = settled.drawn
    answer = Answer.from_json(str(settled.text)) if drawn is None else drawn
    closed = () if settled.receipt is None else settled.receipt.closes
    notes = [
        f"This answer has closed the {name} of the budget, for everybody who shares it." for name in closed
    ]
    return answer.with_receipt(settled.receipt, notes=notes)


def _tenth(amount: Spend) -> float:
    """A tenth of what the first question costs."""
    return float(f"{amount.size / 10:.6g}")

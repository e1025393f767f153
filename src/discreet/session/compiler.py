# SPDX-License-Identifier: Apache-2.0
"""Compiles questions into mechanisms. Where a description says at_most="auto", chooses the
contribution bound once.

**Guarantee.** Nothing is drawn here except that choice, and it is charged first, like any other
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.ledger import Charge
from discreet.ledger.window import allocated_limit
from discreet.session.account import PendingAnswer, SessionAccount, SettledAnswer, parse_value
from discreet.session.validate import OWN_KEYS, check_error_options
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.plan.cap import CapMechanism
    from discreet.tables.plan.compile import TableMechanism
    from discreet.tables.plan.steps import TwoSteps

#: The at_most that previews assume before it is chosen.
_ASSUMED_BOUND = 10


@dataclass(frozen=True)
class QuestionCompiler:
    """Compiles questions about one data set, with the contribution bound that one ledger stores for
    it.
    """

    data: Dataset
    account: SessionAccount

    @property
    def is_auto(self) -> bool:
        """Whether the contribution bound is chosen from the rows."""
        return self.data.protect.at_most == "auto"

    def compile(self, question: Question, spend: Spend, bound: int | None = None) -> TableMechanism:
        """The mechanism that answers a question at a cost."""
        from discreet.tables.plan.compile import compile_question

        return compile_question(question, self.data, spend, cap=bound)

    def pending_answer(
        self,
        mechanism: TableMechanism,
        key: str | None,
        *,
        on_drawn: Callable[[], object] = lambda: None,
        text: str = "",
        finish: Callable[[Answer], Answer] = lambda answer: answer,
    ) -> PendingAnswer:
        """An answer to be paid for, recorded under the text of its question or under another text.

        `finish` changes what is released before it is arranged, by released numbers alone.
        """
        text = text or mechanism.question.text
        charge = Charge(mechanism.guarantee, text, key, type(mechanism).__name__)

        def draw() -> Answer:
            from discreet.tables.answer.arrange import arrange

            return arrange(finish(mechanism.draw_aggregates(self.data)), mechanism.question)

        return PendingAnswer(charge, draw, Answer.to_json, on_drawn)

    def least_spend(
        self, question: Question, bound: int | None, error: str | float, **options: Any
    ) -> Spend | TwoSteps:
        """What a question with a stated error costs."""
        from discreet.tables.plan.accuracy import least_spend

        check_error_options(options)
        return least_spend(question, self.data, error, cap=bound, **options)

    def bound_or_assumed(self) -> tuple[int | None, str]:
        """The bound chosen for at_most="auto", or an assumed one with a note; None where the
        description states it.
        """
        if not self.is_auto:
            return None, ""
        if (entry := self.account.ledger.find_for_all(self._bound_key)) is not None:
            return int(parse_value(entry.answer)), ""
        note = (
            f"at_most is not chosen yet: these figures assume {_ASSUMED_BOUND}."
            " The first answer chooses it, for a tenth of its cost on top."
        )
        return _ASSUMED_BOUND, note

    def chosen_bound(self, spend: Spend) -> int | None:
        """The contribution bound; for at_most="auto" it is chosen if need be, for a tenth of a
        cost.
        """
        mechanism = self.bound_mechanism(spend)
        if mechanism is not None:
            released = self.account.release(
                mechanism, self.data, self._bound_key, ready=self.data.ready, compiled=True
            )
            return int(released.value)
        return self.bound_or_assumed()[0]

    def bound_mechanism(self, spend: Spend) -> CapMechanism | None:
        """The mechanism that chooses the bound before a question at this cost; None if there is
        nothing to choose.
        """
        if not self.is_auto or self.account.ledger.find_for_all(self._bound_key) is not None:
            return None
        from discreet.tables.plan.cap import CapMechanism

        epsilon = tenth(spend)
        return CapMechanism(self.data, epsilon=epsilon, noise=1 / (10 * epsilon))

    @property
    def _bound_key(self) -> str:
        return self.own_key("at_most")

    def own_key(self, name: str) -> str:
        """One choice for all; but where allocations are reserved, nobody may see what only another
        has paid for.
        """
        ledger = self.account.ledger
        key = f"{OWN_KEYS}{name}" if ledger.dataset is not None else f"{OWN_KEYS}{name} of {self.data.name}"
        allocated = allocated_limit(ledger.limit)
        if allocated is None or not allocated.reserved:
            return key
        ((group, _),) = allocated.allocations
        return f"{key} for {self.account.asker.name_in(group) or ''}"


def answer_from(settled: SettledAnswer) -> Answer:
    """The answer that was drawn, or the one that the ledger stores."""
    drawn: Answer | None = settled.drawn
    answer = Answer.from_json(str(settled.text)) if drawn is None else drawn
    closed = () if settled.receipt is None else settled.receipt.closes
    notes = [
        f"This answer has closed the {track} of the budget, for everybody who shares it." for track in closed
    ]
    return replace(answer, receipt=settled.receipt, notes=(*answer.notes, *notes))


def tenth(spend: Spend) -> float:
    """A tenth of what the first question costs."""
    return float(f"{spend.size / 10:.6g}")

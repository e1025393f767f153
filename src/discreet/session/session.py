# SPDX-License-Identifier: Apache-2.0
"""Session: questions to one data set, charged to one ledger; the package says what is promised."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from discreet import check
from discreet.errors import BadParameter, OverBudget, RefusedQuestion, UnsupportedGuarantee
from discreet.extras import naming_extras
from discreet.ledger import Entry, Ledger, Left, Limit, Receipt, Statement
from discreet.ledger.description import Description
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee
from discreet.session.account import COSTS, Account, Settled, having_spent, refuse_not_drawn
from discreet.session.fitting import affordable, with_fix
from discreet.session.maker import Maker, answer_of
from discreet.session.response import ResponseTime, at_response_time
from discreet.session.stated import OWN, check_mechanism, checked_key, limit_of, question_of, spend_of
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.data.dataset import Dataset
from discreet.tables.open import how_to_open
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.ask.sql import ParsedQuestion

__all__ = ["Session"]

_FORGETS = ":memory:"
_PILOT = 0.05  # the ε that at_most="auto" is chosen at a tenth of, for a question that is asked by its error


class Session:
    """Questions to one data set, charged to one ledger.

    `limit` may be left out if the ledger exists or the description has a [budget]. Without a `ledger` the session keeps
    its account in memory and forgets it when it ends: fit for trying things out, and `describe` says so.

    With a `response_time` every question returns so many seconds after it was asked, whatever becomes of it, and one that is late
    ends the session: see `discreet.session.response` for what that hides and what it does not.
    """

    @check.arguments
    def __init__(
        self,
        data: Dataset,
        limit: Limit | None = None,
        ledger: Ledger | str | Path | None = None,
        *,
        analyst: str | None = None,
        project: str | None = None,
        purpose: str | None = None,
        response_time: float | str | None = None,
    ) -> None:
        self._response = ResponseTime(response_time)
        if not isinstance(data, Dataset):
            raise _not_a_data_set(data)
        _load_all_that_questions_need()
        self.data = data
        place = ledger if ledger is not None else data.budget.get("ledger", _FORGETS)
        chosen = limit if limit is not None or isinstance(place, Ledger) else limit_of(data.budget)
        described = Description.of(data.public_description())
        if isinstance(place, Ledger):
            place.check_belongs(limit=chosen, unit=data.unit, dataset=data.name, description=described)
            self.ledger = place
        else:
            self.ledger = Ledger(
                place, limit=chosen, unit=data.unit, dataset=data.name, description=described
            )
        self._account = Account(self.ledger, analyst, project, purpose, described)
        self._maker = Maker(data, self._account)

    # --- asking --------------------------------------------------------------------------------------

    @check.arguments
    @at_response_time
    def sql(
        self,
        text: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
        key: str | None = None,
    ) -> Any:
        """The answer to a question in SQL; `EXPLAIN PRIVACY SELECT …` gives the preview instead.

        What it may cost is said by `epsilon`, by `epsilon` with `delta`, by `rho`, or by the `error` that you need
        ("±50", "±2 %"); beside an error, `epsilon` is the most that it may cost. `key` makes a retry safe: the same key and
        question give the same answer and cost nothing more.
        """
        asked = _parsed(text, self.data)
        stated = {
            **asked.options,
            **_stated(epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot),
        }
        if asked.explain:
            return self.preview(asked.question, **stated)
        return self.release(asked.question, key=key, **stated)

    @check.arguments
    @at_response_time
    def release(
        self,
        question: Any,
        data: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
        key: str | None = None,
    ) -> Any:
        """The answer to a question about the tables; or, for a mechanism, its release on `data`."""
        spend = _stated(
            epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot
        )
        key = checked_key(key)
        if isinstance(question, Mechanism):
            check_mechanism(data, spend)
            return self._account.release(question, data, key)
        asked = question_of(question)
        if "error" in spend:
            return self._exact_enough(asked, key, **spend)
        return self._answer(asked, key, spend_of(spend))

    @check.arguments
    @at_response_time
    def release_all(
        self,
        asked: Mapping[str, tuple[Any, Mapping[str, Any]]],
        *,
        after_each: Callable[[], object] = lambda: None,
    ) -> dict[str, Answer]:
        """The answers to many questions, all of them or none: `{key: (question or SQL, {"epsilon": 0.1}), …}`.

        **Guarantee.** Every question is compiled, and all of them are charged in one transaction, before the first is drawn. If
        one is refused, or they do not fit together, nothing is charged and nothing is drawn. All answers are kept before
        any is shown. Asking again with the same keys, after a crash too, gives the same answers and costs nothing more.

        Why a retry is free: a draw that was not kept was shown to nobody, so what is seen is one answer for each charge
        (`discreet.ledger.turn`). Only where at_most="auto" is not chosen yet, that choice is charged and drawn before the rest,
        which depends on it; it is not begun if the rest would not fit, and serves every later question.
        """
        from discreet.session.together import together

        return together(self._maker, asked, self._response.silent(after_each))

    @check.arguments
    def preview(
        self,
        question: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
    ) -> Any:
        """What a question would cost and how wrong its answer would be. Touches no data and spends nothing."""
        spend = _stated(
            epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot
        )
        asked = _parsed(question, self.data).question if isinstance(question, str) else question_of(question)
        cap, guessed = self._maker.cap_or_guess()
        amount, first = self._at_first(asked, cap, **spend) if "error" in spend else (spend_of(spend), "")
        mechanism = self._maker.compiled(asked, amount, cap)
        shown = mechanism.preview()
        notes = [note for note in (first, guessed, *self._account.closing(mechanism.guarantee)) if note]
        return replace(shown, notes=(*notes, *shown.notes))

    @check.arguments
    def choice(
        self, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> Guarantee | None:
        """What the choice of at_most="auto" will cost besides a question at this cost; None if there is none to make."""
        mechanism = self._maker.choice(Spend(epsilon, delta, rho))
        return None if mechanism is None else mechanism.guarantee

    @check.arguments
    def charge(self, guarantee: Guarantee, *, question: str, key: str | None = None) -> Receipt:
        """Pay for something that is drawn elsewhere: a training run, a mechanism of your own. Pay before you draw."""
        return self._account.charge(guarantee, question, checked_key(key))

    @check.arguments
    def find(self, key: str, question: str, guarantee: Guarantee | None = None) -> Entry | None:
        """The answer that this session's analyst was given under a key; a key that stands for anything else is refused."""
        return self._account.find(key, question, guarantee)

    # --- the account ---------------------------------------------------------------------------------

    def budget(self) -> Left:
        """What is spent and what remains of the limit, or of the allocation that this session's analyst or project has.

        `budget().spent_fraction`, `budget().remaining_fraction`, and `budget().remaining`: the most that the next question may cost.
        """
        return self._account.left()

    def left(self) -> Left:
        """The former name of `budget`."""
        return self.budget()

    def describe(self) -> str:
        """Who is protected, against what, and what is left, in numbered sentences."""
        said = [
            *self.ledger.describe(),
            "Every answer is charged before it is drawn, and nothing is given back.",
            *self._response.describe(),
            "What the rows say outside of answers is not covered: who may read the source is decided elsewhere.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))

    def statement(self, *, declared: Mapping[str, Any] | None = None) -> Statement:
        """What was promised and what was released, for those who must answer for it.

        `declared` holds what only a person knows, by the fields of the registry of deployments: see `Statement.of`.
        """
        return Statement.of(self.ledger, self.data.public_description(), declared=declared)

    def __repr__(self) -> str:
        return (
            f"Session({self.data.name!r}, protects {self.data.unit}, {len(self.ledger)} rows in its ledger)"
        )

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li>{html.escape(line.split('. ', 1)[1])}</li>" for line in self.describe().splitlines()
        )
        return f"<ol>{items}</ol>"

    def __reduce__(self) -> NoReturn:
        raise Ledger.no_copies()

    def __copy__(self) -> NoReturn:
        raise Ledger.no_copies()

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise Ledger.no_copies()

    # --- charge, then draw ---------------------------------------------------------------------------

    def _answer(self, question: Question, key: str | None, amount: Spend, named: str = "") -> Answer:
        """Compiled, charged, drawn, kept; an answer that is kept already is shown again and costs nothing."""
        less = partial(self._maker.compiled, question, cap=self._maker.cap_or_guess()[0])
        try:
            mechanism = less(amount)
        except RefusedQuestion as refused:
            raise affordable(refused, self._account, amount, less) from None
        before = "what choosing at_most cost" if self._maker.choice(amount) is not None else ""
        if self._maker.is_auto:
            mechanism = self._maker.compiled(question, amount, self._maker.cap(amount))
        due = self._maker.due(mechanism, key, named=named)
        with having_spent(before):
            try:
                (settled,) = self._account.settle([due], self.data.ready, compiled=True, spent=COSTS)
            except UnsupportedGuarantee as refused:
                raise affordable(refused, self._account, amount, less) from None
            except OverBudget as refused:
                # by now at_most may have been chosen
                less = partial(self._maker.compiled, question, cap=self._maker.cap_or_guess()[0])
                raise with_fix(refused, self._account, amount, less) from None
        return answer_of(settled)

    def _exact_enough(self, question: Question, key: str | None, error: Any, **more: Any) -> Answer:
        """The least loss that keeps an error: at once where it can be known in advance, else after a small question.

        Each of the two steps has a key of its own, if the question has one: then each is paid once, whoever is stopped
        and asks again. Without a key everything that is asked is new, and is paid.
        """
        # the most that it may cost is no part of the question: who allows more goes on from the same first step
        stated = "".join(f", {name} {value}" for name, value in sorted(more.items()) if name != "epsilon")
        named = f"{question.text} [error {error}{stated}]"
        kept = self._account.find(key, named, None)
        if kept is not None:
            refuse_not_drawn(kept.answer)
            return answer_of(Settled(kept.answer, kept.receipt))
        plan = self._maker.least(
            question, self._maker.cap_or_guess()[0], error, **more
        )  # refused here, if it is
        first = more.get("pilot") or Spend(epsilon=_PILOT)
        with having_spent("what choosing at_most cost" if self._maker.choice(first) is not None else ""):
            if self._maker.is_auto:
                plan = self._maker.least(question, self._maker.cap(first), error, **more)
            if isinstance(plan, Spend):
                return self._answer(question, key, plan, named)
            pilot = self._answer(plan.question, _first_step(key), plan.pilot, f"{named}, first step")
            is_new = pilot.receipt.cost is not None
            with having_spent("what the first step cost" if is_new else ""):
                return self._answer(question, key, plan.then(pilot), named)

    def _at_first(self, question: Question, cap: int | None, error: Any, **more: Any) -> tuple[Spend, str]:
        """What an error costs, as far as that is known without data."""
        plan = self._maker.least(question, cap, error, **more)
        if isinstance(plan, Spend):
            return plan, f"The least cost that keeps an error of {error}."
        return plan.pilot, (
            f"An error of {error} needs two steps: a small question at this cost, whose noisy answer says what the"
            f" second step has to cost. Both together cost ε = {plan.most:g} at most; epsilon=… allows more or less."
        )


def _first_step(key: str | None) -> str | None:
    """The key of the first of two steps: no other question has it, and it is as short as any."""
    return None if key is None else f"{OWN}first step {hashlib.sha256(key.encode()).hexdigest()}"


def _load_all_that_questions_need() -> None:
    """Import it when a session is made: a fork while another thread imports leaves the child waiting for that import for ever."""
    with naming_extras():
        import discreet.session.together
        import discreet.tables.ask.sql
        import discreet.tables.plan.accuracy
        import discreet.tables.plan.cap
        import discreet.tables.plan.compile  # noqa: F401


def _stated(**given: Any) -> dict[str, Any]:
    """What was stated of the cost, by name."""
    return {name: value for name, value in given.items() if value is not None}


def _parsed(text: Any, data: Dataset) -> ParsedQuestion:
    with naming_extras():
        from discreet.tables.ask.sql import parse
    return parse(text, data)


def _not_a_data_set(given: Any) -> BadParameter:
    return BadParameter(
        "DP104",
        "a session needs a data set, which says whom it protects.",
        why="without that there is nothing to promise.",
        fix=f"data = {how_to_open(given)}",
    )

# SPDX-License-Identifier: Apache-2.0
"""Session: questions to one data set, charged to one ledger. The package docstring states the
guarantee.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

from discreet import check
from discreet.errors import BadParameter
from discreet.extras import naming_extras
from discreet.ledger import Budget, Entry, Ledger, Limit, Receipt, Statement
from discreet.ledger.description import Description
from discreet.mechanisms.mechanism import Mechanism, Release
from discreet.privacy.guarantee import Guarantee
from discreet.session.account import (
    SessionAccount,
    adding_spent,
)
from discreet.session.answering import answer_at, answer_by_error, choose_bounds, spend_for_error
from discreet.session.compiler import QuestionCompiler
from discreet.session.response import ResponseTime, at_response_time
from discreet.session.stream_methods import StreamMethods
from discreet.session.suggestions import (
    cut_off,
    needed_columns,
    refuse_unchosen,
    suggest,
    unchosen_columns,
    unchosen_note,
    with_assumed_bounds,
    with_chosen_bounds,
)
from discreet.session.synthesis_methods import SynthesisMethods
from discreet.session.validate import (
    Askable,
    QuestionCost,
    check_key,
    check_mechanism_call,
    limit_of,
    question_cost,
    question_of,
    spend_of,
)
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.open import how_to_open
from discreet.tables.plan.preview import Preview
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.ask.sql import ParsedQuestion
    from discreet.tables.plan.explain import ErrorExplanation
    from discreet.tables.plan.suggest import BoundsSuggestion

__all__ = ["Session"]

_IN_MEMORY = ":memory:"
#: What questions import when they are asked.
_QUESTION_MODULES = (
    "discreet.session.batch",
    "discreet.session.synthesis",
    "discreet.tables.answer.catalogue",
    "discreet.tables.answer.public",
    "discreet.tables.ask.sql",
    "discreet.tables.ask.sql.catalogue",
    "discreet.tables.ask.sql.public",
    "discreet.tables.plan.accuracy",
    "discreet.tables.plan.cap",
    "discreet.tables.plan.compile",
    "discreet.tables.plan.explain",
    "discreet.tables.plan.steps",
    "discreet.tables.plan.suggest",
)


class Session(StreamMethods, SynthesisMethods):
    """Questions to one data set, charged to one ledger.

    `limit` may be left out if the ledger exists or the description has a [budget]. Without a
    `ledger` the session keeps its account in memory and forgets it at the end: good for trying
    things out, and `describe` says so. `analyst`, `project` and `purpose` are written into the
    ledger with every charge. With a `response_time`, such as "2s", every question returns that long
    after it was asked; `discreet.session.response` states what this hides.

    **Guarantee.** Every answer is charged to the ledger before anything is drawn, and nothing is
    given back. All answers that the ledger admits together keep the guarantee of its limit, however
    the questions were chosen.

    Why it holds: the limit is a privacy filter (Rogers et al. 2016; Whitehouse et al. 2023), and
    the order of the steps is charge, draw, store, show.

    What would break it: a second session on the same people with another ledger; a description that
    is not true; anything else that was computed from the rows and shared.

    >>> import discreet as dp
    >>> adult = dp.open(dp.data.path("adult.toml"))
    >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    >>> answer = session.sql("SELECT sex, COUNT(*) FROM adult GROUP BY sex", epsilon=0.25)
    >>> answer.header
    ['sex', 'count', 'count_lo', 'count_hi']
    >>> round(session.budget().spent_fraction, 6)
    0.25
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
            raise _not_a_data_set_error(data)
        _import_question_modules()
        self.data = data
        address = ledger if ledger is not None else data.budget.get("ledger", _IN_MEMORY)
        chosen = limit if limit is not None or isinstance(address, Ledger) else limit_of(data.budget)
        description = Description.of(data.public_description())
        if isinstance(address, Ledger):
            address.check_belongs(limit=chosen, unit=data.unit, dataset=data.name, description=description)
            self.ledger = address
        else:
            self.ledger = Ledger(
                address, limit=chosen, unit=data.unit, dataset=data.name, description=description
            )
        self._account = SessionAccount(self.ledger, analyst, project, purpose, description)
        self._compiler = QuestionCompiler(data, self._account)
        self._take_chosen_bounds()

    # --- asking -----------------------------------------------------------------------------------

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
        parameters: Sequence[Value] = (),
    ) -> Answer:
        """The answer to a question in SQL; each `?` in it stands for one of `parameters`.

        State what it may cost as `epsilon`, as `epsilon` with `delta`, as `rho`, or by the `error`
        that you need ("±50", "±2 %"); with an error, `epsilon` is the most that it may cost. `key`
        makes a retry safe: the same key and question give the same answer at no further cost.
        `EXPLAIN PRIVACY SELECT …` is a question for `preview`. `SHOW TABLES` and `DESCRIBE visits`
        show the public description. A question about public tables alone is run by DuckDB as it
        stands. Both cost nothing.

        **Guarantee.** The cost is in the ledger, on disk, before anything is drawn. A refused
        question costs nothing.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> answer = session.sql("SELECT COUNT(*) FROM adult", epsilon=0.1, key="people")
        >>> answer.interval is not None, session.budget().remaining
        (True, {'epsilon': 0.9})
        >>> again = session.sql("SELECT COUNT(*) FROM adult", epsilon=0.1, key="people")
        >>> again.rows() == answer.rows(), session.budget().remaining
        (True, {'epsilon': 0.9})
        """
        described = _free_answer(text, self.data, parameters)
        if described is not None:
            return described
        stated = question_cost(
            epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot
        )
        asked, assumed, needed = self._parse_assuming(text, parameters)
        cost: dict[str, Any] = {**asked.options, **stated}
        if asked.explain:
            raise _explain_error(asked.question, cost)
        if not needed:
            return self.release(asked.question, key=key, **cost)
        paid = choose_bounds(self._compiler, asked.question, assumed, needed, cost)
        self._take_chosen_bounds()
        with adding_spent("what choosing bounds cost" if paid else ""):
            refuse_unchosen(self.data, needed)
            return self.release(_parse(text, self.data, parameters).question, key=key, **cost)

    @overload
    def release(self, question: Mechanism, data: object, *, key: str | None = None) -> Release: ...

    @overload
    def release(
        self,
        question: Askable,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
        key: str | None = None,
    ) -> Answer: ...

    @check.arguments
    @at_response_time
    def release(
        self,
        question: object,
        data: object = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
        key: str | None = None,
    ) -> Answer | Release:
        """The answer to a question about the tables; or the release of a mechanism on `data`.

        The cost of a question is stated as in `sql`. A mechanism costs its own guarantee. A SELECT
        of SQLAlchemy, or an expression of Ibis, is asked in the SQL that it writes.

        **Guarantee.** As for `sql`: charged first, then drawn. A mechanism must protect the unit of
        the data set.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> session.release(adult.where(dp.col("age") >= 65).count(), epsilon=0.1).header
        ['count', 'count_lo', 'count_hi']
        >>> laplace = dp.Laplace(epsilon=0.5, sensitivity=1, unit="person")
        >>> session.release(laplace, 42).guarantee.epsilon(delta=0)
        0.5
        """
        cost = question_cost(
            epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot
        )
        key = check_key(key)
        if isinstance(question, Mechanism):
            check_mechanism_call(data, cost)
            return self._account.release(question, data, key)
        asked = question_of(question, self.data)
        if "error" in cost:
            return answer_by_error(self._compiler, asked, key, **cost)
        return answer_at(self._compiler, asked, key, spend_of(cost))

    @check.arguments
    @at_response_time
    def release_batch(
        self,
        questions: Mapping[str, tuple[Askable | str, QuestionCost]],
        *,
        after_each: Callable[[], object] = lambda: None,
    ) -> dict[str, Answer]:
        """The answers to many questions, all of them or none.

        `questions` is `{key: (question or SQL, {"epsilon": 0.1}), …}`.

        `after_each` is called after each answer that was drawn, for a progress bar.

        **Guarantee.** Every question is compiled, and all of them are charged in one transaction,
        before the first is drawn. If one is refused, or the batch does not fit the limit, nothing
        is charged and nothing is drawn. All answers are stored before any is shown. Asking again
        with the same keys, also after a crash, gives the same answers at no further cost.

        Why a retry is free: a draw that was not stored was shown to nobody, so there is one visible
        answer for each charge (`discreet.ledger.turn`). Only where at_most="auto" is not chosen
        yet, that choice is charged and drawn before the rest, which depends on it. It does not
        start if the rest would not fit, and it serves every later question.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> answers = session.release_batch({
        ...     "people": ("SELECT COUNT(*) FROM adult", {"epsilon": 0.1}),
        ...     "hours": ("SELECT AVG(hours_per_week) AS hours FROM adult", {"epsilon": 0.2}),
        ... })
        >>> list(answers)
        ['people', 'hours']
        """
        from discreet.session.batch import release_batch

        return release_batch(self._compiler, questions, self._response.silence(after_each))

    @check.arguments
    def preview(
        self,
        question: Askable | str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        pilot: Spend | None = None,
        parameters: Sequence[Value] = (),
    ) -> Preview:
        """The cost of a question and the margin of error of its answer.

        The question is an expression or SQL, with or without `EXPLAIN PRIVACY` before it.

        **Guarantee.** No row is read and nothing is spent. The preview is the same whatever the
        rows are.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> preview = session.preview("SELECT COUNT(*) FROM adult", epsilon=0.1)
        >>> preview.cost.epsilon(delta=0), session.budget().spent_fraction
        (0.1, 0.0)
        """
        stated = question_cost(
            epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, pilot=pilot
        )
        cost: dict[str, Any] = {**stated}
        needed: Mapping[str, Sequence[str]] = {}
        if isinstance(question, str):
            parsed, _, needed = self._parse_assuming(question, parameters)
            asked, cost = parsed.question, {**parsed.options, **stated}
        else:
            asked = question_of(question, self.data)
        bound, assumed = self._compiler.bound_or_assumed()
        spend, first = (
            spend_for_error(self._compiler, asked, bound, **cost) if "error" in cost else (spend_of(cost), "")
        )
        mechanism = self._compiler.compile(asked, spend, bound)
        preview = mechanism.preview()
        closing = self._account.closing_notes(mechanism.guarantee)
        notes = [note for note in (first, assumed, unchosen_note(needed), *closing) if note]
        return replace(preview, notes=(*notes, *preview.notes))

    @check.arguments
    def explain_error(
        self,
        question: Askable | str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        answer: Answer | None = None,
        parameters: Sequence[Value] = (),
    ) -> ErrorExplanation:
        """How much of the error of a question is noise, contribution bound, clipping and
        suppression; and which changes would halve it, with the new margin beside the old.

        What the bounds cut off is known after `suggest_bounds`. With the `answer` to the question
        it is stated in its units.

        **Guarantee.** No row is read and nothing is spent.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> explanation = session.explain_error("SELECT COUNT(*) FROM adult", epsilon=0.1)
        >>> str(explanation.rewrites[0])
        'epsilon=0.2: count ±14.98 instead of ±29.96'
        """
        from discreet.tables.plan.explain import explain_error

        spend = spend_of(question_cost(epsilon=epsilon, delta=delta, rho=rho))
        asked = (
            self._parse_assuming(question, parameters)[0].question
            if isinstance(question, str)
            else question_of(question, self.data)
        )
        mechanism = self._compiler.compile(asked, spend, self._compiler.bound_or_assumed()[0])
        return explain_error(mechanism, cut_off(self._compiler, asked), answer)

    @check.arguments
    def combine(self, *answers: Answer, complete: Sequence[str] = ()) -> Answer:
        """Answers to overlapping questions as one: each number once, by generalised least squares.

        The questions must ask for the same counts and sums of the same rows, by keys of their own:
        a table by sex and a later one by sex and race. `complete` names keys of which every row has
        one of the listed values, as you know and the library does not; then the table by sex and
        race also tells about the total.

        **Guarantee.** Free: only released numbers are read. The intervals hold if the answers are
        about the same rows with the same contribution bounds.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(rho=1))
        >>> once = session.release(adult.group_by("sex").count(), rho=0.1)
        >>> more = session.release(adult.group_by("sex", "race").count(), rho=0.1)
        >>> merged = session.combine(once, more, complete=("race",))
        >>> len(merged)
        12
        """
        from discreet.session.combining import combine_released

        return combine_released(self.data, answers, complete)

    @check.arguments
    def bound_guarantee(
        self, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> Guarantee | None:
        """The guarantee of the private choice of at_most="auto", which the first question at this
        cost pays for.

        None if there is no choice to make: the description states the bound, or it was chosen
        before.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> session.bound_guarantee(epsilon=0.1) is None
        True
        """
        mechanism = self._compiler.bound_mechanism(Spend(epsilon, delta, rho))
        return None if mechanism is None else mechanism.guarantee

    @check.arguments
    @at_response_time
    def suggest_bounds(
        self, table: str | None = None, columns: Sequence[str] = (), *, epsilon: float
    ) -> BoundsSuggestion:
        """Bounds with about the least error for a private table, and how much the declared ones cut
        off.

        The number of rows of a unit and, for each of `columns`, its greatest and its least value
        are counted in noisy histograms. `at_most` and the bounds are those at which bias and the
        noise of later questions at this ε are about equal. Later answers note the shares of rows
        and of values that the declared bounds cut off.

        **Guarantee.** All histograms together cost ε, and are charged before they are drawn. Each
        is paid once: what the ledger has is shown again for nothing, and what is missing costs the
        whole ε.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> session.suggest_bounds("adult", ["age"], epsilon=0.1).at_most
        1
        """
        suggestion = suggest(self._compiler, table, columns, epsilon)
        self._take_chosen_bounds()
        return suggestion

    @check.arguments
    def charge(self, guarantee: Guarantee, *, question: str, key: str | None = None) -> Receipt:
        """Pay for something that is drawn elsewhere: a training run, or a mechanism of your own.
        Pay before you draw.

        **Guarantee.** The charge is on disk when this returns. That the draw keeps the guarantee is
        your claim; statements mark it as asserted.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> session.charge(dp.privacy.pure(0.5, unit="person"), question="a survey by hand").number
        1
        """
        return self._account.charge(guarantee, question, check_key(key))

    @check.arguments
    def find(self, key: str, question: str, guarantee: Guarantee | None = None) -> Entry | None:
        """The answer stored under a key of this session's analyst, or None; a key of another
        question is refused.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
        >>> session.find("people", "SELECT COUNT(*) FROM adult") is None
        True
        """
        return self._account.find(key, question, guarantee)

    # --- the account ------------------------------------------------------------------------------

    def budget(self) -> Budget:
        """What is spent and what remains of the limit, or of the allocation of this session's
        analyst or project.

        See `spent_fraction`, `remaining_fraction`, and `remaining`: the most that the next question
        may cost.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
        >>> session.budget().remaining_fraction
        1.0
        """
        return self._account.budget()

    def describe(self) -> str:
        """Who is protected, against what, and how much budget remains, in numbered sentences.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> print(dp.Session(adult, limit=dp.Limit.filter(epsilon=1)).describe()[:2])
        1.
        """
        sentences = [
            *self.ledger.describe(),
            "Every answer is charged before it is drawn, and nothing is given back.",
            *self._response.describe(),
            "Only answers are covered: who may read the source of the rows is decided elsewhere.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))

    def statement(self, *, declared: Mapping[str, object] | None = None) -> Statement:
        """A privacy statement: what was guaranteed and what was released, for those who must answer
        for it.

        `declared` holds what only a person knows, by the fields of the registry of deployments: see
        `Statement.of`.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> page = dp.Session(adult, limit=dp.Limit.filter(epsilon=1)).statement().to_html()
        >>> page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
        True
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

    __copy__ = __reduce__

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise Ledger.no_copies()

    # --- bounds="auto" -------------------------------------------------------------------------------

    def _take_chosen_bounds(self) -> None:
        """Describe the columns with bounds="auto" by the bounds that the ledger has."""
        self.data = with_chosen_bounds(self._compiler)
        self._compiler = replace(self._compiler, data=self.data)

    def _parse_assuming(
        self, text: object, parameters: Sequence[Value]
    ) -> tuple[ParsedQuestion, Dataset, Mapping[str, Sequence[str]]]:
        """A question, the data set that it was parsed for, and the columns whose bounds that
        assumes.
        """
        try:
            return _parse(text, self.data, parameters), self.data, {}
        except BadParameter:
            if not unchosen_columns(self.data):
                raise
            assumed = with_assumed_bounds(self.data)
            parsed = _parse(text, assumed, parameters)
            needed = needed_columns(self.data, parsed.question)
            if not needed:
                raise
        return parsed, assumed, needed


def _import_question_modules() -> None:
    """Import what questions need when a session is made.

    A fork while another thread imports leaves the child waiting for that import for ever.
    """
    with naming_extras():
        for module in _QUESTION_MODULES:
            import_module(module)


def _parse(text: object, data: Dataset, parameters: Sequence[Value] = ()) -> ParsedQuestion:
    with naming_extras():
        from discreet.tables.ask.sql import parse
    return parse(text, data, parameters)


def _free_answer(text: object, data: Dataset, parameters: object) -> Answer | None:
    """The answer to SHOW TABLES, DESCRIBE or a question about public tables, which costs nothing."""
    with naming_extras():
        from discreet.tables.answer.catalogue import catalogue_answer
        from discreet.tables.answer.public import public_answer
        from discreet.tables.ask.sql.catalogue import catalogue_question
        from discreet.tables.ask.sql.public import public_question
    catalogue = catalogue_question(text, data)
    if catalogue is not None:
        return catalogue_answer(catalogue, data)
    public = public_question(text, data, parameters)
    return None if public is None else public_answer(public, data)


def _explain_error(question: Question, cost: Mapping[str, object]) -> BadParameter:
    """The refusal of EXPLAIN PRIVACY where an answer is asked for."""
    amounts = {name: value for name, value in cost.items() if name != "pilot"} or {"epsilon": 0.1}
    arguments = "".join(f", {name}={value!r}" for name, value in amounts.items()).replace("e-0", "e-")
    return BadParameter(
        "DP107",
        "EXPLAIN PRIVACY asks for a preview, and sql() returns answers.",
        why="a preview is free and an answer is charged, so each has its own method.",
        fix=f"session.preview({json.dumps(question.text, ensure_ascii=False)}{arguments})",
    )


def _not_a_data_set_error(value: object) -> BadParameter:
    return BadParameter(
        "DP104",
        "a session needs a data set, which says who is protected.",
        why="without a privacy unit there is no guarantee to give.",
        fix=f"data = {how_to_open(value)}",
    )

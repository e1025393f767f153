# SPDX-License-Identifier: Apache-2.0
"""A session: the one door to private data. It charges, then draws.

    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6), ledger="visits.ledger")
    session.preview("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.2)     # spends nothing
    session.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.2)
    session.left()

**Promise.** Every answer was charged to the ledger, and the charge was on disk, before anything was drawn. A charge is
never given back: not for an error, a time-out or a refusal. Whatever the ledger admits in all keeps the promise of its
limit, for whoever sees all answers, and however questions were chosen (`discreet.ledger.limit` names the theorem).

What would break it: a second session on the same people with another ledger; a description of the data set that is
not true (a "public" table made from private data); sharing anything else that was computed from the rows.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.errors import BadParameter, DiscreetError, OverBudget
from discreet.ledger import Ledger, Limit
from discreet.mechanisms.mechanism import Mechanism, Refusal, Release
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer import Answer
from discreet.tables.dataset import Dataset
from discreet.tables.question import Question
from discreet.tables.spend import Spend

if TYPE_CHECKING:
    from discreet.ledger import Entry, Left, Receipt
    from discreet.tables.cap import CapMechanism
    from discreet.tables.compile import TableMechanism

__all__ = ["Session"]

_FORGETS = ":memory:"
_CAP = "discreet: at_most"  # the key under which the choice of at_most="auto" is kept
_GUESS = 10  # the at_most that previews show before it is chosen
_PILOT = 0.05  # the ε that at_most="auto" is chosen at a tenth of, for a question that is asked by its error


class Session:
    """Questions to one data set, charged to one ledger.

    `limit` may be left out if the ledger exists or the description has a [budget]. Without a `ledger` the session keeps
    its account in memory and forgets it when it ends: fit for trying things out, and `describe` says so.
    """

    def __init__(
        self,
        data: Dataset,
        limit: Limit | None = None,
        ledger: Ledger | str | Path | None = None,
        *,
        analyst: str | None = None,
        project: str | None = None,
        purpose: str | None = None,
    ) -> None:
        if not isinstance(data, Dataset):
            raise _not_a_data_set()
        self.data = data
        self._who = {"analyst": analyst, "project": project}
        self._purpose = purpose
        place = ledger if ledger is not None else data.budget.get("ledger", _FORGETS)
        chosen = limit if limit is not None or isinstance(place, Ledger) else limit_of(data.budget)
        if isinstance(place, Ledger):
            place.check_belongs(limit=chosen, unit=data.unit, dataset=data.name)
            self.ledger = place
        else:
            self.ledger = Ledger(place, limit=chosen, unit=data.unit, dataset=data.name)

    # --- asking --------------------------------------------------------------------------------------

    def sql(self, text: str, *, key: str | None = None, **spend: Any) -> Any:
        """The answer to a question in SQL; `EXPLAIN PRIVACY SELECT …` gives the preview instead.

        What it may cost is said by `epsilon`, by `epsilon` with `delta`, by `rho`, or by the `error` that you need
        ("±50", "±2 %"). `key` makes a retry safe: the same key and question give the same answer and cost nothing more.
        """
        from discreet.tables.sql import parse

        asked = parse(text, self.data)
        stated = {**asked.options, **spend}
        if asked.explain:
            return self.preview(asked.question, **stated)
        return self.release(asked.question, key=key, **stated)

    def release(self, question: Any, data: Any = None, *, key: str | None = None, **spend: Any) -> Any:
        """The answer to a question about the tables; or, for a mechanism, its release on `data`."""
        if isinstance(question, Mechanism):
            _check_mechanism(data, spend)
            return self._release(question, data, key)
        asked = _question(question)
        if "error" in spend:
            return self._exact_enough(asked, key, **spend)
        return self._answer(asked, key, _spend(spend))

    def preview(self, question: Any, **spend: Any) -> Any:
        """What a question would cost and how wrong its answer would be. Touches no data and spends nothing."""
        from discreet.tables.sql import parse

        asked = parse(question, self.data).question if isinstance(question, str) else _question(question)
        cap, guessed = self._cap_or_guess()
        amount, first = self._at_first(asked, cap, **spend) if "error" in spend else (_spend(spend), "")
        shown = self._compiled(asked, amount, cap).preview()
        notes = [note for note in (first, guessed) if note]
        return replace(shown, notes=(*notes, *shown.notes))

    def choice(self, **spend: Any) -> Guarantee | None:
        """What the choice of at_most="auto" will cost besides a question at this cost; None if there is none to make."""
        mechanism = self._choice(_spend(spend))
        return None if mechanism is None else mechanism.promise

    def charge(self, guarantee: Guarantee, *, question: str, key: str | None = None) -> Receipt:
        """Pay for something that is drawn elsewhere: a training run, a mechanism of your own. Pay before you draw."""
        return self.ledger.charge(
            guarantee, question=question, key=key, private=is_private(), purpose=self._purpose, **self._who
        )

    # --- the account ---------------------------------------------------------------------------------

    def left(self) -> Left:
        """What is left of the limit, or of the share of it that this session's analyst or project has."""
        return self.ledger.left(**self._who)

    def describe(self) -> str:
        """Who is protected, against what, and what is left, in numbered sentences."""
        said = [
            *self.ledger.describe(),
            "Every answer is charged before it is drawn, and nothing is given back.",
            "What the rows say outside of answers is not covered: who may read the source is decided elsewhere.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))

    def statement(self) -> Any:
        """What was promised and what was released, for those who must answer for it."""
        from discreet.ledger.statement import Statement

        return Statement.of(self.ledger, self.data.public_description())

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
        text = named or question.text
        mechanism = self._compiled(question, amount, self._cap_or_guess()[0])  # refused here, if it is
        before = "what choosing at_most cost" if self._choice(amount) is not None else ""
        if self.data.protect.at_most == "auto":
            mechanism = self._compiled(question, amount, self._cap(amount))
        if key is not None:
            kept = self.ledger.find(key, text, guarantee=mechanism.promise, **self._who)
            if kept is not None:
                return _again(kept)
        with _having_spent(before):
            receipt = self._paid(mechanism, text, key)
        answer = _drawn(mechanism, self.data)
        written = answer.to_json()
        shown = self.ledger.commit(receipt, written)
        # another process may have answered under the same key meanwhile; then its answer is the one that is shown
        return (answer if shown == written else Answer.from_json(str(shown))).with_(receipt=receipt)

    def _exact_enough(self, question: Question, key: str | None, error: Any, **more: Any) -> Answer:
        """The least loss that keeps an error: at once where it can be known in advance, else after a small question."""
        named = f"{question.text} [error {error}]"
        if (
            key is not None
            and (kept := self.ledger.find(key, named, guarantee=None, **self._who)) is not None
        ):
            return _again(kept)
        from discreet.tables.accuracy import least_spend

        _check_error(more)
        plan = least_spend(
            question, self.data, error, cap=self._cap_or_guess()[0], **more
        )  # refused here, if it is
        if self.data.protect.at_most == "auto":
            cap = self._cap(more.get("pilot") or Spend(epsilon=_PILOT))
            plan = least_spend(question, self.data, error, cap=cap, **more)
        if isinstance(plan, Spend):
            return self._answer(question, key, plan, named)
        pilot = self._answer(plan.question, None, plan.pilot, f"{named}, first step")
        with _having_spent("what the first step cost"):
            return self._answer(question, key, plan.then(pilot), named)

    def _release(self, mechanism: Mechanism, data: Any, key: str | None) -> Release:
        """A mechanism of any kind, on data that are not tables."""
        named = type(mechanism).__name__
        kept = None
        if key is not None:
            kept = self.ledger.find(key, named, guarantee=mechanism.promise, **self._who)
        if kept is not None:
            receipt, value = kept.receipt, _value(kept.answer)
        else:
            receipt = self._paid(mechanism, named, key)
            value = _drawn(mechanism, data)
            written = _written(value)
            shown = self.ledger.commit(receipt, written)
            value = value if shown == written else _value(shown)
        refused = isinstance(value, Refusal)
        return Release(
            value,
            mechanism.promise,
            None if refused else mechanism.error(),
            None if refused else mechanism.interval(value),
            receipt,
        )

    def _paid(self, mechanism: Mechanism, question: str, key: str | None) -> Receipt:
        return self.ledger.charge(
            mechanism.promise,
            question=question,
            key=key,
            mechanism=type(mechanism).__name__,
            private=is_private(),
            purpose=self._purpose,
            **self._who,
        )

    # --- questions to mechanisms -----------------------------------------------------------------------

    def _compiled(self, question: Question, amount: Spend, cap: int | None = None) -> TableMechanism:
        from discreet.tables.compile import compile_question

        return compile_question(question, self.data, amount, cap=cap)

    def _at_first(self, question: Question, cap: int | None, error: Any, **more: Any) -> tuple[Spend, str]:
        """What an error costs, as far as that is known without data."""
        from discreet.tables.accuracy import least_spend

        _check_error(more)
        plan = least_spend(question, self.data, error, cap=cap, **more)
        if isinstance(plan, Spend):
            return plan, f"The least cost that keeps an error of {error}."
        return plan.pilot, (
            f"An error of {error} needs two steps: a small question at this cost, whose noisy answer says what the"
            " second step has to cost."
        )

    def _cap_or_guess(self) -> tuple[int | None, str]:
        """The number that was chosen for at_most="auto", or one to show figures for."""
        if self.data.protect.at_most != "auto":
            return None, ""
        if (kept := self.ledger.find(self._cap_key)) is not None:
            return int(_value(kept.answer)), ""
        said = f"at_most is not chosen yet: figures are for {_GUESS}. The first answer chooses it, for a tenth more."
        return _GUESS, said

    def _cap(self, amount: Spend) -> int | None:
        """How many rows of one unit count, where the description says "auto": chosen once, and paid for once."""
        mechanism = self._choice(amount)
        if mechanism is not None:
            return int(self._release(mechanism, self.data, self._cap_key).value)
        kept = self.ledger.find(self._cap_key) if self.data.protect.at_most == "auto" else None
        return None if kept is None else int(_value(kept.answer))

    @property
    def _cap_key(self) -> str:
        """One choice for all; but where shares are reserved, nobody may see what only another has paid for."""
        limit = self.ledger.limit
        reserved = getattr(getattr(limit, "each", limit), "reserved", False)
        whose = self._who["analyst"] or self._who["project"] or ""
        return f"{_CAP} for {whose}" if reserved else _CAP

    def _choice(self, amount: Spend) -> CapMechanism | None:
        if self.data.protect.at_most != "auto" or self.ledger.find(self._cap_key) is not None:
            return None
        from discreet.tables.cap import CapMechanism

        tenth = _tenth(amount)
        return CapMechanism(self.data, epsilon=tenth, noise=1 / (10 * tenth))


def limit_of(budget: Mapping[str, Any]) -> Limit | None:
    """The limit that the [budget] of a description states; None if it states none, and the ledger must know it."""
    amounts = {name: budget[name] for name in ("epsilon", "delta", "rho", "mu") if name in budget}
    if not amounts:
        return None
    shares = budget.get("per_analyst")
    if shares is not None and not isinstance(shares, Mapping):
        raise BadParameter(
            "DP107",
            "per_analyst gives a share to everybody, and nobody is named.",
            why="a share is kept for somebody: without names there is nothing to add up.",
            fix="per_analyst = {ana = 0.5, ben = 0.25}",
        )
    window = budget.get("window", "none")
    lifetime = budget.get("lifetime")
    return Limit.filter(
        **amounts,
        kind=budget.get("filter"),
        analysts=shares,
        window=None if window == "none" else window,
        lifetime=None if lifetime is None else Limit.filter(**lifetime),
    )


@contextmanager
def _having_spent(before: str) -> Iterator[None]:
    """A refusal for want of budget says what had been paid before it."""
    try:
        yield
    except OverBudget as refused:
        refused.spent = before or refused.spent
        raise


def _question(asked: Any) -> Question:
    found = asked if isinstance(asked, Question) else getattr(asked, "question", None)
    if isinstance(found, Question):
        return found
    raise BadParameter(
        "DP104",
        f"a session answers questions, SQL and mechanisms, not {type(asked).__name__}.",
        why="what is released has to be charged, and only these know what they cost.",
        fix='session.release(data.count(), epsilon=0.1)   or  session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    )


def _spend(stated: Mapping[str, Any]) -> Spend:
    unknown = sorted(set(stated) - {"epsilon", "delta", "rho"})
    if not unknown:
        return Spend(**stated)
    raise BadParameter(
        "DP105",
        f"there is no {unknown[0]}= to say what an answer may cost.",
        why="a slip in the name would leave the cost to a default, and there is none.",
        fix="epsilon=0.1   or  epsilon=0.1, delta=1e-6   or  rho=0.01   or  error='±50'",
    )


def _check_error(more: Mapping[str, Any]) -> None:
    """An error is asked for alone; what else may be said is how it is searched."""
    other = sorted(set(more) - {"confidence", "delta", "pilot"})
    if other:
        raise BadParameter(
            "DP107",
            f"error and {other[0]} are both given.",
            why="the least cost is searched that keeps the error, so it is not stated as well.",
            fix="error='±50'   or  epsilon=0.1,  and not both",
        )


def _check_mechanism(data: Any, spend: Mapping[str, Any]) -> None:
    """A mechanism knows what it costs, and needs something to be drawn on."""
    if data is None or spend:
        raise BadParameter(
            "DP107",
            "a mechanism is released on data of its own, at the cost that it was made with.",
            why="what is charged is what the mechanism promises, and nothing else.",
            fix="session.release(mechanism, value)",
        )


def _drawn(mechanism: Mechanism, data: Any) -> Any:
    """What was paid for; an error from here on has cost what the answer costs."""
    try:
        return mechanism.draw(data)
    except DiscreetError as error:
        error.spent = "what this answer costs"
        raise


def _tenth(amount: Spend) -> float:
    """A tenth of what the first question costs; (ρ is about ε²/2)."""
    whole = amount.epsilon if amount.epsilon is not None else math.sqrt(2 * (amount.rho or 0.0))
    return float(f"{whole / 10:.6g}")


def _again(kept: Entry) -> Answer:
    return Answer.from_json(str(kept.answer)).with_(receipt=kept.receipt)


def _written(value: Any) -> str | None:
    """A released value as JSON; None for what JSON does not know, and then it is not kept."""
    if isinstance(value, Refusal):
        return json.dumps({"refused": value.reason})
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        return json.dumps({"value": plain})
    except (TypeError, ValueError):
        return None


def _value(written: str | None) -> Any:
    if written is None:
        raise BadParameter(
            "DP107",
            "an answer of this kind is not kept, so it cannot be shown again.",
            why="only numbers, texts and lists of them are written into the ledger.",
            fix="leave out key=, and pay for a fresh answer",
        )
    kept = json.loads(written)
    if "refused" in kept:
        return Refusal(kept["refused"])
    value = kept["value"]
    return np.array(value) if isinstance(value, list) else value


def _not_a_data_set() -> BadParameter:
    return BadParameter(
        "DP104",
        "a session needs a data set, which says whom it protects.",
        why="without that there is nothing to promise.",
        fix='data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))',
    )

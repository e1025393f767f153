# SPDX-License-Identifier: Apache-2.0
"""Each sentence of a statement that is worded otherwise today turns back into its former text, written out here.

`tests/formats` has statements that were made with the former words. They lack some kinds of sentences: a guarantee for
replacing, for several units at once, a large δ. This file makes every kind.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from discreet import privacy
from discreet.ledger import Ledger, Limit, Statement, verify_statement
from discreet.ledger.former_words import SENTENCES, former_facts, former_page
from discreet.privacy.explain import explain

ADD = privacy.gaussian(2.0, unit="patient")
REPLACE = privacy.gaussian(2.0, unit="patient", relation="replace")
WEAK = privacy.approximate(0.1, 2e-3, unit="patient")

EXPLAINED = [
    (
        explain(privacy.pure(0.1, unit="patient")),
        [
            "This guarantee protects each patient: what follows compares the data with one patient and without.",
            (
                "An attacker who knows all the rest and guesses whether the patient is in the data is right at most 52.5 times "
                "in 100; a coin is right 50 times."
            ),
            (
                "Of 100 answers that could come out without the patient, 1 makes the attacker say that it is in the data; of 100 "
                "that could come out with it, at most 1.2 do."
            ),
            "An attacker who begins undecided, at odds of 1 to 1, is never more than 52.5 % sure, odds of 1.2 to 1.",
            "Facts about many: what the data say of a group is learned about its members, whether they are in the data or not.",
            "More than one patient: somebody behind several, or a family, has the weaker guarantee of guarantee.group(k).",
            "Other sources: the same fact elsewhere, or answers that are not counted here.",
            "What surrounds the answers: stolen data, logs, running times, mistakes in code outside of the mechanisms.",
            "Consequences: a decision that rests on the answers may hurt people, whether they are in the data or not.",
        ],
    ),
    (
        explain(REPLACE),
        [
            "This guarantee protects each patient: what follows compares two values of one patient.",
            (
                "An attacker who knows all the rest and guesses which of two values the patient has is right at most 59.9 times "
                "in 100; a coin is right 50 times."
            ),
            (
                "Of 100 answers that could come out with one value of the patient, 1 makes the attacker say the other; of 100 "
                "that could come out with the other, at most 3.4 do."
            ),
            (
                "An attacker who begins undecided, at odds of 1 to 1, ends more than 90 % sure of the truth, odds of 9 to 1, with "
                "a chance of at most 1 in 23,000."
            ),
            "Taking part: the number of patients counts as public.",
        ],
    ),
    (
        replace(explain(ADD), group_size=3),
        [
            "This guarantee protects every 3 patients at once: what follows compares the data with 3 patients and without them.",
            (
                "An attacker who knows all the rest and guesses whether the patients are in the data is right at most 59.9 times "
                "in 100; a coin is right 50 times."
            ),
            (
                "Of 100 answers that could come out without the patients, 1 makes the attacker say that they are in the data; of "
                "100 that could come out with them, at most 3.4 do."
            ),
        ],
    ),
    (
        replace(explain(REPLACE), group_size=3),
        [
            "This guarantee protects every 3 patients at once: what follows compares two values of 3 patients.",
            (
                "An attacker who knows all the rest and guesses which of two values the patients have is right at most 59.9 "
                "times in 100; a coin is right 50 times."
            ),
            (
                "Of 100 answers that could come out with one value of the patients, 1 makes the attacker say the other; of 100 "
                "that could come out with the other, at most 3.4 do."
            ),
        ],
    ),
    (
        explain(WEAK, units=1_200),
        [
            "δ = 0.002 is large: with up to this probability nothing at all is promised to a patient.",
            (
                "δ = 0.002 is not below 1/1,200, with 1,200 patients in the data: publishing everything about one patient or "
                "more, picked at random, would keep this guarantee."
            ),
        ],
    ),
]

MONTHLY = Limit.filter(epsilon=1, analysts={"ana": 0.5}, projects={"wards": 0.5}, window="month")
LIMITS = [
    (
        Limit.filter(epsilon=1, delta=1e-6, leaks=0.5),
        [
            "Why it holds: one δ account, a free pure lane and one Rényi lane of fixed order (Feldman, Zrnic 2021; Lécuyer 2021).",
            "pure lane (ε): up to 1.",
            "Rényi lane of order 23.26: up to 0.533525.",
            "One of these lanes has to stay open; a lane that is overdrawn once is closed for good.",
        ],
    ),
    (
        Limit.filter(epsilon=1, delta=1e-6),
        [
            "How much of δ pays for mechanisms that may fail is decided by the first question: so that most like it fit.",
            "It is 75% or 50% or 90% or 100% of δ, is stored with that charge, and never changes.",
            "Either greatest losses add up to 1 at most, or, if some of δ is left for them, Rényi divergences do.",
            "75% of δ for mechanisms that may fail, as usual: the first question will choose",
        ],
    ),
    (Limit.filter(rho=0.5), ["concentrated lane (ρ): up to 0.5."]),
    (Limit.filter(mu=1), ["Gaussian lane (μ²): up to 1."]),
    (
        Limit.odometer(delta=1e-6),
        [
            "At every moment all answers so far together are (ε, δ)-private at δ = 1e-06, with the less of Σε and",
            "12.8·Σρ + 1.288 as ε. That holds whenever somebody looks. Nothing is too dear.",
            (
                "There is no limit. Stated is the (ε, δ) that all answers up to now keep together. It holds at whatever moment "
                "it is read, also one that was chosen in view of the answers; ε grows with every answer."
            ),
            "There is no limit: the loss grows with every answer, and nothing is promised of the whole.",
        ],
    ),
    (
        MONTHLY,
        [
            "In each window (month): The analyst ana may use 0.5 of it.",
            "In each window (month): The project wards may use 0.5 of it.",
            "In each window (month): The shares are not reserved: what is promised is the whole, against all together.",
            "Over a lifetime: no promise, but what so many windows add up to.",
            (
                "The limit renews with every window, and there is none for life. Claimed is what the windows so far add up to, "
                "each at its full limit; it grows with every window that begins."
            ),
            "shares",
            "analysts or projects have shares of the limit (not reserved).",
        ],
    ),
    (
        Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5}, reserved=True),
        [
            "Why it holds: one δ account and one Rényi lane of fixed order (Feldman, Zrnic 2021; Whitehouse et al. 2023).",
            "The shares are reserved: nobody is refused because of what others have used.",
        ],
    ),
    (
        Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=5)),
        [
            "Over a lifetime: pure lane (ε): up to 5.",
            "lifetime: pure lane (ε)",
            (
                "Claimed is the limit for life, which no window renews. Within one window the window's limit holds as well. "
                "Neither is the sum of what was charged: questions may have been chosen in view of earlier answers."
            ),
        ],
    ),
    (
        Limit.plan(3 * privacy.pure(0.1, unit="patient")),
        [
            (
                "Claimed is the composition of all planned slots, whether they were used or not. The slots were fixed in "
                "advance, so they are accounted for jointly; which of them were used may have depended on answers, so unused "
                "ones are not taken off."
            ),
        ],
    ),
]
CHARGED = privacy.leaky(1e-8, unit="patient") + privacy.pure(0.1, unit="patient")
AFTER_A_CHARGE = [
    "75% of δ for mechanisms that may fail, as the first question chose",
    "9 more answers like the last one fit, with keys found privately",
    "9 more answers like the last one fit, with keys that are declared (no δ)",
    (
        "Claimed is the limit, not the sum of what was charged. Each question, and how much was spent on it, may have been "
        "chosen in view of earlier answers; then the composed curve of the charges is no bound on what was revealed, and "
        "neither is a total that was read off before the limit was reached. The limit holds at every moment and at the end, "
        "however it is spent."
    ),
]


def texts_of(value):
    """Every text in the facts of a statement."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value] if isinstance(value, str) else []


def statement_of(limit):
    return Statement.of(Ledger(":memory:", limit=limit, unit="patient", dataset="visits"))


def charged_statement():
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1, delta=1e-6), unit="patient")
    ledger.charge(CHARGED)
    return Statement.of(ledger)


@pytest.mark.parametrize(("explanation", "former"), EXPLAINED, ids=range(len(EXPLAINED)))
def test_an_explanation_turns_back(explanation, former):
    today = [*explanation.sentences, *explanation.cautions, *explanation.not_protected]
    reworded = former_facts({"words": today})["words"]
    assert [text for text in former if text not in reworded] == []


@pytest.mark.parametrize(("limit", "former"), LIMITS, ids=lambda value: getattr(value, "kind", ""))
def test_the_words_of_a_limit_turn_back(limit, former):
    reworded = texts_of(former_facts(statement_of(limit).to_dict()))
    assert [text for text in former if text not in reworded] == []


def test_the_words_of_a_budget_turn_back():
    reworded = texts_of(former_facts(charged_statement().to_dict()))
    assert [text for text in AFTER_A_CHARGE if text not in reworded] == []


def test_every_rule_is_for_some_sentence():
    """A rule that no sentence of this file needs can be deleted; a new one needs its sentence here."""
    facts = [statement_of(limit).to_dict() for limit, _ in LIMITS] + [charged_statement().to_dict()]
    today = [text for part in facts for text in texts_of(part)]
    for explanation, _ in EXPLAINED:
        today += [*explanation.sentences, *explanation.cautions, *explanation.not_protected]
    unused = [pattern.pattern for pattern, _ in SENTENCES if not any(map(pattern.search, strip(today)))]
    assert unused == []


def strip(texts):
    """The sentences without what a limit with windows puts before them."""
    return [text.partition("): ")[2] if text.startswith("In each window") else text for text in texts] + [
        text.removeprefix("Over a lifetime: ") for text in texts
    ]


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_nobody_can_change_a_name_into_a_former_word(form):
    """The former words are the library's own: a data set, a column or a question keeps its letters."""
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient", dataset="pure track")
    described = {"name": "pure track", "protects": "patient", "version": "What is guaranteed"}
    question = "SELECT COUNT(*) FROM pure track -- What is guaranteed"
    ledger.charge(privacy.pure(0.1, unit="patient"), question=question, description=described)
    made = Statement.of(ledger)
    text = {"html": made.to_html, "md": made.to_markdown, "json": made.to_json}[form]()
    assert verify_statement(text, ledger).holds
    former = made.in_former_words()
    page = {
        "html": lambda: former_page(former.to_html(), "html"),
        "md": lambda: former_page(former.to_markdown(), "md"),
        "json": former.to_json,
    }[form]()
    assert verify_statement(page, ledger).holds
    for today, former in (("pure track", "pure lane"), ("What is guaranteed", "What is claimed")):
        places = [match.start() for match in re.finditer(today, page)]
        assert len(places) > 1
        for start in places:
            forged = page[:start] + former + page[start + len(today) :]
            assert not verify_statement(forged, ledger).holds

# SPDX-License-Identifier: Apache-2.0
"""Sentences of a statement as earlier software of this version worded them, so that what it wrote is still verified.

A statement is verified letter by letter (`statement_check.py`), so a sentence that is worded better today would make every statement
with the former sentence look changed. A statement is therefore compared with today's words and, if these differ, with the former ones.

**Guarantee.** A statement that passes says in every letter what the ledger gives, in one wording or the other. Numbers, names, questions
and hashes are the same in both: a rule here replaces a fixed sentence of the library, and carries over whatever it matched.

Whoever rewords a sentence of a statement adds a line here; `tests/formats/test_ledgers.py` fails until it is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["former_facts", "former_page"]

#: What a limit with windows puts before the sentences of its parts.
_PREFIX = re.compile(r"In each window \([^)]*\): |Over a lifetime: ")
#: Parts of the facts that hold somebody's own words, or what is no sentence.
_AS_THEY_ARE = frozenset({"making", "released", "ledger", "described"})

#: Today's sentence, as a pattern, and the former one.
_SENTENCES = tuple(
    (re.compile(today), former)
    for today, former in (
        (r"\b(pure|concentrated|Gaussian|Rényi) track\b", r"\1 lane"),
        (
            r"^At least one of these tracks has to stay within its total; a track that has exceeded it is closed for good\.$",
            "One of these lanes has to stay open; a lane that is overdrawn once is closed for good.",
        ),
        (
            r"^The first question decides how much of δ pays for mechanisms that may fail, so that most questions like it fit\.$",
            "How much of δ pays for mechanisms that may fail is decided by the first question: so that most like it fit.",
        ),
        (
            r"^The choice is among (.*) of δ; it is stored with that charge and never changes\.$",
            r"It is \1 of δ, is stored with that charge, and never changes.",
        ),
        (
            r"^Either the greatest losses add up to at most (.*), or, if part of δ is left for them, the Rényi divergences do\.$",
            r"Either greatest losses add up to \1 at most, or, if some of δ is left for them, Rényi divergences do.",
        ),
        (
            r"^(.*) of δ is for mechanisms that may fail; the first question chose this$",
            r"\1 of δ for mechanisms that may fail, as the first question chose",
        ),
        (
            r"^(.*) of δ is for mechanisms that may fail, as usual; the first question will choose$",
            r"\1 of δ for mechanisms that may fail, as usual: the first question will choose",
        ),
        (
            r"^At every moment all answers so far together are \(ε, δ\)-private at δ = (.*), where ε is the smaller of Σε and$",
            r"At every moment all answers so far together are (ε, δ)-private at δ = \1, with the less of Σε and",
        ),
        (
            r"^(.*)\. This holds at whatever moment it is read\. No question is refused for its ε\.$",
            r"\1 as ε. That holds whenever somebody looks. Nothing is too dear.",
        ),
        (
            r"^The (analyst|project) (.*) has an allocation of (\S+) of the budget\.$",
            r"The \1 \2 may use \3 of it.",
        ),
        (
            r"The allocations are reserved: nobody is refused because of what others have spent\.$",
            "The shares are reserved: nobody is refused because of what others have used.",
        ),
        (
            r"The allocations are not reserved: the guarantee covers all of them together\.$",
            "The shares are not reserved: what is promised is the whole, against all together.",
        ),
        (r"^no guarantee beyond what so many windows add up to\.$", "no promise, but what so many windows add up to."),
        (r"^allocations$", "shares"),
        (
            r"^analysts or projects have allocations of the budget \((.*)\)\.$",
            r"analysts or projects have shares of the limit (\1).",
        ),
        (r"^The guarantee is the limit, not", "Claimed is the limit, not"),
        (r"^The guarantee is the composition of", "Claimed is the composition of"),
        (r"so unused ones are not subtracted\.$", "so unused ones are not taken off."),
        (r"^The guarantee is the limit for life,", "Claimed is the limit for life,"),
        (
            r"and there is none for life\. The guarantee is what the windows so far add up to",
            "and there is none for life. Claimed is what the windows so far add up to",
        ),
        (
            r"^There is no limit\. The statement gives the \(ε, δ\) that all answers so far keep together\. (.*), even one",
            r"There is no limit. Stated is the (ε, δ) that all answers up to now keep together. \1, also one",
        ),
        (
            r"^There is no limit: the loss grows with every answer, and there is no guarantee for the whole\.$",
            "There is no limit: the loss grows with every answer, and nothing is promised of the whole.",
        ),
        (r" like the last one fit, with keys found by key selection$", " like the last one fit, with keys found privately"),
        (r" like the last one fit, with declared keys \(no δ\)$", " like the last one fit, with keys that are declared (no δ)"),
    )
)  # fmt: skip

#: What stands on the page besides the facts.
_ON_PAGES = (
    ("What is guaranteed", "What is claimed"),
    ("<th scope='row'>guarantee</th>", "<th scope='row'>claim</th>"),
    ("| guarantee | ", "| claim | "),
    (
        "There is no limit, so there is no guarantee for the whole to put into words.",
        "There is no limit, so there is no promise about the whole to put into words.",
    ),
    ("class='guarantee'", "class='promise'"),
    (".statement .guarantee{", ".statement .promise{"),
)


def former_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a statement with the library's sentences in their former words."""
    return {name: value if name in _AS_THEY_ARE else _reword(value) for name, value in facts.items()}


def former_page(page: str) -> str:
    """A page made from `former_facts`, with the former headings."""
    for today, former in _ON_PAGES:
        page = page.replace(today, former)
    return page


def _reword(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _reword(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_reword(part) for part in value]
    if isinstance(value, str):
        prefix = match[0] if (match := _PREFIX.match(value)) else ""
        sentence = value.removeprefix(prefix)
        for today, former in _SENTENCES:
            sentence = today.sub(former, sentence)
        return prefix + sentence
    return value

# SPDX-License-Identifier: Apache-2.0
"""The former wording of sentences in statements, so that a statement of earlier software still
verifies.

A statement is verified letter by letter (`statement_check.py`), so a reworded sentence would make
every older statement look changed. A statement is therefore compared with today's wording first,
and then with the former one.

**Guarantee.** A statement that passes agrees with the ledger in every letter, in one of the two
wordings. Numbers, hashes and the words of people (names, questions, descriptions) are the same in
both.

Why it holds: a rule replaces a fixed sentence of the library in the parts of the facts that consist
of such sentences, and a fixed heading by its markup, which is escaped in everything that people
write. What would break it: a rule for a part that repeats what people wrote.

Whoever rewords a sentence of a statement adds a rule here, and its former text to
`tests/ledger/test_former_words.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from discreet.json_types import JsonFacts, JsonObject

__all__ = ["SENTENCES", "former_facts", "former_page"]

#: What a limit with windows puts before the sentences of its parts.
_PREFIX = re.compile(r"In each window \([^)]*\): |Over a lifetime: ")
#: The parts of the facts that consist of the library's sentences.
_REWORDED = frozenset({"claim", "words", "cautions", "limit", "budget", "layers"})

#: Today's sentence, as a pattern, and the former one.
SENTENCES = tuple(
    (re.compile(today), former)
    for today, former in (
        (r"^((?:.*: )?)(pure|concentrated|Gaussian|Rényi) track( \(| of order )", r"\1\2 lane\3"),
        (r"\b(a free pure|one Rényi) track(?= and one| of fixed order)", r"\1 lane"),
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
        # What a guarantee means for one protected unit (`privacy.explain`).
        (r"^(This guarantee protects .*)\. The numbers below compare two possible values of ", r"\1: what follows compares two values of "),
        (
            r"^(This guarantee protects .*)\. The numbers below compare the data with (.*) and the same data without that \S.*\.$",
            r"\1: what follows compares the data with \2 and without.",
        ),
        (
            r"^(This guarantee protects .*)\. The numbers below compare the data with (.*) and the same data without them\.$",
            r"\1: what follows compares the data with \2 and without them.",
        ),
        (
            r"^An attacker who knows everything else and guesses (.*) times in 100\. A coin toss is right 50 times in 100\.$",
            r"An attacker who knows all the rest and guesses \1 times in 100; a coin is right 50 times.",
        ),
        (
            (r"^If the attacker wrongly says that the (.*) is in the data for 1 of 100 answers without the \1, "
            r"the attacker rightly says so for at most (.*) of 100 answers with the \1\.$"),
            (r"Of 100 answers that could come out without the \1, 1 makes the attacker say that it is in the data; "
            r"of 100 that could come out with it, at most \2 do."),
        ),
        (
            (r"^If the attacker wrongly says that the (.*) are in the data for 1 of 100 answers without the \1, "
            r"the attacker rightly says so for at most (.*) of 100 answers with the \1\.$"),
            (r"Of 100 answers that could come out without the \1, 1 makes the attacker say that they are in the data; "
            r"of 100 that could come out with them, at most \2 do."),
        ),
        (
            (r"^If the attacker mistakes the first value of the (.*) for the second in 1 of 100 answers, "
            r"the attacker recognises the second value in at most (.*) of 100 answers\.$"),
            (r"Of 100 answers that could come out with one value of the \1, 1 makes the attacker say the other; "
            r"of 100 that could come out with the other, at most \2 do."),
        ),
        (
            r"^An attacker who starts undecided, at odds of 1 to 1, becomes (.*), with a probability of at most ",
            r"An attacker who begins undecided, at odds of 1 to 1, ends \1, with a chance of at most ",
        ),
        (r"^An attacker who starts undecided,", "An attacker who begins undecided,"),
        (r"^Participation: the number of", "Taking part: the number of"),
        (
            r"^Facts about groups: what the data say about a group also says something about its members, in the data or not\.$",
            "Facts about many: what the data say of a group is learned about its members, whether they are in the data or not.",
        ),
        (
            r"^(More than one .*): a family, or somebody who appears as several .*s, has the weaker guarantee",
            r"\1: somebody behind several, or a family, has the weaker guarantee",
        ),
        (r"^Other sources: the same fact published elsewhere,", "Other sources: the same fact elsewhere,"),
        (
            r"^The system around the answers: stolen data, logs, running times, and mistakes in code outside the mechanisms\.$",
            "What surrounds the answers: stolen data, logs, running times, mistakes in code outside of the mechanisms.",
        ),
        (
            r"^Consequences: a decision based on the answers may harm people, whether or not they are in the data\.$",
            "Consequences: a decision that rests on the answers may hurt people, whether they are in the data or not.",
        ),
        (
            r"with up to this probability a (.*) has no protection at all\.$",
            r"with up to this probability nothing at all is promised to a \1.",
        ),
        (
            r", and the data have (.*): publishing everything about one or more (.*)s picked at random would satisfy this guarantee\.$",
            r", with \1 in the data: publishing everything about one \2 or more, picked at random, would keep this guarantee.",
        ),
    )
)  # fmt: skip

#: The headings and labels of a page, today's and the former ones, with the markup around them.
_HEADINGS = {
    "html": (
        ("<h2>What is guaranteed</h2>", "<h2>What is claimed</h2>"),
        ("<th scope='row'>guarantee</th>", "<th scope='row'>claim</th>"),
        (
            "<p>There is no limit, so there is no guarantee for the whole to put into words.</p>",
            "<p>There is no limit, so there is no promise about the whole to put into words.</p>",
        ),
        ("<p class='guarantee'>", "<p class='promise'>"),
    ),
    "md": (
        ("\n## What is guaranteed\n", "\n## What is claimed\n"),
        ("\n| guarantee | ", "\n| claim | "),
        (
            "\nThere is no limit, so there is no guarantee for the whole to put into words.\n",
            "\nThere is no limit, so there is no promise about the whole to put into words.\n",
        ),
    ),
}
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
#: The words of the picture with a hundred squares: its label, its title and its caption.
_GUESSES = re.compile(
    r"(role='img' aria-label='|'><title>|<figcaption class='soft'>)"
    r"At most (\d+) of 100 guesses are right\. A coin toss gets 50 right, above the line\."
)


def former_facts(facts: JsonFacts) -> JsonObject:
    """The facts of a statement with the library's sentences in their former wording."""
    reworded = {name: _reword(value) if name in _REWORDED else value for name, value in facts.items()}
    for allocation, former in zip(
        facts.get("budget", {}).get("shares", ()), reworded.get("budget", {}).get("shares", ()), strict=True
    ):
        former["name"] = allocation["name"]
    if "registry" in facts:
        implementation = facts["registry"]["implementation"]
        composition = _reword(implementation["composition"])
        reworded["registry"] = {
            **facts["registry"],
            "implementation": {**implementation, "composition": composition},
        }
    return reworded


def former_page(page: str, form: str) -> str:
    """A page made from `former_facts`, as HTML ("html") or Markdown ("md"), with the former
    headings.
    """
    for today, former in _HEADINGS[form]:
        page = page.replace(today, former)
    if form == "md":
        return page
    page = _STYLE.sub(
        lambda style: style[0].replace(".statement .guarantee{", ".statement .promise{"), page, 1
    )
    return _GUESSES.sub(r"\1Of 100 guesses at most \2 are right; a coin has 50 right, above the line.", page)


def _reword(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _reword(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_reword(part) for part in value]
    if isinstance(value, str):
        prefix = match[0] if (match := _PREFIX.match(value)) else ""
        sentence = value.removeprefix(prefix)
        for today, former in SENTENCES:
            sentence = today.sub(former, sentence)
        return prefix + sentence
    return value

# SPDX-License-Identifier: Apache-2.0
"""Flags in the order in which they were written, and the guarantee that they describe.

    --gaussian 1.0 --sampled 0.01 --times 1000 --laplace 10
    = 1000 * gaussian(1.0).sampled(0.01) + laplace(10)

A mechanism starts a term; what follows changes that term, in order: `--sampled 0.01 --times 1000` samples afresh for each
run, `--times 1000 --sampled 0.01` runs a thousand times on one sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from discreet.cli.flags import CHANGES, MECHANISMS, SCHEME, Flag, Safer, Slot, read
from discreet.cli.terminal import whole_of
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Step:
    """One flag with its numbers; None is the number that is looked for."""

    flag: Flag
    values: tuple[float | int | None, ...]
    scheme: str | None = None


@dataclass(frozen=True)
class Recipe:
    """What the flags describe, perhaps with one number left open."""

    steps: tuple[Step, ...]
    unit: str = "record"
    relation: str = "add-remove"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, with no number open."""
        from discreet.privacy import constructors
        from discreet.privacy.guarantee import compose

        terms: list[Guarantee] = []
        for step in self.steps:
            if step.flag.maker:
                make = getattr(constructors, step.flag.maker)
                terms.append(make(*step.values, relation=self.relation, unit=self.unit))
            else:
                terms[-1] = _changed(terms[-1], step)
        return compose((term, 1) for term in terms)

    def holes(self) -> list[tuple[Flag, Slot, Safer]]:
        """Where `?` stands, and which way is safer there."""
        return [
            (step.flag, slot, slot.safer)
            for step in self.steps
            for slot, value in zip(step.flag.slots, step.values, strict=False)
            if value is None and slot.safer is not None
        ]

    def filled(self, number: float) -> Recipe:
        """The recipe with that number in place of `?`."""
        steps = (
            replace(step, values=tuple(number if value is None else value for value in step.values))
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))

    def line(self) -> str:
        """The flags again, to be pasted."""
        words = []
        for step in self.steps:
            words += [step.flag.name, ",".join(whole_of(value) for value in step.values if value is not None)]
            words += [SCHEME, step.scheme] if step.scheme else []
        words += ["--relation", self.relation] if self.relation != "add-remove" else []
        words += ["--unit", self.unit] if self.unit != "record" else []
        return " ".join(words)


def _changed(term: Guarantee, step: Step) -> Guarantee:
    (value,) = step.values
    match step.flag.name, value:
        case "--sampled", float():
            return term.sampled(value, step.scheme or "poisson")
        case "--times", int():
            return value * term
        case _, int():
            return term.group(value)
    raise AssertionError(step)


def in_order(words: Sequence[str], switches: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The flags of a command line with their values, in order; `words` are known to be well-formed.

    >>> list(in_order(["--pure", "1", "--json", "--times=3"], {"--json"}))
    [('--pure', '1'), ('--times', '3')]
    """
    rest = iter(words)
    for word in rest:
        name, given, value = word.partition("=")
        if word == "--":
            return
        if name not in switches:
            yield name, value if given else next(rest)


def check_values(words: Sequence[str], valued: Collection[str]) -> None:
    """Refuse a flag that is followed by another flag, or by nothing, where its value should be."""
    for word, following in pairwise([*words, "--"]):
        if word in valued and following.startswith("--"):
            table = MECHANISMS | CHANGES
            raise BadParameter(
                "DP107",
                f"{word} needs a value, and there is none.",
                why="there is no default for what was run.",
                fix=f"{word} {table[word].example}" if word in table else "discreet account --help",
            )


def steps(flags: Iterable[tuple[str, str]]) -> tuple[Step, ...]:
    """The steps that these flags describe; flags that describe no mechanism are passed over."""
    found: list[Step] = []
    for name, text in flags:
        if name in MECHANISMS:
            found.append(Step(MECHANISMS[name], read(MECHANISMS[name], text)))
        elif name in CHANGES:
            _need_mechanism(found, name)
            found.append(Step(CHANGES[name], read(CHANGES[name], text)))
        elif name == SCHEME:
            _need_sampling(found)
            found[-1] = replace(found[-1], scheme=text)
    if not found:
        raise BadParameter(
            "DP107",
            "no mechanism is described.",
            why="a guarantee says what was run, and nothing was named.",
            fix="discreet account --gaussian 1.0 --delta 1e-6",
        )
    return tuple(found)


def _need_mechanism(found: list[Step], name: str) -> None:
    if not found:
        raise BadParameter(
            "DP107",
            f"{name} applies to the mechanism before it, and there is none.",
            why="flags are read in order: a mechanism first, then what happens to it.",
            fix=f"--gaussian 1.0 {name} {CHANGES[name].example}",
        )


def _need_sampling(found: list[Step]) -> None:
    if not found or found[-1].flag.name != "--sampled":
        raise BadParameter(
            "DP107",
            f"{SCHEME} says how the --sampled right before it draws, and there is none.",
            why="each scheme has its own theorem, and belongs to one sample.",
            fix=f"--gaussian 1.0 --sampled 0.01 {SCHEME} poisson",
        )

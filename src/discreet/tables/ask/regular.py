# SPDX-License-Identifier: Apache-2.0
r"""Regular expressions as conditions that all engines read alike: LIKE, and characters from a list.

    ^I2[0-5]        LIKE 'I2_%' and the third character is one of 0 1 2 3 4 5
    flu|cough       LIKE '%flu%' OR LIKE '%cough%'
    ^A.*\d{2}$      LIKE 'A%00' OR … OR LIKE 'A%99'

Supported are characters, `.`, lists such as `[A-C0-9]`, `\d` (0 to 9), `^`, `$`, `|`, groups, `?`,
`{2}`, `{1,3}`, and `.*`, `.+`. A `.` is any character, also the end of a line. Repetitions of
anything but `.` need a greatest number.

**Guarantee.** The condition is total on every text, and the same on every engine, because no engine
sees the regular expression. What cannot be written with LIKE is refused (DP705).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Expr, IsIn, Like
from discreet.tables.algebra.strings import Substring
from discreet.tables.ask.build import expression_error, logic

__all__ = ["matches_regular"]

#: One element of a word: a list of characters of which one stands there, or one of the marks below.
Element: TypeAlias = frozenset[str] | str
Word: TypeAlias = tuple[Element, ...]

_ANY, _GAP, _START, _END = "any character", "any text", "the start", "the end"
_DIGITS = frozenset("0123456789")
_MOST_WORDS = 300
_MOST_TIMES = 50
_SPECIAL = "()[]{}|.*+?^$\\"
_EXAMPLE = "REGEXP_MATCHES(ward, '^A[0-9]|^B')"


def matches_regular(term: Expr, pattern: str) -> Expr:
    """Whether a part of a text matches a regular expression."""
    words = _Parser(pattern).words()
    plain = [tuple(spread) for word in words for spread in _spread(word)]
    if len(plain) > _MOST_WORDS:
        raise _too_long_error()
    return logic("or", [_condition(term, word) for word in dict.fromkeys(plain)])


def _condition(term: Expr, word: Word) -> Expr:
    """The condition that a text is like a word."""
    inner = word[word[:1] == (_START,) : len(word) - (word[-1:] == (_END,))]
    if _START in inner or _END in inner:
        raise _pattern_error("^ stands at the start of an alternative, and $ at its end.")
    like, conditions = "", list[Expr]()
    for place, element in enumerate(inner, start=1):
        if isinstance(element, str):
            like += "%" if element == _GAP else "_"
        elif len(element) == 1 and not element & {"%", "_", "\\"}:
            like += next(iter(element))
        else:
            like += "_"
            conditions.append(IsIn(Substring(term, place, 1), tuple(sorted(element))))
    like = ("" if word[:1] == (_START,) else "%") + like + ("" if word[-1:] == (_END,) else "%")
    return logic("and", [Like(term, like), *conditions])


def _spread(word: Word) -> Iterator[Word]:
    """The words of single characters that a word stands for; lists stay where their place is known."""
    known = word[:1] == (_START,)
    choices: list[list[Element]] = []
    many = 1
    for element in word:
        known = known and element != _GAP
        if isinstance(element, str) or known:
            choices.append([element])
            continue
        if element & {"%", "_", "\\"}:
            raise _pattern_error("%, _ and \\ are supported only where their place from ^ on is known.")
        choices.append([frozenset(sign) for sign in sorted(element)])
        many *= len(element)
        if many > _MOST_WORDS:
            raise _too_long_error()
    return product(*choices)


@dataclass
class _Parser:
    """Reads a regular expression as the words that it stands for."""

    pattern: str
    at: int = 0

    def words(self) -> list[Word]:
        """All of them."""
        words = self._alternatives()
        if self.at < len(self.pattern):
            raise _pattern_error("a parenthesis is closed and never opened.")
        return words

    def _alternatives(self) -> list[Word]:
        words = self._sequence()
        while self._take("|"):
            words = [*words, *self._sequence()]
            _check_number(words)
        return words

    def _sequence(self) -> list[Word]:
        words: list[Word] = [()]
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            repeated = self._repeat(self._atom())
            words = _joined_words(words, repeated)
        return words

    def _atom(self) -> list[Word]:
        sign = self.pattern[self.at]
        self.at += 1
        if sign == "(":
            if self._take("?") and not self._take(":"):
                raise _pattern_error("(?…) is supported only as (?:…).")
            words = self._alternatives()
            if not self._take(")"):
                raise _pattern_error("a parenthesis is opened and never closed.")
            return words
        if sign == "[":
            return [(self._list(),)]
        if sign in "*+?{":
            raise _pattern_error(f"{sign} repeats nothing.")
        if sign in "]}":
            raise _pattern_error(f"{sign} must be written \\{sign}.")
        marks = {".": _ANY, "^": _START, "$": _END}
        return [(marks.get(sign) or self._literal(sign),)]

    def _literal(self, sign: str) -> frozenset[str]:
        """A character, or what a backslash before it means."""
        if sign != "\\":
            return frozenset(sign)
        escaped = self.pattern[self.at : self.at + 1]
        self.at += 1
        if escaped == "d":
            return _DIGITS
        if escaped and (escaped in _SPECIAL or not (escaped.isalnum() or escaped == "_")):
            return frozenset(escaped)
        raise _pattern_error(f"\\{escaped} means different things on different engines.")

    def _list(self) -> frozenset[str]:
        """The characters of […]."""
        if self._take("^"):
            raise _pattern_error("[^…] lists what is left out, and nothing else is known.")
        signs = set[str]()
        while self.at < len(self.pattern) and (self.pattern[self.at] != "]" or not signs):
            sign = self._one_of_list()
            if (
                len(sign) == 1
                and self._ahead("-")
                and self.pattern[self.at + 1 : self.at + 2] not in {"]", ""}
            ):
                self.at += 1
                (first,), last = sign, self._one_of_list()
                sign = _range(first, last)
            signs |= sign
        if not self._take("]"):
            raise _pattern_error("a [ is opened and never closed.")
        return frozenset(signs)

    def _one_of_list(self) -> frozenset[str]:
        sign = self.pattern[self.at]
        self.at += 1
        if sign == "[":
            raise _pattern_error("a [ in a list must be written \\[.")
        return self._literal(sign)

    def _repeat(self, words: list[Word]) -> list[Word]:
        """The words as often as what follows says."""
        times = self._times()
        if times is None:
            return words
        least, most = times
        if {_START, _END} & {element for word in words for element in word}:
            raise _pattern_error("^ and $ cannot be repeated.")
        if most is None:
            if words != [(_ANY,)]:
                raise _pattern_error("only . can be repeated without an end.")
            return [(*[_ANY] * least, _GAP)]
        made = list[Word]()
        for number in range(least, most + 1):
            repeated: list[Word] = [()]
            for _ in range(number):
                repeated = _joined_words(repeated, words)
            made += repeated
            _check_number(made)
        return made

    def _times(self) -> tuple[int, int | None] | None:
        """The least and the greatest number of repetitions, if a number is stated."""
        sign = self.pattern[self.at : self.at + 1]
        if not sign or sign not in "*+?{":
            return None
        self.at += 1
        times: tuple[int, int | None] = {"*": (0, None), "+": (1, None)}.get(sign, (0, 1))
        if sign == "{":
            end = self.pattern.find("}", self.at)
            least, comma, most = self.pattern[self.at : max(end, self.at)].partition(",")
            numbers = [least] if not most else [least, most]
            if end < 0 or not all(number.isascii() and number.isdigit() for number in numbers):
                raise _pattern_error("{ must be followed by numbers:  {2}  or  {1,3}")
            self.at = end + 1
            times = int(least), int(most) if most else None if comma else int(least)
        # A choice between long and short matches does not change whether there is one.
        self._take("?")
        if self.pattern[self.at : self.at + 1] in {"*", "+", "{"}:
            raise _pattern_error("a repetition is repeated.")
        if max(times[0], times[1] or 0) > _MOST_TIMES or (times[1] is not None and times[0] > times[1]):
            raise _pattern_error(f"a repetition goes from less to more, and up to {_MOST_TIMES}.")
        return times

    def _ahead(self, sign: str) -> bool:
        return self.pattern[self.at : self.at + 1] == sign

    def _take(self, sign: str) -> bool:
        """Whether this character comes next; if so, it is read."""
        found = self._ahead(sign)
        self.at += found
        return found


def _joined_words(words: list[Word], others: list[Word]) -> list[Word]:
    joined = [(*word, *other) for word in words for other in others]
    _check_number(joined)
    return joined


def _range(first: str, last: frozenset[str]) -> frozenset[str]:
    """The characters of a-z; only letters and digits of ASCII have a public order."""
    end = next(iter(last)) if len(last) == 1 else ""
    both = first + end
    alike = both.isdigit() or both.islower() or both.isupper()
    if len(both) != 2 or not both.isascii() or not both.isalnum() or not alike or first > end:
        raise _pattern_error("a range goes from a letter or digit to a later one:  [A-F0-9]")
    return frozenset(map(chr, range(ord(first), ord(end) + 1)))


def _check_number(words: list[Word]) -> None:
    if len(words) > _MOST_WORDS:
        raise _too_long_error()


def _too_long_error() -> RefusedQuestion:
    return _pattern_error(f"it stands for more than {_MOST_WORDS} patterns of LIKE; begin it with ^.")


def _pattern_error(reason: str) -> RefusedQuestion:
    return expression_error(
        f"this regular expression is not supported: {reason}",
        "engines disagree on regular expressions, so one is written with LIKE and lists of characters.",
        _EXAMPLE,
    )

# SPDX-License-Identifier: Apache-2.0
"""The Markdown of the comparison: one table for each question and size."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

import environments
from judge import Cost, Measured, Result, errors, groups_shown, scatters, sizes
from libraries import LIBRARIES, REMARKS
from questions import AT_MOST, BOUNDS, DELTA, EPSILON


def page(results: Iterable[Result], options: argparse.Namespace) -> Iterator[str]:
    yield f"Peers: {', '.join(_versions())}."
    yield ""
    yield f"Every user is protected with all rows; at most {AT_MOST} of them count; amounts are clipped to {list(BOUNDS)};"
    yield f"ε = {EPSILON:g} for a whole question (δ = {DELTA:g} where one is needed). Regions are public, products are not."
    yield ""
    yield "- First: CPU seconds (wall seconds) from the Parquet file to the answer in a fresh process, after imports; a server"
    yield "  or a Java machine is up and, for PostgreSQL, the rows are loaded. CPU is of all threads and processes."
    yield "- Later: the very same question again, of what is still open, least of the repeats. Regrouped: the question after one"
    yield "  with another grouping, asked of libraries that keep something. ×: how many times what discreet takes, first and"
    yield "  regrouped; a library that keeps nothing is taken to pay its later for that."
    yield "- Error: mean over the groups of |answer - truth|, in % of the mean truth, which is the query without privacy; a"
    yield "  group that is not answered counts as zero. Scatter: standard deviation of a repeated answer, likewise: the noise, and"
    yield "  the draw of the rows. Most of an error in a count or a sum is the rows above the limit, and that is not noise."
    yield f"- MB: peak resident memory of all processes. Time-out: {options.limit:.0f} s of wall time."
    for result in results:
        yield ""
        yield f"**{result.question.key}, {result.question.title}, {result.rows:.0e} rows**"
        yield ""
        yield from _table(result)


def _versions() -> list[str]:
    names = dict.fromkeys(one.environment for one in LIBRARIES if one.environment != "discreet")
    return [environments.REQUIREMENTS[name][-1][0] for name in names]


def _table(result: Result) -> Iterator[str]:
    yield f"| library | first | later | regrouped | × | MB | error, %: {' / '.join(result.question.columns)} | scatter, % | groups |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    ours = result.reference()
    for one in result.measured:
        yield "| " + " | ".join(_row(one, result, ours)) + " |"


def _row(one: Measured, result: Result, ours: Measured | None) -> list[str]:
    name = f"**{one.library.name}**" if one.library.ours else one.library.name
    if one.trouble:
        return [name, one.trouble, *[""] * 7]
    remark = REMARKS.get((one.library.name, result.question.key))
    pairs = ((one.first, ours and ours.first), (_again(one), ours and _again(ours)))
    times = [f"{theirs[0] / own[0]:.2g}" for theirs, own in pairs if theirs and own]
    return [
        f"{name} (**{remark}**)" if remark else name,
        _cost(one.first),
        _cost(one.later),
        _cost(one.regrouped),
        " / ".join(times),
        f"{one.megabytes:.0f}",
        _shares(errors(one.answers, result.truth), result),
        _shares(scatters(one.answers), result),
        f"{groups_shown(one.answers):.0f}",
    ]


def _again(one: Measured) -> Cost | None:
    """A later question that is not the same one. Those who keep nothing pay for it what they pay for the same."""
    return one.regrouped or one.later


def _cost(cost: Cost | None) -> str:
    return f"{_seconds(cost[0])} ({_seconds(cost[1])})" if cost else ""


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _shares(numbers: list[float], result: Result) -> str:
    pairs = zip(numbers, sizes(result.truth), strict=False)
    return " / ".join(f"{100 * number / size:.3g}" for number, size in pairs)

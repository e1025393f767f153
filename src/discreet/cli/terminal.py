# SPDX-License-Identifier: Apache-2.0
"""Output that the commands share: numbers rounded to the safe side, aligned rows, a spinner for
long work.

**Guarantee.** Upper bounds are rounded up, lower bounds down. Digits beyond the eleventh are the
margin that the numerics add against floating point. They are dropped first: 0.30000000000000004 is
shown as 0.3, not as 0.300001.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.errors import DiscreetError
from discreet.exact import lower_bound_text, upper_bound_text


def all_digits(value: float) -> str:
    """A number to be typed again, with every digit.

    >>> all_digits(1.0), all_digits(1e-6), all_digits(1.23456789e-6)
    ('1', '1e-06', '1.23456789e-06')
    """
    return repr(value).removesuffix(".0")


def at_least_percent(fraction: float) -> str:
    """A fraction as a percentage, rounded down.

    >>> at_least_percent(0.970199)
    '97.01 %'
    """
    return f"{math.floor(_plain(fraction) * 10_000) / 100:.2f} %"


def at_most_percent(fraction: float) -> str:
    """A fraction as a percentage, rounded up.

    >>> at_most_percent(0.970101)
    '97.02 %'
    """
    return f"{math.ceil(_plain(fraction) * 10_000) / 100:.2f} %"


def round_to_side(value: float, *, upwards: bool) -> float:
    """The nearest number of seven digits on the given side, so that it can be typed.

    >>> round_to_side(1.56266644, upwards=True), round_to_side(1.56266644, upwards=False)
    (1.562667, 1.562666)
    """
    return float((upper_bound_text if upwards else lower_bound_text)(value, 7))


def _plain(value: float) -> Decimal:
    return Decimal(f"{value:.10e}")


def console(*, stderr: bool = False) -> Console:
    """A console without highlighting, and without colour where output is not a terminal."""
    return Console(stderr=stderr, highlight=False)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns; a long value continues under itself."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in rows:
        grid.add_row(name, Text(value))
    console().print(grid)


def print_table(columns: list[str], rows: Iterable[Iterable[str]], *, numbers: set[int]) -> None:
    """A table with a rule below its head; the columns in `numbers` are set to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in numbers else "left", no_wrap=index in numbers)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


@contextmanager
def working(words: str) -> Iterator[None]:
    """A spinner on stderr while something is computed, if stderr is a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(words):
        yield


def print_error(error: DiscreetError) -> None:
    """The four lines of an error on stderr; on a terminal a long line continues under itself."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        print(error, file=sys.stderr)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    for name, words in (
        (error.code, error.what),
        ("Why", error.why),
        ("Fix", error.fix),
        ("Spent", f"{error.spent}."),
    ):
        grid.add_row(name, Text(words))
    screen.print(grid)


@contextmanager
def progress_bar(words: str, *, visible: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, if that is a terminal: call it with how much is done, and of how
    much.
    """
    screen = console(stderr=True)
    if not visible or not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

# SPDX-License-Identifier: Apache-2.0
"""`discreet demo`: a private table, five questions, their cost, and a refusal; with `--accountant`
one page of what the accountant can do, computed while you watch.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from discreet.cli import options
from discreet.cli.files import folder, write_text, write_whole
from discreet.cli.terminal import (
    at_least_percent,
    at_most_percent,
    console,
    print_rows,
    print_table,
    round_to_side,
    working,
)
from discreet.errors import OverBudget
from discreet.exact import lower_bound_text, upper_bound_text

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import QuestionCost, Session
    from discreet.tables.answer.answer import Answer


_FOLDER = "discreet-demo"
#: The questions: in words, in SQL, and their cost.
QUESTIONS: tuple[tuple[str, str, QuestionCost], ...] = (
    (
        "How many people? A total and its parts in one release: they add up.",
        "SELECT sex, COUNT(*) FROM adult GROUP BY CUBE (sex)",
        {"epsilon": 0.05},
    ),
    (
        "How long do they work? The bounds of a mean are in the description.",
        "SELECT education, AVG(hours_per_week) AS hours FROM adult GROUP BY education ORDER BY hours DESC LIMIT 5",
        {"epsilon": 0.2},
    ),
    (
        "Who earns more than 50,000 a year? In percent.",
        (
            "SELECT occupation, AVG(CASE WHEN over_50k THEN 100 ELSE 0 END) AS percent FROM adult"
            " GROUP BY occupation ORDER BY percent DESC LIMIT 5"
        ),
        {"epsilon": 0.2},
    ),
    ("What is the median age?", "SELECT MEDIAN(age) AS age FROM adult", {"epsilon": 0.05}),
    (
        "Which gains do many people report? The groups are selected privately; small ones stay hidden.",
        (
            "SELECT capital_gain, COUNT(*) FROM adult WHERE capital_gain > 0 GROUP BY capital_gain"
            " ORDER BY count DESC LIMIT 5"
        ),
        {"epsilon": 0.2, "delta": 5e-8},
    ),
)
_TOO_MUCH = "SELECT age, sex, COUNT(*) FROM adult GROUP BY age, sex"
_SIGNS = {"epsilon": "ε", "delta": "δ"}
_SHOWN = 5

Accountant = Annotated[
    bool, options.switch("--accountant", "Show what the accountant can do instead, on one page.")
]
Out = Annotated[
    str,
    options.option("--out", "FOLDER", "The folder for the ledger, the statement and the figure."),
]


def demo(*, accountant: Accountant = False, out: Out = _FOLDER) -> None:
    """Ask five questions about a private table and see what they cost, in under a minute."""
    if accountant:
        tour()
        return
    target = folder(out)
    ledger = next(path for path in _ledger_names(target) if not path.exists())
    session = _session(ledger)
    answers = [_ask(number, session) for number in range(len(QUESTIONS))]
    _overspend(session)
    _print_next_steps(session, answers[1], target, ledger)


def _session(ledger: Path) -> Session:
    from discreet import data
    from discreet.ledger import Limit
    from discreet.session import Session
    from discreet.tables.open import open as open_data

    people = open_data(data.path("adult.toml"))
    session = Session(
        people, limit=Limit.filter(epsilon=1, delta=1e-6), ledger=ledger, purpose="demonstration"
    )
    _print_title("A census extract of 48,842 people (UCI Adult). Each person is protected.")
    print_rows(
        [
            ("limit", "ε = 1 at δ = 1e-06 for all answers together"),
            ("ledger", f"{ledger}: every cost is written here before the answer is drawn."),
            ("", "The demo makes a new one each time; real data keep one ledger for good."),
        ]
    )
    return session


def _ledger_names(directory: Path) -> Iterator[Path]:
    """Names for a ledger."""
    return (directory / f"adult-{number}.ledger" for number in count(1))


def _ask(number: int, session: Session) -> Answer:
    words, sql, spend = QUESTIONS[number]
    _print_title(f"{number + 1}. {words}")
    _print_line(sql, style="dim")
    with working("asking"):
        answer: Answer = session.sql(sql, **spend)
    _print_table(answer)
    cost = ", ".join(f"{_SIGNS[name]} = {value:g}" for name, value in spend.items())
    _print_line(f"cost {cost}; {session.budget().remaining_fraction:.0%} of the limit remains", style="dim")
    return answer


def _print_table(answer: Answer) -> None:
    """Keys, and each noisy number with its 95% confidence interval."""
    for row in list(answer)[:_SHOWN]:
        keys = "".join(f"{'–' if row[key] is None else row[key]!s:<20}" for key in answer.keys)
        _print_line(keys + "".join(_with_interval(row, name) for name in answer.columns))
    if answer.suppressed:
        _print_line(answer.suppressed)


def _with_interval(row: Mapping[str, object], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_lo", "_hi"))
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f"   {low:,.1f} to {high:,.1f}"
    return f"{value:>10,.1f}{ends}"


def _overspend(session: Session) -> None:
    _print_title("6. One question too many")
    _print_line(_TOO_MUCH, style="dim")
    try:
        session.sql(_TOO_MUCH, epsilon=1.0)
    except OverBudget as refusal:
        for line in str(refusal).splitlines():
            _print_line(line)


def _print_next_steps(session: Session, answer: Answer, directory: Path, ledger: Path) -> None:
    from importlib.util import find_spec

    _print_title("To keep, and to try next")
    page = directory / "statement.html"
    write_text(page, session.statement().to_html())
    rows = [("statement", f"{page}: what is guaranteed, to whom, and under which assumptions")]
    if find_spec("matplotlib") is not None:
        from discreet import plot

        picture = directory / "hours.svg"
        write_whole(picture, lambda path: plot.save(answer.plot(), path))
        rows.append(("figure", f"{picture}: working hours, with error bars"))
    command = _command()
    question = '"SELECT race, COUNT(*) FROM adult GROUP BY race"'
    print_rows(
        [
            *rows,
            ("the budget", f"{command} budget --ledger {ledger}"),
            ("check it", f"{command} ledger verify {ledger}"),
            ("ask more", f"{command} query {question} --data adult --epsilon 0.05 --ledger {ledger}"),
            ("your data", f"{command} describe visits.parquet --out visits.toml"),
            ("the theory", f"{command} demo --accountant"),
        ]
    )


def _command() -> str:
    """How this program is called again: by its name, or by where it lies, if it is not on the path."""
    own = Path(sys.argv[0])
    if shutil.which("discreet") is not None or own.name != "discreet":
        return "discreet"
    return os.path.relpath(own)


def _print_title(words: str) -> None:
    console().print(f"\n[bold]{words}[/bold]")


def _print_line(words: str, style: str = "") -> None:
    """A line under a title; a long one continues under itself."""
    from rich.padding import Padding
    from rich.text import Text

    console().print(Padding(Text(words, style=style), (0, 0, 0, 3)))


def tour() -> None:
    """Five sections, each a few lines."""
    for title, section in (
        ("1. What an attacker can see: four mechanisms of a lecture", _four_mechanisms),
        ("2. A race of theorems: 100 randomized responses at ε = 0.1", _race),
        ("3. A training run, proved from both sides", _training),
        ("4. Far out in the tail", _tail),
        ("5. How much noise, how many steps", _calibration),
    ):
        console().print(f"\n[bold]{title}[/bold]")
        section()
    console().print("\nAccount for your own:  discreet account --help")
    console().print("Run the tests:         make test")


def _four_mechanisms() -> None:
    from discreet.privacy import constructors as known

    alarms = (0.01, 0.05, 0.2, 0.5)
    mechanisms = {
        "randomized response, ε = 1": known.randomized_response(1.0),
        "leaky, δ = 0.1": known.leaky(0.1),
        "leaky randomized response, both": known.leaky_randomized_response(1.0, 0.1),
        "Laplace, scale 1": known.laplace(1.0),
    }
    lines = [
        [name, *(at_most_percent(1 - mechanism.tradeoff(alarm)) for alarm in alarms)]
        for name, mechanism in mechanisms.items()
    ]
    heads = [f"{100 * alarm:g} %" for alarm in alarms]
    print_table(["detected at most, with false alarms of", *heads], lines, numbers={1, 2, 3, 4})


def _race() -> None:
    from discreet.privacy.constructors import randomized_response

    table = (100 * randomized_response(0.1)).compare(delta=1e-6)
    lines = [(row.route, upper_bound_text(row.upper), row.theorem) for row in table]
    print_table(["route", "ε at δ = 1e-06", "theorem"], lines, numbers={1})


def _training() -> None:
    train = _train(1.0, 977)
    bound = train.bound(delta=1e-6)
    print_rows(
        [
            ("what was run", repr(train)),
            ("in words", "50,000 records, batches of about 512, noise 1, 10 epochs"),
            ("ε at δ = 1e-06", f"{lower_bound_text(bound.lower)} ≤ ε ≤ {upper_bound_text(bound.upper)}"),
            (
                "an attacker",
                f"with 1 % false alarms misses at least {at_least_percent(train.tradeoff(0.01))}",
            ),
        ]
    )


def _tail() -> None:
    """Beside the run a composition that has a closed form, so that the numerics can be checked
    where few look.
    """
    from discreet.privacy.constructors import gaussian

    train, known = _train(1.0, 977), 100 * gaussian(10.0)
    lines = [
        (
            f"{delta:g}",
            upper_bound_text(train.epsilon(delta)),
            upper_bound_text(known.epsilon(delta, route="loss distribution"), 9),
            upper_bound_text(known.epsilon(delta, route="gdp"), 9),
        )
        for delta in (1e-6, 1e-15, 1e-50, 1e-100)
    ]
    print_table(
        ["δ", "ε of that run", "100 gaussian(10), numerically", "closed form"], lines, numbers={1, 2, 3}
    )


def _calibration() -> None:
    from discreet.privacy.calibrate import calibrate
    from discreet.privacy.constructors import approximate

    target = approximate(1.0, 1e-6)
    with working("searching"):
        noise = round_to_side(calibrate(lambda z: _train(z, 977), to=target), upwards=True)
        steps = calibrate(lambda k: _train(1.0, k), to=target, integer=True)
    print_rows(
        [
            (
                "least noise for ε = 1",
                f"{noise:.7g}, which gives ε = {upper_bound_text(_train(noise, 977).epsilon(1e-6))}",
            ),
            (
                "most steps at noise 1",
                f"{steps}, which give ε = {upper_bound_text(_train(1.0, int(steps)).epsilon(1e-6))}",
            ),
        ]
    )


def _train(noise: float, steps: int) -> Guarantee:
    from discreet.privacy.constructors import gaussian

    return steps * gaussian(noise).sampled(512 / 50_000)

# SPDX-License-Identifier: Apache-2.0
"""`discreet demo --accountant`: one page of what the accountant can do, computed while you watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.terminal import (
    at_least_percent,
    at_most_percent,
    console,
    print_rows,
    print_table,
    round_to_side,
    working,
)
from discreet.exact import lower_bound_text, upper_bound_text

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee


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

# SPDX-License-Identifier: Apache-2.0
"""`discreet account dpsgd`: the guarantee of a training run, in the words of a training run.

Noise is measured in clipping norms, whichever the relation: the mechanism adds N(0, (noise·C)²) to
a sum of gradients of norm at most C, so a record that is added moves the sum by C, and one that is
replaced by 2C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from discreet import check
from discreet.cli import options, report
from discreet.cli.figures import draw_figure
from discreet.cli.numbers import number, whole
from discreet.cli.search import Safer, edge
from discreet.cli.terminal import all_digits
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

_RUN = "The training run"
_EXAMPLE = "discreet account dpsgd --n 50000 --batch 512 --noise 1.0 --epochs 10 --delta 1e-6"

Count = Annotated[str, options.option("--n", "N", "Records in the data.", _RUN)]
Batch = Annotated[str, options.option("--batch", "B", "Expected size of a batch.", _RUN)]
Noise = Annotated[
    str | None,
    options.option(
        "--noise", "Z", "Standard deviation of the noise on a sum of gradients / clipping norm.", _RUN
    ),
]
Epochs = Annotated[str | None, options.option("--epochs", "E", "Passes over the data.", _RUN)]
Steps = Annotated[str | None, options.option("--steps", "K", "Steps, instead of epochs.", _RUN)]
Scheme = Annotated[
    str,
    options.option("--scheme", "SCHEME", "poisson or without-replacement.", _RUN),
]


@dataclass(frozen=True)
class TrainingRun:
    """A training run."""

    n: int
    batch: int
    noise: float
    steps: int
    scheme: str
    relation: str
    unit: str

    @property
    def rate(self) -> float:
        return self.batch / self.n

    @property
    def guarantee(self) -> Guarantee:
        from discreet.privacy.constructors import gaussian

        step = gaussian(self.noise, unit=self.unit).sampled(self.rate, self.scheme, self.relation)
        return self.steps * step


def dpsgd(
    *,
    n: Count = "",
    batch: Batch = "",
    noise: Noise = None,
    epochs: Epochs = None,
    steps: Steps = None,
    scheme: Scheme = "poisson",
    delta: options.Delta = None,
    epsilon: options.TargetEpsilon = None,
    compare: options.Compare = False,
    relation: options.Relation = "add-remove",
    unit: options.UnitName = "record",
    json: options.Json = False,
    explain: options.Explain = False,
    plot: options.Plot = None,
    plot_kind: options.PlotKind = None,
) -> None:
    """Compute the guarantee of a training run with DP-SGD.

    discreet account dpsgd --n 50000 --batch 512 --noise 1.0 --epochs 10 --delta 1e-6

    With --epsilon, leave out --noise to find the least noise, or --epochs to find the most steps.
    """
    records, size = _whole("--n", n, "50000"), _whole("--batch", batch, "512")
    if size > records:
        raise _contradiction_error(
            f"a batch of {size} cannot be drawn from {records} records", "--batch 512 --n 50000"
        )
    at = (
        number("--delta", delta, check.delta, "--delta 1e-6") if delta is not None else default_delta(records)
    )
    stated_noise = None if noise is None else number("--noise", noise, check.positive, "--noise 1.0")
    run = TrainingRun(
        records, size, stated_noise or 0.0, _steps(epochs, steps, records, size), scheme, relation, unit
    )
    run, sought = _complete(run, at, epsilon)
    facts = report.facts("account dpsgd", run.guarantee, report.AccountQuestion(at, compare=compare))
    if sought:
        facts["calibrated"] = {"flag": f"--{sought}", "parameter": sought, "value": getattr(run, sought)}
    facts["training"] = {
        name: getattr(run, name) for name in ("n", "batch", "rate", "steps", "noise", "scheme")
    }
    facts["explanation"] = report.explanation(run.guarantee) if explain else None
    facts["plot"] = draw_figure(run.guarantee, plot, plot_kind, at)
    if json:
        report.print_json(facts)
    else:
        report.print_answer(facts, _run_rows(run, sought, chosen=at if delta is None else None), bracket=True)


def default_delta(records: int) -> float:
    """The greatest power of ten that is at most a tenth of 1/n.

    >>> default_delta(50_000), default_delta(100_000), default_delta(100_001)
    (1e-06, 1e-06, 1e-07)
    """
    return float(f"1e-{len(str(10 * records - 1))}")


def _steps(epochs: str | None, steps: str | None, records: int, size: int) -> int:
    """The number of steps, rounded up to cover the epochs; 0 if neither is given."""
    if epochs is not None and steps is not None:
        raise _contradiction_error("--epochs and --steps state the same thing twice", "--epochs 10")
    if steps is not None:
        return _whole("--steps", steps, "1000")
    if epochs is None:
        return 0
    number("--epochs", epochs, check.positive, "--epochs 10")
    return math.ceil(Fraction(epochs) * records / size)


def _complete(run: TrainingRun, delta: float, target: str | None) -> tuple[TrainingRun, str | None]:
    """The run with its noise and its steps, and the name of the one that was searched, if one was."""
    missing = [name for name in ("noise", "steps") if not getattr(run, name)]
    if target is None and missing:
        named = "--noise" if "noise" in missing else "--epochs"
        raise _contradiction_error(f"{named} is missing (or --epsilon, to find it)", _EXAMPLE)
    if target is None:
        return run, None
    if len(missing) != 1:
        words = "with --epsilon, leave out one of --noise and --epochs; it is the one that is found"
        raise _contradiction_error(
            words, "discreet account dpsgd --n 50000 --batch 512 --epochs 10 --epsilon 1"
        )
    epsilon = number("--epsilon", target, check.positive, "--epsilon 1")
    return _searched_run(run, missing[0], epsilon, delta), missing[0]


def _searched_run(run: TrainingRun, name: str, epsilon: float, delta: float) -> TrainingRun:
    from discreet.privacy.constructors import approximate

    target = approximate(epsilon, delta, relation=run.relation, unit=run.unit)
    safer = Safer.MORE if name == "noise" else Safer.FEWER
    value = edge(lambda number: _with(run, name, number).guarantee, target, safer, name)
    return _with(run, name, value)


def _with(run: TrainingRun, name: str, value: float) -> TrainingRun:
    return replace(run, noise=value) if name == "noise" else replace(run, steps=int(value))


def _run_rows(run: TrainingRun, sought: str | None, *, chosen: float | None) -> list[tuple[str, str]]:
    epochs = run.steps * run.batch / run.n
    noise = f"{all_digits(run.noise)} × the clipping norm, on the sum of the gradients of a batch"
    steps = f"{run.steps:,} (about {epochs:.3g} epochs)"
    return [
        ("data", f"{run.n:,} {run.unit}s, batches of {run.batch:,}: rate {run.rate:.6g}"),
        ("noise", f"{noise}; the least that reaches the target" if sought == "noise" else noise),
        ("steps", f"{steps}; the most that reach the target" if sought == "steps" else steps),
        ("in Python", repr(run.guarantee)),
        ("sampling", options.sampling_words(run.scheme, run.rate, run.unit)),
        *(
            [("δ", f"{all_digits(chosen)}, at most a tenth of 1/n; choose it with --delta")]
            if chosen is not None
            else []
        ),
    ]


def _whole(name: str, text: str, example: str) -> int:
    return whole(name, text, check.whole, f"{name} {example}")


def _contradiction_error(what: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        f"{what}.",
        why="the guarantee of a run is computed from its rate, its noise and its steps.",
        fix=fix,
    )

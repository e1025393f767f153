# SPDX-License-Identifier: Apache-2.0
"""A small model of fixed features, trained privately: ten lines of the loop that discreet's users write."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
sys.path.append(str(HERE.parent / ".carry"))  # last: what is installed goes first

import report  # noqa: E402

from discreet.learn.torch import private  # noqa: E402

EPSILON, DELTA = 3.0, 1e-5
HELD_OUT = 10_000


@dataclass(frozen=True)
class Recipe:
    """Public numbers, fixed before training. `model` is made for a number of features; `rates` may be compared."""

    model: Callable[[int], nn.Module]
    batch: int
    steps: int
    clip: float
    rate: float
    rates: tuple[float, ...]
    momentum: float = 0.9
    average: float = 0.0  # of the weights over steps: how much of the average is kept in each

    def __str__(self) -> str:
        return (
            f"batches of {self.batch}, {self.steps} steps, clipping norm {self.clip:g}, "
            f"rate {self.rate:g}, momentum {self.momentum:g}, averaging {self.average:g}"
        )


@dataclass(frozen=True)
class Outcome:
    """Of one training: `epsilon` is what its steps really cost, `noise` is in clipping norms."""

    accuracy: float
    epsilon: float
    noise: float
    seconds: float


Data = tuple[Tensor, Tensor]  # rows and their classes


def train(records: Data, recipe: Recipe, scored: Data) -> Outcome:
    """Train on some records and score on others."""
    start, (rows, classes) = time.perf_counter(), records
    model = recipe.model(rows.shape[1]).to(rows.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.rate, momentum=recipe.momentum)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe.average))
    run = private(
        model, optimizer, (rows, classes), epsilon=EPSILON, delta=DELTA, size=len(rows),
        batch=recipe.batch, steps=recipe.steps, clip=recipe.clip,
    )  # fmt: skip
    for inputs, targets in run:
        losses = functional.cross_entropy(model(inputs), targets, reduction="none")
        run.backward(losses)
        optimizer.step()
        averaged.update_parameters(model)  # a function of what was released: it costs nothing
    run.close()
    spent = time.perf_counter() - start
    return Outcome(accuracy(averaged, scored), run.epsilon(DELTA), run.plan.noise, spent)


def accuracy(model: nn.Module, scored: Data) -> float:
    """The share of rows whose class the model says."""
    with torch.no_grad():
        right = [(model(rows).argmax(1) == classes).sum() for rows, classes in _parts(scored)]
    return float(torch.stack(right).sum()) / len(scored[0])


def main(name: str, data: Callable[[str, str], Data], recipes: dict[str, Recipe], least: float) -> None:
    """Train, print what came out, and keep it if told to."""
    options = _options(name, list(recipes))
    recipe = recipes[options.model]
    if options.device == "cpu":
        torch.set_num_threads(1)
    start = time.perf_counter()
    records = data("train", options.device)
    print(f"features of {len(records[0])} images: {time.perf_counter() - start:.0f} s", flush=True)
    if options.choose:
        recipe = _choose_recipe(records, recipe)
    scored = data("test", options.device)
    outcomes = []
    for _ in range(options.runs):
        outcomes.append(train(records, recipe, scored))
        print(outcomes[-1], flush=True)
    command = f"python benchmarks/training/{Path(sys.argv[0]).name} {shlex.join(sys.argv[1:])}".strip()
    lines = [*report.heading(command), "", *_page(recipe, outcomes, least)]
    print("\n".join(lines))
    if options.write:
        report.replace_section(
            HERE.parent / "RESULTS.md", f"{name}, trained privately ({options.model})", lines
        )


def _choose_recipe(records: Data, recipe: Recipe) -> Recipe:
    """The recipe with the rate that is best on held-out training images; the test images are not looked at."""
    rows, classes = records
    kept = len(rows) - HELD_OUT
    smaller = replace(recipe, batch=round(recipe.batch * kept / len(rows)))  # as large a share of the records
    scores = {}
    for rate in recipe.rates:
        tried = replace(smaller, rate=rate)
        scores[rate] = train((rows[:kept], classes[:kept]), tried, (rows[kept:], classes[kept:])).accuracy
        print(f"rate {rate:g}: {scores[rate]:.2%} of the images held out", flush=True)
    return replace(recipe, rate=max(scores, key=scores.__getitem__))


def _page(recipe: Recipe, outcomes: list[Outcome], least: float) -> Iterator[str]:
    scores = [one.accuracy for one in outcomes]
    mean, first = statistics.mean(scores), outcomes[0]
    each = ", ".join(f"{score:.2%}" for score in scores)
    yield f"ε = {first.epsilon:.4f} at δ = {DELTA:g}, one more or one less image; noise {first.noise:.4f}; {recipe}."
    yield f"{len(scores)} trainings of {statistics.median(one.seconds for one in outcomes):.0f} s: {each}."
    yield ""
    met = "met" if mean >= least else "**missed**"
    yield f"- {met}: {mean:.2%} of the test images on average (target {least:.1%})"


def _parts(data: Data) -> Iterator[Data]:
    yield from zip(*(tensor.split(1000) for tensor in data), strict=True)


def _options(name: str, models: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"Private training on {name}")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", choices=models, default=models[0])
    parser.add_argument("--runs", type=int, default=3, help="trainings, each with noise of its own")
    parser.add_argument("--choose", action="store_true", help="the rate by held-out training images, first")
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/RESULTS.md")
    return parser.parse_args()

# SPDX-License-Identifier: Apache-2.0
"""The models of the training benchmark, in miniature: each record's gradient is found in every one of them, and clipped."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
from discreet.learn.torch import private  # noqa: E402
from discreet.learn.torch.clip import Clipper  # noqa: E402

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
PARTS = ("models", "tasks", "ways", "stopwatch", "scattering", "images", "fit", "mnist", "cifar", "carry")
NAMES = ("MLP", "CNN", "encoder", "ResNet", "ViT", "GPT")


@pytest.fixture(scope="module")
def parts() -> Iterator[dict[str, ModuleType]]:
    """The benchmark's modules, which are scripts in a folder: on the path while they are used, and forgotten after."""
    path, known = list(sys.path), set(sys.modules)
    sys.path[:0] = [str(BENCHMARKS / "training"), str(BENCHMARKS / "peers")]
    yield {name: importlib.import_module(name) for name in PARTS}
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(BENCHMARKS)):
            del sys.modules[name]


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("clip", [0.3, 1e6])
def test_the_sum_is_that_of_gradients_taken_one_by_one(
    parts: dict[str, ModuleType], index: int, clip: float
) -> None:
    tasks = parts["tasks"]
    task, loss = tasks.TINY[index], tasks.PerRecord("none")
    model, (inputs, targets) = task.build("cpu").double(), task.data("cpu")
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    expected = {parameter: torch.zeros_like(parameter) for parameter in model.parameters()}
    for record in range(task.batch):
        one = slice(record, record + 1)
        gradients = torch.autograd.grad(loss(model(inputs[one]), targets[one]).sum(), list(expected))
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        for parameter, gradient in zip(expected, gradients, strict=True):
            expected[parameter] += gradient * min(1.0, clip / norm.item())

    clipper = Clipper(model)
    with clipper.watch():
        found = clipper.clipped_sum(loss(model(inputs), targets), clip=clip)

    assert set(found.gradients) == set(expected)
    for parameter, total in expected.items():
        torch.testing.assert_close(found.gradients[parameter], total, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_a_private_step_moves_every_parameter(parts: dict[str, ModuleType], index: int) -> None:
    task = parts["tasks"].TINY[index]
    model = task.build("cpu")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = private(model, optimizer, task.data("cpu"), noise=1.0, steps=1, sampling="full", size=task.batch)
    for inputs, targets in run:
        run.backward(parts["tasks"].PerRecord("none")(model(inputs), targets))
        optimizer.step()
    run.close()
    assert all(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_scattering_averages_a_flat_picture_to_itself_and_finds_no_wave_in_it(
    parts: dict[str, ModuleType],
) -> None:
    planes = parts["scattering"].scattering(torch.full((1, 2, 28, 28), 0.7)).reshape(2, 81, 7, 7)
    torch.testing.assert_close(planes[:, 0], torch.full((2, 7, 7), 0.7))
    assert planes[:, 1:].abs().max() < 1e-5


def test_scattering_hears_a_wave_in_its_own_direction_first(parts: dict[str, ModuleType]) -> None:
    """Stripes at the frequency of the finer wavelets: the filter across them answers most, the one along them least."""
    stripes = torch.cos(0.75 * torch.pi * torch.arange(32.0)).expand(1, 1, 32, 32)
    first = parts["scattering"].scattering(stripes)[0, 1:9].mean((1, 2))
    assert first.argmax() == 4  # of eight directions, a right angle
    assert first.argmin() == 0


def test_features_of_an_image_are_of_that_image_alone(parts: dict[str, ModuleType]) -> None:
    torch.manual_seed(3)
    images = torch.randint(256, (3, 1, 28, 28), dtype=torch.uint8)
    together, alone = parts["scattering"].features(images), parts["scattering"].features(images[1:2])
    torch.testing.assert_close(together[1:2], alone)
    assert together[:, :-1].norm(dim=1) == pytest.approx(torch.ones(3), abs=1e-5)


def test_a_training_of_the_accuracy_benchmark_costs_what_it_says(parts: dict[str, ModuleType]) -> None:
    fit, models = parts["fit"], parts["models"]
    rows, classes = torch.eye(20).repeat(3, 1), torch.arange(60) % 10
    for model in (models.linear, lambda _: torch.nn.Linear(20, 10)):
        recipe = fit.Recipe(model, 12, 4, clip=0.1, rate=1.0, rates=(1.0, 2.0))
        outcome = fit.train((rows, classes), recipe, (rows, classes))
        assert 2.9 < outcome.epsilon <= fit.EPSILON
        assert 0.0 <= outcome.accuracy <= 1.0

# SPDX-License-Identifier: Apache-2.0
"""DP-SGD for PyTorch, with your own training loop, model and optimizer.

    from discreet.learn.torch import private

    run = private(model, optimizer, data, epsilon=3, delta=1e-5, epochs=10, batch=256, size=60_000)
    for x, y in run:
        run.backward(F.cross_entropy(model(x), y, reduction="none"))
        optimizer.step()

Read in this order:

    run.py         the loop, step by step, and its guarantee                        ◄ read this first
    start.py       `private`: what is checked before a run begins
    plan.py        public numbers, and the guarantee that follows from them
    sampler.py     which records are in a batch; batches.py, records.py: how the loop sees them
    clip.py        the sum of clipped gradients of single records
    sums.py        sums, noise, the divisor; exact.py: the same in whole numbers
    noise.py       noise on a grid; chacha.py: on a GPU; generators.py: dropout and augmentation
    banded.py      noise that later steps partly take back; bands.py: its numbers
    adaptive.py    a clipping norm that follows the norms
    adam.py        Adam that knows the noise
    steps.py       optimizers whose step is replaced
    checkpoint.py  stopping and resuming
    canaries.py    auditing a run by itself
    search.py      a run as a mechanism, so that trying several settings can be paid for
    report.py      describes what is trained and what is guaranteed

How the gradient of each record is clipped, each line using only those above it:

    internals.py   the private parts of PyTorch that all this needs
    pieces/        what one use of a parameter contributes; grams.py, passes.py, windows.py: on a GPU
    tape.py        collects the pieces of a backward pass
    watched.py     parameters whose uses are noticed
    rules/         which rule answers which function of torch
    clip.py        the clipped sum

What is refused: guards.py, look.py, snapshot.py, shadow.py, refusals.py.
"""

from __future__ import annotations

from importlib.util import find_spec

from discreet.errors import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra(
        "DP501",
        "training needs PyTorch, which is not installed.",
        why="PyTorch is an optional dependency of discreet.",
        fix="pip install 'discreet[torch]'",
    )

from discreet.learn.torch.adam import CorrectedAdam
from discreet.learn.torch.adaptive import Adaptive
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.plan import TrainingPlan, plan_of
from discreet.learn.torch.run import Run
from discreet.learn.torch.search import Training
from discreet.learn.torch.start import private

__all__ = ["Adaptive", "Canaries", "CorrectedAdam", "Run", "Training", "TrainingPlan", "plan_of", "private"]

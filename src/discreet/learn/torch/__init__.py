# SPDX-License-Identifier: Apache-2.0
"""DP-SGD around a training loop of PyTorch, with the loop, the model and the optimizer that were there before.

    from discreet.learn.torch import private

    run = private(model, optimizer, data, epsilon=3, delta=1e-5, epochs=10, batch=256, size=60_000)
    for x, y in run:
        run.backward(F.cross_entropy(model(x), y, reduction="none"))
        optimizer.step()

Read in this order:

    run.py         the loop, step by step: the promise                              ◄ read this first
    start.py       `private`: what is checked before it begins
    plan.py        public numbers, and the guarantee that follows from them
    sampler.py     which records are in a batch; batches.py, records.py: how the loop sees them
    clip.py        the sum of clipped gradients; rules/, tape.py, watched.py, guards.py: how it knows each record's
    sums.py        sums, noise, the divisor; exact.py: the same in whole numbers
    noise.py       noise on a grid; chacha.py, kernel.py: on a GPU; generators.py: dropout and augmentation
    banded.py      noise that later steps partly take back; bands.py: its numbers
    adaptive.py    a clipping norm that follows the norms
    adam.py        Adam that knows the noise
    steps.py       optimizers whose step is ours; look.py, snapshot.py, shadow.py, processes.py, moving.py, refusals.py: what is refused
    checkpoint.py  stopping and going on
    canaries.py    auditing a run by itself
    search.py      a run as a mechanism, so that trying several can be paid for
    report.py      what is trained and what is promised, in words
"""

from __future__ import annotations

from importlib.util import find_spec

from discreet.errors import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra(
        "DP501",
        "training needs PyTorch, which is not installed.",
        why="the core of discreet stays small; PyTorch is an extra.",
        fix="pip install 'discreet[torch]'",
    )

from discreet.learn.torch.adam import CorrectedAdam
from discreet.learn.torch.adaptive import Adaptive
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.plan import Plan, plan_of
from discreet.learn.torch.run import Run
from discreet.learn.torch.search import Training
from discreet.learn.torch.start import private

__all__ = ["Adaptive", "Canaries", "CorrectedAdam", "Plan", "Run", "Training", "plan_of", "private"]

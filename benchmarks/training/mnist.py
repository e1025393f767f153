# SPDX-License-Identifier: Apache-2.0
"""MNIST at ε = 3, δ = 1e-5, from scratch: a linear classifier of scattering features, through discreet's own run.

    python benchmarks/training/mnist.py               # three trainings on 60,000 images, scored on the 10,000 others
    python benchmarks/training/mnist.py --choose      # the rate is chosen before, by 10,000 training images held out
    python benchmarks/training/mnist.py --write       # and keep the figures in benchmarks/RESULTS.md

Poisson batches, the noise that the accountant says. On one CPU thread the features take five minutes and a training
one. The features of an image are of that image alone; the choice of a rate is not part of ε.
"""

from __future__ import annotations

import fit
import images
import models
from scattering import features

RECIPE = fit.Recipe(models.linear, 6000, 300, clip=0.1, rate=200.0, rates=(60.0, 100.0, 200.0, 400.0))


def data(part: str, device: str) -> fit.Data:
    """Rows of features and their classes."""
    found = images.mnist({"train": "train", "test": "t10k"}[part])
    return features(found.pixels.to(device)), found.classes.to(device)


if __name__ == "__main__":
    fit.main("MNIST", data, {"linear": RECIPE}, least=0.984)

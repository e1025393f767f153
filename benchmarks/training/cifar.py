# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 at ε = 3, δ = 1e-5, from scratch: a small model of scattering features, through discreet's own run.

    python benchmarks/training/cifar.py --choose                        # linear: rate by held-out training images
    python benchmarks/training/cifar.py --choose --model convolutional  # two convolutions
    python benchmarks/training/cifar.py --write                         # and keep the figures in RESULTS.md

Three trainings on 50,000 images, scored on the 10,000 others; Poisson batches, the noise that the accountant says. It
takes 8 GB of memory, and on one CPU thread the features take a quarter of an hour. The features of an image are of
that image alone; the choice of a rate is not part of ε.
"""

from __future__ import annotations

import fit
import images
import models
from scattering import features

LINEAR = fit.Recipe(models.linear, 8192, 350, clip=0.1, rate=400.0, rates=(100.0, 200.0, 400.0, 800.0))
CONVOLUTIONAL = fit.Recipe(
    models.convolutional, 16_384, 350, clip=0.3, rate=1.5, rates=(0.75, 1.5, 3.0), average=0.98
)


def data(part: str, device: str) -> fit.Data:
    """Rows of features and their classes."""
    found = images.cifar10(part)
    return features(found.pixels.to(device)), found.classes.to(device)


if __name__ == "__main__":
    fit.main("CIFAR-10", data, {"linear": LINEAR, "convolutional": CONVOLUTIONAL}, least=0.65)

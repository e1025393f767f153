# SPDX-License-Identifier: Apache-2.0
"""The state of torch that several files of tests begin with."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def seeded():
    """Models and records that torch draws are the same in every run."""
    torch.manual_seed(0)


@pytest.fixture
def doubles(seeded):
    """The same, in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)

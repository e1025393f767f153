# SPDX-License-Identifier: Apache-2.0
"""Private parts of PyTorch: all that are named exist in this version, and one that is missing is named in the error."""

from __future__ import annotations

import pytest
import torch

from discreet.errors import RefusedTraining
from discreet.learn.torch import internals


@pytest.mark.parametrize("name", internals.NAMES)
def test_every_name_is_found_in_this_version(name):
    assert getattr(internals, name) is not None
    assert name in vars(internals)


def test_this_version_is_one_that_is_known_to_work():
    assert torch.__version__.startswith(internals.KNOWN_TO_WORK + ".")


@pytest.mark.parametrize("place", [("torch.utils._moved", "tree_map"), ("torch", "_C.moved")])
def test_a_name_that_is_missing_is_refused_with_the_versions(place, monkeypatch):
    monkeypatch.setitem(internals.NAMES, "moved", place)
    with pytest.raises(RefusedTraining) as refusal:
        internals.moved  # noqa: B018
    text = str(refusal.value)
    assert refusal.value.code == "DP919"
    assert all(word in text for word in (torch.__version__, ".".join(place), internals.KNOWN_TO_WORK))


def test_an_attribute_that_is_missing_is_refused():
    class Bare:
        pass

    for look in (internals.version_of, internals.is_view, internals.base_of, internals.forget_workers):
        with pytest.raises(RefusedTraining, match="DP919"):
            look(Bare())


def test_a_name_that_nobody_needs_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        internals.no_such_name  # noqa: B018


def test_internals_answer_what_torch_holds():
    tensor = torch.zeros(4)
    before = internals.version_of(tensor)
    tensor.add_(1)
    assert internals.version_of(tensor) == before + 1
    assert (internals.is_view(tensor), internals.is_view(tensor[:2])) == (False, True)
    assert internals.base_of(tensor[:2]) is tensor
    assert internals.memory_of(tensor) == internals.memory_of(tensor[:2])
    add = torch.ops.aten.add_.Tensor
    assert internals.operator_name(add) == "add_"
    assert internals.operator_parameters(add) == [("self", True), ("other", False), ("alpha", False)]

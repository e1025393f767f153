# SPDX-License-Identifier: Apache-2.0
"""Refusals of a training loop: what was done, why it is not private, and a line that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from discreet.errors import RefusedTraining

__all__ = [
    "UNTESTED",
    "UNTRIED",
    "check_losses",
    "no_gradient_error",
    "refuse_ordinary_gradients",
    "refuse_reentrant_checkpoints",
]

UNTESTED = "The model could not be tested on made-up records. That it keeps records apart is taken on trust."
UNTRIED = "The losses could not be tried on a changed batch. That they keep records apart is taken on trust."
_LOOP = "for x, y in run: run.backward(loss(model(x), y)); optimizer.step()"


def no_gradient_error(what: str, fix: str = _LOOP) -> RefusedTraining:
    """The refusal of a step that would not be private."""
    return RefusedTraining(
        "DP911",
        what,
        why="a private step uses every record of its batch once, clipped, with noise, and nothing else.",
        fix=fix,
        spent="what the steps before it cost",
    )


def check_losses(losses: object, records: int) -> Tensor:
    """Check that there is one loss for each record of the batch. The refusal does not say how many records there are."""
    if not isinstance(losses, Tensor) or losses.dim() != 1 or losses.shape[0] != records:
        raise RefusedTraining(
            "DP912",
            "run.backward needs one loss for each record of the batch, in one dimension.",
            why="a mean or a sum over the batch does not show what each record contributes, so no record can be clipped.",
            fix='loss = F.cross_entropy(model(x), y, reduction="none")   (several terms: losses.view(len(x), -1).sum(1))',
            spent="what the steps before it cost",
        )
    if not losses.requires_grad:
        raise no_gradient_error(
            "the losses do not depend on the parameters of the model.",
            "compute them inside the loop, with run.model, and not under torch.no_grad()",
        )
    return losses


def refuse_ordinary_gradients(parameters: Iterable[Parameter]) -> list[Any]:
    """Make `loss.backward()` fail on these parameters; the handles undo it."""

    def refuse(parameter: Tensor) -> None:
        parameter.grad = None
        raise no_gradient_error("loss.backward() was called, which neither clips nor adds noise.")

    return [_add_hook(parameter, refuse) for parameter in parameters]


def _add_hook(parameter: Any, hook: Any) -> Any:
    return parameter.register_post_accumulate_grad_hook(hook)


@contextmanager
def refuse_reentrant_checkpoints() -> Iterator[None]:
    """Turn the error of torch on reentrant checkpoints into a refusal that says what to do."""
    try:
        yield
    except RuntimeError as failed:
        if "use_reentrant" not in str(failed):
            raise
    else:
        return
    raise RefusedTraining(
        "DP921",
        "a part of the model runs under torch.utils.checkpoint with use_reentrant=True.",
        why="it recomputes its layers in a separate backward pass, where the gradients of single records cannot be seen.",
        fix="torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)",
        spent="what the steps before it cost",
    )

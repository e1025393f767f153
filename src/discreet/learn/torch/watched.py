# SPDX-License-Identifier: Apache-2.0
"""Parameters whose uses are noticed, and tensors that were made of parameters alone.

While a model is watched its trainable parameters have the class `Watched`: same object, same
memory, but every function of torch that gets one goes to the rules first. So it does not matter
whether a weight is used by its own layer, by another one, or by a bare function. A use without a
rule is refused where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodWrapperType
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import Parameter

from discreet.errors import RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.pieces.base import Dense
from discreet.learn.torch.tape import Contributions, Tape

__all__ = ["Derived", "Watched", "compiled_model_error", "is_watched", "unwatch", "watch", "without_watching"]

_FREEZE = "run.close(), freeze it, and private(…) again"

#: How a call that has a watched parameter among its arguments is answered.
Dispatch = Callable[[Tape, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Watched(Parameter):
    """A watched parameter. It never requires a gradient, so gradients reach it only through the
    tape.
    """

    tape: Tape
    dispatch: Dispatch

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if torch.compiler.is_compiling():
            raise compiled_model_error()
        with internals.DisableTorchFunctionSubclass():
            if _is_attribute(func):
                _refuse_freezing(func)
                return func(*args, **(kwargs or {}))
            if not torch.is_grad_enabled():
                return func(*args, **(kwargs or {}))
            first = _first(args) if kwargs is None else _first((*args, *kwargs.values()))
            if first is None:
                return func(*args, **(kwargs or {}))
            return first.dispatch(first.tape, func, args, kwargs or {})

    def requires_grad_(self, requires_grad: bool = True) -> Self:  # noqa: FBT001, FBT002 - as torch has it
        """Refuse to freeze the parameter, because the run would still move it."""
        if not requires_grad:
            raise _watched_parameter_error("a parameter was frozen while a run trains it", _FREEZE)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A copy is an ordinary parameter, which nobody watches."""
        with internals.DisableTorchFunctionSubclass():
            copy = Parameter(self.detach().clone(), requires_grad=True)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickled parameter is an ordinary one too."""
        with internals.DisableTorchFunctionSubclass():
            return Parameter, (self.detach(), True)


class Derived(Tensor):
    """A value made of parameters and constants alone. It has no axis of records until it meets a
    tensor that has one.

    `value` is the tensor with its own graph back to `leaves`, which stand for the parameters.
    """

    tape: Tape
    dispatch: Dispatch
    value: Tensor
    parameters: list[Watched]
    leaves: list[Tensor]

    __torch_function__ = Watched.__torch_function__

    def grows(self, shape: Sequence[int]) -> bool:
        """Whether the record is a new axis of a result of this shape: always, for a value that has
        no records.
        """
        return True

    def as_records(self) -> Tensor:
        """The value as a tensor whose first axis is the record."""
        return self.value

    def contributions(self, gradients: Tensor) -> Contributions:
        """From the gradient at the value, one for each record, the gradients at the parameters."""
        leaf_gradients = torch.autograd.grad(
            self.value, self.leaves, gradients.to(self.value.dtype), is_grads_batched=True, retain_graph=True
        )
        return [
            (parameter, Dense(gradient))
            for parameter, gradient in zip(self.parameters, leaf_gradients, strict=True)
        ]


@contextmanager
def without_watching() -> Iterator[None]:
    """No gradients for the length of a block; calls with watched parameters go straight to torch."""
    with torch.no_grad(), internals.DisableTorchFunctionSubclass():
        yield


def is_watched(argument: object) -> bool:
    """Whether an argument is a watched parameter, or made of some. `isinstance` is slow for
    parameters.
    """
    kind = type(argument)
    return kind is Watched or (kind is not Tensor and issubclass(kind, Derived))


def watch(parameter: Parameter, tape: Tape, dispatch: Dispatch) -> None:
    """Watch a parameter."""
    parameter.requires_grad_(False)
    parameter.tape, parameter.dispatch = tape, dispatch  # type: ignore[attr-defined]
    parameter.__class__ = Watched


def unwatch(parameter: Parameter) -> None:
    """Make it an ordinary trainable parameter again."""
    parameter.__class__ = Parameter
    del parameter.tape, parameter.dispatch  # type: ignore[attr-defined]
    parameter.requires_grad_(True)


def _refuse_freezing(function: Any) -> None:
    if function.__name__ == "__set__" and function.__self__.__name__ == "requires_grad":
        raise _watched_parameter_error("requires_grad was set on a parameter while a run trains it", _FREEZE)


def compiled_model_error() -> RefusedTraining:
    """The refusal of a model that torch.compile has rewritten, because uses of its parameters may
    go unnoticed.
    """
    return _watched_parameter_error(
        "a model that is being trained was compiled", "train the model as it is, and compile it afterwards"
    )


def _watched_parameter_error(what: str, fix: str) -> RefusedTraining:
    return RefusedTraining(
        "DP921",
        f"{what}.",
        why="the run decides at its start which parameters are clipped, and it must see how they are used.",
        fix=fix,
        spent="what the steps before it cost",
    )


def _is_attribute(function: Any) -> bool:
    """Whether a call reads or sets an attribute other than the transposes."""
    return (
        type(function) is MethodWrapperType
        and function.__name__ in {"__get__", "__set__"}
        and function.__self__.__name__ not in {"T", "mT", "H", "mH"}  # type: ignore[attr-defined]
    )


def _first(arguments: Iterable[Any]) -> Watched | Derived | None:
    for argument in arguments:
        if is_watched(argument):
            watched: Watched | Derived = argument
            return watched
        if type(argument) in {list, tuple}:
            inner = _first(argument)
            if inner is not None:
                return inner
    return None

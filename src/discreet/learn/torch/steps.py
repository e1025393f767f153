# SPDX-License-Identifier: Apache-2.0
"""The optimizers of the user: `step` becomes the private step, and schedulers still work.

The patch is a bound method on the instance, as learning-rate schedulers expect. A scheduler may be
made before or after it, and closing the run restores both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.watched import without_watching

__all__ = [
    "MovementCheck",
    "PatchedOptimizer",
    "check_parameters",
    "optimizers_of",
    "refuse_old_averages",
    "settings_of",
]

#: How many numbers of each parameter are compared.
_FIRST = 1024
#: What is called instead of a step: it gets the optimizer, the real step, and a closure if there is one.
Instead = Callable[[Optimizer, Callable[[], Any], Any], Any]

_OPEN: WeakSet[Optimizer] = WeakSet()
#: What optimizers held when their last run was closed: all of it was made of released gradients.
_RELEASED: WeakKeyDictionary[Optimizer, list[tuple[int, int]]] = WeakKeyDictionary()


class PatchedOptimizer:
    """An optimizer whose `step` is replaced until `close`."""

    def __init__(self, optimizer: Optimizer, instead: Instead) -> None:
        if optimizer in _OPEN:
            raise RefusedTraining(
                "DP916",
                "this optimizer belongs to a run that is still open.",
                why="only one of the two runs would count a step.",
                fix="run.close()   (or with private(…) as run: …)",
            )
        _OPEN.add(optimizer)
        self.optimizer, self._open = optimizer, True
        self._own = vars(optimizer).get("step")
        real = optimizer.step

        def step(inner: Optimizer, closure: Any = None) -> Any:
            return instead(inner, real, closure) if self._open else real(closure)

        # A scheduler looks for its own mark there.
        vars(step).update(getattr(real, "__dict__", {}))
        self._step = MethodType(step, optimizer)
        optimizer.step = self._step  # type: ignore[method-assign]
        self._scaling = vars(optimizer).get(internals.UNSCALES_ITSELF)
        vars(optimizer)[internals.UNSCALES_ITSELF] = _NoScaler()
        self._forgetful = "zero_grad" not in vars(optimizer)
        if self._forgetful:
            optimizer.zero_grad = _Unwatched(optimizer.zero_grad)  # type: ignore[method-assign]

    def close(self) -> None:
        if self._open:
            _RELEASED[self.optimizer] = _marks(self.optimizer)
        self._open = False
        _OPEN.discard(self.optimizer)
        if vars(self.optimizer).get("step") is self._step:
            del self.optimizer.step
            if self._own is not None:
                self.optimizer.step = self._own  # type: ignore[method-assign]
        if (
            isinstance(vars(self.optimizer).pop(internals.UNSCALES_ITSELF, None), _NoScaler)
            and self._scaling is not None
        ):
            vars(self.optimizer)[internals.UNSCALES_ITSELF] = self._scaling
        if self._forgetful and type(vars(self.optimizer).get("zero_grad")) is _Unwatched:
            del self.optimizer.zero_grad


class _Unwatched:
    """A method that handles every parameter, called without watching: each watched parameter would
    be asked separately.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __call__(self, *positional: Any, **named: Any) -> Any:
        with without_watching():
            return self._method(*positional, **named)


def optimizers_of(optimizer: object, parameters: Iterable[Parameter]) -> tuple[Optimizer, ...]:
    """One optimizer or several, if all their parameters are those of the model."""
    optimizers = tuple(optimizer) if isinstance(optimizer, list | tuple) else (optimizer,)
    if not optimizers or not all(isinstance(each, Optimizer) for each in optimizers):
        raise BadParameter(
            "DP104",
            "optimizer must be a torch optimizer, or a list of them.",
            why="its step becomes the private step.",
            fix="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        )
    known = set(map(id, parameters))
    for each in optimizers:
        _refuse_closures(each)
        check_parameters(each, known)
    return optimizers


def _refuse_closures(optimizer: Optimizer) -> None:
    """Refuse optimizers like LBFGS, whose step needs a closure."""
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is None or closure.default is not closure.empty:
        return
    raise RefusedTraining(
        "DP916",
        f"{type(optimizer).__name__} needs a closure in every step.",
        why="a closure may compute gradients several times, and each would have to be clipped, noised and paid for.",
        fix="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    )


class _NoScaler:
    """What a GradScaler reads before it steps an optimizer. Reading it is refused, because scaled
    losses were clipped.
    """

    def __bool__(self) -> NoReturn:
        raise RefusedTraining(
            "DP916",
            "a GradScaler was about to step the optimizer.",
            why="it multiplies losses by a scale, so that every gradient would be clipped, and it reads gradients before noise is added.",
            fix='leave the scaler out: run.backward(losses); optimizer.step(), with torch.autocast("cuda", torch.bfloat16) around the model',
            spent="what the steps before it cost",
        )


def refuse_old_averages(optimizers: Iterable[Optimizer]) -> None:
    """Refuse momentum and other averages that no run made: they may hold gradients without noise.

    An optimizer has no state before its first step. What a closed run left in it was released.
    """
    for optimizer in optimizers:
        if not _is_new(optimizer) and _RELEASED.get(optimizer) != _marks(optimizer):
            kind = type(optimizer)
            name = (
                f"torch.optim.{kind.__name__}" if kind.__module__.startswith("torch.optim") else kind.__name__
            )
            raise RefusedTraining(
                "DP916",
                "the optimizer holds averages of gradients that no run released.",
                why="momentum of steps without noise would reach the parameters with the next step, and nothing pays for it.",
                fix=f"optimizer = {name}(model.parameters(), …)   or, to continue a run, private(…, resume=state)",
            )


def _marks(optimizer: Optimizer) -> list[tuple[int, int]]:
    """The tensors that an optimizer holds for its parameters, and how often each was written."""
    values = [value for state in optimizer.state.values() for value in _values(state)]
    return [(id(value), internals.version_of(value)) for value in values if isinstance(value, Tensor)]


def _is_new(optimizer: Optimizer) -> bool:
    """Whether it has taken no step: it holds nothing, or its counters are 0."""
    states = [
        state for state in optimizer.state.values() if any(value is not None for value in _values(state))
    ]
    return all(isinstance(state, dict) and "step" in state and float(state["step"]) == 0 for state in states)


def _values(state: Any) -> list[Any]:
    return list(state.values()) if isinstance(state, dict) else [state]


def check_parameters(optimizer: Optimizer, known: set[int]) -> None:
    """Refuse an optimizer that moves parameters of something else: they would get no private
    gradient.

    `known` has the ids of the parameters of the model: a tensor is slow to hash.
    """
    parameters = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    others = [parameter for key, parameter in parameters.items() if key not in known]
    if any(parameter.requires_grad or parameter.grad is not None for parameter in others):
        raise RefusedTraining(
            "DP916",
            "an optimizer holds trainable parameters that are not those of the model.",
            why="their gradients would be neither clipped nor noisy, and a step would release them.",
            fix="put every trainable parameter into one module, and make the optimizer of model.parameters()",
        )
    if len(others) == len(parameters):
        raise RefusedTraining(
            "DP916",
            "an optimizer holds none of the trainable parameters of the model.",
            why="it would step without moving anything. Often it was made before the model was replaced.",
            fix="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        )


def settings_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The settings of every group that are plain numbers and texts, so that a change shows."""
    plain = (int, float, str, tuple, type(None))
    return [
        {
            name: value.tolist() if isinstance(value, Tensor) else value
            for name, value in group.items()
            if isinstance(value, plain) or (isinstance(value, Tensor) and value.numel() == 1)
        }
        for group in optimizer.param_groups
    ]


class MovementCheck:
    """Checks once that a step moves the weights, so that a run that trains nothing fails at once.

    A released gradient has noise in every coordinate, so the first step with a learning rate above
    zero moves every parameter that an optimizer holds. If none moved, the optimizer holds other
    parameters, or the step is too small for the precision of the weights. The check compares
    weights before and after a step. They are released anyway, so the error reveals nothing. It runs
    once, because reading makes a GPU wait.
    """

    def __init__(self) -> None:
        self.done = False

    @contextmanager
    def observe(self, optimizer: Optimizer) -> Iterator[None]:
        """Compare the parameters of an optimizer before and after."""
        if self.done or not _can_move(optimizer):
            yield
            return
        before = _sample(optimizer)
        yield
        self.done = True
        if all(torch.equal(old, new) for old, new in zip(before, _sample(optimizer), strict=True)):
            raise RefusedTraining(
                "DP915",
                "the first step changed no parameter.",
                why="every gradient has noise in it, so a working step moves all parameters.",
                fix="raise lr; keep weights in float32; make the optimizer after model.to(device)",
                spent="one step",
            )


def _can_move(optimizer: Optimizer) -> bool:
    """Whether a step would move anything: a schedule may begin at zero."""
    return any(float(group.get("lr", 1.0)) > 0 for group in optimizer.param_groups)


@torch.no_grad()
def _sample(optimizer: Optimizer) -> list[Tensor]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return [parameter.detach().flatten()[:_FIRST].clone() for parameter in parameters]

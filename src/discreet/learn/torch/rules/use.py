# SPDX-License-Identifier: Apache-2.0
"""One use of parameters by a function of torch: what a rule may ask, and how it says what the
gradient means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from discreet.learn.torch.pieces.base import Piece
from discreet.learn.torch.tape import Contributions, Kind, Tape
from discreet.learn.torch.watched import Derived, Watched, is_watched

__all__ = ["Pieces", "Use"]

#: The pieces of the parameters of a use, in their order, from the gradient at its output and what was saved.
Pieces = Callable[..., Sequence[Piece | None]]


class Use:
    """A call of a function of torch with at least one watched parameter among its arguments."""

    def __init__(self, tape: Tape, function: Callable[..., Any]) -> None:
        self.tape, self.function, self.rows = tape, function, tape.calls.rows

    @staticmethod
    def value(argument: Any) -> Any:
        """The numbers of an argument, without watching and without a path for gradients to the
        parameter.
        """
        if type(argument) is Watched:
            return argument.detach() if argument.requires_grad else argument
        return argument.value.detach() if isinstance(argument, Derived) else argument

    watches = staticmethod(is_watched)

    @staticmethod
    def narrow(x: Tensor) -> Tensor:
        """The input as automatic mixed precision would hand it to a product, so that this is what
        is kept.
        """
        if x.dtype == torch.float32 and torch.is_autocast_enabled(x.device.type):
            return x.to(torch.get_autocast_dtype(x.device.type))
        return x

    def tap(self, out: Tensor, arguments: Sequence[Any], pieces: Pieces, *saved: Tensor) -> Tensor:
        """The output. When its gradient comes, `pieces` says what it contributes to each of the
        arguments.
        """

        def make(gradient: Tensor, *saved: Tensor) -> Contributions:
            contributions: list[tuple[Any, Piece]] = []
            for argument, positions in zip(arguments, pieces(gradient, *saved), strict=True):
                if positions is None:
                    continue
                piece = positions.merge(self.tape.records)
                if type(argument) is Watched:
                    contributions.append((argument, piece))
                elif isinstance(argument, Derived):
                    contributions.extend(argument.contributions(piece.dense()))
            return contributions

        parameters = [
            parameter for argument in arguments if argument is not None for parameter in _parameters(argument)
        ]
        return self.tape.tap(out, parameters, make, *saved) if parameters else out

    def fits(self, tensor: Tensor, argument: Any) -> int:
        """The length of the first axis of the tensor, if this is the record; see `Tape.fits`."""
        return self.tape.fits(tensor, _parameters(argument)[0], rows=self.rows)

    def kind(self, leaves: Iterable[Any]) -> Kind:
        """The kind of this call, by all that it was called with."""
        parameters: list[int] = []
        axes: list[int] = []
        for leaf in leaves:
            if is_watched(leaf):
                parameters += map(id, _parameters(leaf))
            elif isinstance(leaf, Tensor):
                axes.append(leaf.dim())
        return Kind(self.function, tuple(parameters), tuple(axes))

    def name(self, argument: Any) -> str:
        """What the user calls the parameter."""
        return (
            " and ".join(self.tape.names[id(parameter)] for parameter in _parameters(argument))
            or "a constant"
        )


def _parameters(argument: Any) -> list[Watched]:
    if type(argument) is Watched:
        return [argument]
    return argument.parameters if isinstance(argument, Derived) else []

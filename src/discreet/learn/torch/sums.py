# SPDX-License-Identifier: Apache-2.0
"""Sums of clipped gradients, micro-batch by micro-batch, and their release: noise, the public
divisor, `.grad`.

**Guarantee.** `release` gives every parameter (sum of what was added since the last release +
noise)/divisor, and nothing of the sum stays anywhere else. A parameter that took no part in a
forward pass gets noise all the same.

Why it holds: the noise has the norm of *all* parameters together for its unit (`noise.scales_for`),
and one record moves the sum by one clipping norm at most, which is the guarantee of `Clipper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from discreet.learn.torch import guards, internals
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.noise import Number, StepNoise, scales_for
from discreet.learn.torch.watched import without_watching

__all__ = ["FloatSums", "GradientClipper", "GradientSums"]


class GradientClipper(Protocol):
    """What clips gradients: `discreet.learn.torch.clip.Clipper`, or the simple one of the tests."""

    def open(self) -> object: ...

    def clipped_sum(self, losses: Tensor, *, clip: Number, weights: Tensor | None = None) -> Any: ...

    def pause(self) -> AbstractContextManager[None]: ...

    def close(self) -> None: ...


class GradientSums(Protocol):
    """A sum of gradients that is built up, released with noise, and begun again."""

    level: str

    def begin(self) -> None:
        """Start at zero, whatever was added before; `.grad` is empty until the release."""
        ...

    def add(self, losses: Tensor, *, clip: Number, weights: Tensor | None) -> Callable[[], Any]:
        """Add the clipped gradients of some records. The result, when called, counts those below
        the clipping norm.
        """
        ...

    def release(self, *, noise: float, clip: Number, divide: float) -> None:
        """Add the noise, divide, and write `.grad`."""
        ...

    def test(self, model: Module, inputs: tuple[Tensor, ...]) -> guards.Writes:
        """Refuse a model that mixes made-up records. The result is what it may write."""
        ...

    def pause(self) -> AbstractContextManager[None]:
        """No watching for the length of a block, while an optimizer steps."""
        ...

    def close(self) -> None:
        """Restore the parameters."""
        ...


class _Flat:
    """The parameters of one device and one precision, and the sum of their gradients, one after the
    other in one tensor.
    """

    def __init__(self, parameters: Sequence[Parameter], device: torch.device, dtype: torch.dtype) -> None:
        self._parameters, self._kinds = parameters, [p.dtype for p in parameters]
        self._sizes, self._shapes = [p.numel() for p in parameters], [p.shape for p in parameters]
        self._device, self._dtype = device, dtype
        self.size = sum(self._sizes)
        self._sum: Tensor | None = None

    def clear(self) -> None:
        """Begin again, whatever was added before."""
        self._sum = None
        for parameter in self._parameters:
            parameter.grad = None

    def forget(self) -> None:
        """Drop a sum that will not be released; what was released stays."""
        self._sum = None

    def add(self, gradients: dict[Parameter, Tensor]) -> None:
        parts = [gradients[parameter] for parameter in self._parameters]
        if self._sum is None:
            self._sum = torch.cat([part.reshape(-1) for part in parts]).to(self._dtype)
        else:
            internals.add_each_(self._parts_of(self._sum), parts)

    def take(self) -> Tensor:
        """The sum. It is removed here."""
        total, self._sum = self._sum, None
        return total if total is not None else torch.zeros(self.size, device=self._device, dtype=self._dtype)

    def write(self, released: Tensor) -> None:
        """Into `.grad`; a cast to the precision of the parameter comes last."""
        for parameter, part, kind in zip(
            self._parameters, self._parts_of(released), self._kinds, strict=True
        ):
            parameter.grad = part if part.dtype == kind else part.to(kind)

    def _parts_of(self, whole: Tensor) -> list[Tensor]:
        """The parts, one for each parameter."""
        parts = whole.split_with_sizes(self._sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


class FloatSums:
    """Sums in floating point, with noise on a grid."""

    level = "C"

    def __init__(self, clipper: GradientClipper, parameters: Iterable[Parameter], noise: StepNoise) -> None:
        self._clipper, self._noise, self._probed = clipper, noise, False
        parameters = list(parameters)
        clipper.open()
        groups: dict[tuple[torch.device, torch.dtype], list[Parameter]] = {}
        for parameter in parameters:
            precision = torch.float64 if parameter.dtype == torch.float64 else torch.float32
            groups.setdefault((parameter.device, precision), []).append(parameter)
        self._flats = [_Flat(group, *kind) for kind, group in groups.items()]
        self._dimension = sum(flat.size for flat in self._flats)

    def begin(self) -> None:
        with without_watching():
            for flat in self._flats:
                flat.clear()

    def add(self, losses: Tensor, *, clip: Number, weights: Tensor | None) -> Callable[[], Any]:
        if not self._probed and losses.shape[0] > 1 and isinstance(self._clipper, Clipper):
            self._clipper.probe(losses)
            self._probed = True
        clipped = self._clipper.clipped_sum(losses, clip=clip, weights=weights)
        with without_watching():
            for flat in self._flats:
                flat.add(clipped.gradients)
        return lambda: clipped.below

    def release(self, *, noise: float, clip: Number, divide: float) -> None:
        scales = scales_for(noise=noise, clip=clip, dimension=self._dimension)
        with without_watching():
            # All at once: if one release fails, none of the sums stays.
            sums = [flat.take() for flat in self._flats]
            for part, (flat, released) in enumerate(zip(self._flats, sums, strict=True)):
                self._noise.add_(released, scales, divide=divide, part=part)
                flat.write(released)

    def test(self, model: Module, inputs: tuple[Tensor, ...]) -> guards.Writes:
        clipper = self._clipper
        if isinstance(clipper, Clipper) and clipper.model is model:
            return guards.check(clipper, inputs)
        with clipper.pause():
            tested = Clipper(model)
            writes = guards.check(tested, inputs)
        if isinstance(clipper, Clipper):
            clipper.trust(tested)
        return writes

    def pause(self) -> AbstractContextManager[None]:
        return self._clipper.pause()

    def close(self) -> None:
        for flat in self._flats:
            flat.forget()
        self._clipper.close()

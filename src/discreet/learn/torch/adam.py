# SPDX-License-Identifier: Apache-2.0
"""Adam that knows the noise in its gradients: its second moment is corrected for it (DP-AdamBC,
Tang et al. 2024).

    optimizer = CorrectedAdam(model.parameters(), lr=1e-3)
    run = private(model, optimizer, data, …)             # the run tells it how much noise there is

**Guarantee.** None of its own: it sees released gradients and a public variance, so it is
post-processing and costs nothing.

Why it helps: a released gradient is g + N(0, Φ) in each coordinate, so E[g̃²] = g² + Φ exactly.
With much noise Φ hides g², and plain Adam takes steps of the same length everywhere. Here the step
is m̂/√max(v̂ − Φ̂, floor), where Φ̂ averages Φ as v̂ averages g̃², so that it is right also when an
adaptive clipping norm changes Φ. The floor is (share of the noise)². Whether it is better than Adam
depends on the task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_class
from discreet.learn.torch import internals
from discreet.learn.torch.noise import Number

__all__ = ["CorrectedAdam"]


@checked_class
class CorrectedAdam(Optimizer):
    """Adam with decoupled weight decay, whose second moment is corrected for noise of a known
    variance.

    **Guarantee.** None of its own. It sees released gradients and a public variance, so it is
    post-processing and costs nothing. The run sets `noise_variance` before every step; while it is
    0 this is AdamW with `floor` in place of its ε.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = CorrectedAdam([weight], lr=0.1)
    >>> weight.grad = torch.tensor([1.0, -1.0])
    >>> _ = optimizer.step()
    >>> weight.detach().round(decimals=3).tolist()
    [0.9, 1.1]
    """

    noise_variance: Number = 0.0

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        share: float = 0.1,
        floor: float = 1e-16,
        weight_decay: float = 0.0,
    ) -> None:
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise BadParameter(
                "DP104",
                "betas must be two numbers.",
                why="they say how much of the first and of the second moment each step keeps.",
                fix="betas=(0.9, 0.999)",
            )
        for beta in betas:
            check.inner_probability(beta=beta)
        settings = {
            "lr": check.not_negative(lr=lr),
            "betas": tuple(betas),
            "share": check.positive(share=share),
            "floor": check.positive(floor=floor),
            "weight_decay": check.not_negative(weight_decay=weight_decay),
        }
        try:
            super().__init__(params, settings)
        # Nothing has been trained, so the error of torch reveals nothing. This one says what to do.
        except (TypeError, ValueError):
            raise BadParameter(
                "DP104",
                "params must be parameters of a model, or groups of them.",
                why="an optimizer moves the parameters that it is given.",
                fix="CorrectedAdam(model.parameters(), lr=1e-3)",
            ) from None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step for all parameters."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(group, parameters)
        return loss

    def _update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        first, second = group["betas"]
        group["taken"] = group.get("taken", 0) + 1
        group["variance"] = second * group.get("variance", 0.0) + (1 - second) * self.noise_variance
        gradients = [parameter.grad for parameter in parameters]
        means = [self._average(parameter, "mean") for parameter in parameters]
        squares = [self._average(parameter, "square") for parameter in parameters]
        internals.lerp_each_(means, gradients, 1 - first)
        internals.multiply_each_(squares, second)
        internals.addcmul_each_(squares, gradients, gradients, 1 - second)
        correction = 1 - second ** group["taken"]
        noise = group["variance"] / correction
        floor = noise * group["share"] ** 2 + group["floor"]
        lengths = [(square / correction - noise).clamp_(min=floor).sqrt_() for square in squares]
        if group["weight_decay"]:
            internals.multiply_each_(parameters, 1 - group["lr"] * group["weight_decay"])
        internals.addcdiv_each_(parameters, means, lengths, -group["lr"] / (1 - first ** group["taken"]))

    def _average(self, parameter: Any, name: str) -> Any:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        return state[name]

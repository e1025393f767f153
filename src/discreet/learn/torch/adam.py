# SPDX-License-Identifier: Apache-2.0
"""Adam that knows the noise in its gradients: its second moment is corrected for it (DP-AdamBC, Tang et al. 2024).

    optimizer = CorrectedAdam(model.parameters(), lr=1e-3)
    run = private(model, optimizer, data, …)             # the run tells it how much noise there is

**Guarantee.** None of its own: it sees released gradients and a public variance, so it is post-processing and costs nothing.

Why it helps: a released gradient is g + N(0, Φ) in each coordinate, so E[g̃²] = g² + Φ exactly; with much noise Φ hides g², and
plain Adam takes steps of the same length everywhere. Here the step is m̂/√max(v̂ − Φ̂, floor), where Φ̂ averages Φ as v̂
averages g̃², so that it is right also when an adaptive clipping norm changes Φ. The floor is (share of the noise)².
Whether it is better than Adam depends on the task; measure it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_class
from discreet.learn.torch.noise import Number

__all__ = ["CorrectedAdam"]


@checked_class
class CorrectedAdam(Optimizer):
    """Adam, with decoupled weight decay, whose second moment is corrected for noise of a known variance.

    `noise_variance` is set by the run before every step; while it is 0 this is AdamW with `floor` in place of its ε.
    """

    noise_variance: Number = 0.0

    def __init__(
        self,
        params: Any,
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
                why="they are the shares that the first and the second moment keep.",
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
        except (TypeError, ValueError):  # what torch says of them; nothing has been trained
            raise BadParameter(
                "DP104",
                "params must be parameters of a model, or groups of them.",
                why="the optimizer moves parameters that gradients are computed for.",
                fix="CorrectedAdam(model.parameters(), lr=1e-3)",
            ) from None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step, for all parameters at once."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            held = [parameter for parameter in group["params"] if parameter.grad is not None]
            if held:
                self._update(group, held)
        return loss

    def _update(self, group: dict[str, Any], held: list[Any]) -> None:
        first, second = group["betas"]
        group["taken"] = group.get("taken", 0) + 1
        group["variance"] = second * group.get("variance", 0.0) + (1 - second) * self.noise_variance
        gradients = [parameter.grad for parameter in held]
        means = [self._kept(parameter, "mean") for parameter in held]
        squares = [self._kept(parameter, "square") for parameter in held]
        torch._foreach_lerp_(means, gradients, 1 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - second)
        whole = 1 - second ** group["taken"]
        noise = group["variance"] / whole
        floor = noise * group["share"] ** 2 + group["floor"]
        lengths = [(square / whole - noise).clamp_(min=floor).sqrt_() for square in squares]
        if group["weight_decay"]:
            torch._foreach_mul_(held, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_addcdiv_(held, means, lengths, -group["lr"] / (1 - first ** group["taken"]))

    def _kept(self, parameter: Any, name: str) -> Any:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        return state[name]

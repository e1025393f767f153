# SPDX-License-Identifier: Apache-2.0
"""`private` makes a run of a model, an optimizer and data. It checks everything, then pays, and
only then reads data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch.nn import Module, ModuleDict, Parameter
from torch.nn.parameter import UninitializedParameter
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_call
from discreet.learn.budget import Payer, check_session
from discreet.learn.torch import internals
from discreet.learn.torch.adaptive import Adaptive
from discreet.learn.torch.banded import BandedNoise, Cycle
from discreet.learn.torch.batches import DrawnBatches, LoaderBatches
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.checkpoint import Past, past_of, remaining_plan
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.exact import ExactSums, check_grid
from discreet.learn.torch.noise import Number, StepNoise
from discreet.learn.torch.plan import TrainingPlan, plan_of
from discreet.learn.torch.records import Records, TrainingData, check_loader, records_of
from discreet.learn.torch.refusals import refuse_copies, refuse_processes
from discreet.learn.torch.run import Run, RunParts
from discreet.learn.torch.steps import optimizers_of, refuse_old_averages
from discreet.learn.torch.sums import FloatSums, GradientClipper, GradientSums
from discreet.learn.torch.watched import compiled_model_error
from discreet.privacy.guarantee import Guarantee

__all__ = ["private"]

_RECORDWISE = "the loss of a record depends on that record and on the parameters, and on no other record"
_SHAPES = "the shape and the type of a record are public"
_COUNT = "the number of records is public: neighbouring data have one record blanked out, or replaced"
_ONCE = (
    "the loader gives each record at most once in an epoch, and makes its batches without looking at values"
)
_STOP = (
    "the number of steps was fixed in advance; if the run was stopped because of what it showed, the guarantee is that of the "
    "whole plan, run.plan.guarantee"
)
_CHANCE = (
    "random numbers in losses and in the loading of records come from the shared generators of torch, numpy and Python, record by "
    "record, and these generators, started from secret bits, cannot be told from ideal ones"
)
_PRECISIONS = (torch.float32, torch.float64, torch.bfloat16)
_NO_RECORDS = records_of(torch.empty(0))
_REAL = "sums of gradients equal those of real arithmetic (level C); exact=True does not assume this"


@dataclass(frozen=True)
class _Trained:
    """A model, what is trained of it, and the optimizers that move it."""

    model: Module
    parameters: list[Parameter]
    optimizers: tuple[Optimizer, ...]


@dataclass(frozen=True)
class _Source:
    """Records of which batches are drawn here, or a loader."""

    records: Records
    loader: DataLoader[Any] | None


@dataclass(frozen=True)
class _Settings:
    """What a run does beside its plan. `most_rows` is how many records a micro-batch has at most."""

    clip: float
    adaptive: Adaptive | None
    canaries: Canaries | None
    most_rows: int | None
    exact: bool


class _DataNumbers(NamedTuple):
    """What a plan needs to know about the data."""

    size: int
    batch: int | None
    per_epoch: int | None


@checked_call
def private(
    model: Module,
    optimizer: Optimizer | Sequence[Optimizer],
    data: TrainingData,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    noise: float | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    batch: int | None = None,
    clip: float = 1.0,
    size: int | None = None,
    sampling: str = "poisson",
    relation: str | None = None,
    unit: str = "record",
    bands: int | str = 1,
    physical: int | None = None,
    exact: bool = False,
    adaptive: Adaptive | bool = False,
    canaries: int | None = None,
    session: Payer | None = None,
    resume: Mapping[str, object] | None = None,
    collate: Callable[[list[Any]], object] | None = None,
    example: object = None,
    progress: Callable[[Run], object] | None = None,
    clipper: Callable[[Module], GradientClipper] | None = None,
) -> Run:
    """Make a training loop private: the optimizer's `step` becomes a step of DP-SGD.

    **Guarantee.** That of `Run`. The whole planned run implies (`epsilon`, `delta`), or has noise
    of `noise` clipping norms. A `session` is charged with the whole plan before a record is read.

    Parameters:

    - `model`, `optimizer`: a module, and the optimizer (or several) that moves its parameters.
    - `data`: tensors or a data set with a length, from which the run draws its batches, or a
      `DataLoader`, which makes its own. Batches of a loader are not amplified by sampling.
      `collate` turns a list of records into a batch. `example` is a public record of the shape of
      all others; only an empty data set needs it.
    - `epsilon` and `delta`, or `noise` in clipping norms: how much the whole run may reveal.
    - `epochs` or `steps`: how long it trains. `batch`: the expected batch size, which is the
      divisor of every step. `size`: the public number of records from which the sampling rate is
      computed. Data with one record more or less are then neighbours. Without `size` the number of
      records counts as public.
    - `sampling`: `"poisson"`, `"fixed"`, `"full"` or `"allocated"` (every record once in an epoch).
      `relation` and `unit`: how neighbouring data differ, and what one record stands for.
    - `clip`: the clipping norm. `adaptive`: True or an `Adaptive` for a norm that follows the
      gradients. `clipper`: what clips the gradients of a model; by default `clip.Clipper`.
    - `bands`: the number of steps whose noise is correlated (`banded`), or `"auto"` for the number
      with the least error in running sums. Each band costs the memory of one more sum.
    - `physical`: how many records are in memory at once, at most.
    - `exact`: True computes in whole numbers (level A) and shows the loop one record at a time, for
      small models.
    - `canaries`: the number of made-up records that audit the run.
    - `session`: is charged before the data are read. `resume`: the state of an earlier run.
    - `progress`: a function of the run, which is called after every step.

    Why it holds, and what would break it: see `Run`.

    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> run = private(model, optimizer, torch.zeros(100, 2), epsilon=1, delta=1e-5, epochs=2, batch=10, size=100)
    >>> run.plan.steps, run.plan.guarantee.epsilon(1e-5) <= 1
    (20, True)
    """
    past = past_of(resume)
    trained = _check_trained(model, optimizer, past)
    source = _open_source(data, collate, example)
    numbers = _numbers_of_data(source, size, batch, sampling)
    plan = plan_of(
        size=numbers.size,
        batch=numbers.batch,
        epochs=epochs,
        steps=steps,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        sampling=sampling,
        relation=relation,
        unit=unit,
        per_epoch=numbers.per_epoch,
        bands=bands,
    )
    plan = remaining_plan(plan, past, _target(plan, epsilon, delta))
    settings = _choose_settings(
        trained,
        source,
        plan,
        past,
        clip=clip,
        physical=physical,
        adaptive=adaptive,
        canaries=canaries,
        exact=exact,
    )
    _check_callables(session, progress, clipper)
    receipt = None if session is None else session.charge(plan.guarantee, question=_question(plan))
    parts = _make_parts(trained, source, plan, settings, clipper)
    assumptions = _assumptions(size, source.loader, plan, exact=exact)
    return Run(
        replace(parts, delta=delta, receipt=receipt, assumes=assumptions, progress=progress, past=past)
    )


def _choose_settings(
    trained: _Trained,
    source: _Source,
    plan: TrainingPlan,
    past: Past,
    *,
    clip: float,
    physical: int | None,
    adaptive: Adaptive | bool,
    canaries: int | None,
    exact: bool,
) -> _Settings:
    """Refuse settings that do not fit together, before anything is paid for."""
    adaptive_clip = _choose_adaptive(plan, adaptive=adaptive, exact=check.flag(exact=exact))
    # A resumed run goes on with the norm that the clipping had reached.
    first_clip = check.moderate(clip=clip if adaptive_clip is None or past.clip is None else past.clip)
    return _Settings(
        first_clip,
        adaptive_clip,
        _make_canaries(canaries, first_clip, trained.parameters, source.loader),
        _micro_batch_size(physical, source.loader, first_clip, plan, exact=exact),
        exact,
    )


def _make_parts(
    trained: _Trained,
    source: _Source,
    plan: TrainingPlan,
    settings: _Settings,
    clipper: Callable[[Module], GradientClipper] | None,
) -> RunParts:
    """What draws batches, sums gradients and adds noise, after the plan was paid for."""
    canaries = settings.canaries
    records = len(source.records) + (canaries.count if canaries else 0)
    cycle = Cycle(plan.bands, records) if plan.bands > 1 else None
    batches = (
        DrawnBatches(plan, source.records, settings.most_rows, canaries, cycle)
        if source.loader is None
        else LoaderBatches(plan, source.loader)
    )
    return RunParts(
        trained.model,
        trained.optimizers,
        trained.parameters,
        plan,
        batches,
        _make_sums(trained, plan, clipper, canaries=canaries, cycle=cycle, exact=settings.exact),
        _first_clip(settings.clip, settings.adaptive, trained.parameters, exact=settings.exact),
        adaptive=settings.adaptive,
        canaries=canaries,
        in_micro_batches=settings.most_rows is not None,
    )


def _check_callables(session: Payer | None, progress: object, clipper: object) -> None:
    """Refuse what cannot be charged or called, before anything is paid for."""
    check_session(session)
    if progress is not None:
        check.function(progress=progress)
    if clipper is not None:
        check.function(clipper=clipper)


def _check_trained(model: Module, optimizer: object, past: Past) -> _Trained:
    """Refuse models and optimizers that cannot be trained. The optimizers of a resumed run may hold
    averages.
    """
    parameters = _trainable_parameters(model)
    optimizers = optimizers_of(optimizer, parameters)
    refuse_copies(model, optimizers)
    refuse_processes()
    if past.steps == 0:
        refuse_old_averages(optimizers)
    return _Trained(model, parameters, optimizers)


def _trainable_parameters(model: object) -> list[Parameter]:
    if not isinstance(model, Module):
        raise BadParameter(
            "DP104",
            "model must be a torch.nn.Module.",
            why="the run trains the parameters of this module.",
            fix="private(torch.nn.Linear(10, 2), optimizer, data, …)",
        )
    if internals.is_compiled(model):
        raise compiled_model_error()
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise BadParameter(
            "DP107",
            "the model has layers whose shape is not set yet.",
            why="such a layer takes its shape from the first records, and its parameters cannot be watched before that.",
            fix="model(torch.zeros(1, 10))   once, before the optimizer is made",
        )
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if any(parameter.dtype not in _PRECISIONS for parameter in parameters):
        raise BadParameter(
            "DP104",
            "a trainable parameter is not float32, float64 or bfloat16.",
            why="float16 overflows at 65504, and clipping in float16 has no proof here.",
            fix="model.float()   and  torch.autocast(device, torch.bfloat16)   in the loop",
        )
    if parameters:
        return parameters
    raise BadParameter(
        "DP107",
        "the model has no parameter that requires a gradient.",
        why="there is nothing to train. If another run on this model is open, close it first.",
        fix="model.requires_grad_(True)   or  run.close()",
    )


def _open_source(data: object, collate: Callable[[list[Any]], object] | None, example: object) -> _Source:
    """A loader unchanged, and other data as records by index."""
    if isinstance(data, DataLoader):
        return _Source(_NO_RECORDS, data)
    return _Source(records_of(data, collate, example), None)


def _numbers_of_data(source: _Source, size: int | None, batch: int | None, sampling: str) -> _DataNumbers:
    """The public numbers of the data: how many records set the sampling rate, and what a loader
    does.
    """
    loader = source.loader
    if size is not None and (loader is not None or sampling == "fixed"):
        raise _contradiction_error(
            "size cannot differ from the number of records here, because such batches show that number.",
            "leave size out, or use sampling='poisson'",
        )
    if loader is None:
        return _DataNumbers(
            max(1, len(source.records)) if size is None else check.whole(size=size), batch, None
        )
    check_loader(loader)
    if batch is not None and batch != loader.batch_size:
        raise _contradiction_error(
            "batch is not the batch size of the loader.", f"batch={loader.batch_size}, or leave it out"
        )
    dataset: Any = loader.dataset
    return _DataNumbers(max(1, len(dataset)), loader.batch_size, max(1, len(loader)))


def _contradiction_error(what: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="the guarantee is computed from these numbers, so they must be those of the data.",
        fix=fix,
    )


def _target(plan: TrainingPlan, epsilon: float | None, delta: float | None) -> Guarantee | None:
    if epsilon is None or delta is None:
        return None
    return privacy.approximate(epsilon, delta, relation=plan.relation, unit=plan.unit)


def _choose_adaptive(plan: TrainingPlan, *, adaptive: Adaptive | bool, exact: bool) -> Adaptive | None:
    chosen = (Adaptive() if adaptive else None) if isinstance(adaptive, bool) else adaptive
    if not isinstance(chosen, Adaptive | None):
        raise BadParameter(
            "DP104",
            "adaptive must be True, False or an Adaptive.",
            why="it says how the clipping norm moves, and that costs noise.",
            fix="adaptive=True",
        )
    # A split of the noise that does not exist is refused here, before anything is paid for.
    if chosen is not None:
        chosen.sum_noise(plan.noise, plan.batch)
    _check_bands(plan, chosen, exact=exact)
    return chosen


def _check_bands(plan: TrainingPlan, adaptive: Adaptive | None, *, exact: bool) -> None:
    """Refuse what is proved only for independent noise."""
    if plan.bands > 1 and (adaptive is not None or exact):
        raise BadParameter(
            "DP107",
            f"{'exact=True' if exact else 'an adaptive clipping norm'} and bands={plan.bands} cannot be combined.",
            why="with bands the noise of a step uses the grid and the clipping norm of the steps before it.",
            fix="bands=1",
        )


def _micro_batch_size(
    physical: int | None, loader: DataLoader[Any] | None, clip: float, plan: TrainingPlan, *, exact: bool
) -> int | None:
    """The most records of a micro-batch. On level A it is one, and the grid must be able to hold
    it.
    """
    most_rows = None if physical is None else check.whole(physical=physical)
    if not exact:
        return most_rows
    if loader is None:
        check_grid(clip, plan.noise)
        return 1
    raise _contradiction_error(
        "exact=True shows records one at a time, and a loader shows batches.", "exact=False"
    )


def _make_canaries(
    count: int | None, clip: float, parameters: list[Parameter], loader: DataLoader[Any] | None
) -> Canaries | None:
    if count is None:
        return None
    if loader is None:
        return Canaries(count, clip, parameters[0].device)
    raise BadParameter(
        "DP107",
        "canaries cannot be put into the batches of a loader.",
        why="the loader makes its batches itself, and nothing can be added to them.",
        fix="private(model, optimizer, loader.dataset, …, canaries=1000)",
    )


def _make_sums(
    trained: _Trained,
    plan: TrainingPlan,
    clipper: Callable[[Module], GradientClipper] | None,
    *,
    canaries: Canaries | None,
    cycle: Cycle | None,
    exact: bool,
) -> GradientSums:
    """The sums of the gradients of the model's parameters, and of the canaries if there are any."""
    watched_model, parameters = trained.model, trained.parameters
    if canaries is not None:
        watched_model = ModuleDict({"model": trained.model, "canaries": canaries})
        parameters = [*trained.parameters, canaries.weight]
    if exact:
        return ExactSums(parameters, noise=plan.noise)
    noise = StepNoise() if cycle is None else BandedNoise(cycle)
    return FloatSums((clipper or Clipper)(watched_model), parameters, noise)


def _first_clip(
    clip: float, adaptive: Adaptive | None, parameters: list[Parameter], *, exact: bool
) -> Number:
    """A clipping norm that moves lives on the device, so that no step waits for it."""
    if adaptive is None or exact:
        return clip
    return torch.tensor(clip, dtype=torch.float32, device=parameters[0].device)


def _assumptions(
    size: int | None, loader: DataLoader[Any] | None, plan: TrainingPlan, *, exact: bool
) -> tuple[str, ...]:
    assumptions = [_RECORDWISE, _SHAPES, _STOP, _CHANCE]
    assumptions += [_ONCE] if loader is not None else []
    assumptions += [_COUNT] if size is None and plan.relation == "add-remove" else []
    return (*assumptions, *([] if exact else [_REAL]))


def _question(plan: TrainingPlan) -> str:
    noise = f"noise {plan.noise:.6g} × the clipping norm" + (
        f" in {plan.bands} bands" if plan.bands > 1 else ""
    )
    return f"DP-SGD: {plan.steps} steps, {plan.sampling} batches of {plan.batch}, {noise}"

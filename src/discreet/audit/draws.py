# SPDX-License-Identifier: Apache-2.0
"""Drawing many outputs of anything: one by one, in batches, or in several processes.

**Guarantee.** Each output is one independent run. Only mechanisms of this library, whose noise
comes from the operating system in every process, are run in several processes unasked: a generator
that a callable brings along would be copied into each of them, and copies are not independent.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.mechanism import Mechanism, Release
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["BatchedFunction", "Chunk", "ExceptionOutcome", "batched", "draw_all", "draws_of"]

Progress = Callable[[int, int], None]
#: Some outputs, one after another: a sequence, or an array whose first axis counts the runs.
Chunk = Sequence[object] | npt.NDArray[np.generic]

_CHUNK = 1_000
#: Seconds of drawing from which other processes are asked for help.
_WORTH_IT = 5.0


@dataclass(frozen=True)
class ExceptionOutcome:
    """The outcome of a run that ended in an exception, which an attacker would see."""

    kind: str


@dataclass(frozen=True)
class BatchedFunction:
    """A function (data, count) -> that many independent outputs, as something to audit."""

    function: Callable[[Any, int], Chunk]

    def draw_many(self, data: object, count: int) -> Chunk:
        return self.function(data, count)


#: What can be audited: a mechanism, a batched function, or a function from data to one output.
Auditable = Mechanism | BatchedFunction | Callable[[Any], object]


@check.arguments
def batched(function: Callable[[Any, int], Chunk]) -> BatchedFunction:
    """A function that draws many outputs at once, such as those of numpy, as something to audit:
    the first axis counts the runs.

    **Guarantee.** Each output counts as one independent run. What would break it: a function whose
    outputs depend on each other, because then the certified rates of an audit do not hold.

    >>> len(batched(lambda data, count: [data] * count).draw_many(1, 3))
    3
    """
    return BatchedFunction(function)


def draws_of(subject: Auditable, data: object) -> Callable[[int], Chunk]:
    """What draws `count` outputs: `draw_many`, or else one call after another."""
    fitted = _fit_dimension(subject, data) if isinstance(subject, Mechanism) else subject
    if hasattr(fitted, "draw_many"):
        return lambda count: _validate_count(fitted.draw_many(data, count), count)
    draw = fitted.draw if isinstance(fitted, Mechanism) else fitted
    if not callable(draw):
        raise BadParameter(
            "DP104",
            f"a mechanism or a function of the data is needed, not {type(subject).__name__}.",
            why="the audit runs it many times on two neighbouring inputs.",
            fix="audit(lambda data: data + noise(), x, x_neighbour)",
        )
    return lambda count: [_draw_once(draw, data) for _ in range(count)]


def draw_all(
    subject: Auditable,
    inputs: tuple[object, object],
    trials: int,
    workers: int | None,
    progress: Progress | None,
) -> tuple[list[Chunk], list[Chunk]]:
    """Lists of chunks of outputs on both inputs, `trials` on each."""
    report = progress or _no_progress
    total = 2 * trials
    if hasattr(subject, "draw_many"):
        outputs = [[draws_of(subject, data)(trials)] for data in inputs]
        report(total, total)
        return outputs[0], outputs[1]
    sizes = [_CHUNK] * (trials // _CHUNK) + ([trials % _CHUNK] if trials % _CHUNK else [])
    started = time.perf_counter()
    first = draws_of(subject, inputs[0])(sizes[0])
    expected = (time.perf_counter() - started) * total / sizes[0]
    jobs = [(side, size) for side in (0, 1) for size in sizes][1:]
    chunks: list[Chunk] = [[]] * len(jobs)
    done = sizes[0]
    for index, chunk in _run_jobs(subject, inputs, jobs, _workers(subject, workers, expected)):
        # In the order of the jobs: the order of arrival may depend on the outputs.
        chunks[index] = chunk
        done += len(chunk)
        report(done, total)
    on_x = len(sizes) - 1
    return [first, *chunks[:on_x]], chunks[on_x:]


def _no_progress(done: int, total: int) -> None:
    """Show no progress."""


def _run_jobs(
    subject: Auditable, inputs: tuple[object, object], jobs: list[tuple[int, int]], workers: int
) -> Iterator[tuple[int, Chunk]]:
    if workers == 1:
        for index, (side, size) in enumerate(jobs):
            yield index, draws_of(subject, inputs[side])(size)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context()) as pool:
        waiting = {
            pool.submit(_chunk, subject, inputs[side], size): index for index, (side, size) in enumerate(jobs)
        }
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _chunk(subject: Auditable, data: object, size: int) -> Chunk:
    return draws_of(subject, data)(size)


def _workers(subject: Auditable, workers: int | None, expected: float) -> int:
    if workers is not None:
        if check.whole(workers=workers) > 1 and not _can_be_pickled(subject):
            raise BadParameter(
                "DP104",
                f"{type(subject).__name__} cannot be sent to other processes.",
                why="it is pickled on its way, and functions that have no name in a module are not.",
                fix="define it at the top of a module, or leave workers out",
            )
        return workers
    ours = isinstance(subject, Mechanism) and type(subject).__module__.startswith("discreet.")
    if not ours or expected < _WORTH_IT or not is_private() or not _can_be_pickled(subject):
        return 1
    return os.cpu_count() or 1


def _can_be_pickled(subject: object) -> bool:
    try:
        pickle.dumps(subject)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def _fit_dimension(mechanism: Mechanism, data: Any) -> Mechanism:
    """Additive noise is made for a number; on a vector it is the mechanism for vectors of that
    length.
    """
    size = int(np.size(data))
    if isinstance(mechanism, Additive) and mechanism.dimension == 1 and size > 1:
        return mechanism.with_dimension(size)
    return mechanism


def guarantee_of(subject: Auditable, data: object) -> Guarantee | None:
    """The guarantee that a mechanism states of itself, or None."""
    return _fit_dimension(subject, data).guarantee if isinstance(subject, Mechanism) else None


def _draw_once(function: Callable[[Any], object], data: object) -> object:
    try:
        output = function(data)
    except KeyboardInterrupt:
        # The person who runs the audit may stop it.
        raise
    except BaseException as error:  # noqa: BLE001 - whatever ends a run is seen by the attacker, so it is an outcome
        return ExceptionOutcome(type(error).__name__)
    return output.value if isinstance(output, Release) else output


def _validate_count(outputs: Chunk, count: int) -> Chunk:
    if len(outputs) == count:
        return outputs
    raise BadParameter(
        "DP107",
        f"draw_many was asked for {count} outputs and gave {len(outputs)}.",
        why="every output counts as one independent run.",
        fix="return one output for each run along the first axis",
    )

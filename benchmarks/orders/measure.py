# SPDX-License-Identifier: Apache-2.0
"""Ask one library one question in this process, and print what it cost and what it said as one line of JSON.

    python measure.py ask_duckdb Q1 orders.parquet --repeats 3 --seconds 60

Importing the library is not counted; opening the file is. `first` is from the file to the answer. `later` is the least
of the repeats, asked of what the library keeps open, and of another grouping first if `--after` names a question.
CPU is that of all threads and of all processes that this one started (a Java machine, a data base).
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import meter
from questions import QUESTIONS, Unsupported


def main() -> None:
    """Measure, and print a JSON object with either `answers` or `error`."""
    arguments = _arguments()
    warnings.simplefilter("ignore")
    module = importlib.import_module(arguments.module)
    try:
        report = _measured(module, arguments)
    except Unsupported as reason:
        report = {"unsupported": str(reason)}
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer, and is reported as such
        report = {"error": f"{type(error).__name__}: {_first_line(error)}"}
    sys.stdout.flush()
    print("\n" + json.dumps(report))


def _measured(module: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    question = QUESTIONS[arguments.question]
    if hasattr(module, "start"):
        module.start(arguments.path, arguments.variant)  # what runs before anybody asks: a server, a cluster
    began = time.perf_counter()
    opened, opening = _timed(lambda: module.open_table(arguments.path, question, arguments.variant))
    if arguments.after:
        module.ask(opened, QUESTIONS[arguments.after])
    answer, asking = _timed(lambda: module.ask(opened, question))
    megabytes = meter.peak_megabytes()
    answers, costs = [answer], []
    while len(answers) < arguments.repeats and time.perf_counter() - began < arguments.seconds:
        answer, cost = _timed(lambda: module.ask(opened, question))
        answers.append(answer)
        costs.append(cost)
    if arguments.after:
        later: Any = asking
    else:
        later = tuple(map(min, zip(*costs, strict=True))) if costs else None
    first = [a + b for a, b in zip(opening, asking, strict=True)]
    return {"first": first, "later": later, "megabytes": megabytes, "answers": answers}


def _timed(compute: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    cpu, wall = meter.cpu_seconds(), time.perf_counter()
    value = compute()
    return value, (meter.cpu_seconds() - cpu, time.perf_counter() - wall)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:160]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("question", choices=sorted(QUESTIONS))
    parser.add_argument("path")
    parser.add_argument("--variant", default="")
    parser.add_argument("--after", default="", help="ask this question first, unmeasured")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="no further repeat after so many seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()

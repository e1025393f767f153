# SPDX-License-Identifier: Apache-2.0
"""Private models against those of diffprivlib and models without privacy: test scores, time and memory.

    python benchmarks/learn.py                # everything, one thread (about a quarter of an hour)
    python benchmarks/learn.py --quick        # fewer splits, and a tenth of the rows that are timed
    python benchmarks/learn.py --only adult   # data sets whose name matches, and no timing
    python benchmarks/learn.py --no-peers     # discreet and models without privacy
    python benchmarks/learn.py --write        # and keep the tables in benchmarks/RESULTS.md

δ = 1e-5; diffprivlib promises ε alone, which is more. Each library runs in a process and an environment of its own, on
the same splits with the same public bounds, and everything is left at its default. On small sets plain noisy
gradient descent (solver="gradient") stands beside the default.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "learning"), str(HERE / "peers")]

import environments  # noqa: E402
import report  # noqa: E402
from sets import TASKS, Task, stored  # noqa: E402

EPSILONS = ("0.1", "0.5", "1", "4")
HOMES = {"discreet": "discreet", "gradient": "discreet", "diffprivlib": "diffprivlib", "sklearn": "discreet"}
LABELS = {
    "discreet": "**discreet**",
    "gradient": "discreet, gradient",
    "sklearn": "scikit-learn, not private",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ROWS = {"dense": 1_000_000, "sparse": 200_000}
Scores = dict[str, list[float]]


def main() -> None:
    """Measure, print the tables, and keep them if told to."""
    options = _options()
    lines = [
        f"| data set | method | {' | '.join(f'ε = {e}' for e in EPSILONS)} |",
        "|---|---|--:|--:|--:|--:|",
    ]
    verdicts: list[str] = []
    for name, task in TASKS.items():
        if re.search(options.only, name):
            found = compared(name, task, options)
            lines += _rows(task, found)
            verdicts += _verdicts(task, found)
    if not options.only:
        lines += ["", *timings(options)]
    command = f"python benchmarks/learn.py {shlex.join(sys.argv[1:])}".strip()
    lines = [*report.heading(command), "", *_preface(options), "", *lines, "", *verdicts]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Classical learning", lines)


def compared(name: str, task: Task, options: argparse.Namespace) -> dict[str, Scores]:
    """The scores of every method on one data set, by method and ε."""
    path = str(stored(name))
    methods = [
        "discreet",
        *(["gradient"] if task.small else []),
        *([] if options.no_peers else ["diffprivlib"]),
    ]
    found = {}
    for method in methods:
        answer = asked(method, "fit.py", path, str(options.splits), *EPSILONS)
        found |= {method: answer} if answer else {}
    plain = asked("sklearn", "fit.py", path, str(options.splits), "0")
    return found | ({"sklearn": dict.fromkeys(EPSILONS, plain["0"])} if plain else {})


def timings(options: argparse.Namespace) -> Iterator[str]:
    """Time and memory of one fit on many rows."""
    yield "One logistic regression, ε = 1, 50 dense features, or 20 of 10,000 sparse ones (solver gradient). MB is the growth of the peak."
    yield ""
    yield "| rows | method | CPU s | MB | data, MB | accuracy on the rows |"
    yield "|---|---|--:|--:|--:|--:|"
    for kind, most in ROWS.items():
        rows = most // 10 if options.quick else most
        for method in ("discreet", *(() if options.no_peers else ("diffprivlib",)), "sklearn"):
            found = asked(method, "weigh.py", kind, str(rows))
            first = f"| {rows:,} {kind} | {LABELS.get(method, method)} | "
            if found:
                cells = (f"{found[key]:.3g}" for key in ("seconds", "megabytes", "data", "score"))
                yield first + " | ".join(cells) + " |"
            else:
                yield first + "does not run | | | |"


def asked(method: str, script: str, *arguments: str) -> dict | None:
    """What a script prints for a method in its own environment, or None where it does not run."""
    print(f"{script} {method} {Path(arguments[0]).stem} …", file=sys.stderr, flush=True)
    try:
        python = environments.python_of(HOMES[method])
    except environments.CannotInstall as reason:
        print(f"{method} is left out: {reason}", file=sys.stderr)
        return None
    command = [str(python), str(HERE / "learning" / script), method, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        print(f"{method} failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def _rows(task: Task, found: dict[str, Scores]) -> Iterator[str]:
    first = task.title
    for method, scores in found.items():
        cells = [_cell(scores[epsilon]) for epsilon in EPSILONS]
        yield f"| {first} | {LABELS.get(method, method)} | " + " | ".join(cells) + " |"
        first = ""
    if task.goals:
        cells = [f"{task.goals[float(e)]:g}" if float(e) in task.goals else "" for e in EPSILONS]
        yield "| | *goal* | " + " | ".join(cells) + " |"


def _cell(scores: list[float]) -> str:
    mean, error = statistics.fmean(scores), statistics.stdev(scores) / len(scores) ** 0.5
    return f"{mean:.4f} ({error:.4f})" if abs(mean) < 100 else f"{mean:.0e}"


def _verdicts(task: Task, found: dict[str, Scores]) -> Iterator[str]:
    """Each goal, and on small sets no less than plain gradient descent, up to two standard errors."""
    ours = found.get("discreet")
    if ours is None:
        return
    for epsilon, goal in task.goals.items():
        mean = statistics.fmean(ours[f"{epsilon:g}"])
        yield _verdict(f"{task.title}, ε = {epsilon:g}: {mean:.4f}", f"{goal:g}", met=mean >= goal)
    for epsilon, plain in found.get("gradient", {}).items():
        gains = [own - other for own, other in zip(ours[epsilon], plain, strict=True)]
        mean, error = statistics.fmean(gains), statistics.stdev(gains) / len(gains) ** 0.5
        what = f"{task.title}, ε = {epsilon}: {mean:+.3f} ({error:.3f}) over plain gradient descent"
        yield _verdict(what, "no less, within two standard errors", met=mean >= -2 * error)


def _verdict(what: str, target: str, *, met: bool) -> str:
    return f"- {'met' if met else '**missed**'}: {what} (target {target})"


def _preface(options: argparse.Namespace) -> Iterator[str]:
    yield f"Mean (standard error) over {options.splits} splits into four fifths and one fifth, δ = 1e-5, one thread, defaults."
    yield "Peer: diffprivlib==0.6.6, pure ε. Bounds are published or chosen ones (benchmarks/learning/sets.py), the same for all."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="4 splits, and a tenth of the rows that are timed"
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="data sets whose name matches this")
    parser.add_argument("--no-peers", action="store_true", help="discreet, and models without privacy")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    options = parser.parse_args()
    options.splits = 4 if options.quick else 20
    return options


if __name__ == "__main__":
    main()

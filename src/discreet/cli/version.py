# SPDX-License-Identifier: Apache-2.0
"""`discreet version`."""

from __future__ import annotations

import json as text
import platform
from importlib import metadata

from discreet.cli.options import Json


def version(*, json: Json = False) -> None:
    """Show the version."""
    found = {"discreet": metadata.version("discreet"), "python": platform.python_version()}
    print(text.dumps(found) if json else f"discreet {found['discreet']}")

# SPDX-License-Identifier: Apache-2.0
"""Optional libraries: an import that fails because one is missing says which extra installs it.

**Guarantee.** A missing library is never taken for a wrong path or a wrong argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import EXTRAS, MissingExtra

__all__ = ["naming_extras"]


@contextmanager
def naming_extras() -> Iterator[None]:
    """An import that fails because an optional library is missing fails with the line that installs
    it.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0].removeprefix("_")
        if package not in EXTRAS:
            raise
        failed = MissingExtra.of(package)
    else:
        return
    raise failed

# SPDX-License-Identifier: Apache-2.0
"""Pictures of guarantees.

tradeoff.py  the trade-off curve in a file: .svg with nothing installed, .png and .pdf through matplotlib
"""

from __future__ import annotations

from discreet.plot.tradeoff import save

__all__ = ["save"]

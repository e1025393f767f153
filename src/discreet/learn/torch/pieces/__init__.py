# SPDX-License-Identifier: Apache-2.0
"""What one use of a parameter contributes to the gradient of every record, in the form that is
cheapest to add up.

    base.py      what every piece answers, small pieces that are kept whole, rounding units
    outer.py     Σ_t g_t a_tᵀ of linear layers, and its norm without the gradient
    rows.py      rows of a table; one parameter, several uses
    patches.py   Σ_t g_t u_tᵀ of convolutions, with patches u_t

Pieces know tensors only. The tape (`tape.py`) collects them, and the rules (`rules/`) make them.
"""

from __future__ import annotations

__all__ = ()

# SPDX-License-Identifier: Apache-2.0
"""Which rule answers which function of torch.

    linear.py       linear, matmul, addmm            outer.py      Σ_t g_t a_tᵀ and its norm
    convolution.py  convolutions and transposes      piece.py      what every rule makes
    embedding.py    embeddings                       tied.py       one parameter, several uses
    norms.py        scales and shifts, PReLU         derived.py    parameters that are no layer's weight
    attention.py    multi-head attention             recurrent.py  LSTM, GRU, RNN
    fallback.py     everything else, by torch.func   use.py        one call, as a rule sees it

The table is in table.py. A rule is a function of a `Use` and the arguments of the call. It computes the call's result with the very function
that was called, and taps it; if it answers None the call has a form that it does not know, and the fall-back takes it.
"""

from __future__ import annotations

__all__ = ()

# SPDX-License-Identifier: Apache-2.0
"""Which rule answers which function of torch.

    linear.py       linear, matmul, addmm            derived.py    parameters that are no layer's weight
    convolution.py  convolutions and transposes      attention.py  multi-head attention
    embedding.py    embeddings                       recurrent.py  LSTM, GRU, RNN
    norms.py        scales and shifts, PReLU         fallback.py   everything else, by torch.func
    use.py          one call, as a rule sees it      table.py      the table of rules

A rule is a function of a `Use` and the arguments of the call. It computes the result with the very
function that was called, and taps it. If a rule returns None, it does not know this form of the
call, and the fall-back takes it. What a rule makes of a gradient are `pieces`.
"""

from __future__ import annotations

__all__ = ()

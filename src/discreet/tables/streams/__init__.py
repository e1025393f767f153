# SPDX-License-Identifier: Apache-2.0
"""A question that is answered again every period: its rows, their noise, and what is read off them.

    calendar.py     the periods of a stream
    bounded.py      which rows of a unit are kept, and their sums by period
    noise.py        the noise of a stream, for each coordinate of its sums
    plan.py         a question becomes a stream: the factor, the noise, the guarantee    ◄ read this first
    entry.py        the selection of private keys that appear in the course of time
    row.py          one row is drawn: encoded sums plus noise
    published.py    answers from the rows that were published

`discreet/streams/participation.proof.md` proves the guarantee. Nothing here charges or stores.
"""

__all__ = ()

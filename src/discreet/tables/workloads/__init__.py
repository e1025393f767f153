# SPDX-License-Identifier: Apache-2.0
"""Many questions about the same rows: which whole numbers to measure, and how to read every answer
off them.

    residuals.py        tables as sums of residuals, with variances and covariances     ◄ read this first
    objectives.py       the best noise for each residual
    laplace.py          the same under a pure ε: which tables to measure
    strategies.py       the optimal strategy for ranges and prefixes of an ordered key, with a certificate
    trees.py            strategies for hierarchies, and for keys with very many values
    axes.py, strategy_cache.py   both as whole numbers along a key; strategies kept on disk
    measurement.py      everything that is measured, its noise, and how far one row moves it
    released.py         the tables that follow from it, with the noise of each number

Public numbers only: no question, no row and no ε is known here. Imports no other folder of
`tables`.
"""

__all__ = ()

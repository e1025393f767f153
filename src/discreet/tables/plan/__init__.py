# SPDX-License-Identifier: Apache-2.0
"""From a question to one mechanism, with its guarantee before any data are touched.

    compile.py                        a question becomes a mechanism; compile.proof.md says why it is private   ◄ read this first
    spend.py, split.py                what a question may cost, and how that is divided
    contribution.py, groups.py        how much one unit may add; public groups
    stage.py                          what a query plan is made of: stages, and strategies that make them
    totals.py, linear.py, estimate.py, intervals.py   noisy sums, and the numbers and intervals made of them
    distinct.py, ranks.py, brackets.py, modes.py      numbers of units, quantiles, modes
    selection.py                      groups with private keys
    cap.py, suggest.py                at_most="auto"; bounds chosen privately, and what they cut off
    accuracy.py, steps.py, preview.py from an error to a cost, and back
    explain.py                        where an error comes from

Imports `data`, `ask` and `answer`. The engine that counts is handed in with the data set.
"""

__all__ = ()

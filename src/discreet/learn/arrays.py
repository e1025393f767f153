# SPDX-License-Identifier: Apache-2.0
"""The kinds of arrays that estimators and solvers exchange."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["Bools", "Floats", "Ints", "RealTable", "Reals", "RowTable", "Values"]

Reals: TypeAlias = npt.NDArray[np.float64]
#: Single precision.
Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
#: Labels or values of any type, as a user passes them.
Values: TypeAlias = npt.NDArray[np.generic]
#: Rows as they lie in memory: dense, or sparse by rows.
RowTable: TypeAlias = Values | sparse.csr_array
#: The same, when all are double-precision numbers.
RealTable: TypeAlias = Reals | sparse.csr_array

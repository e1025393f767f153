# SPDX-License-Identifier: Apache-2.0
"""MST or AIM of smartnoise-synth (1.0.8), in an environment of its own.

    python ask_smartnoise_synth.py mst codes.npz epsilon delta out.npz

`codes.npz` has integer codes of rows and the sizes of the columns. The codes are public, so nothing is spent on finding them.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer


def public_codes(sizes: list[int]) -> TableTransformer:
    """All codes of each column, whether or not a row has them."""
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    transformer.fit([tuple(row % size for size in sizes) for row in range(max(sizes))])
    return transformer


def main(method: str, source: str, epsilon: float, delta: float, target: str) -> None:
    """Fit, sample as many rows as there are, and report the cost."""
    stored = np.load(source)
    codes, sizes = stored["codes"], [int(size) for size in stored["sizes"]]
    frame = pd.DataFrame(codes, columns=[f"c{place}" for place in range(len(sizes))])
    before = time.process_time()
    options = {"max_model_size": 1} if method == "aim" else {}
    maker = Synthesizer.create(method, epsilon=epsilon, delta=delta, **options)
    maker.fit(frame, transformer=public_codes(sizes), preprocessor_eps=0.0)
    made = maker.sample(len(frame))
    np.savez(target, codes=np.asarray(made, dtype=np.int64))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": time.process_time() - before, "memory": memory}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5])

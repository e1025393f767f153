# SPDX-License-Identifier: Apache-2.0
"""An error of ours that is raised in another process arrives there and back as itself."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from discreet.errors import BadParameter
from discreet.learn import LogisticRegression
from tests.chance import no_chance

pytestmark = no_chance("refused before anything is drawn")

X = np.random.default_rng(0).uniform(0, 1, (40, 2))
Y = (X[:, 0] > 0.5).astype(int)


def test_a_search_in_two_processes_raises_the_coded_error_of_its_estimator() -> None:
    """Without `classes` every fit is refused; an error that cannot be unpickled would break the pool instead."""
    model = LogisticRegression(epsilon=1.0, delta=1e-5, bounds=(0, 1))
    search = GridSearchCV(model, {"norm": [0.5, 1.0]}, n_jobs=2, cv=2, error_score="raise")
    with pytest.raises(BadParameter) as refused:
        search.fit(X, Y)
    assert refused.value.code == "DP107"
    assert "classes" in str(refused.value)
    assert refused.value.spent == "nothing"

# SPDX-License-Identifier: Apache-2.0
"""Models that are fitted in a session: columns, bounds, categories, pairs, and plans of training."""

from __future__ import annotations

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

FIRST = """
import numpy as np
import pandas as pd
from discreet.learn import AdditiveClassifier, GammaRegressor, LinearRegression, PoissonRegressor
from discreet.learn.torch import plan_of
X = pd.DataFrame({"age": np.linspace(20, 80, 60), "ward": ["A", "B", "C"] * 20, "score": np.linspace(0, 9, 60)})
y = np.arange(60) % 2
shared = {"epsilon": 1, "delta": 1e-6, "session": session, "unit": "patient_id"}

def fit(X=X, y=y, **changed):
    usual = {"bounds": {"age": (18, 99), "score": (0, 10)}, "categories": {"ward": ["A", "B", "C"]}, "interactions": 0}
    return AdditiveClassifier(classes=[0, 1], **shared, **(usual | changed)).fit(X, y)

def level(model, high, features=1, low=0, **words):
    ends = {"target_bounds": (low, high), "bounds": (0, 1)} | words
    return model(**shared, **ends).fit(np.zeros((9, features)), np.ones(9))

def train(model):
    import torch
    from discreet.learn.torch import private
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = private(model, optimizer, torch.randn(6, 4, 4), noise=1.0, steps=1, batch=3, size=6)
    try:
        for x in run:
            run.backward(model(x).square().sum(1))
            optimizer.step()
    finally:
        run.close()

plan = {"size": 600, "batch": 20, "epochs": 2, "epsilon": 3, "delta": 1e-5}
model = None
"""


def slip(wrong: str, code: str, fix: str, right: str = "", before: str = "") -> Mistake:
    return Mistake(wrong, code, fix, right, first=FIRST + before)


WARD = "categories={'ward': ['no', 'yes']}"


@mistakes(
    slip("model.plot('aeg')", "DP105", "plot('age')", "model.plot('age')", before="model = fit()"),
    slip("fit(categories=['ward'])", "DP104", WARD, f"fit({WARD})"),
    slip("fit(categories='ward')", "DP104", WARD, f"fit({WARD})"),
    slip("fit(categories={'ward': 'A'})", "DP104", WARD, f"fit({WARD})"),
    slip("fit(categories={'wrad': ['A', 'B']})", "DP105", "'age'", "fit()  # 'age'"),
    slip(
        "fit(categories={'ward': [1, 2]})",
        "DP104",
        WARD,
        f"fit({WARD})",
        before="X['ward'] = X['ward'].astype('string')",
    ),
    slip("fit(categories=None)", "DP107", "add 'ward': (0, 1)", "fit()  # add 'ward': (0, 1)"),
    slip("fit(categories=None, bounds=(0, 99))", "DP104", WARD, f"fit({WARD}, bounds=(0, 99))"),
    slip(
        "fit(bounds=None)",
        "DP107",
        "bounds={'age': (0, 1), 'score': (0, 1)}",
        "fit(bounds={'age': (0, 1), 'score': (0, 1)})",
    ),
    slip(
        "fit(bounds={'age': (18, 99)})",
        "DP107",
        "'score': (0, 1)",
        "fit(bounds={'age': (18, 99), 'score': (0, 1)})",
    ),
    slip(
        "fit(interactions='all')",
        "DP104",
        "interactions=[('age', 'ward')]",
        "fit(interactions=[('age', 'ward')])",
    ),
    slip("fit(interactions=[('age', 'age')])", "DP102", 'interactions="auto"', 'fit(interactions="auto")'),
    slip("fit(monotone=['score'])", "DP104", "monotone={'score': 1}", "fit(monotone={'score': 1})"),
    slip("fit(monotone={'score': 'up'})", "DP102", "monotone={'score': 1}", "fit(monotone={'score': 1})"),
    slip(
        "model.predict(X[['ward', 'age', 'score']])",
        "DP104",
        "X[['age', 'ward', 'score']]",
        "model.predict(X[['age', 'ward', 'score']])",
        before="model = fit()",
    ),
)
def test_additive_models(mistake, here):
    check_mistake(mistake, here)


EXPERTS = (
    "import torch; from tests.learn.torch.test_clip_architectures import Experts\nmodel = Experts('sorted')"
)


@mistakes(
    slip(
        "train(model)",
        "DP921",
        'model.set_experts_implementation("batched_mm")',
        'model.set_experts_implementation("batched_mm"); train(model)',
        before=EXPERTS,
    )
)
def test_training(mistake, here):
    check_mistake(mistake, here)


GRADIENT = "LinearRegression(solver='gradient')"


@mistakes(
    slip(
        "level(GammaRegressor, 50)",
        "DP102",
        "target_bounds=(0.05, 50)",
        "level(GammaRegressor, 50, target_bounds=(0.05, 50))",
    ),
    slip(
        "level(PoissonRegressor, 50, low=-1)",
        "DP102",
        "target_bounds=(0, 50)",
        "level(PoissonRegressor, 50, target_bounds=(0, 50))",
    ),
    slip(
        "level(PoissonRegressor, 50, 2002)",
        "DP102",
        GRADIENT,
        f"level(LinearRegression, 50, 2002, solver='gradient')  # {GRADIENT}",
    ),
)
def test_regressions(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    slip(
        "plan_of(**plan, sampling='fixed', relation='add-remove')",
        "DP107",
        "sampling='poisson'",
        "plan_of(**plan, sampling='poisson', relation='add-remove')",
    ),
    slip(
        "plan_of(**plan, sampling='allocated', relation='replace')",
        "DP107",
        "sampling='poisson'",
        "plan_of(**plan, sampling='poisson', relation='replace')",
    ),
)
def test_plans_of_training(mistake, here):
    check_mistake(mistake, here)

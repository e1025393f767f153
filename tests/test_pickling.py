# SPDX-License-Identifier: Apache-2.0
"""What is a value can be copied, pickled and sent to another process; what is a handle refuses with a coded error.

A value (a guarantee, a release, an error) means the same wherever it is. A handle (a session, a ledger, a data set, a
conversation) stands for one budget or for private rows, and two of them would be a second budget.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from datetime import date

import pyarrow as pa
import pytest

import discreet
import discreet as dp
from discreet import audit, errors, graphs, ledger, mechanisms, noise, plot, privacy, tables
from discreet.errors import DiscreetError
from discreet.mechanisms import smooth

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda thing, protocol=protocol: pickle.loads(pickle.dumps(thing, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


# --- errors ------------------------------------------------------------------------------------------


def below(kind):
    """A class and all its subclasses."""
    return [kind, *(each for child in kind.__subclasses__() for each in below(child))]


for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
KINDS = [kind for kind in dict.fromkeys(below(DiscreetError)) if kind.__module__.startswith("discreet.")]


def made(kind):
    """An error of a kind, with all that any error has, and an attribute that only this one has."""
    error = kind("DP102", "what", why="why", fix="fix")
    error.spent, error.bracket, error.delta_part, error.loss_part = "a part", (1.0, 2.0), 0.5, None
    error.add_note("seen in a batch")
    return error


@ways
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_the_same_everywhere(kind, way):
    error = made(kind)
    other = way(error)
    assert type(other) is kind
    assert vars(other) == vars(error)
    assert (str(other), repr(other), other.args) == (str(error), repr(error), error.args)
    assert isinstance(other, kind.__bases__)


def test_every_class_of_the_tree_is_tried():
    assert {kind for kind in vars(errors).values() if inspect.isclass(kind)} <= set(KINDS)
    assert len(KINDS) >= 12


def test_an_error_crosses_a_pool_of_processes():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(errors.BadParameter) as refused:
            pool.submit(privacy.pure, -1).result()
        assert pool.submit(pow, 2, 3).result() == 8  # the pool is not broken
    with pytest.raises(errors.BadParameter) as here:
        privacy.pure(-1)
    assert vars(refused.value) == vars(here.value)


# --- values ------------------------------------------------------------------------------------------

DAY = date(2026, 1, 6)
ROWS = pa.table(
    {
        "patient_id": [1, 1, 2, 3] * 30,
        "ward": ["A", "B"] * 60,
        "days": [3, 4, 5, 6] * 30,
        "came_on": [DAY] * 120,
    }
)


def opened():
    columns = {"days": dp.column(bounds=(0, 60)), "ward": dp.column(values=["A", "B"])}
    return dp.open({"visits": ROWS}, dp.each("patient_id", at_most=2), name="visits", columns=columns)


def asked():
    """What comes of asking."""
    data = opened()
    session = dp.Session(data, dp.Limit.filter(epsilon=100, delta=1e-3))
    by_ward = "SELECT ward, COUNT(*) AS n, AVG(days) AS d FROM visits GROUP BY ward ORDER BY n"
    answer = session.sql(by_ward, epsilon=1)
    receipt = answer.receipt
    book = session.ledger
    return {
        "answer": answer,
        "cube": session.sql("SELECT ward, COUNT(*) FROM visits GROUP BY CUBE(ward)", epsilon=1),
        "receipt": receipt,
        "cost": receipt.cost,
        "preview": session.preview(by_ward, epsilon=1),
        "stream preview": session.preview_stream(data.count(), every="week", periods=52, epsilon=1),
        "synthesis preview": session.preview_synthesis(data, rho=0.1),
        "left": session.budget(),
        "statement": session.statement(),
        "verification": book.verify(),
        "finding": ledger.Finding("DP602", "a row was changed"),
        "entry": next(iter(book.entries())),
        "state": book.spent,
        "charge": ledger.Charge(privacy.pure(1)),
        "asker": ledger.Asker("ana", purpose="a report"),
    }


def limits():
    names = {"ana": 0.5, "ben": 0.5}
    plain = {"epsilon": 1, "delta": 1e-6}
    return {
        "filter": dp.Limit.filter(**plain),
        "pure": dp.Limit.filter(epsilon=1),
        "shared": dp.Limit.filter(**plain, analysts=names),
        "window": dp.Limit.filter(**plain, window="month", lifetime=dp.Limit.filter(epsilon=9, delta=1e-5)),
        "odometer": dp.Limit.odometer(delta=1e-6),
        "plan": dp.Limit.plan(3 * privacy.pure(0.1), within=privacy.pure(1)),
    }


def guarantees():
    gaussian = privacy.gaussian(1.0)
    pure = privacy.pure(1)
    return {
        "composed": 1_000 * gaussian.sampled(0.01) + privacy.laplace(10),
        "parallel": privacy.parallel(gaussian, pure),
        "selected": privacy.selected(pure, 10),
        "pair": privacy.pair([0.9, 0.1], [0.2, 0.8]),
        "curve": privacy.renyi_curve({2: 0.1, 3: 0.2}),
        "group": gaussian.group(3),
        "one of": privacy.one_of(gaussian, privacy.gaussian(2.0)),
        "bound": gaussian.bound(delta=1e-6),
        "comparison": gaussian.compare(delta=1e-6),
        "explained": gaussian.explain(),
        "unit": privacy.Unit("patient", "replace"),
    }


def releases():
    budget = {"epsilon": 1, "delta": 1e-6}
    pick = {"epsilon": 1, "sensitivity": 1}
    laplace = dp.Laplace(**pick)
    report = dp.audit(laplace, 0, 1, trials=2_000)
    response = mechanisms.RandomizedResponse(epsilon=1)
    numbers = [
        laplace,
        dp.Gaussian(rho=0.1, sensitivity=1),
        dp.DiscreteGaussian(rho=0.1, sensitivity=1),
        dp.Geometric(**pick),
        mechanisms.ExponentialMechanism(**pick),
        mechanisms.PermuteAndFlip(**pick),
        mechanisms.NoisyMax(**pick),
        mechanisms.TopK(**pick, count=2),
        mechanisms.AboveThreshold(**pick, threshold=3),
        mechanisms.SparseVector(**pick, threshold=3),
        mechanisms.both(laplace, laplace),
        mechanisms.then(laplace, abs),
        mechanisms.select_best(laplace, score=abs, mean_runs=3),
        mechanisms.Median((0, 10), epsilon=1),
        mechanisms.Quantile(0.3, (0, 10), epsilon=1),
        mechanisms.Quantiles([0.3, 0.6], (0, 10), epsilon=1),
        response,
        mechanisms.OptimisedUnary(epsilon=1, outcomes=3),
        mechanisms.SymmetricUnary(epsilon=1, outcomes=3),
        mechanisms.PartitionSelection(**budget),
        mechanisms.StabilityHistogram(**budget),
        mechanisms.StableArgmax(**budget, sensitivity=1),
        mechanisms.StableMode(**budget),
        mechanisms.StableTopK(**budget, sensitivity=1, count=2),
        mechanisms.StableVote(["a", "b"], **budget),
        mechanisms.StableValue(len, len, **budget),
        mechanisms.UnboundedMean(epsilon=1),
        mechanisms.UnboundedSum(epsilon=1),
        mechanisms.Bounds(epsilon=1),
        mechanisms.AdaptiveQueries(records=1_000, queries=10, rho=0.1),
        mechanisms.Thresholdout(records=100_000, threshold=0.1, overfits=3, queries=10, epsilon=1),
        smooth.SmoothMechanism(smooth.TrimmedMean((0, 1)), smooth.SmoothBudget(epsilon=1.0)),
        graphs.EdgeCount(epsilon=1),
        graphs.Triangles(nodes=10, epsilon=1),
        graphs.KStars(k=2, nodes=10, epsilon=1),
        graphs.DegreeSequence(nodes=4, epsilon=1),
        graphs.DegreeHistogram(most=4, epsilon=1),
        graphs.CumulativeDegrees(most=3, epsilon=1),
    ]
    values = [
        laplace(3),
        report,
        report.roc,
        *report.events[:1],
        report.events[0].often,
        ledger.StatementCheck("json", 1, 0, (), ()),
        audit.one_run([True, False] * 50, range(100)),
        audit.exact(lambda _: {0: 0.5, 1: 0.5}, 0, 1),
        response.estimate([0, 1] * 50),
        mechanisms.Refusal("the data are too close to others"),
        mechanisms.Chosen(1, 2),
        mechanisms.GlobalSensitivity(1.0),
        mechanisms.LocalAtDistance(max, 1.0),
        mechanisms.SmoothBound(max, 0.1, 1.0),
        mechanisms.Universe([0, 1], 3),
        smooth.SmoothBudget(epsilon=1.0),
        smooth.SmoothArsinhNormal(1.0),
        smooth.SmoothLaplaceLogNormal(1.0),
        smooth.SmoothUniformLogNormal(1.0),
        smooth.SmoothCauchy(),
        smooth.SmoothLaplace(),
        smooth.SmoothGaussian(),
        smooth.SmoothLomax(3.0),
        smooth.SmoothStudentT(3.0),
        smooth.SmoothPlan(smooth.SmoothLaplace(), 0.1, 0.2),
        smooth.InterquantileRange((0, 1)),
        smooth.OrderStatistic((0, 1), rank=3),
        smooth.TrimmedMean((0, 1)),
        smooth.PredictionVariance((1.0,), 0.0, 1.0),
        smooth.Reciprocal(),
        smooth.Custom(max, mechanisms.LocalAtDistance(max, 1.0), 0.0, 1.0),
        graphs.Graph([(1, 2), (2, 3)], nodes=[1, 2, 3]),
        noise.Grid(-3),
        plot.Band([0, 1], [0, 1], [0, 1]),
        dp.each("patient_id", at_most=2),
        dp.column("integer", bounds=(0, 60)),
        dp.col("days") + 1,
        tables.mean("days"),
    ]
    return {f"{at} {type(one).__name__}": one for at, one in enumerate([*numbers, *values])}


VALUES = asked() | limits() | guarantees() | releases()


def told(thing):
    """What a thing says of itself; of a mechanism what it was made with, since it has no text of its own."""
    if isinstance(thing, mechanisms.Mechanism):
        return thing.guarantee, sorted(vars(thing))
    text = repr(thing)
    return sorted(vars(thing)) if " at 0x" in text else text


@ways
@pytest.mark.parametrize("thing", VALUES.values(), ids=VALUES)
def test_a_value_is_the_same_everywhere(thing, way):
    other = way(thing)
    assert type(other) is type(thing)
    assert told(other) == told(thing)


def test_an_answer_keeps_its_numbers_and_what_is_left_can_still_be_counted():
    answer, left = VALUES["answer"], VALUES["left"]
    for way in WAYS.values():
        assert way(answer).rows() == answer.rows()
        assert way(answer).guarantee == answer.guarantee
        assert way(left).like(privacy.pure(1)) == left.like(privacy.pure(1))


# --- handles -----------------------------------------------------------------------------------------


HANDLES = ("session", "stream", "ledger", "data set", "engine", "secret", "questions", "conversation")


@pytest.fixture
def handles():
    with opened() as data:
        session = dp.Session(data, dp.Limit.filter(epsilon=1))
        rule = mechanisms.SparseVector(epsilon=1, sensitivity=1, threshold=3)
        queries = mechanisms.AdaptiveQueries(records=4, queries=10, rho=0.1)
        secret = mechanisms.Secret(3, "what one record loses")
        weeks = {"every": "week", "periods": 52, "epsilon": 0.1}
        several = (
            session,
            session.stream(data.count(), **weeks, time="came_on"),
            session.ledger,
            data,
            data.engine,
            secret,
            rule.open(),
            queries.open([0, 1, 1, 0]),
        )
        yield dict(zip(HANDLES, several, strict=True))


@ways
@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_refuses_with_a_code(name, way, handles):
    with pytest.raises(DiscreetError) as refused:
        way(handles[name])
    assert refused.value.code in {"DP203", "DP206", "DP607"}
    assert refused.value.spent == "nothing"


@pytest.mark.parametrize("way", [way for name, way in WAYS.items() if name != "copy"])
@pytest.mark.parametrize("name", HANDLES)
def test_what_holds_a_handle_refuses_too(name, way, handles):
    with pytest.raises(DiscreetError):
        way([handles[name]])


def test_the_fix_for_a_data_set_opens_the_same_one(tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    parquet.write_table(ROWS, "visits.parquet")
    whom = dp.each("patient_id", at_most=2, groups=1, relation="replace", word="patient")
    data = dp.open("visits.parquet", protect=whom)
    with pytest.raises(DiscreetError) as refused:
        pickle.dumps(data)
    with data, eval(refused.value.fix.partition(":  ")[2], {"dp": dp}) as again:
        assert again.protect == data.protect
        assert again.public_description() == data.public_description()


# --- none is forgotten -------------------------------------------------------------------------------

PACKAGES = (audit, graphs, ledger, mechanisms, smooth, noise, plot, privacy, tables)
#: Made of functions of somebody, which can be pickled if these can.
OF_FUNCTIONS = {"HighProbabilityBound", "ProposeTestRelease", "ProposeSearchRelease", "BatchedFunction"}
#: Hold the data set that they ask, and refuse with it.
OF_DATA_SETS = {"Query", "AggregateQuery"}


def test_a_query_refuses_with_its_data_set(handles):
    data = handles["data set"]
    for query in (data.group_by("ward"), data.count()):
        assert type(query).__name__ in OF_DATA_SETS
        with pytest.raises(DiscreetError) as refused:
            pickle.dumps(query)
        assert refused.value.code == "DP607"


def test_every_public_class_is_a_value_or_a_handle(handles):
    public = {
        name: thing
        for package in (*PACKAGES, discreet)
        for name in package.__all__
        if inspect.isclass(thing := getattr(package, name))
    }
    seen = [*VALUES.values(), *handles.values()]
    missing = (
        {name for name, kind in public.items() if not any(isinstance(one, kind) for one in seen)}
        - OF_FUNCTIONS
        - OF_DATA_SETS
    )
    assert missing == set()

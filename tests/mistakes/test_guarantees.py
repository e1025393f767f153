# SPDX-License-Identifier: Apache-2.0
"""Guarantees that are allocated, selected, shuffled, imported: where no theorem holds, and what to state instead."""

from __future__ import annotations

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

MOST_STEPS, MOST_PEOPLE, MOST_RECORDS = 1_000_000, 10_000_000_000, 1_000_000_000
GAUSSIAN = "gaussian(noise="


def allocated(wrong: str, fix: str, right: str, code: str = "DP202") -> Mistake:
    """A mistake with `.allocated`, of what is called `a` and `b`."""
    first = "from discreet.privacy import parallel\na, b = privacy.laplace(1), privacy.gaussian(1)"
    return Mistake(f"{wrong}.allocated(steps=5)", code, fix, right, first=first)


def times(wrong: str, right: str) -> Mistake:
    """An allocation to so many steps."""
    step = "privacy.gaussian(noise=1).allocated"
    return Mistake(f"{step}({wrong})", "DP102", right, f"{step}({right})")


BY_NOISE = f"privacy.{GAUSSIAN}1).allocated(steps=5)"


@mistakes(
    times("steps=5, times=9", "steps=9, times=5"),
    times("steps=2_000_000, times=3", f"steps={MOST_STEPS}, times=3"),
    times("steps=3_000_000, times=2_000_000", f"steps={MOST_STEPS}, times={MOST_STEPS}"),
    times("steps=2_000_000, times=3_000_000", f"steps={MOST_STEPS}, times={MOST_STEPS}"),
    allocated("privacy.gaussian(1, relation='replace')", GAUSSIAN, BY_NOISE),
    allocated(
        "privacy.parallel(a, b)",
        "parallel(a.allocated(steps=5), b.allocated(steps=5))",
        "parallel(a.allocated(steps=5), b.allocated(steps=5)).epsilon(delta=1e-6)",
    ),
    allocated("privacy.truncated_batches(1, 0.01, 200, 10_000)", GAUSSIAN, BY_NOISE),
    allocated("a.sampled(0.1, 'without-replacement', 'replace')", GAUSSIAN, BY_NOISE),
    allocated("a.sampled(0.1, 'without-replacement')", GAUSSIAN, BY_NOISE),
    allocated("privacy.renyi_curve({2: 0.5})", GAUSSIAN, BY_NOISE),
)
def test_what_cannot_be_allocated_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


def imported(wrong: str, code: str, fix: str, right: str, relation: str = "relation='zero-out'") -> Mistake:
    """An event of another accountant; `right` is the event, or the relation that its fix names."""
    call = "privacy.from_dp_accounting"
    event, under = (wrong, fix) if right == fix else (right, relation)
    corrected = f"{call}({event}, {under})"
    return Mistake(
        f"{call}({wrong}, {relation})", code, fix, corrected if fix in corrected else f"{corrected}  # {fix}"
    )


STEP = "{'class_name': 'GaussianDpEvent', 'noise_multiplier': 1.0}"
RESPONSE = "{'class_name': 'RandomizedResponseDpEvent', 'noise_parameter': 0.5, 'num_buckets': 4}"
TREE = "{'class_name': 'SingleEpochTreeAggregationDpEvent', 'noise_multiplier': 9.0, 'step_counts': 7}"
ADDED, REPLACED, BLANK = 'relation="add-remove"', 'relation="replace"', 'relation="zero-out"'
ORIGINAL = "as the other library gave it"


@mistakes(
    imported("{'class_name': 'GaussDpEvent', 'noise_multiplier': 1.0}", "DP202", "GaussianDpEvent", STEP),
    imported(RESPONSE, "DP202", REPLACED, REPLACED, ADDED),
    imported(TREE, "DP202", BLANK, BLANK, ADDED),
    imported("{'class_name': 'NonPrivateDpEvent'}", "DP202", "what was run with noise", STEP),
    imported(RESPONSE.replace("0.5", "0"), "DP202", "what was run with noise", RESPONSE, REPLACED),
    imported("{'class_name': 'GaussianDpEvent'}", "DP401", ORIGINAL, STEP),
    imported("'{'", "DP401", ORIGINAL, STEP),
    Mistake(
        "privacy.from_opacus([1.0, 0.01, 1000])",
        "DP401",
        ORIGINAL,
        f"privacy.from_opacus([(1.0, 0.01, 1000)])  # {ORIGINAL}",
    ),
)
def test_a_record_that_is_refused_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


def selected(wrong: str, code: str, fix: str, right: str) -> Mistake:
    """A selection with other words."""
    call = "privacy.selected(guarantee, {})".format
    first = "from discreet.privacy import selected\nguarantee = privacy.pure(0.5)"
    return Mistake(call(wrong), code, fix, call(right) if right else "", first=first)


def best(eta: str) -> str:
    """The best of several runs of a mechanism, with a shape that is drawn."""
    return f"mechanisms.select_best(dp.Laplace(epsilon=1, sensitivity=1), float, mean_runs=10, {eta})"


def truncated(changed: str, records: str = "records=10_000") -> str:
    """Truncated batches."""
    return f"privacy.truncated_batches(1.0, 0.01, batch=200, {records}{changed})"


LOCAL = f"privacy.randomized_response(1.0, {REPLACED})"


def shuffled(wrong: str, code: str, fix: str, right: str, first: str = "") -> Mistake:
    """Shuffled reports."""
    call = "privacy.shuffled({})".format
    return Mistake(call(wrong), code, fix, call(right), first=first)


@mistakes(
    selected("mean_runs=10, eta=-1", "DP102", "eta=-0.5", "mean_runs=10, eta=-0.5"),
    selected("gamma=0.1, eta='least'", "DP107", "selected(guarantee, mean_runs=10, eta='least')", right=""),
    selected(
        "mean_runs=2, eta='least', repeats=0.9",
        "DP102",
        "repeats=0.49",
        "mean_runs=2, eta='least', repeats=0.49",
    ),
    Mistake(best("eta=2"), "DP102", "eta=0.0", best("eta=0.0")),
    Mistake(
        "privacy.gaussian_mixture(noise=1.0, moves={0: 0.9, 1: 0.2})",
        "DP106",
        "gaussian_mixture(noise=1.0, moves={0: 0.9, 1: 0.1})",
        "privacy.gaussian_mixture(noise=1.0, moves={0: 0.9, 1: 0.1})",
    ),
    Mistake(
        truncated("", "records=2_000_000_000"),
        "DP102",
        f"records={MOST_RECORDS}",
        truncated("", f"records={MOST_RECORDS}"),
    ),
    Mistake(truncated(f", {BLANK}"), "DP202", ADDED, truncated(f", {ADDED}")),
    Mistake(truncated(f", {BLANK}", "records=9_999"), "DP202", REPLACED, truncated(f", {REPLACED}")),
    shuffled(
        "local.epsilon(delta=0), n=10_000",
        "DP104",
        f"randomized_response(1.0, {REPLACED}), n=10_000",
        f"{LOCAL}, n=10_000",
        first=f"local = {LOCAL}",
    ),
    shuffled(f"{LOCAL}, n=20_000_000_000", "DP102", f"n={MOST_PEOPLE}", f"{LOCAL}, n={MOST_PEOPLE}"),
    shuffled("privacy.pure(1.0), n=10_000", "DP202", REPLACED, f"privacy.pure(1.0, {REPLACED}), n=10_000"),
    shuffled(
        f"privacy.gaussian(1.0, {REPLACED}), n=10_000",
        "DP202",
        f"pure(1.0, {REPLACED})",
        f"privacy.pure(1.0, {REPLACED}), n=10_000",
    ),
)
def test_a_slip_with_a_guarantee_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


DEVICE = "device = mechanisms.RandomizedResponse(epsilon=1.0)\nreports = device.privatise([0, 1] * 20)"


@mistakes(
    Mistake(
        "mechanisms.local.ShuffledReports(privacy.pure(1.0, relation='replace'), people=1_000)",
        "DP104",
        "RandomizedResponse(epsilon=1.0).shuffled(people=1_000)",
        "mechanisms.RandomizedResponse(epsilon=1.0).shuffled(people=1_000)",
    ),
    Mistake(
        "device.shuffled(people=1_000).shuffle(reports)",
        "DP104",
        "device.shuffled(people=",
        "device.shuffled(people=40).shuffle(reports)",
        first=DEVICE,
    ),
    Mistake(
        "left.like(privacy.pure(0.1))",
        "DP107",
        "budget = session.budget()",
        "budget = session.budget()\nbudget.like(privacy.pure(0.1, unit='patient_id'))",
        first="left = type(session.budget()).from_json(session.budget().to_json())",
    ),
)
def test_a_slip_with_reports_and_budgets_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)

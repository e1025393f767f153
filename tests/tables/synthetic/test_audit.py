# SPDX-License-Identifier: Apache-2.0
"""A whole synthesis in the two-sample game, on the pair of neighbours that it protects least; and mutants that must be caught."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from discreet import audit
from discreet.tables.data.dataset import Column, Table
from discreet.tables.plan.spend import Spend
from discreet.tables.synthetic import mechanism as mechanism_file
from discreet.tables.synthetic.aim import run_aim
from discreet.tables.synthetic.counts import exact_cells
from discreet.tables.synthetic.measure import UnitReach, pair_measurement, pair_system
from discreet.tables.synthetic.mechanism import compile_synthesis, synthesis_request
from discreet.tables.synthetic.mixture import fit_mixture
from tests.chance import may_fail
from tests.tables.small import dataset as small_dataset

CONFIDENCE = 1 - 1e-9
#: Of one unit, three rows in one cell: what a unit may add at most.
OTHERS = tuple((("a", float(n % 2)),) for n in range(6))
UNIT = (("a", 0.0),) * 3


def data_of(table):
    data = small_dataset(table, at_most=3)
    columns = {
        "id": Column("id", "integer"),
        "g": Column("g", "text", values=("a", "b"), null=False),
        "x": Column("x", "integer", bounds=(0, 1), null=False),
    }
    return replace(data, tables={"visits": Table("visits", columns, unit="id")})


WITH, WITHOUT = data_of((*OTHERS, UNIT)), data_of(OTHERS)


@pytest.fixture(autouse=True)
def quick_fits(monkeypatch):
    """The fit is post-processing; a coarse one is audited as well as a good one."""
    monkeypatch.setattr(mechanism_file, "fit_mixture", partial(fit_mixture, components=4, most_steps=4))


def scores(mechanism, data):
    """What tells most about the unit: the likelihood ratio of the measured blocks, and the distance of the copy."""
    copied = mechanism.draw(data)
    released, fine = copied.released, mechanism.reach.fine
    if not released.has_pairs:
        # Only the first cell of each table knows of the unit; six rows of others are in it, or three of them.
        return sum(
            float((table.noisy[0] - fine * (6 if table.keys == (0,) else 3)) * 3 * fine) / table.scale**2
            for table in released.chosen
        )
    measurement = pair_measurement(pair_system(released.sizes), mechanism.spending.pairs, mechanism.reach)
    cells = {
        key: exact_cells(each.engine, mechanism.counted)
        for key, each in {"with": WITH, "no": WITHOUT}.items()
    }
    blocks = {
        key: dict(measurement.layout.exact_blocks(each, measurement.multipliers))
        for key, each in cells.items()
    }
    ratio = sum(
        float((np.ravel(block) * np.ravel(blocks["with"][keys] - blocks["no"][keys])).sum())
        / measurement.scales[keys] ** 2
        for keys, block in released.blocks.items()
    )
    return ratio, copied.quality.value


def mechanism_of(method="mixture", reach=None):
    spend = Spend(rho=0.5)
    mechanism = compile_synthesis(synthesis_request(WITH, ["g", "x"], None, 0.2, method), WITH, spend)
    if reach is not None:
        mechanism.reach = reach(mechanism.reach)
    return mechanism


def report_on(mechanism, trials):
    return audit(
        partial(scores, mechanism),
        WITH,
        WITHOUT,
        trials=trials,
        confidence=CONFIDENCE,
        claim=mechanism.guarantee,
        workers=1,
    )


@pytest.mark.slow
@may_fail(2e-9, "the confidence of two audits")
def test_a_whole_synthesis_keeps_its_guarantee_and_a_mutant_does_not():
    sound = mechanism_of()
    assert not report_on(sound, 600).refutes()

    def forgets_rows(reach):
        """Noise for one row of a unit, which has three."""
        return UnitReach(replace(reach.contribution, rows=1), reach.fine)

    mutant = mechanism_of(reach=forgets_rows)
    assert report_on(mutant, 600).refutes()


@pytest.mark.slow
@may_fail(2e-9, "the confidence of two audits")
def test_a_whole_run_of_aim_keeps_its_guarantee_and_a_mutant_does_not(monkeypatch):
    sound = mechanism_of("aim")
    assert not report_on(sound, 300).refutes()

    def spends_far_more(cells, columns, rho, reach):
        return run_aim(cells, columns, 50 * rho, reach)

    monkeypatch.setattr(mechanism_file, "run_aim", spends_far_more)
    assert report_on(mechanism_of("aim"), 300).refutes()

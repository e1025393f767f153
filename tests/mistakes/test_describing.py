# SPDX-License-Identifier: Apache-2.0
"""The description in a TOML file: keys, types, whom it protects, the budget."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from tests.mistakes.clinic import SECRETS, Described
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes, shown

RIGHT = """[dataset]
source = "visits.parquet"
unit = "patient_id"

[limits]
rows_per_unit = 10

[columns.ward]
values = ["north", "south"]

[columns.days]
type = "integer"
bounds = [0, 60]
null = true

[budget]
epsilon = 1.0
delta = 1e-6
filter = "tracks"
window = "month"
ledger = "visits"
"""


def slip(old: str, new: str, fix: str, code: str = "DP403", right: str = RIGHT) -> Mistake:
    """The description with one thing wrong in it."""
    assert old in right
    return Mistake(right.replace(old, new, 1), code, fix, right)


@pytest.fixture
def described(folder):
    return Described(folder)


@mistakes(
    slip("unit =", "units =", "unit"),
    slip("[limits]", "[limit]", "limits"),
    slip("bounds", "bound", "bounds"),
    slip("threads = 2", "threads = 0", "threads = 2", right=RIGHT.replace("\n\n", "\nthreads = 2\n\n", 1)),
    slip("[columns.days]", "[column.days]", "columns"),
    slip("[columns.days]", "[columns.dais]", "[columns.days]"),
    slip('source = "visits.parquet"\n', "", 'source = "visits.parquet"'),
    slip('source = "visits.parquet"', 'source = ""', 'source = "visits.parquet"'),
    slip('source = "visits.parquet"', "source = visits.parquet", 'source = "visits.parquet"'),
    slip("visits.parquet", "visit.parquet", "visits.parquet", "DP802"),
    slip("[dataset]\n", "", "[dataset]"),
    slip('unit = "patient_id"\n', "", 'unit = "patient_id"'),
    slip('unit = "patient_id"', 'unit = "patient_id"\neach_row = true', 'unit = "patient_id"'),
    slip('"patient_id"', '"patientid"', '"patient_id"'),
    slip("rows_per_unit = 10", 'rows_per_unit = "10"', "rows_per_unit", right=RIGHT),
    slip("[limits]\nrows_per_unit = 10\n", "", "rows_per_unit"),
    slip("[0, 60]", "[60, 0]", "bounds = [0, 60]"),
    slip("[0, 60]", '["0", "60"]', "bounds = [0, 60]"),
    slip("[0, 60]", "[0, nan]", "bounds = [0, 60]"),
    slip("[0, 60]", "(0, 60)", "bounds = [0, 60]"),
    slip('"integer"', '"integr"', 'type = "integer"'),
    slip('"integer"', '"text"', 'type = "integer"'),
    slip('["north", "south"]', '"north"', 'values = ["north", "south"]'),
    slip("null = true", 'null = "yes"', "null = true"),
    slip("epsilon = 1.0", "eps = 1.0", "epsilon"),
    slip("epsilon = 1.0\n", "", "epsilon = 1.0"),
    slip('"tracks"', '"renyi"', 'filter = "tracks"'),
    slip('"month"', '"fortnight"', 'window = "month"'),
    slip('ledger = "visits"', "ledger = 3", 'ledger = "visits"'),
    Mistake(
        RIGHT + '\n[public.wards]\nsource = "wards.csv"\nhierarchy = "region"\n',
        "DP403",
        'hierarchy = ["region", "district"]',
        RIGHT + '\n[public.wards]\nsource = "wards.csv"\nhierarchy = ["region", "ward"]\n'
        '# hierarchy = ["region", "district"]\n',
    ),
)
def test_describing(mistake, described):
    error = check_mistake(mistake, described)
    assert error.what


def test_a_description_that_is_not_there_is_written_by_the_command_that_is_named(folder):
    with pytest.raises(DiscreetError) as refused:
        dp.open("visits.toml")
    error = refused.value
    assert (error.code, error.spent) == ("DP403", "nothing")
    assert "discreet describe visits.parquet --out visits.toml" in error.fix
    assert not SECRETS & shown(error, "")
    from discreet.cli import main

    with pytest.raises(SystemExit) as left:
        main(["describe", "visits.parquet", "--out", "visits.toml"])
    assert not left.value.code
    assert (folder / "visits.toml").is_file()


def test_what_is_written_down_is_not_told_again(described):
    described.run(RIGHT)
    with pytest.raises(DiscreetError) as refused:
        dp.open("visits.toml", protect=dp.each("patient_id", at_most=3))
    assert (refused.value.code, refused.value.spent) == ("DP107", "nothing")
    assert "dp.open('visits.toml')" in refused.value.fix
    assert dp.open("visits.toml").unit.protects == "patient_id"

# SPDX-License-Identifier: Apache-2.0
"""Every constructor takes a unit as an object or as two words, and never two relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet import errors, privacy
from discreet.privacy import Guarantee, Unit

CONSTRUCTORS: dict[str, Callable[..., Guarantee]] = {
    "pure": lambda **who: privacy.pure(1.0, **who),
    "approximate": lambda **who: privacy.approximate(1.0, 1e-6, **who),
    "approximate without δ": lambda **who: privacy.approximate(1.0, 0.0, **who),
    "concentrated": lambda **who: privacy.concentrated(0.5, **who),
    "approximate_concentrated": lambda **who: privacy.approximate_concentrated(1e-6, 0.5, **who),
    "renyi": lambda **who: privacy.renyi(2.0, 0.1, **who),
    "renyi_curve": lambda **who: privacy.renyi_curve({2.0: 0.1}, **who),
    "laplace": lambda **who: privacy.laplace(1.0, **who),
    "gaussian": lambda **who: privacy.gaussian(1.0, **who),
    "discrete_laplace": lambda **who: privacy.discrete_laplace(1.0, 1, **who),
    "discrete_gaussian": lambda **who: privacy.discrete_gaussian(1.0, 1, **who),
    "randomized_response": lambda **who: privacy.randomized_response(1.0, **who),
    "leaky": lambda **who: privacy.leaky(0.1, **who),
    "leaky_randomized_response": lambda **who: privacy.leaky_randomized_response(1.0, 0.1, **who),
    "exponential": lambda **who: privacy.exponential(1.0, **who),
    "pair": lambda **who: privacy.pair([0.9, 0.1], [0.2, 0.8], **who),
    "pair_of_densities": lambda **who: privacy.pair_of_densities(_uniform, _uniform, (0.0, 1.0), **who),
    "two_gaussians": lambda **who: privacy.two_gaussians(0.5, 1.1, **who),
}
PATIENT = Unit("patient", "replace")
every_constructor = pytest.mark.parametrize("make", CONSTRUCTORS.values(), ids=list(CONSTRUCTORS))


def _uniform(x: Any) -> Any:
    return 0 * x + 1


@every_constructor
def test_a_unit_says_what_two_words_say(make):
    expected = make(unit="patient", relation="replace")
    assert expected.unit == PATIENT
    assert make(unit=PATIENT) == expected
    assert make(unit=PATIENT, relation="replace") == expected


@every_constructor
def test_a_word_alone_means_added_or_removed(make):
    assert make().unit == Unit("record", "add-remove")
    assert make(unit="patient").unit == Unit("patient", "add-remove")


@every_constructor
def test_two_relations_are_refused_and_the_fix_works(make):
    with pytest.raises(errors.BadParameter) as refused:
        make(unit=PATIENT, relation="add-remove")
    assert refused.value.code == "DP107"
    assert make(**eval(f"dict({refused.value.fix})")).unit == Unit("patient", "add-remove")


@every_constructor
@pytest.mark.parametrize("unit", [PATIENT, "patient"])
def test_an_unknown_relation_is_refused(make, unit):
    with pytest.raises(errors.BadParameter) as refused:
        make(unit=unit, relation="remove")
    assert refused.value.code == "DP105"


@pytest.mark.parametrize("relation", [None, "remove", 1])
def test_a_stored_guarantee_without_a_relation_is_refused_not_guessed_at(relation):
    text = privacy.gaussian(1.0, unit=PATIENT).to_json()
    words = "null" if relation is None else f'"{relation}"' if isinstance(relation, str) else str(relation)
    damaged = text.replace('"replace"', words)
    assert damaged != text
    with pytest.raises(errors.BadDescription):
        privacy.from_json(damaged)

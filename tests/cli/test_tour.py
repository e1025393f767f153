# SPDX-License-Identifier: Apache-2.0
"""`discreet demo --accountant` is one page, and what it says is true."""

from __future__ import annotations

import re

import pytest

from discreet import privacy


@pytest.fixture
def page(discreet):
    done = discreet("demo --accountant")
    assert (done.code, done.err) == (0, "")
    return done.out


def test_the_demonstration_is_one_page_and_right(page):
    assert len(page.splitlines()) <= 60
    assert max(len(line.rstrip()) for line in page.splitlines()) <= 80
    assert re.search(r"make test\s*$", page)
    _the_roc_is_that_of_the_lecture(page)
    _the_tail_agrees_with_the_closed_form(page)
    _the_calibrated_noise_keeps_the_target(page)


def _the_roc_is_that_of_the_lecture(page):
    # slopes e^ε from the left: 1 % false alarms detect e^1 %; a leak of a tenth adds ten
    rows = {line.split("  ")[0]: re.findall(r"([\d.]+) %", line) for line in page.splitlines()}
    assert rows["randomized response, ε = 1"][0] == "2.72"
    assert rows["leaky, δ = 0.1"] == ["11.00", "15.00", "30.00", "60.00"]
    assert rows["leaky randomized response, both"][0] == "12.72"
    assert rows["Laplace, scale 1"][0] == "2.72"
    assert re.search(r"basic +10 ", page)


def _the_tail_agrees_with_the_closed_form(page):
    found = re.findall(r"^(1e-\d+) +([\d.]+) +([\d.]+) +([\d.]+)", page, flags=re.MULTILINE)
    assert [float(delta) for delta, *_ in found] == [1e-6, 1e-15, 1e-50, 1e-100]
    train = 977 * privacy.gaussian(1.0).sampled(512 / 50_000)
    for delta, run, numeric, closed in found:
        # a hundred Gaussians of noise 10 are one of noise 1
        assert float(closed) == pytest.approx(privacy.gaussian(1.0).epsilon(float(delta)), rel=1e-8)
        assert float(numeric) == pytest.approx(float(closed), rel=1e-6)
        assert float(run) >= train.epsilon(float(delta)) * (1 - 1e-10)


def _the_calibrated_noise_keeps_the_target(page):
    noise, epsilon = re.search(r"least noise for ε = 1 +([\d.]+), which gives ε = ([\d.]+)", page).groups()
    train = 977 * privacy.gaussian(float(noise)).sampled(512 / 50_000)
    assert train.epsilon(1e-6) <= 1.0
    assert float(epsilon) <= 1.0

# SPDX-License-Identifier: Apache-2.0
"""Noise has its distribution, lies on its grid, and listens to nobody's seed."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats

from discreet import testing
from discreet.learn.torch.chacha import blocks, fresh_key, reference_normals
from discreet.learn.torch.noise import StepNoise, normals, scales_for
from discreet.noise.source import current
from tests.chance import may_fail, risk
from tests.statistical import fit
from tests.statistical.constants import ALPHA

COUNT = 100_000


def test_the_block_function_gives_the_vector_of_the_rfc():
    """RFC 8439, section 2.3.2."""
    key = np.arange(32, dtype=np.uint8).view(np.uint32)
    wanted = (
        "e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3 "
        "466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2"
    )
    found = blocks(key, [1], (0x09000000, 0x4A000000, 0))
    assert [f"{word:08x}" for word in found[0]] == wanted.split()


def test_the_block_function_is_that_of_another_implementation():
    key, counters, nonce = fresh_key(), np.arange(5, 12), (7, 8, 9)
    told = np.array([5, *nonce], np.uint32).tobytes()
    stream = Cipher(algorithms.ChaCha20(key.tobytes(), told), None).encryptor().update(bytes(64 * 7))
    assert blocks(key, counters, nonce).tobytes() == stream


@may_fail(4 * ALPHA, "one distribution fits, two do not, and no correlation is seen")
@pytest.mark.parametrize(
    "drawn",
    [lambda: normals(COUNT).numpy(), lambda: reference_normals(fresh_key(), COUNT, 3)],
    ids=["cpu", "cipher"],
)
def test_normals_are_normal_and_of_unit_width(drawn):
    sample = drawn()
    cells = np.rint(sample * 10).astype(np.int64)
    fit.accepts(cells, *(lambda k, s=s: fit.rounded_gaussian(k, s) for s in (10.0, 8.0, 12.0)))
    halves = sample[: COUNT // 2], sample[COUNT // 2 :]
    # the pairs of one radius are independent: r √((n - 2)/(1 - r²)) has Student's distribution with n - 2 degrees, 5.7e-10
    pairs, most = COUNT // 2, 6.2 / math.sqrt(COUNT // 2)
    risk(2 * stats.t.sf(most * math.sqrt((pairs - 2) / (1 - most**2)), pairs - 2))
    assert abs(np.corrcoef(*halves)[0, 1]) < most


def drawn_from(words: list[int]) -> np.ndarray:
    with testing.using(testing.ScriptedSource(words=[word % 2**64 for word in words])):
        return normals(len(words)).numpy()


def test_normals_are_those_of_box_and_muller_to_fifteen_digits():
    """The formula in forty digits: r² = -ln(w²/2**126 + 2**-128) is exponential, and the angle is π v/2**63."""
    with testing.seeded(3):
        words = current().words(400).view(np.int64).tolist()
    found = drawn_from(words).reshape(2, -1).T
    with mpmath.workdps(40):
        for w, v, pair in zip(words[:200], words[200:], found, strict=True):
            radius = mpmath.sqrt(-mpmath.log(mpmath.mpf(w) ** 2 / 2**126 + mpmath.mpf(2) ** -128))
            angle = mpmath.pi * v / 2**63
            assert abs(radius * mpmath.cos(angle) - pair[0]) < 5e-15
            assert abs(radius * mpmath.sin(angle) - pair[1]) < 5e-15


@pytest.mark.parametrize("word", [0, 1, -1, 2**62, 2**63 - 1, -(2**63)])
def test_no_word_makes_a_normal_that_is_no_number(word):
    radius = np.hypot(*drawn_from([word, 12345]))
    chance = max((word / 2**63) ** 2, 2.0**-128)
    assert radius == pytest.approx(math.sqrt(-math.log(chance)), abs=0.1)
    assert radius < 9.5


def test_a_spread_is_in_the_normals():
    with testing.seeded(1):
        one = normals(1000)
    for spread in (2.0**31 / 3, torch.tensor(2.0**31 / 3, dtype=torch.float64)):
        with testing.seeded(1):
            assert torch.allclose(normals(1000, spread), one * spread, rtol=1e-14, atol=0)


def test_an_odd_number_of_normals_is_that_number():
    assert [normals(count).numel() for count in (0, 1, 5)] == [0, 1, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_released_lies_on_the_grid_whatever_the_sum(dtype):
    buffer = torch.full((1000,), 1 / 3, dtype=dtype)
    scales = scales_for(noise=1.0, clip=1.0, dimension=1000)
    assert scales.cell == 2.0**-30
    StepNoise().add_(buffer, scales, divide=1.0)
    cells = buffer.double() / scales.cell
    assert torch.equal(cells, cells.round())
    assert buffer.unique().numel() > 990


def test_rounding_is_paid_for_by_more_noise():
    """Two sums at distance 1 may be 1 + √d·γ apart after rounding."""
    scales = scales_for(noise=2.0, clip=1.0, dimension=10**6)
    assert scales.spread * scales.cell >= 2.0 * (1.0 + 1000 * scales.cell)
    assert scales.spread * scales.cell < 2.0 * (1.0 + 1001 * scales.cell)


@pytest.mark.parametrize("clip", [0.37, 1.0, 1.5, 1e-3])
def test_a_clipping_norm_on_a_device_makes_the_same_grid(clip):
    told = torch.tensor(clip, dtype=torch.float64)
    one, other = (
        scales_for(noise=1.1, clip=clip, dimension=50),
        scales_for(noise=1.1, clip=told, dimension=50),
    )
    assert [float(part) for part in other] == pytest.approx(list(one), rel=1e-15)


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_the_noise_has_the_width_that_was_asked_for():
    buffer = torch.zeros(COUNT)
    StepNoise().add_(buffer, scales_for(noise=2.0, clip=3.0, dimension=COUNT), divide=6.0)
    cells = np.rint(buffer.numpy() * 10).astype(np.int64)
    fit.accepts(cells, lambda k: fit.rounded_gaussian(k, 10.0), lambda k: fit.rounded_gaussian(k, 8.0))


def test_what_is_not_a_number_does_not_come_through():
    buffer = torch.tensor([math.nan, math.inf, -math.inf, 0.0])
    StepNoise().add_(buffer, scales_for(noise=1.0, clip=1.0, dimension=4), divide=1.0)
    assert bool(torch.isfinite(buffer).all())
    assert float(buffer.abs().max()) < 40


def test_the_seed_of_torch_has_no_say_and_is_not_used_up():
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        drawn.append(normals(10))
        assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(*drawn)


def test_the_seed_of_a_test_has():
    drawn = []
    for _ in range(2):
        with testing.seeded(7):
            drawn.append((normals(10), fresh_key()))
    assert torch.equal(drawn[0][0], drawn[1][0])
    assert (drawn[0][1] == drawn[1][1]).all()


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@needs_gpu
@pytest.mark.parametrize("count", [1, 7, 8, 1000, 1_000_003])
def test_the_kernel_adds_what_the_reference_says(count):
    noise, scales = StepNoise(), scales_for(noise=1.0, clip=1.0, dimension=count)
    for turn in (1, 2):
        buffer = torch.zeros(count, device="cuda", dtype=torch.float64)
        noise.add_(buffer, scales, divide=4.0)
        key = noise._keys[buffer.device].cpu().numpy().view(np.uint32)
        wanted = np.rint(reference_normals(key, count, turn) * scales.spread) * scales.cell / 4.0
        assert np.abs(buffer.cpu().numpy() - wanted).max() <= 2 * scales.cell


@needs_gpu
def test_the_kernel_keeps_the_sum_and_the_grid():
    buffer = torch.full((4097,), 1 / 3, device="cuda")
    scales = scales_for(noise=1.0, clip=torch.tensor(1.0, device="cuda"), dimension=4097)
    StepNoise().add_(buffer, scales, divide=1.0)
    cells = buffer.double() / float(scales.cell)
    assert torch.equal(cells, cells.round())
    assert abs(float(buffer.mean()) - 1 / 3) < 0.2

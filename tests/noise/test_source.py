# SPDX-License-Identifier: Apache-2.0
"""Random words: uniform, never shared between threads, forks or processes, never seeded by accident."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from scipy import stats

from discreet import testing
from discreet.noise import integer, source
from tests.chance import may_fail, no_chance
from tests.processes import run_threads
from tests.statistical.constants import ALPHA


def same_word(count):
    """How likely it is, at most, that two of so many uniform words are the same."""
    return math.comb(count, 2) / 2**64


FRESH = no_chance("no word is looked at")


def words(count=64):
    return source.current().words(count).tolist()


def in_child(work):
    """What `work` returns in a forked child: a list of integers below 2**64."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, np.array(work(), np.uint64).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = np.frombuffer(pipe.read(), np.uint64).tolist()
    os.waitpid(child, 0)
    return answer


def all_differ(*draws):
    together = [word for draw in draws for word in draw]
    return len(set(together)) == len(together) and all(draws)


@may_fail(ALPHA, "each of 64 bits has two tails")
def test_every_bit_of_a_word_is_fair():
    drawn, most = source.current().words(100_000), stats.binom.isf(ALPHA / 128, 100_000, 0.5)
    for place in range(64):
        ones = int(((drawn >> np.uint64(place)) & np.uint64(1)).sum())
        assert 100_000 - most <= ones <= most, place


@may_fail(same_word(2 * 70_000), "two words agree")
@pytest.mark.parametrize("count", [1, 7, 1024, 1025, 5000, 70_000])
def test_words_are_fresh_whatever_is_asked_for(count):
    draws = [source.current().words(count) for _ in range(2)]
    assert all(draw.shape == (count,) and draw.dtype == np.uint64 for draw in draws)
    assert all_differ(*(draw.tolist() for draw in draws))


@FRESH
def test_no_words_are_no_words():
    assert source.current().words(0).size == 0
    assert source.current().bits(0) == 0


@may_fail(8 / 2**64, "one of eight words is zero")
def test_the_caller_may_overwrite_what_it_was_given():
    first = source.current().words(8)
    first[:] = 0
    assert 0 not in words(8)


@may_fail(same_word(4 * 64), "two words agree")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_does_not_repeat_its_parent_or_its_twin():
    before = words()  # the generator is warm, its block half used
    assert all_differ(before, in_child(words), in_child(words), words())


@may_fail(same_word(3 * 64), "two words agree")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_grandchild_repeats_nobody():
    words()
    family = in_child(lambda: words() + in_child(words))
    assert len(family) == 128
    assert all_differ(family, words())


@may_fail(same_word(2 * 8), "two words agree")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_that_python_did_not_see_is_noticed(monkeypatch):
    fresh = source.SystemSource()
    first = fresh.words(8).tolist()
    stream = fresh._local.stream
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert all_differ(first, fresh.words(8).tolist())
    assert fresh._local.stream is not stream


@may_fail(same_word(8 * 1_000), "two words agree")
def test_threads_draw_independent_words():
    found, start = [], threading.Barrier(8)

    def draw():
        start.wait()
        found.append([word for _ in range(50) for word in words(20)])

    run_threads(*[draw] * 8)
    assert len(found) == 8
    assert all_differ(*found)


@FRESH
def test_a_thread_has_a_generator_of_its_own():
    shared, streams = source.SystemSource(), []

    def draw():
        shared.words(1)
        streams.append(shared._local.stream)

    run_threads(draw)
    draw()
    assert streams[0] is not streams[1]


@may_fail(6 * (1 / 2e9) ** 64, "two of four lists of 64 draws agree; no draw has more mass")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_draw_independent_noise(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    words()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        noises = list(pool.map(integer.discrete_laplace, [1e9] * 4, [64] * 4))
    assert len({tuple(noise.tolist()) for noise in noises}) == 4


def test_a_seed_repeats_and_says_so():
    assert source.is_private()
    with testing.seeded(7):
        assert not source.is_private()
        first = integer.rounded_gaussian(100.0, 50)
    with testing.seeded(7):
        second = integer.rounded_gaussian(100.0, 50)
    with testing.seeded(8):
        other = integer.rounded_gaussian(100.0, 50)
    assert source.is_private()
    assert (first == second).all()
    assert (first != other).any()


def test_a_seed_ends_with_its_block_even_after_an_error():
    with pytest.raises(ZeroDivisionError), testing.seeded(1):
        _ = 1 / 0
    assert source.is_private()


def test_a_thread_does_not_inherit_a_seed():
    found = []
    with testing.seeded(1):
        run_threads(lambda: found.append(source.is_private()))
    assert found == [True]


def test_a_script_is_read_in_order_and_ends():
    scripted = testing.ScriptedSource([1, 0, 1], words=[5])
    assert [scripted.bits(1), scripted.bits(2), int(scripted.words(1)[0])] == [1, 1, 5]
    with pytest.raises(testing.ScriptEnded):
        scripted.bits(1)


def test_bits_are_the_leading_bits_of_words():
    with testing.seeded(3) as seeded:
        word = int(seeded.words(1)[0])
    with testing.seeded(3) as seeded:
        assert seeded.bits(10) == word >> 54

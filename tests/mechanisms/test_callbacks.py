# SPDX-License-Identifier: Apache-2.0
"""A caller's function on records: nothing it raises comes back, and a real interruption still ends the call."""

from __future__ import annotations

import signal
import threading
import traceback
import warnings

import pytest

from discreet.mechanisms import queries
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from tests.mechanisms.odd import ERRORS, SECRET


def raising(error):
    def function(record):
        raise error(f"{SECRET}: {record}")

    return function


def interrupting(record):
    try:
        raise ValueError(SECRET)
    except ValueError:
        signal.raise_signal(signal.SIGINT)
    return record


def wrapping(record):
    try:
        return interrupting(record)
    except BaseException as error:
        raise RuntimeError(SECRET) from error


def swallowing(record):
    try:
        return interrupting(record)
    except BaseException:  # noqa: BLE001 - the point
        return record


@pytest.mark.parametrize("error", ERRORS)
def test_nothing_that_a_function_raises_comes_back(error):
    assert call_quietly(raising(error), 7) is None
    assert call_quietly(raising(error), 7, instead=0) == 0
    with callback_guard():
        assert call_quietly(raising(error), 7) is None


@pytest.mark.parametrize("error", ERRORS)
def test_nothing_comes_back_in_another_thread(error):
    found = []
    thread = threading.Thread(target=lambda: found.append(call_quietly(raising(error), 7, instead="nothing")))
    thread.start()
    thread.join()
    assert found == ["nothing"]


@pytest.fixture(autouse=True)
def interruptible():
    """As in a program: whoever runs tests in several processes may have told them to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("function", [interrupting, wrapping, swallowing])
@pytest.mark.parametrize("nested", [False, True])
def test_a_real_interruption_ends_the_call_without_the_record(function, nested):
    def call():
        if not nested:
            return call_quietly(function, SECRET)
        with callback_guard():
            return [call_quietly(function, SECRET) for _ in range(3)]

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped:
        call()
    assert stopped.value.__context__ is None
    assert stopped.value.__cause__ is None
    frames = [frame.name for frame in traceback.extract_tb(stopped.value.__traceback__)]
    assert function.__name__ not in frames
    assert signal.getsignal(signal.SIGINT) is before
    assert call_quietly(len, "abc") == 3


def test_the_handler_of_a_program_decides_how_it_stops():
    def leave(number, frame):
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit) as stopped:
            call_quietly(lambda: signal.raise_signal(signal.SIGTERM))
        assert stopped.value.code == 143
        assert signal.getsignal(signal.SIGTERM) is leave
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_that_only_takes_note_stops_nothing():
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, _: noted.append(number))
    try:
        assert call_quietly(lambda: signal.raise_signal(signal.SIGTERM) or 5) == 5
        assert noted == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interruption_between_calls_ends_them_too():
    with pytest.raises(KeyboardInterrupt), callback_guard():
        signal.raise_signal(signal.SIGINT)
    assert call_quietly(len, "abc") == 3


def test_warnings_are_not_shown():
    def warning(record):
        warnings.warn(SECRET, stacklevel=1)
        return record

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert call_quietly(warning, 3) == 3
        warnings.warn("outside", stacklevel=1)
    assert [str(one.message) for one in shown] == ["outside"]


@pytest.mark.parametrize("error", ERRORS)
def test_a_question_that_ends_the_program_on_one_record_is_answered(error):
    """The attack: sys.exit(text of the record) in a predicate."""

    def predicate(record):
        if record == 3:
            raise error(f"{SECRET}: {record}")
        return True

    count = queries.count(predicate).geometric(scale=2.0**-40)
    assert count(range(10)).value == 9

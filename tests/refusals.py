# SPDX-License-Identifier: Apache-2.0
"""The error that a call ends with."""

from __future__ import annotations

import pytest

from discreet.errors import DiscreetError


def refusal(call, *arguments, **named):
    with pytest.raises(DiscreetError) as caught:
        call(*arguments, **named)
    return caught.value


def assert_refused(code, call, *arguments, **named):
    """It has this code."""
    error = refusal(call, *arguments, **named)
    assert error.code == code, str(error)
    return error

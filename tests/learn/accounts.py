# SPDX-License-Identifier: Apache-2.0
"""What stands for a session: it remembers what it was asked to pay, or refuses."""

from __future__ import annotations

from typing import Any

from discreet.errors import OverBudget


class Account:
    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.paid: list[tuple[Any, str]] = []

    def charge(self, guarantee: Any, *, question: str) -> str:
        if self.refuses:
            raise OverBudget("DP601", "too much.", why="limit", fix="less")
        self.paid.append((guarantee, question))
        return "receipt"

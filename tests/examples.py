"""How many examples a property is tried with: what a person waits for, or many new ones: LOADBENCH_TESTS=thorough."""

import os
from typing import Final

THOROUGH: Final = os.environ.get("LOADBENCH_TESTS") == "thorough"


def examples(quick: int) -> int:
    """`quick`, or twenty times as many."""
    return quick * 20 if THOROUGH else quick

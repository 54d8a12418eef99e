"""How many examples a property is tried with: LOADBENCH_TESTS=thorough for a night, else what a person waits for."""

import os
from typing import Final

THOROUGH: Final = os.environ.get("LOADBENCH_TESTS") == "thorough"


def examples(quick: int) -> int:
    """`quick`, or twenty times as many."""
    return quick * 20 if THOROUGH else quick

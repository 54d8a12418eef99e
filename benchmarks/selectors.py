"""What it costs to look into a message: a profile's selectors and conditions, compiled, beside the jmespath library.

Microseconds for one evaluation on a decoded message of about 1 kB, the least of several rounds: what else the machine
does can only add. The results of both are compared first. The aim is 1 microsecond for a path or an equality.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import jmespath

from benchmarks.table import table
from loadbench.session.select import compile_condition, compile_selector

WORD = {"word": "departure", "start": 12.48, "end": 12.96, "confidence": 0.9921875, "punctuated_word": "Departure"}
MESSAGE: dict[str, Any] = {
    "type": "Results",
    "channel_index": [0, 1],
    "duration": 1.04,
    "start": 12.4,
    "is_final": False,
    "channel": {"alternatives": [{"transcript": "departure from gate four", "confidence": 0.98, "words": [WORD] * 7}]},
    "metadata": {"request_id": "52cc0efe-fa77-4aa7-b79c-0dda09de2f14", "model": "general"},
}
AIM_US = 1.0
# what it is, the expression, and whether the aim is for it
CASES = [
    ("a key", "type", True),
    ("a path", "channel.alternatives[0].transcript", True),
    ("an equality", "type == 'Results'", True),
    ("an equality at the end of a path", "channel.alternatives[0].transcript == 'x'", True),
    ("two conditions", "type == 'Results' && is_final", False),
    ("seven words, joined", "join(' ', channel.alternatives[0].words[?confidence > `0.5`].word)", False),
]


def measure(rounds: int, evaluations: int) -> str:
    """The table."""
    rows = []
    for name, expression, aimed in CASES:
        ours, theirs = compile_selector(expression), jmespath.compile(expression)
        if ours(MESSAGE) != theirs.search(MESSAGE):
            raise AssertionError(f"{expression} gives {ours(MESSAGE)!r}, and the library {theirs.search(MESSAGE)!r}")
        mine_us, library_us = (_least_us(call, rounds, evaluations) for call in (ours, theirs.search))
        verdict = "" if not aimed else "met" if mine_us <= AIM_US else "missed"
        rows.append([name, f"`{expression}`", f"{mine_us:.3f}", f"{library_us:.2f}", verdict])
    fits_us = _least_us(compile_condition("channel", "type == 'Results'"), rounds, evaluations)
    rows.append(["a rule's condition", "`has: channel`, `match: type == 'Results'`", f"{fits_us:.3f}", "-", ""])
    size = len(json.dumps(MESSAGE))
    head = ["what", "expression", "compiled, µs", "jmespath, µs", f"aim, {AIM_US:g} µs"]
    return f"A message of {size} bytes, decoded.\n\n{table(head, rows)}"


def _least_us(call: Callable[[Any], Any], rounds: int, evaluations: int) -> float:
    best_ns = float("inf")
    for _ in range(rounds):
        begun_ns = time.perf_counter_ns()
        for _ in range(evaluations):
            call(MESSAGE)
        best_ns = min(best_ns, (time.perf_counter_ns() - begun_ns) / evaluations)
    return best_ns / 1000

"""What is beyond hope, and when that may be said."""

import pytest

from loadbench.analysis.broken import broken
from loadbench.analysis.judge import Judge
from loadbench.results.slo import Slo
from tests.analysis import records

P95 = Slo(metric="final_from_source_end", stat="p95", limit=2.0)
MAX = Slo(metric="final_from_source_end", stat="max", limit=2.0)
DONE = Slo(metric="completed", stat="min_share", limit=0.99)
WER = Slo(metric="wer", stat="max", limit=0.2)


def level(slow: int, n: int, failed: int = 0) -> Judge:
    quick = [records.answered(f"q{number}", 0.5) for number in range(n - slow - failed)]
    late = [records.answered(f"s{number}", 3.0) for number in range(slow)]
    lost = [records.unanswered(f"f{number}", "no_final", ended=9.0) for number in range(failed)]
    judge = Judge(records.header())
    for item in (*quick, *late, *lost):
        judge.add(item)
    return judge


@pytest.mark.parametrize(
    ("slow", "n", "hopeless"),
    [
        (19, 19, False),  # a bad second at the start
        (20, 20, True),
        (5, 20, False),  # at least 0.045 with 99.9 % confidence
        (6, 20, True),  # at least 0.066
        (10, 200, False),
        (24, 200, True),
    ],
)
def test_what_is_beyond_hope_is_so_with_99_9_percent_and_20_at_risk(slow: int, n: int, hopeless: bool) -> None:
    sentence = broken(level(slow, n), [P95], "transcript")
    assert (sentence is not None) == hopeless


def test_the_sentence_of_what_is_beyond_hope_names_the_objective_and_its_counts() -> None:
    assert broken(level(0, 40, failed=8), [P95, DONE], "transcript") == (
        "final_from_source_end.p95_s cannot be met any more: 8 of 40 took longer than 2 s or failed,"
        " and 0.05 of all may"
    )
    assert broken(level(0, 40, failed=8), [DONE], "transcript") == (
        "completed.min_share cannot be met any more: 8 of 40 failed, and 0.01 of all may"
    )
    assert broken(level(1, 40), [MAX], "transcript") == (
        "final_from_source_end.max cannot be met any more: 1 of 40 took longer than 2 s or failed, and 0 of all may"
    )
    assert broken(level(0, 400), [P95, DONE, MAX, WER], "transcript") is None

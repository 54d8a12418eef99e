"""The command line of the measurements: what it takes, and what it says of the rest."""

import pytest

from benchmarks.__main__ import PARTS, parser


def test_the_words_of_each_part_are_understood() -> None:
    for _, _, full, small in PARTS:
        for words in filter(None, (full, small)):
            assert parser().parse_args(words.split()).what == words.split()[0]
    assert parser().parse_args(["floor", "W1:20", "W3:5"]).cases == [("W1", 20), ("W3", 5)]
    asked = parser().parse_args(["peers", "--search=", "--workloads", "W1"])
    assert (asked.search, asked.workloads) == ([], ["W1"])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["floor", "W1:x"], "must be a whole number from 1, not 'x'"),
        (["floor", "W1"], "must be a whole number from 1, not ''"),
        (["floor", "W9:5"], "no workload is called 'W9'; there are W1, W2, W3"),
        (["floor", ":5"], "no workload is called '?'"),
        (["floor", "--repeats", "0"], "must be a whole number from 1, not '0'"),
        (["stamps", "0"], "must be a whole number from 1, not '0'"),
        (["growth", "--seconds", "nan"], "must be seconds above 0, not 'nan'"),
        (["peers", "--workloads", "W1,"], "no workload is called ''"),
    ],
)
def test_what_cannot_be_measured_is_usage(capsys: pytest.CaptureFixture[str], words: list[str], part: str) -> None:
    with pytest.raises(SystemExit) as left:
        parser().parse_args(words)
    assert left.value.code == 2
    assert part in capsys.readouterr().err

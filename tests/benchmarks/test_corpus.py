"""The cost of a long corpus is measured on commands that did what they were asked."""

from benchmarks import corpus


def test_each_command_has_its_time_its_memory_and_its_output() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in corpus.measure(50).splitlines()[2:]]
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("import", "", "0"),
        ("first 20 clips", "50", "0"),
        ("check --no-media", "50", "9"),
        ("check --no-media, all broken", "50", "26"),
    ]
    assert all(float(row[2]) > 0 and float(row[4]) > 1 for row in rows)

"""Thousands of sentences stay readable."""

from loadbench.corpus.findings import KINDS, SHOWN, Findings


def test_of_each_kind_the_first_are_shown_and_the_others_counted() -> None:
    found = Findings()
    for n in range(4332):
        found.add(f"m.jsonl:{n}", f"no such file: /audio/{n}.wav", f"c{n}")
    found.add("m.jsonl:9", "clip c9: text is not in Unicode form NFC", "c9")
    lines = found.lines()
    assert found.count == 4333
    assert len(lines) == SHOWN + 2
    assert lines[0] == "m.jsonl:0: no such file: /audio/0.wav"
    assert lines[SHOWN] == "m.jsonl:9: clip c9: text is not in Unicode form NFC"
    assert lines[-1] == "and 4,312 more like this: no such file: ..."


def test_ids_paths_numbers_and_quotes_do_not_make_another_kind() -> None:
    found = Findings()
    for n in range(SHOWN + 1):
        name = "abc"[n % 3] * (n + 1)
        found.add("m:1", f"duplicate id {name}, first at line {n}", name)
        found.add("m:1", f"clip {name}: {name}.wav has {n} channels: choose one", name)
        found.add("m:1", f"fps must be a rate, not {'x' * n!r}")
    assert [line for line in found.lines() if line.startswith("and ")] == [
        "and 1 more like this: duplicate id ... first",
        "and 1 more like this: ... has ... channels:",
        "and 1 more like this: fps must be a",
    ]


def test_memory_is_bounded_by_kinds_too() -> None:
    found = Findings()
    for n in range(1000):
        word = "".join(chr(97 + int(digit)) for digit in str(n))
        for _ in range(2):
            found.add("m:1", f"{word} is odd")
    assert found.count == 2000
    assert len(found.lines()) == 2 * KINDS + SHOWN + 1
    assert found.lines()[-1] == f"and {2 * (1000 - KINDS) - SHOWN:,} more like this: other"


def test_the_whole_is_kept_for_programs() -> None:
    found = Findings(whole=True)
    for n in range(100):
        found.add(f"m:{n}", "no such file: a")
    assert found.lines() == [f"m:{n}: no such file: a" for n in range(100)]
    assert found
    assert not Findings()

"""Alignments: the fewest errors, the most likeness, and who owns what lies between."""

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis import alignment
from loadbench.analysis.alignment import Place, levenshtein, segments_by_error, segments_by_likeness

ITEMS = st.lists(st.sampled_from("abcd"), max_size=14)


def distance(left: list[str], right: list[str]) -> int:
    row = list(range(len(right) + 1))
    for at, one in enumerate(left, 1):
        above, row = row, [at]
        for column, other in enumerate(right):
            row.append(min(above[column] + (one != other), above[column + 1] + 1, row[-1] + 1))
    return row[-1]


def errors(reference: list[str], hypothesis: list[str], places: list[Place]) -> int:
    pairs = [(place.behind - 1, at) for at, place in enumerate(places) if place.paired]
    wrong = sum(reference[left] != hypothesis[right] for left, right in pairs)
    return wrong + len(reference) + len(hypothesis) - 2 * len(pairs)


@given(ITEMS, ITEMS)
def test_an_alignment_has_as_few_errors_as_there_can_be_and_goes_forward(left: list[str], right: list[str]) -> None:
    places = levenshtein(left, right)
    assert len(places) == len(right)
    assert errors(left, right, places) == distance(left, right)
    behind = [place.behind for place in places]
    assert behind == sorted(behind)
    paired = [place.behind for place in places if place.paired]
    assert len(paired) == len(set(paired))


@given(ITEMS, ITEMS)
def test_arrays_and_lists_find_the_same_alignment(left: list[str], right: list[str]) -> None:
    assert alignment._many(left, right) == alignment._few(left, right)


def test_of_equal_alignments_the_one_that_pairs_last_things_with_last_things_is_taken() -> None:
    assert levenshtein(["a", "b", "a"], ["a"]) == [Place(1, True)]
    assert alignment._few(["x", "a", "a"], ["a"]) == [Place(3, True)]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=3),
       st.lists(st.sampled_from("abcd"), max_size=6))  # fmt: skip
def test_no_other_cut_of_the_text_has_fewer_word_errors(reference: list[list[str]], hypothesis: list[str]) -> None:
    owners = segments_by_error(reference, hypothesis)
    assert owners == sorted(owners)
    parts = [
        [text for text, owner in zip(hypothesis, owners, strict=True) if owner == at] for at in range(len(reference))
    ]
    inner = len(reference) - 1
    best = min(
        sum(distance(part, hypothesis[low:high])
            for part, low, high in zip(reference, (0, *cuts), (*cuts, len(hypothesis)), strict=True))
        for cuts in combinations_with_replacement(range(len(hypothesis) + 1), inner)
    )  # fmt: skip
    assert sum(map(distance, reference, parts)) == best


LIKENESS = [
    # reference sentences, hypothesis -> owners
    ([["the", "cat"], ["it", "was"]], "the cat it was", [0, 0, 1, 1]),
    ([["the", "cat"], ["it", "was"]], "The CAT It Was", [0, 0, 1, 1]),  # case does not count
    ([["the", "cat"], ["it", "was"]], "the cat sat it was", [0, 0, 0, 1, 1]),  # more like "cat" than like "it"
    ([["the", "cat"], ["wasp"]], "the cat saw wasp", [0, 0, 1, 1]),  # more like "wasp"
    ([["the", "cat", "."], ["it"]], "the cat it", [0, 0, 1]),
    ([["."], ["it"]], "oh . it", [0, 0, 1]),  # nothing before it, and it is not lost
    ([["a"]], "", []),
]


@pytest.mark.parametrize(("reference", "hypothesis", "owners"), LIKENESS)
def test_words_go_to_the_sentence_that_softsegmenter_gives_them(
    reference: list[list[str]], hypothesis: str, owners: list[int]
) -> None:
    assert segments_by_likeness(reference, hypothesis.split()) == owners


def test_a_long_recording_is_cut_right_with_rows_kept_here_and_there_only() -> None:
    reference = [[f"w{number}", f"v{number % 7}", f"u{number % 3}"] for number in range(150)]
    hypothesis = [text for at, part in enumerate(reference) for text in part if at % 5 or text[0] != "v"]
    owners = [at for at, part in enumerate(reference) for text in part if at % 5 or text[0] != "v"]
    assert segments_by_error(reference, hypothesis) == owners
    assert segments_by_likeness(reference, hypothesis) == owners


def test_without_a_reference_nothing_is_owned() -> None:
    assert segments_by_error([], ["a"]) == segments_by_likeness([], ["a"]) == []

"""When the units of a text were shown, stable and final, and how long after their source."""

import pytest

from loadbench.analysis.words import Spoken, lags, spoken, units
from loadbench.results.record import Channel, ClipFacts, Update
from loadbench.results.reference import Unit
from tests.analysis.timelines import MAT, T1, WORDS, ms, shows


def test_the_words_of_fixture_t1_have_the_lags_of_its_table() -> None:
    found = units(T1, "word")
    assert found.texts == list(WORDS)
    assert [at / 1e6 for at in found.stable_ns] == [1140, 1820, 2350, 3010, 4310, 4310]
    assert found.shown_ns == found.stable_ns
    assert [at and at / 1e6 for at in found.final_ns] == [2350, 2350, 2350, 4310, 4310, 4310]
    told = lags(found, spoken(MAT, "transcript", "word"), 0)
    assert [span / 1e9 for span in told.stable_ns] == pytest.approx([0.39, 0.72, 0.75, 0.71, 1.76, 1.11], abs=1e-6)
    assert sum(told.stable_ns) / 6e9 == pytest.approx(0.906667, abs=1e-6)
    assert [span and span / 1e9 for span in told.final_ns] == pytest.approx([1.6, 1.25, 0.75, 2.01, 1.76, 1.11])
    assert (told.spare, told.missed) == (0, 0)


TIMELINES: list[tuple[Unit, str, list[str], list[int], list[int], list[int | None]]] = [
    # unit, "ms:text|unsettled" -> texts, shown, stable, final
    ("word", "1:ca 2:cat", ["cat"], [2], [2], [None]),  # a word that grew is another word
    ("word", "1:|cat 2:cat|", ["cat"], [1], [1], [2]),
    ("word", "1:|cat 2:ca|t 3:cat|", ["cat"], [1], [1], [3]),  # half of it final is not final
    ("word", "1:|cat_sit_on 2:cat_sat_on_it|", ["cat", "sat", "on", "it"], [1, 2, 1, 2], [1, 2, 2, 2], [2] * 4),
    ("word", "1:cat_sat 2:the_cat_sat", ["the", "cat", "sat"], [2, 1, 1], [2, 2, 2], [None] * 3),  # pushed along
    ("word", "1:a_b 2:a 3:a_b", ["a", "b"], [1, 3], [1, 3], [None] * 2),  # gone, and back
    ("word", "1:a| 2:b|", ["b"], [2], [2], [2]),  # taken back though it was final
    ("char", "1:今 2:今天 3:今天_好|", ["今", "天", "好"], [1, 2, 3], [1, 2, 3], [3] * 3),
    ("gloss", "1:我 2:我_学校|", ["我", "学校"], [1, 2], [1, 2], [2, 2]),
    ("word", "1:_ 2:__", [], [], [], []),
]


@pytest.mark.parametrize(("unit", "timeline", "texts", "shown", "stable", "final"), TIMELINES)
def test_units_have_the_times_of_the_messages_that_made_them(
    unit: Unit, timeline: str, texts: list[str], shown: list[int], stable: list[int], final: list[int | None]
) -> None:
    found = units(shows(timeline), unit)
    assert found == (texts, ms(shown), ms(stable), ms(final))


def test_a_service_that_says_all_of_its_text_again_each_time_has_the_same_times() -> None:
    """Whether an update keeps what is the same, or says it anew, is the recorder's choice."""
    texts = ["the", "the cat sit", "the cat sat", "the cat sat on", "the cat sat on a", "the cat sat on the mat"]
    whole = [Update(at, 0, text, 0) for at, text in enumerate(texts)]
    short, before = [], ""
    for at, text in enumerate(texts):
        keep = next(
            (k for k, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(map(len, (before, text)))
        )
        short.append(Update(at, keep, text[keep:], 0))
        before = text
    for unit in ("word", "char"):
        assert units(Channel(updates=whole), unit) == units(Channel(updates=short), unit)


def facts(**changes: object) -> ClipFacts:
    known = {"id": "a", "direction": "speech2text", "duration_s": 4.0, "source_lang": "en", "target_lang": "en"}
    return ClipFacts(**(known | changes))  # type: ignore[arg-type]


def test_only_units_that_match_count_and_the_others_are_told() -> None:
    found = units(shows("1:the_cat_sat 2:Well,_the_cat_sit."), "word")
    source = [Spoken(text, 1_000_000 * at) for at, text in enumerate(("the", "cat", "sat", "down"))]
    told = lags(found, source, 0)
    assert told.ends_ns == [0, 1_000_000]
    assert told.stable_ns == [2_000_000, 1_000_000]
    assert told.shown_ns == [1_000_000, 0], "they were there, and were pushed along"
    assert (told.spare, told.missed) == (2, 2)


def test_case_and_punctuation_do_not_count() -> None:
    told = lags(units(shows("1:“Straße”_—_gut!"), "word"), [Spoken("strasse", 0), Spoken("gut", 0)], 0)
    assert (len(told.ends_ns), told.spare, told.missed) == (2, 0, 0)


def test_a_word_that_came_before_it_was_said_has_a_negative_lag() -> None:
    assert lags(units(shows("1:cat"), "word"), [Spoken("cat", 3_000_000)], 0).stable_ns == [-2_000_000]


def test_the_times_of_the_source_are_those_of_words_or_signs_and_of_nothing_else() -> None:
    word = [{"w": "今天,", "start": 0.1, "end": 0.5}]
    sign = [{"gloss": "学校", "start": 0.1, "end": 0.7}]
    both = facts(words=word, gloss_spans=sign, direction="sign2spoken")
    assert spoken(both, "transcript", "char") == [Spoken("今", 500_000_000), Spoken("天", 500_000_000)]
    assert spoken(both, "gloss", "gloss") == [Spoken("学校", 700_000_000)]
    assert spoken(both, "text", "word") == []
    assert spoken(facts(gloss_spans=sign, direction="spoken2sign"), "gloss", "gloss") == [], "signs to be made"

"""What an output is held against."""

from loadbench.results.record import ClipFacts, Sentence
from loadbench.results.reference import references, sentences

ONE = Sentence(offset=0.0, duration=1.0, transcript="a red boat", gloss=["A", "B"])
TWO = Sentence(offset=1.0, duration=1.0, transcript="leaves at nine", gloss=["C"])
KNOWN = {"id": "a", "direction": "speech2text", "duration_s": 2.0, "source_lang": "en", "target_lang": "en"}


def test_a_recording_without_a_reference_of_its_own_has_that_of_its_sentences() -> None:
    facts = ClipFacts(**KNOWN, segments=[ONE, TWO])
    assert references(facts, "transcript") == ["a red boat leaves at nine"]
    assert references(facts, "gloss") == ["A B C"]
    assert references(facts, "text") == []
    assert sentences(facts, "gloss") == [(ONE, "A B"), (TWO, "C")]
    assert references(ClipFacts(**KNOWN, segments=[ONE, TWO], transcript="whole"), "transcript") == ["whole"]


def test_one_sentence_without_a_reference_leaves_none_of_them() -> None:
    silent = Sentence(offset=2.0, duration=1.0)
    assert sentences(ClipFacts(**KNOWN, segments=[ONE, silent]), "transcript") == []
    assert references(ClipFacts(**KNOWN, segments=[ONE, silent]), "transcript") == []

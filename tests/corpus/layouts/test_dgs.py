"""The Public DGS Corpus: a clip a sentence with its timed signs, and ELAN files that mean harm or refer to nothing."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layouts.dgs import parsed
from tests.corpus import made
from tests.corpus.layouts.reads import clips, refused, troubles
from tests.corpus.made import eaf, written

GERMAN, ENGLISH, SIGNS = "Deutsche_Übersetzung_A", "Translation_into_English_A", "Lexem_Gebärde_r_A"


def test_a_sentence_is_a_clip_with_the_signs_of_both_hands(tmp_path: Path) -> None:
    """Times are milliseconds of the video; spans count from the sentence; a sign of two hands is one gloss."""
    path = made.dgs(tmp_path)
    first, second, third = clips("dgs", path)
    assert first == Clip(
        id="1000001_A_0001",
        direction="sign2spoken",
        tracks=(Track("video", path / "1000001_1a1.mp4", offset_s=Fraction(1, 5), duration_s=Fraction(3, 5)),),
        source_lang="gsg",
        target_lang="de",
        gloss=("BOOT1A^", "FAHREN2", "$INDEX1"),
        gloss_spans=(
            {"gloss": "BOOT1A^", "start": 0.04, "end": 0.2, "hand": "r"},
            {"gloss": "BOOT1A^", "start": 0.04, "end": 0.2, "hand": "l"},
            {"gloss": "FAHREN2", "start": 0.24, "end": 0.5, "hand": "r"},
            {"gloss": "$INDEX1", "start": 0.3, "end": 0.44, "hand": "l"},
        ),
        text="Das Boot fährt.",
        speaker="1000001_A",
        extra={"mouth": [{"value": "boot", "start": 0.04, "end": 0.18}]},
        source=str(path / "1000001.eaf"),
        line=30,
    )
    assert (second.id, second.text, second.gloss) == ("1000001_A_0002", "Ja & nein.", ("JA1",))
    assert (third.id, third.text, third.speaker) == ("1000001_B_0001", "Gut.", "1000001_B")
    assert third.tracks[0].path == path / "1000001_1b1.mp4"
    assert troubles("dgs", path) == []


def test_in_english_the_sentences_are_those_of_the_english_tier(tmp_path: Path) -> None:
    first, second = clips("dgs", made.dgs(tmp_path), target_lang="en")
    assert (first.text, first.gloss, first.target_lang, first.tracks[0].duration_s) == (
        "The boat leaves, yes and no.",
        ("BOOT1A^", "FAHREN2", "$INDEX1", "JA1"),
        "en",
        Fraction(4, 5),
    )
    assert (second.text, second.gloss) == ("Good.", ("GUT1",))


def document(folder: Path, tiers: dict[str, Any], **said: str) -> Path:
    written(folder / "a.eaf", eaf(tiers, **said))
    return folder


def test_an_annotation_on_another_one_has_its_times_and_a_dangling_one_is_told(tmp_path: Path) -> None:
    tiers = {
        GERMAN: [(100, 900, "Ja.")],
        ENGLISH: [("a1", "Yes."), ("a99", "No."), ("a5", "Circle."), ("a4", "Circle.")],
        SIGNS: [(200, 300, "JA1")],
    }
    path = document(tmp_path, tiers)
    file, where = "a.eaf:1", "references lead nowhere, and what they time is left out"
    dangling = f"{file}: warning: 3 {where}: a3 refers to a99; a5 refers to a4; a4 refers to a5"
    assert troubles("dgs", path) == [dangling]
    assert [(clip.text, clip.gloss) for clip in clips("dgs", path)] == [("Ja.", ("JA1",))]
    assert troubles("dgs", path, target_lang="en") == [
        dangling,
        *(f"a.eaf:{line}: the sentence {said!r} has no time: None to None ms"
          for line, said in ((14, "No."), (15, "Circle."), (16, "Circle."))),
    ]  # fmt: skip


def test_time_slots_that_are_not_there_or_have_no_time_are_told(tmp_path: Path) -> None:
    tiers = {GERMAN: [(None, 900, "Ja."), (900, 900, "Nein."), (950, 990, "Gut.")], SIGNS: [(None, None, "JA1")]}
    written(tmp_path / "a.eaf", eaf(tiers).replace('TIME_SLOT_REF1="ts5"', 'TIME_SLOT_REF1="ts55"'))
    assert troubles("dgs", tmp_path) == [
        "a.eaf:1: warning: 1 references lead nowhere, and what they time is left out: a3 refers to ts55",
        "a.eaf:14: the sentence 'Ja.' has no time: None to 900 ms",
        "a.eaf:16: the sentence 'Gut.' has no time: None to 990 ms",
        "a.eaf:15: the sentence 'Nein.' has no time: 900 to 900 ms",
    ]


def test_signs_that_reach_over_the_ends_of_a_sentence_are_left_out_and_counted(tmp_path: Path) -> None:
    signs = [(50, 150, "A1"), (100, 200, "B1"), (350, 400, "C1"), (390, 450, "D1"), (400, 500, "E1"), (0, 900, "F1")]
    path = document(tmp_path, {GERMAN: [(100, 400, "Ja.")], SIGNS: [*signs, (210, 220, " ")]})
    (clip,) = clips("dgs", path)
    assert clip.gloss == ("B1", "C1")
    assert troubles("dgs", path) == ["a.eaf:22: warning: 3 signs reach over the ends of the sentence and are left out"]


def test_entities_are_refused_before_they_expand_and_the_next_document_is_read(tmp_path: Path) -> None:
    """A billion laughs, and an entity that names a file: neither is expanded, opened or fetched."""
    laughs = '<!DOCTYPE x [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    secret = written(tmp_path / "secret.txt", "do not read")
    outside = f'<!DOCTYPE x [<!ENTITY a SYSTEM "{secret.as_uri()}">]>'
    tiers = {GERMAN: [(100, 400, "Ja.")], SIGNS: []}
    for name, doctype in (("1", laughs), ("2", outside), ("3", "<!DOCTYPE x SYSTEM 'http://127.0.0.1:9/x.dtd'>")):
        written(tmp_path / f"{name}.eaf", eaf(tiers, doctype=doctype).replace("Ja.", "&a;"))
    document(tmp_path, tiers)
    refusal = "has a document type, which no ELAN file needs: refused, for what its entities might expand to"
    assert troubles("dgs", tmp_path) == [f"{name}.eaf:2: {refusal}" for name in "123"]
    written(tmp_path / "1.eaf", eaf(tiers).replace("Ja.", "&a;"))
    assert troubles("dgs", tmp_path)[0] == "1.eaf:8: not XML: undefined entity"


def test_what_is_no_elan_file_is_told_and_the_others_read(tmp_path: Path) -> None:
    written(tmp_path / "1.eaf", "<ANNOTATION_DOCUMENT>\n<TIER>")
    written(tmp_path / "2.eaf", "")
    (tmp_path / "3.eaf").mkdir()
    written(tmp_path / "4.eaf", eaf({SIGNS: [(0, 10, "A1")]}))
    written(tmp_path / "5.eaf", eaf({GERMAN: [(100, 400, "Ja.")]}))
    assert troubles("dgs", tmp_path) == [
        "1.eaf:2: not XML: no element found",
        "2.eaf:1: not XML: no element found",
        "3.eaf:1: Is a directory",
        "4.eaf:1: has no tier Deutsche_Übersetzung_A or Deutsche_Übersetzung_B",
    ]
    assert refused("dgs", tmp_path / "gone") == [".: holds no .eaf"]


def test_sentences_come_in_the_order_of_their_times_and_long_documents_in_pieces(tmp_path: Path) -> None:
    """Thousands of slots lie before the first tier; text that comes in pieces is joined."""
    sentences = [(n * 100, n * 100 + 90, f"Satz {n} <&> Ü") for n in reversed(range(3000))]
    path = document(tmp_path, {GERMAN: sentences, SIGNS: []})
    found = parsed(path / "a.eaf").tiers[GERMAN]
    assert (len(found), found[0].value, found[0].start_ms) == (3000, "Satz 2999 <&> Ü", 299_900)
    clip = clips("dgs", path)[4]
    assert (clip.id, clip.text, clip.tracks[0].offset_s) == ("a_A_0005", "Satz 4 <&> Ü", Fraction(2, 5))

import array
import json
import wave
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip
from loadbench.session.load import load_profile
from loadbench.simulator.answers import Answers

SIGNED = Clip("s", "sign2spoken", (), "ase", "en", gloss=("BOAT", "RED"), text="the red boat")
SPOKEN = Clip("t", "speech2text", (), "en", "en", transcript="the train leaves")


@pytest.mark.parametrize(
    ("profile", "channel", "clip", "expected"),
    [
        ("sign-frames-binary", "gloss", "s", "BOAT RED"),
        ("sign-frames-binary", "text", "s", "the red boat"),
        ("sign-frames-binary", "gloss", "t", "the train leaves"),  # no gloss: what there is
        ("vosk", "transcript", "t", "the train leaves"),
        ("vosk", "transcript", "unknown", "hello"),
        ("vosk", "transcript", None, "hello"),
    ],
)
def test_a_channel_says_the_reference_of_its_kind(profile: str, channel: str, clip: str | None, expected: str) -> None:
    answers = Answers(load_profile(profile), "hello", {"s": SIGNED, "t": SPOKEN}, {})
    assert answers.text(clip, channel) == expected


PAYLOADS = {"a": b"0000aaaa", "b": b"0000bbbb", "long": b"0000bbbbcc"}


@pytest.mark.parametrize(
    ("chunks", "over", "clip"),
    [
        ([b"0000"], False, None),  # all begin so
        ([b"0000", b"aa"], False, "a"),
        ([b"0000", b"bbbb"], False, None),  # may go on
        ([b"0000", b"bbbb"], True, "b"),
        ([b"0000", b"bbbb", b"cc"], True, "long"),
        ([b"0000", b"aa"], True, None),  # not the whole clip
        ([b"xxxx"], False, None),
    ],
)
def test_a_clip_is_known_again_by_its_bytes(chunks: list[bytes], over: bool, clip: str | None) -> None:
    recall = Answers(load_profile("vosk"), "", {}, PAYLOADS).hearing(None)
    for chunk in chunks:
        recall.hear(chunk)
    assert recall.clip(over=over) == clip


def test_a_clip_that_the_client_names_is_believed_if_it_is_known() -> None:
    answers = Answers(load_profile("vosk"), "", {"t": SPOKEN}, PAYLOADS)
    assert answers.hearing("t").clip(over=False) == "t"
    assert answers.hearing("elsewhere").clip(over=False) is None


def test_a_corpus_is_encoded_as_the_profile_sends_it(tmp_path: Path) -> None:
    samples = array.array("h", range(1600)).tobytes()
    with wave.open(str(tmp_path / "t.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples)
    clip = {"id": "t", "direction": "speech2text", "audio_filepath": "t.wav", "transcript": "the train leaves"}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(clip | {"source_lang": "en", "target_lang": "en"}) + "\n")
    answers = Answers.of(load_profile("vosk"), "hello", tmp_path / "manifest.jsonl", tmp_path / "cache")
    recall = answers.hearing(None)
    recall.hear(samples)
    assert answers.text(recall.clip(over=True), "transcript") == "the train leaves"

"""What files of output media are called, and how they begin."""

import io
import wave

import pytest

from loadbench.results.media import MediaOutput, ending, opening, stem


@pytest.mark.parametrize(
    ("session", "utterance", "channel", "name"),
    [
        ("w1-s0", 0, "speech", "w1-s0.speech"),
        ("w1-s0", 2, "speech", "w1-s0.u2.speech"),
        ("../../etc", 0, "speech:es/mx", "______etc.speech_es_mx"),  # a file's name, whatever a service calls a channel
    ],
)
def test_a_name_is_made_of_session_utterance_and_channel(session: str, utterance: int, channel: str, name: str) -> None:
    assert stem(session, utterance, channel) == name


@pytest.mark.parametrize(
    ("form", "head", "kind"),
    [
        ("s16le", b"", "wav"),
        ("alaw", b"", "wav"),
        ("jpeg", b"\xff\xd8", "mjpeg"),
        ("container", b"\x1aE\xdf\xa3\x01\0", "webm"),
        ("container", b"\0\0\0\x18ftypiso5", "mp4"),
        ("container", b"\0\0\0\x18moof", "mp4"),
        ("container", b"RIFF....WAVE", "wav"),
        ("container", b"OggS", "ogg"),
        ("container", b"x", "bin"),
    ],
)
def test_a_container_is_known_by_its_first_bytes(form: str, head: bytes, kind: str) -> None:
    assert ending(form, head) == kind


def test_a_wav_file_can_be_read_however_far_it_was_written() -> None:
    data = opening("s16le", 24000, 2) + bytes(range(12))
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 2, 2)
        assert file.readframes(100) == bytes(range(12))
    assert opening("jpeg", None, 1) == opening("container", None, 1) == b""
    assert opening("mulaw", 8000, 1)[20:24] == b"\7\0\1\0"


def test_the_first_output_is_what_can_be_heard_or_seen() -> None:
    known = {"format": "container", "first_byte_ns": 1, "first_frame_ns": 2, "first_sound_ns": 3}
    assert MediaOutput(medium="audio", **known).first_ns == 3
    assert MediaOutput(medium="video", **known).first_ns == 2

"""Any audio file becomes mono chunks of the profile's form, exact to the sample."""

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.corpus.clip import Track
from loadbench.media import audio
from loadbench.media.decode import MediaError
from loadbench.media.form import AudioForm
from loadbench.media.made import Made
from tests.examples import examples
from tests.media import making
from tests.media.making import THOUSANDS, wav

LIBRIVOX = Path("/usr/share/pocketsphinx/test/data/librivox")


def made_of(
    path: Path, rate: int = 16_000, kind: Any = "s16le", samples: int = 3200, tail_s: float = 0.0, **track: Any
) -> tuple[list[int], list[bytes], Made]:
    """Due times, payloads, and what was said at the end."""
    made = Made()
    rows = list(audio.chunks(Track("audio", path, **track), AudioForm(kind, rate, samples), tail_s, made))
    return [row[0] for row in rows], [row[2] for row in rows], made


def refused(path: Path, **track: Any) -> str:
    with pytest.raises(MediaError) as caught:
        made_of(path, **track)
    assert all(problem.startswith(str(path)) for problem in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize(("tag", "kind", "code"), [(6, "alaw", 0xFA), (7, "mulaw", 0xCE)])
def test_telephone_sound_passes_unchanged_in_its_own_coding_and_is_decoded_for_others(
    tmp_path: Path, tag: int, kind: str, code: int
) -> None:
    path = wav(tmp_path / "a.wav", bytes([code]) * 8000, tag=tag, rate=8000, bits=8)
    assert b"".join(made_of(path, 8000, kind)[1]) == bytes([code]) * 8000
    wide = np.frombuffer(b"".join(made_of(path, 16_000)[1]), "<i2")
    assert len(wide) == 16_000
    assert abs(int(wide[8000]) - 1000) < 16


@pytest.mark.parametrize(
    ("table", "sample", "code"),
    [
        (audio.MULAW, 0, 0xFF),
        (audio.MULAW, 1000, 0xCE),
        (audio.MULAW, 32767, 0x80),
        (audio.MULAW, -32768, 0x00),
        (audio.ALAW, 0, 0xD5),
        (audio.ALAW, 1000, 0xFA),
        (audio.ALAW, -1, 0x55),
        (audio.ALAW, 32767, 0xAA),
        (audio.ALAW, -32768, 0x2A),
    ],
)
def test_g711_codes_are_the_published_ones(table: Any, sample: int, code: int) -> None:
    assert table[sample + 32768] == code


@pytest.mark.parametrize(("table", "tag"), [(audio.MULAW, 7), (audio.ALAW, 6)])
def test_every_g711_code_comes_back_from_a_foreign_decoder(tmp_path: Path, table: Any, tag: int) -> None:
    path = wav(tmp_path / "a.wav", bytes(range(256)), tag=tag, rate=8000, bits=8)
    with av.open(str(path)) as file:
        levels = np.concatenate([frame.to_ndarray().ravel() for frame in file.decode(audio=0)])
    codes = [int(table[int(level) + 32768]) for level in levels]
    assert codes == [code if (tag, code) != (7, 0x7F) else 0xFF for code in range(256)]  # 0x7F is minus zero


def test_chunks_of_odd_length_are_due_when_their_last_sample_is_there_and_the_last_is_shorter(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", THOUSANDS[: 2 * 7001], rate=44_100)
    due, payloads, made = made_of(path, 44_100, samples=3000)
    assert [len(payload) // 2 for payload in payloads] == [3000, 3000, 1001]
    assert due == [68_027_211, 136_054_422, 158_752_835]  # n * 1e9 / 44100, rounded up
    assert made.duration_ns == due[-1]


def test_silence_of_the_end_script_follows_the_media_and_does_not_lengthen_it(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", THOUSANDS[: 2 * 4000])
    due, payloads, made = made_of(path, samples=3200, tail_s=0.25)
    assert [len(payload) // 2 for payload in payloads] == [3200, 800, 3200, 800]
    assert payloads[1] == THOUSANDS[:1600]
    assert set(payloads[2] + payloads[3]) == {0}
    assert due == [200_000_000, 250_000_000, 450_000_000, 500_000_000]
    assert made.duration_ns == 250_000_000


def test_silence_before_and_after_is_media_and_the_loudness_of_the_sound_stays(tmp_path: Path) -> None:
    quiet = np.array([1, -1, 2, 0] * 1000, "<i2").tobytes()
    made, track = Made(), Track("audio", wav(tmp_path / "a.wav", quiet))
    rows = list(audio.chunks(track, AudioForm("s16le", 16_000, 3200, lead_in_s=1.3, tail_s=0.1), 0.2, made))
    sound = b"".join(data for _, _, data in rows)
    assert sound == b"\0\0" * 20_800 + quiet + b"\0\0" * 1600 + b"\0\0" * 3200
    assert made.duration_ns == 1_650_000_000  # without the silence of the end script
    assert [len(data) // 2 for _, _, data in rows] == [3200] * 8 + [800, 3200]
    assert [rows[0][0], rows[8][0], rows[9][0]] == [200_000_000, 1_650_000_000, 1_850_000_000]


@pytest.mark.parametrize(("kind", "silence"), [("alaw", 0xD5), ("mulaw", 0xFF), ("s16le", 0), ("f32le", 0)])
def test_silence_is_silent_in_every_coding(tmp_path: Path, kind: str, silence: int) -> None:
    payload = made_of(wav(tmp_path / "a.wav", THOUSANDS), kind=kind, tail_s=0.1)[1][-1]
    assert set(payload) == {silence}


def test_two_channels_need_a_choice(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", struct.pack("<hh", 1000, 2000) * 16_000, channels=2)
    assert 'choose one with "channel": 0, or "channel": "mix"' in refused(path)
    for channel, level in ((0, 1000), (1, 2000), ("mix", 1500)):
        assert b"".join(made_of(path, channel=channel)[1]) == struct.pack("<h", level) * 16_000
    both = refused(path, channel=2, sample_rate=8000)
    assert "no channel 2, only 0 to 1" in both
    assert "16000 Hz, but sample_rate says 8000" in both


@pytest.mark.parametrize("samples", [44_100, 44_101, 30_001, 441])
def test_another_rate_keeps_length_and_time_to_a_sample(tmp_path: Path, samples: int) -> None:
    sound = np.zeros(samples, "<i2")
    sound[samples // 2] = 30_000
    path = wav(tmp_path / "a.wav", np.repeat(sound, 2).tobytes(), channels=2, rate=44_100)
    got = np.frombuffer(b"".join(made_of(path, channel=0)[1]), "<i2")
    assert abs(len(got) - samples * 16_000 / 44_100) <= 1
    assert abs(int(got.argmax()) - samples // 2 * 16_000 / 44_100) <= 1


def test_the_last_word_survives_resampling(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", making.tone(1.0, 44_100).tobytes(), rate=44_100)
    got = np.frombuffer(b"".join(made_of(path)[1]), "<i2").astype(float)
    wanted = making.tone(1.0).astype(float)
    assert np.abs(got[100:15_900] - wanted[100:15_900]).max() < 60
    assert np.abs(got[15_900:]).max() > 5000


@pytest.mark.parametrize(
    ("name", "codec", "tolerance"),
    [("a.flac", "flac", 0), ("a.m4a", "aac", 1500), ("a.mp3", "libmp3lame", 1500), ("a.aiff", "pcm_s16be", 0)],
)
def test_compressed_sound_has_neither_padding_nor_delay(tmp_path: Path, name: str, codec: str, tolerance: int) -> None:
    sound = making.tone(1.03)
    due, payloads, made = made_of(making.encoded(tmp_path / name, sound, codec))
    got = np.frombuffer(b"".join(payloads), "<i2")
    assert len(got) == len(sound)
    assert np.abs(got[3000:-800].astype(int) - sound[3000:-800]).max() <= tolerance
    assert made.duration_ns == due[-1] == 1_030_000_000


def test_a_segment_is_cut_to_the_sample(tmp_path: Path) -> None:
    sound = np.arange(16_000, dtype="<i2")
    path = wav(tmp_path / "a.wav", sound.tobytes())
    cut = {"offset_s": Fraction("0.10005"), "duration_s": Fraction("0.3")}
    due, payloads, made = made_of(path, samples=1000, **cut)
    assert np.frombuffer(b"".join(payloads), "<i2").tolist() == list(range(1601, 6401))
    assert due[-1] == made.duration_ns == 300_000_000
    assert "offset 1.5 s lies beyond its end at 1.000 s" in refused(path, offset_s=Fraction("1.5"))
    short = made_of(path, offset_s=Fraction("0.8"), duration_s=Fraction(1))[2]
    assert short.duration_ns == 200_000_000
    assert short.notes == [f"{path}: ends 0.800 s before the end of the declared segment"]


@pytest.mark.parametrize("whole", [THOUSANDS[:-2], THOUSANDS[: 4096 * 4]])
def test_an_odd_byte_at_the_end_is_dropped_with_a_word(tmp_path: Path, whole: bytes) -> None:
    path = wav(tmp_path / "a.wav", whole + b"\x01")
    _, payloads, made = made_of(path)
    assert b"".join(payloads) == whole
    assert made.notes == [f"{path}: 1 byte(s) at its end are less than a sample and were dropped"]


def test_unusable_files_are_refused_with_name_and_reason(tmp_path: Path) -> None:
    assert "holds no samples" in refused(wav(tmp_path / "header.wav", b""))
    (tmp_path / "empty.wav").touch()
    assert "empty (0 bytes)" in refused(tmp_path / "empty.wav")
    assert "No such file" in refused(tmp_path / "gone.wav")
    torn = wav(tmp_path / "torn.wav", THOUSANDS[:20_000], announced=len(THOUSANDS))
    assert "truncated: its header announces 32000 bytes of sound, 20000 are there" in refused(torn)
    (tmp_path / "text.wav").write_text("This is no sound at all, but a text. " * 20)
    assert "no media file" in refused(tmp_path / "text.wav")
    flac = making.encoded(tmp_path / "whole.flac", making.tone(3.0), "flac").read_bytes()
    (tmp_path / "torn.flac").write_bytes(flac[: len(flac) * 2 // 3])
    assert "damaged" in refused(tmp_path / "torn.flac")
    assert "has no audio in it" in refused(making.video(tmp_path / "mute.mp4", range(0, 400, 40)))
    nan = wav(tmp_path / "nan.wav", np.full(1600, np.nan, "<f4").tobytes(), tag=3, bits=32)
    assert "not numbers" in refused(nan)


def test_a_playlist_contacts_nobody(tmp_path: Path) -> None:
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n")
    assert "cannot be decoded" in refused(tmp_path / "list.m3u8")


@settings(max_examples=examples(60), deadline=None)
@given(
    length=st.integers(1, 5000), size=st.integers(1, 6000), kind=st.sampled_from(["s16le", "f32le", "alaw", "mulaw"])
)
def test_chunks_in_a_row_are_the_whole_media(
    tmp_path_factory: pytest.TempPathFactory, length: int, size: int, kind: str
) -> None:
    sound = np.random.default_rng(length).integers(-32768, 32768, length).astype("<i2")
    path = wav(tmp_path_factory.mktemp("cut") / "a.wav", sound.tobytes())
    due, payloads, made = made_of(path, kind=kind, samples=size)
    whole = made_of(path, kind=kind, samples=length)[1]
    assert b"".join(payloads) == b"".join(whole)
    if kind == "s16le":
        assert whole == [sound.tobytes()]
    assert len(payloads) == -(-length // size)
    assert due == sorted(set(due))
    assert made.duration_ns == due[-1] == -(-length * 10**9 // 16_000)


@pytest.mark.skipif(not LIBRIVOX.is_dir(), reason="pocketsphinx-testdata is not installed")
def test_recordings_pass_byte_for_byte() -> None:
    for path in sorted(LIBRIVOX.glob("*.wav")):
        _, payloads, made = made_of(path, samples=1600)
        data = b"".join(payloads)
        assert data == path.read_bytes()[44:]
        assert made == Made(-(-len(data) * 10**9 // 32_000), [])

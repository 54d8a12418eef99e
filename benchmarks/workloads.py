"""What is streamed: three workloads, and the small corpora that carry them."""

import io
import json
import math
import struct
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Workload:
    """Messages of `payload_bytes`, one every `interval_ms` in each session."""

    name: str
    payload_bytes: int
    interval_ms: int
    about: str

    @property
    def interval_ns(self) -> int:
        """Between two messages of a session."""
        return self.interval_ms * 1_000_000

    @property
    def profile(self) -> Path:
        """How loadbench speaks it."""
        return HERE / f"{self.name.lower()}.yaml"


WORKLOADS = {
    "W1": Workload("W1", 640, 20, "640 B of speech, 50 a second"),
    "W2": Workload("W2", 3200, 100, "3,200 B of speech, 10 a second"),
    "W3": Workload("W3", 20_000, 40, "JPEG pictures of 20 kB, 25 a second"),
}


def make_corpus(workload: Workload, seconds: float, folder: Path) -> Path:
    """A corpus of one clip of this length or a little more, in whole messages; pictures are 20 kB within 5 %."""
    seconds = math.ceil(seconds * 5) / 5  # 0.2 s is a whole number of messages in each workload
    clip: dict[str, object] = {"id": "clip", "source_lang": "en", "target_lang": "en"}
    if workload.name == "W3":
        _pictures(folder, round(seconds * 1000 / workload.interval_ms), workload.payload_bytes)
        clip |= {"direction": "sign2spoken", "frames_dir": ".", "frames_pattern": "picture%05d.jpg", "fps": 25}
        clip |= {"text": "red boat"}
    else:
        with wave.open(str(folder / "clip.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(struct.pack("<h", 1000) * round(16000 * seconds))
        clip |= {"direction": "speech2text", "audio_filepath": "clip.wav", "transcript": "red boat"}
    (folder / "manifest.jsonl").write_text(json.dumps(clip))
    return folder


def _pictures(folder: Path, count: int, size: int) -> None:
    """Noise of the coarseness that makes JPEGs of quality 85 about `size` bytes; the same picture again and again."""
    noise = np.random.default_rng(7).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    low, high = 8, 480
    while high - low > 1:  # rows of noise that fit
        rows = (low + high) // 2
        low, high = (rows, high) if len(_jpeg(noise, rows)) <= size else (low, rows)
    data = _jpeg(noise, low)
    for number in range(count):
        (folder / f"picture{number:05d}.jpg").write_bytes(data)


def _jpeg(noise: "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]", rows: int) -> bytes:
    picture, out = np.full_like(noise, 128), io.BytesIO()
    picture[:rows] = noise[:rows]
    Image.fromarray(picture).save(out, "JPEG", quality=85)
    return out.getvalue()

"""What it takes to prepare a long recording as 16-bit sound of 16 kHz in chunks of 200 ms, before a run.

Wall and processor seconds, and by how many MB the process grew. The segments are sentences that follow each other, cut
in one pass; below them the same sentences one at a time, each by a decoding of its own, ten of them spread evenly. The
sound is made by numpy, noise and a tone; encoders are PyAV's.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from benchmarks.table import table

ONE_AT_A_TIME = 10
FILES = [("wav", "pcm_s16le", 16_000), ("flac", "flac", 16_000), ("mp3", "libmp3lame", 44_100)]
MEASURED = """
import json, resource, sys, time
from fractions import Fraction
from pathlib import Path
from loadbench.corpus.clip import Clip, Track
from loadbench.media.form import AudioForm
from loadbench.media.prepare import prepare

path, cache, step_s, groups = Path(sys.argv[1]), Path(sys.argv[2]), Fraction(sys.argv[3]), json.loads(sys.argv[4])

def clip(at):
    track = Track("audio", path, offset_s=(at or 0) * step_s, duration_s=None if at is None else step_s)
    return Clip(f"c{at}", "speech2text", (track,), "en", "en")

def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before, wall, cpu = grown(), time.perf_counter(), time.process_time()
for group in groups:
    prepare([clip(at) for at in group], AudioForm("s16le", 16_000, 3200), cache)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, grown() - before]))
"""


def measure(minutes: int, segments: int) -> str:
    """The table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="loadbench-media-") as name:
        step_s = Fraction(minutes * 60, segments)
        few = list(range(0, segments, max(1, segments // ONE_AT_A_TIME)))
        for kind, codec, rate in FILES:
            path = _recording(Path(name) / f"a.{kind}", codec, rate, minutes)
            told = f"{kind.upper()}, {rate / 1000:g} kHz"
            cases: list[tuple[str, list[list[int | None]]]] = [(f"{minutes} min", [[None]])]
            if kind != "flac":
                cases += [(f"{segments} segments", [list(range(segments))])]
                cases += [(f"{len(few)} of these, one at a time", [[at] for at in few])]
            rows += [[f"{told}: {what}", *_figures(path, step_s, groups)] for what, groups in cases]
    return table(["what", "s", "processor, s", "MB more"], rows)


def _figures(path: Path, step_s: Fraction, groups: list[list[int | None]]) -> list[str]:
    with tempfile.TemporaryDirectory(dir=path.parent) as cache:
        asked = [sys.executable, "-c", MEASURED, str(path), cache, str(step_s), json.dumps(groups)]
        found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    return [f"{value:.1f}" for value in found]


def _recording(path: Path, codec: str, rate: int, minutes: int) -> Path:
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream(codec, rate=rate, layout="mono")
        size = stream.codec_context.frame_size or None
        resampler = av.AudioResampler(stream.format.name, "mono", rate, frame_size=size)
        for frame in _seconds(rate, minutes * 60):
            for piece in resampler.resample(frame):
                file.mux(stream.encode(piece))
        for piece in (*resampler.resample(None), None):
            file.mux(stream.encode(piece))
    return path


def _seconds(rate: int, count: int) -> Iterator[av.AudioFrame]:
    noise = np.random.default_rng(7).normal(0, 600, rate) + 6000 * np.sin(np.arange(rate) * 2 * np.pi * 300 / rate)
    for second in range(count):
        frame = av.AudioFrame.from_ndarray(np.roll(noise, second).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = rate, second * rate, Fraction(1, rate)
        yield frame

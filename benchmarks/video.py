"""Video against the simulator, by the simulator's own log: how far from its due time each message arrived.

A picture is due at its own time, a slice at the end of its last picture. A slice is read whole before it is stamped.
"""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.senders import OTHER_CORE, await_quiet, place, send
from benchmarks.table import figure, table
from loadbench.corpus import read
from loadbench.media import prepare
from loadbench.media.plan import ChunkPlan
from loadbench.session.load import load_profile, media_form
from loadbench.simulator import log

FORMS: Final = {
    "JPEG": "kind: frames, quality: 85",
    "H.264": "kind: frames, codec: h264",
    "fMP4, 500 ms": "kind: video, container: fmp4, slice_ms: 500",
    "WebM, 500 ms": "kind: video, container: webm, slice_ms: 500",
}
PROFILE: Final = """name: video
transport: {{kind: websocket}}
media: {{{media}, frame: binary}}
end: [{{send_text: eof}}, {{done: {{on: [close], closes: target}}}}]
receive: {{rules: [{{has: text, text: {{model: unkeyed, text: text, final: fin}}}}]}}
"""
HEAD: Final = ["form", "streams", "messages", "mean bytes", "p50 ms", "p99 ms", "most ms", "early"]
FPS: Final = 25
CODES: Final = (0, 1, 3)  # a verdict is a result here, not a failure


def measure(sessions: int, seconds: float, repeats: int) -> str:
    """One table, a row for each form."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name)
        _signing(corpus, round(seconds * FPS))
        for form, media in FORMS.items():
            runs, sizes = [], []
            for _ in range(repeats):
                print(f"  {form}, {sessions} sessions", file=sys.stderr)
                behind, sizes = streamed(media, sessions, corpus)
                runs.append(behind / 1e6)
            rows.append([form, *_cells(runs, sizes, sessions)])
    return f'Pictures of 640x480, {FPS} a second, {seconds:g} s. "early" is messages before they were due.\n\n' + table(
        HEAD, rows
    )


def streamed(media: str, sessions: int, corpus: Path) -> tuple[NDArray[np.int64], list[int]]:
    """Arrival less due time of every message of every session, in nanoseconds, and the messages' sizes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile, bundle = folder / "video.yaml", folder / "bundle"
        profile.write_text(PROFILE.format(media=media))
        asked, cache = media_form(load_profile(str(profile)).media), corpus / "cache"
        plan = ChunkPlan.load(prepare.prepare(read.clips(corpus), asked, cache)["clip"])
        await_quiet()
        with _simulating(profile, folder / "service.jsonl") as url:
            words = ["run", "--url", url, "--profile", str(profile), "--corpus", str(corpus), "--out", str(bundle)]
            words += ["--users", str(sessions), "--sessions", str(sessions), "--set", f"media.cache={cache}"]
            send([sys.executable, "-m", "loadbench", *words], core=None, allowed=CODES)
        records = [json.loads(line) for line in (bundle / "sessions.jsonl").read_text().splitlines()]
        zeros = {each["id"]: each["utterances"][0]["media_zero_ns"] for each in records if each["type"] == "session"}
        entries = [entry for entry in log.read(folder / "service.jsonl") if entry.session in zeros]
        behind = [np.array(entry.chunks_ns) - zeros[entry.session] - plan.due_ns for entry in entries]
        return np.concatenate(behind), plan.media.tolist()


@contextmanager
def _simulating(profile: Path, path: Path) -> Iterator[str]:
    """Where a simulator listens, on the core that is not the engine's; its log is whole after the block."""
    words = [sys.executable, "-m", "loadbench", "simulate", "--profile", profile, "--log", path, "--partial-every", "0"]
    with subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            url = child.stdout.readline().split()[-1]
            place(OTHER_CORE, child.pid)
            yield url
        finally:
            child.terminate()


def _signing(folder: Path, frames: int) -> None:
    """A corpus of one clip: something bright that moves about before a slightly grainy wall."""
    wall = np.random.default_rng(7).integers(100, 112, (480, 640, 3), dtype=np.uint8)
    for number in range(frames):
        picture, angle = wall.copy(), number / 8
        x, y = 320 + round(200 * math.sin(angle)), 240 + round(120 * math.cos(1.7 * angle))
        picture[y - 60 : y + 60, x - 60 : x + 60] = (230, 180, 150)
        Image.fromarray(picture).save(folder / f"picture{number:05d}.png", compress_level=1)
    clip = {"id": "clip", "direction": "sign2spoken", "frames_dir": ".", "frames_pattern": "picture%05d.png"}
    clip |= {"source_lang": "ase", "target_lang": "en", "text": "red boat"}
    (folder / "manifest.jsonl").write_text(json.dumps({**clip, "fps": FPS}))


def _cells(runs: list[NDArray[np.float64]], sizes: list[int], sessions: int) -> list[str]:
    def cell(share: float) -> str:
        return figure([float(np.percentile(np.abs(run), share)) for run in runs], 2)

    early = sum(int((run < 0).sum()) for run in runs)
    messages = f"{len(sizes):,}"
    return [f"{sessions}", messages, f"{np.mean(sizes):,.0f}", cell(50), cell(99), cell(100), f"{early}"]

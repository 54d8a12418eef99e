"""Side by side: what loadbench sends, and what the usual script sends, as a third party saw it.

Both stream W1 (640 bytes, 50 a second) to the same sink in turn, `--repeats` times; the sink keeps arrival times. For
each: the rate against real time, how far behind the last chunk of a session was (drift), the error of arrivals against
an even schedule through the session's earliest chunk, and processor time per frame of the whole process tree, start-up
included. Medians over the repeats. Figures of one table compare; figures of two tables do not.

    python -m benchmarks [--sessions 100] [--seconds 15] [--repeats 3]
"""

import argparse
import json
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np

from benchmarks.sink import sinking

CHUNK_NS = 20_000_000
HERE = Path(__file__).parent


def measure(who: str, sessions: int, seconds: float) -> dict[str, float]:
    """One run of one sender against a fresh sink."""
    with tempfile.TemporaryDirectory() as name, sinking() as seen:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = command(who, seen.url, sessions, seconds, Path(name))
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return figures([times.tolist() for times in seen.arrivals], seconds, cpu_s)


def command(who: str, url: str, sessions: int, seconds: float, folder: Path) -> list[str]:
    """How each sender is called."""
    if who == "usual script":
        return [sys.executable, "-m", "benchmarks.usual", url, str(sessions), str(seconds)]
    with wave.open(str(folder / "clip.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(struct.pack("<h", 1000) * round(16000 * seconds))
    clip = {"id": "clip", "direction": "speech2text", "audio_filepath": "clip.wav", "source_lang": "en"}
    clip |= {"target_lang": "en", "transcript": "red boat"}
    (folder / "manifest.jsonl").write_text(json.dumps(clip))
    words = ["run", "--url", url, "--profile", str(HERE / "w1.yaml"), "--corpus", str(folder), "--users", str(sessions)]
    words += ["--sessions", str(sessions), "--out", str(folder / "bundle"), "-q"]
    return [sys.executable, "-m", "loadbench", *words]


def figures(arrivals: list[list[int]], seconds: float, cpu_s: float) -> dict[str, float]:
    """What the sink's times say, milliseconds, and microseconds of processor a frame."""
    errors, drifts, spans = [], [], []
    for times in arrivals:
        at = np.array(times)
        error = at - CHUNK_NS * np.arange(len(at))
        errors.append(error - error.min())
        drifts.append(float(error[-1] - error[0]) / 1e6)
        spans.append(float(at[-1] - at[0]) / 1e9)
    every = np.concatenate(errors) / 1e6
    return {
        "rate": (seconds - 0.02) / statistics.median(spans),
        "drift_ms": statistics.median(drifts),
        "p50_ms": float(np.median(every)),
        "p99_ms": float(np.percentile(every, 99)),
        "cpu_us": cpu_s * 1e6 / len(every),
    }


def main() -> None:
    """Alternate the senders and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    rows: dict[str, list[dict[str, float]]] = {"loadbench": [], "usual script": []}
    for _ in range(asked.repeats):
        for who, found in rows.items():
            found.append(measure(who, asked.sessions, asked.seconds))
    print(f"W1, {asked.sessions} sessions, {asked.seconds:g} s, medians of {asked.repeats}\n")
    print(f"{'':14}{'rate':>8}{'drift ms':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU us/frame':>14}")
    for who, found in rows.items():
        middle = {key: statistics.median(run[key] for run in found) for key in found[0]}
        print("{:14}{rate:8.3f}{drift_ms:10.1f}{p50_ms:9.2f}{p99_ms:9.2f}{cpu_us:14.1f}".format(who, **middle))


if __name__ == "__main__":
    main()

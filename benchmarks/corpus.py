"""A long manifest, checked without its media, and opened by a run that wants its first 20 clips.

Each line names the one sound file that is there; a tenth of the references is not ASCII. Seconds and memory (the most
that was resident) are those of a process of its own, its start included; `import` is that start alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import table

FIRST = (
    "from pathlib import Path; from loadbench.corpus import read;"
    "assert len(read.clips(Path({path!r}), chosen=read.Chosen(limit=20))) == 20"
)


def measure(lines: int) -> str:
    """The table: what was done with the manifest, in how many seconds, in how much memory."""
    with tempfile.TemporaryDirectory() as folder:
        good, broken = Path(folder, "good.jsonl"), Path(folder, "broken.jsonl")
        Path(folder, "a.wav").write_bytes(b"sound")
        for path, media in ((good, "a.wav"), (broken, "gone.wav")):
            with path.open("w", encoding="utf-8") as file:  # all at once, it would count as the commands' own memory
                file.writelines(_lines(lines, media))
        check = [sys.executable, "-m", "loadbench", "corpus", "check", "--no-media"]
        rows = [
            ("import", "", *_cost([sys.executable, "-c", "import loadbench.corpus.read"])),
            ("first 20 clips", f"{lines:,}", *_cost([sys.executable, "-c", FIRST.format(path=str(good))])),
            ("check --no-media", f"{lines:,}", *_cost([*check, str(good)])),
            ("check --no-media, all broken", f"{lines:,}", *_cost([*check, str(broken)])),
        ]
    return table(["", "lines", "seconds", "processor s", "MB", "lines printed"], rows)


def _lines(count: int, media: str) -> Iterator[str]:
    for n in range(count):
        text = "明天学校放假。" if n % 10 == 0 else f"sentence number {n} of a long corpus"
        row = {
            "id": f"clip-{n:07}",
            "direction": "speech2text",
            "audio_filepath": media,
            "duration": 1 + n % 9973 / 1000,
            "sample_rate": 16000,
            "source_lang": "en",
            "target_lang": "zh",
            "transcript": text,
            "speaker": f"s{n % 2000}",
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _cost(command: list[str]) -> tuple[str, str, str, str]:
    """Seconds, processor seconds, megabytes and lines of output of a command."""
    with tempfile.TemporaryFile() as out:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        _, _, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        out.seek(0)
        printed = len(out.read().splitlines())
    busy = used.ru_utime + used.ru_stime
    return f"{seconds:.2f}", f"{busy:.2f}", f"{used.ru_maxrss / 1024:.0f}", str(printed)

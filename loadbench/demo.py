"""The demo: the embedded corpus against a real recogniser at 1, 4 and 8 users, all on this machine.

The recogniser is another process at the lowest priority and in our own process group (a group of its own would be
scheduled apart, and undo the priority), so that two cores suffice for a VALID verdict on the tester. What it cannot
hear, Mandarin and signing, goes to simulated services with set delays; each row says whom it met.
"""

import asyncio
import contextlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from loadbench import conduct, plan, prepared
from loadbench.plan import PlanError
from loadbench.watch.terminal import View, encoding

CORPUS: Final = Path(str(resources.files("loadbench") / "data" / "demo"))
WIDTH: Final = 118  # what the table needs, also where the output is a file
SIMULATED: Final = ("--first", "0.3", "--final", "0.5", "--wrong-rate", "0.1", "--corpus")


@dataclass(frozen=True)
class Level:
    """One row of the demo: who is met, with which clips, by how many at once, how often."""

    system: str
    language: str
    profile: str
    service: str
    users: int
    sessions: int


LEVELS: Final = (
    Level("moonshine", "en", "vosk", "moonshine", 1, 11),
    Level("moonshine", "en", "vosk", "moonshine", 4, 16),
    Level("moonshine", "en", "vosk", "moonshine", 8, 24),
    Level("simulator", "zh", "vosk", "speech", 4, 8),
    Level("simulator", "csl", "sign-frames", "signing", 4, 8),
)


def demo(out: Path) -> int:
    """Run all levels, print the table, say where everything is. 0 when every run reached its service and ended."""
    if importlib.util.find_spec("moonshine_voice") is None:
        raise PlanError(
            ['the demo needs its recogniser: in a checkout `make demo` brings it, or: pip install ".[demo]"']
        )
    folder = out / time.strftime("%Y%m%d-%H%M%S")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise PlanError([f"cannot make {folder}: {error.strerror}; choose another --out"]) from None
    say = Console(stderr=True, highlight=False)
    say.print(
        "loadbench demo: real speech, in real time, to a real recogniser here; about two minutes\n", soft_wrap=True
    )
    corpora = {"en": _english(folder), "zh": _part(folder, "zh"), "csl": _part(folder, "csl")}
    rows = []
    with contextlib.ExitStack() as services:
        recogniser = ("--profile", "vosk", "--engine", "moonshine", "--nice", "19", "--threads", "1")
        urls = {
            "moonshine": services.enter_context(_service("moonshine", folder, *recogniser)),
            "speech": services.enter_context(
                _service("speech", folder, "--profile", "vosk", *SIMULATED, str(corpora["zh"]))
            ),
            "signing": services.enter_context(
                _service("signing", folder, "--profile", "sign-frames", *SIMULATED, str(corpora["csl"]))
            ),
        }
        for level in LEVELS:
            say.print(f"users {level.users}, clips {level.language}, {level.system}")
            rows.append((level, _run(level, urls[level.service], corpora[level.language], folder)))
    _print(rows)
    for _, result in rows:
        say.print(*result.unwritten, sep="\n", end="\n" if result.unwritten else "", soft_wrap=True)
    codes = {result.exit_code for _, result in rows}
    return max(codes - {0, 1, 3}, default=0)


def _run(level: Level, url: str, corpus: Path, folder: Path) -> conduct.Result:
    asked = {
        "title": f"demo: {level.users} users, {level.language}, {level.system}",
        "target.url": url,
        "target.profile": level.profile,
        "target.headers": {"x-loadbench-clip": "{clip.id}"} if level.system == "simulator" else {},
        "corpus.path": str(corpus),
        "workload.users": level.users,
        "workload.sessions": level.sessions,
    }
    with encoding(quiet=False) as progress:
        ready = prepared.prepare(plan.read(None, asked), progress=progress)
    try:
        bundle = folder / f"{level.language}-{level.users}"
        return asyncio.run(conduct.perform(ready, bundle, View(ready.header)))
    finally:
        ready.close()


@contextlib.contextmanager
def _service(name: str, folder: Path, *flags: str) -> Iterator[str]:
    """A service of ours in a process of its own; gives its address once it listens."""
    log = folder / f"{name}.jsonl"
    words = [sys.executable, "-m", "loadbench", "simulate", "--log", str(log), *flags]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own words
    try:
        line = process.stdout.readline() if process.stdout else ""
        if "://" not in line:
            raise PlanError([f"the demo's service {name} did not start; it says why above"])
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(10)


def _english(folder: Path) -> Path:
    """Our own sentences, and the recordings that lie in the recogniser's package."""
    path = _part(folder, "en")
    assets = Path(str(resources.files("moonshine_voice") / "assets"))
    known = {"direction": "speech2text", "source_lang": "en", "target_lang": "en"}
    with path.open("a", encoding="utf-8") as file:
        for item in json.loads((CORPUS / "recordings.json").read_text("utf-8")):
            line = known | item | {"audio_filepath": str(assets / item["file"])}
            file.write(json.dumps(line) + "\n")
    return path


def _part(folder: Path, language: str) -> Path:
    """The clips of one source language, as a manifest of their own with media left where they lie."""
    path = folder / f"{language}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in (CORPUS / "manifest.jsonl").read_text("utf-8").splitlines():
            item = json.loads(line)
            if item["source_lang"] == language:
                key = "audio_filepath" if "audio_filepath" in item else "video_filepath"
                file.write(json.dumps(item | {key: str(CORPUS / item[key])}, ensure_ascii=False) + "\n")
    return path


def _print(rows: list[tuple[Level, conduct.Result]]) -> None:
    table = Table(title="first output from the start of the media, final from its end; seconds")
    for name in (
        "system",
        "clips",
        "users",
        "completed",
        "first p50",
        "p95",
        "final p50",
        "p95",
        "WER",
        "Table 1",
        "verdict",
    ):
        table.add_column(name, justify="left" if name in {"system", "clips", "verdict"} else "right")
    for level, result in rows:
        table.add_row(*_cells(level, result))
    screen = Console(highlight=False)
    screen.width = max(screen.width, WIDTH)
    screen.print(table)
    last = rows[-1][1].folder.parent
    print(f"reports  {last}/*/report.html\nmetrics  {last}/*/metrics.prom\nservice  {last}/*.jsonl (its own log)")


def _cells(level: Level, result: conduct.Result) -> list[str]:
    summary = result.summary
    channel = summary["headline"]["channel"]
    response, sessions = summary["response"][channel], summary["sessions"]
    scores = result.scores["channels"].get(channel, {})
    wer, points = scores.get("wer", {}).get("value"), (scores.get("points") or {}).get("value")
    return [
        level.system,
        level.language,
        str(level.users),
        f"{sessions['finished']}/{sessions['started']}",
        *_pair(response["first_output_from_media"]),
        *_pair(response["final_from_source_end"]),
        "-" if wer is None else f"{wer:.1%}",
        "-" if points is None else f"{points:.1f}",
        summary["verdict"]["state"],
    ]


def _pair(population: dict[str, Any]) -> list[str]:
    """The median and the 95th percentile of all that were started."""
    return [_shown(population["started"][stat]) for stat in ("p50", "p95")]


def _shown(found: dict[str, Any]) -> str:
    if found["value_s"] is None:
        return "never" if found["bound"] == "never" else "-"
    return ("≥ " if found["bound"] == "at_least" else "") + f"{found['value_s']:.2f}"

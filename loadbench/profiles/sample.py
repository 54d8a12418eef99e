"""A little media to try a service with: the first seconds of one clip, as a corpus of its own."""

import json
from importlib import resources
from pathlib import Path
from typing import Any, Final

from loadbench.corpus import read
from loadbench.corpus.clip import Clip, Track
from loadbench.media.form import TRACKS

MOST_S: Final = 2.0
CORPUS: Final = Path(str(resources.files("loadbench") / "data" / "demo"))
FEW: Final = read.Chosen(limit=1000)  # in which a clip with the medium that is asked for is looked for
LIKED: Final = ("en-02", "sign-01")  # of the embedded corpus: each has something to say within its first two seconds


class SampleError(ValueError):
    """A corpus without anything that could be sent; `problems` says so."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def clips(corpus: Path | None) -> list[Clip]:
    """The clips to choose from: a corpus, or some of the embedded one. Raises CorpusError."""
    if corpus is not None:
        return read.clips(corpus, chosen=FEW)
    return [clip for clip in read.clips(CORPUS) if clip.id in LIKED]


def write(clips: list[Clip], kind: str, folder: Path) -> Path:
    """A manifest with two seconds at most of the first clip that has such a track. Raises SampleError."""
    medium = TRACKS[kind]
    for clip in clips:
        for track in clip.tracks:
            if track.kind == medium:
                path = folder / f"{medium}.jsonl"
                path.write_text(json.dumps(_line(clip, track)) + "\n", "utf-8")
                return path
    raise SampleError([f"the corpus has no clip with {medium}"])


def _line(clip: Clip, track: Track) -> dict[str, Any]:
    spoken = track.kind == "audio" and clip.direction == "sign2spoken"
    line: dict[str, Any] = {
        "id": clip.id,
        "direction": "speech2text" if spoken else clip.direction,
        "source_lang": clip.source_lang,
        "target_lang": clip.target_lang,
        "offset": float(track.offset_s),
        "duration": min(MOST_S, float(track.duration_s or MOST_S)),
    }
    if track.pattern is None:
        line[f"{track.kind}_filepath"] = str(track.path)
    else:
        line |= {"frames_dir": str(track.path), "frames_pattern": track.pattern}
    given = {"fps": None if track.fps is None else str(track.fps), "channel": track.channel}
    return line | {key: value for key, value in given.items() if value is not None}

"""WLASL: single signs of American Sign Language, a list of glosses with the videos that show each.

Frame numbers count from 1 at the rate that stands beside them (25), whatever the rate of the video, and the last one
belongs to the sign. They cut a video as it was downloaded; a video in `videos/` was cut by the corpus' own script.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import choose
from loadbench.corpus.layouts.annotations import GLANCE, composed, head, is_file, names, objects
from loadbench.corpus.manifest import CorpusError

HEAD: Final = 512
CUT: Final = "what lies in videos/ was cut by the corpus' own script: frame_start and frame_end are not used again"
WHOLE: Final = ("raw_videos_mp4", "raw_videos")
KEPT: Final = ("bbox", "instance_id", "variation_id", "source", "url")


def _file(path: Path) -> Path | None:
    """The list of glosses. Never raises."""
    for folder in (path, path / "start_kit"):
        found = sorted(name for name in names(folder, GLANCE) if name.startswith("WLASL") and name.endswith(".json"))
        for name in found:
            if _is_list(folder / name):
                return folder / name
    return None


def _is_list(file: Path) -> bool:
    found = head(file, HEAD)
    return found.lstrip().startswith(b"[") and b'"gloss"' in found


def _marks(path: Path) -> bool:
    return _file(path) is not None


def _splits(path: Path) -> tuple[str, ...]:
    file = _file(path)
    return () if file is None else choose.in_order(_named_splits(file))


def _named_splits(file: Path) -> Iterator[str]:
    for _, item in objects(file):
        for found in () if _odd(item) else item["instances"]:
            if isinstance(split := found.get("split"), str):
                yield split


def _odd(item: Any) -> str | None:
    """Why an element of the list is not a gloss with its videos."""
    if not isinstance(item, dict) or not isinstance(item.get("gloss"), str):
        return "is no object with a gloss"
    found = item.get("instances")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        return f"{item['gloss']}: instances is no list of objects"
    return None


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    file, languages = _file(path), (asked.source_lang or "ase", choose.target(path, asked, "en"))
    if file is None:
        raise CorpusError([f"{path}: holds no WLASL*.json with a list of glosses"])
    if asked.split is not None:
        choose.splits(path, asked, _splits(path))
    for line, item in objects(file):
        if trouble := _odd(item):
            yield Entry(f"{file}:{line}", None, (trouble,))
            continue
        for found in item["instances"]:
            if asked.split in (None, found.get("split")):
                yield _entry(composed(item["gloss"]), found, path, languages, (str(file), line))


def _entry(gloss: str, found: dict[str, Any], path: Path, languages: tuple[str, str], source: tuple[str, int]) -> Entry:
    where, name = "{}:{}".format(*source), str(found.get("video_id") or "")
    if not name:
        return Entry(where, None, (f"{gloss}: an instance has no video_id",))
    segment = _segment(found)
    if segment is None:
        said = ", ".join(f"{key} {found.get(key)!r}" for key in ("fps", "frame_start", "frame_end"))
        return Entry(where, None, (f"video {name}: its frames cannot be placed: {said}",))
    whole, warnings = _whole(path, name, str(found.get("url") or "")), []
    offset, duration = segment
    if whole is not None:
        track = Track("video", whole.absolute(), offset_s=offset, duration_s=duration)
    else:
        track = Track("video", path.absolute() / "videos" / f"{name}.mp4")
        if offset or duration:
            warnings.append(CUT)
    signer = found.get("signer_id")
    clip = Clip(
        id=name,
        direction="sign2spoken",
        tracks=(track,),
        source_lang=languages[0],
        target_lang=languages[1],
        gloss=(gloss,),
        speaker=None if signer in (None, -1) else str(signer),
        tags=(split,) if isinstance(split := found.get("split"), str) else (),
        extra={key: found[key] for key in KEPT if key in found},
        source=source[0],
        line=source[1],
    )
    return Entry(where, clip, warnings=tuple(warnings))


def _segment(found: dict[str, Any]) -> tuple[Fraction, Fraction | None] | None:
    """Offset and duration in seconds (None: to the end); None where the numbers say nothing of the kind."""
    fps, first, last = (found.get(key) for key in ("fps", "frame_start", "frame_end"))
    if not (isinstance(fps, int | float) and isinstance(first, int) and isinstance(last, int)):
        return None
    if not 0 < fps < float("inf") or first < 1 or (last != -1 and last < first):
        return None
    rate = Fraction(repr(fps))
    return (first - 1) / rate, None if last == -1 else (last - first + 1) / rate


def _whole(path: Path, name: str, url: str) -> Path | None:
    """The video as it was downloaded, if it is there and no cut one is; those of YouTube are named by their address."""
    if is_file(path / "videos" / f"{name}.mp4"):
        return None
    stems = (url[-11:], name) if "youtu" in url else (name,)
    found = [path / folder / f"{stem}.mp4" for folder in WHOLE for stem in stems if "/" not in stem]
    return next((file for file in found if is_file(file)), None)


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout("wlasl", "WLASL: single signs of American Sign Language", _marks, _splits, _entries),
)

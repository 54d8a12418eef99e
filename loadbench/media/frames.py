"""A folder of numbered pictures, in the order of their numbers."""

from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Track
from loadbench.corpus.sample import PATTERN
from loadbench.media.decode import MediaError

NAMED: Final = 5  # names shown of a long list


def numbered(track: Track, notes: list[str]) -> list[tuple[int, Path]]:
    """The frames of a track's folder with their numbers, ascending; what is odd about them goes into `notes`.

    A file belongs to the pattern when the pattern printed with its number is its name. Numbers need not start at 1 and
    may have gaps. Raises MediaError where the folder, its rate or every frame is missing.
    """
    folder, shape = track.path, PATTERN.fullmatch(track.pattern or "")
    if shape is None:
        raise MediaError([f"{folder}: the pattern {track.pattern!r} must hold one number, as in images%04d.png"])
    if not folder.is_dir():
        raise MediaError([f"{folder}: no such folder of frames"])
    if not track.fps:
        raise MediaError([f"{folder}: frames in a folder have no times: say their fps"])
    found, strays = [], []
    for path in folder.iterdir():
        digits = path.name.removeprefix(shape["before"]).removesuffix(shape["after"])
        if digits.isascii() and digits.isdecimal() and shape[0] % int(digits) == path.name:
            found.append((int(digits), path))
        else:
            strays.append(path.name)
    if not found:
        others = f"; it holds {_some(strays)}" if strays else "; it is empty"
        raise MediaError([f"{folder}: no file is named like {track.pattern}{others}"])
    found.sort()
    if strays:
        notes.append(f"{folder}: ignored, not named like {track.pattern}: {_some(strays)}")
    if missing := found[-1][0] - found[0][0] + 1 - len(found):
        notes.append(f"{folder}: {missing} numbers are missing between {found[0][1].name} and {found[-1][1].name}")
    return found


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(sorted(names)[:NAMED]) + (f" and {more} more" if more > 0 else "")

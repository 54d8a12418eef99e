"""Clips for tests, with their media where a test wants them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from loadbench.corpus.clip import Clip, Track


def clip(folder: Path, **fields: Any) -> Clip:
    """A good spoken clip whose file is there."""
    path = folder / "a.wav"
    path.touch()
    usual: dict[str, Any] = {
        "id": "a",
        "direction": "speech2text",
        "tracks": (Track("audio", path, duration_s=Fraction(2)),),
        "source_lang": "en",
        "target_lang": "en",
        "transcript": "good morning",
    }
    return Clip(**(usual | fields))

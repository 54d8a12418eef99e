"""What an encoder can say only after its last chunk."""

from dataclasses import dataclass, field
from typing import Any

from loadbench.media.strip import Strip


@dataclass
class Made:
    """Filled in while chunks are taken: the media's length L, and what was odd about the file but usable.

    `shared` is the decoding of the track's file that this encoder shares with those of other segments; None: its own.
    """

    duration_ns: int = 0
    notes: list[str] = field(default_factory=list)
    shared: Strip[Any] | None = field(default=None, compare=False)

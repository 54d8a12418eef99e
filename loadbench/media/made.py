"""What an encoder can say only after its last chunk."""

from dataclasses import dataclass, field


@dataclass
class Made:
    """Filled in while chunks are taken: the media's length L, and what was odd about the file but usable."""

    duration_ns: int = 0
    notes: list[str] = field(default_factory=list)

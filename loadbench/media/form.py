"""What a profile wants its media to look like."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol

from loadbench.corpus.clip import Track
from loadbench.media.made import Made

WHOLE: Final = 1 << 62  # samples: more than any clip has, so that it is a single chunk


@dataclass(frozen=True, slots=True)
class AudioForm:
    """PCM or telephone audio, one channel, cut into chunks of `chunk_samples` samples."""

    format: Literal["s16le", "f32le", "alaw", "mulaw"]
    rate_hz: int
    chunk_samples: int
    kind: Literal["audio"] = "audio"

    @property
    def sample_bytes(self) -> int:
        """Bytes a sample."""
        return {"s16le": 2, "f32le": 4, "alaw": 1, "mulaw": 1}[self.format]


@dataclass(frozen=True, slots=True)
class FrameForm:
    """JPEG frames at the clip's own times, or thinned to `fps`; `width` and `height` bound the size (None: as is)."""

    quality: int = 85
    width: int | None = None
    height: int | None = None
    fps: Fraction | None = None
    codec: Literal["jpeg"] = "jpeg"
    kind: Literal["frames"] = "frames"


@dataclass(frozen=True, slots=True)
class PluginForm:
    """As a plug-in encodes it, of this name, version and options: encoded media is found again by them."""

    name: str
    version: str
    options: tuple[tuple[str, str], ...]
    kind: Literal["audio", "frames"]


class Encoder(Protocol):
    """A plug-in that encodes and cuts. `version` changes when the same file would be encoded to other bytes."""

    version: str

    def chunks(self, track: Track, made: Made) -> Iterator[tuple[int, bytes]]:
        """Each chunk with its due time: when the last of the media in it has been captured, in ns from the beginning
        of the clip; they must not fall. By the end `made.duration_ns` is the media's length.
        """


MediaForm = AudioForm | FrameForm | PluginForm

"""What a profile wants its media to look like."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal

WHOLE: Final = 1 << 62  # samples: more than any clip has, so that it is a single chunk


@dataclass(frozen=True, slots=True)
class AudioForm:
    """PCM or telephone audio, one channel, cut into chunks of `chunk_samples` samples.

    `lead_in_s` and `tail_s` of silence stand before and after each clip's sound, as part of its media.
    """

    format: Literal["s16le", "f32le", "alaw", "mulaw"]
    rate_hz: int
    chunk_samples: int
    lead_in_s: float = 0.0
    tail_s: float = 0.0
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


MediaForm = AudioForm | FrameForm


def with_silence(form: MediaForm, lead_in_s: float, tail_s: float) -> MediaForm:
    """The form with silence around each clip's sound; pictures have none."""
    return replace(form, lead_in_s=lead_in_s, tail_s=tail_s) if isinstance(form, AudioForm) else form

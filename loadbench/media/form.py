"""What a profile wants its media to look like."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, Protocol

from loadbench.corpus.clip import Kind, Track
from loadbench.media.made import Made

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """How large pictures are, and which of a clip's: all, or at most one per 1/`fps`, each at its own time.

    With `contain` a picture keeps its shape within `width` and `height` (None: no bound) and is never enlarged; with
    `pad` it is exactly so large, as much of it as its shape allows and the rest black borders.
    """

    width: int | None = None
    height: int | None = None
    fps: Fraction | None = None
    fit: Literal["contain", "pad"] = "contain"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameForm(Pictures):
    """Pictures that each stand for themselves, one a chunk: JPEG of this quality, or bare (see `media/video.py`)."""

    quality: int = 85
    codec: Literal["jpeg", "rgb24", "i420"] = "jpeg"
    kind: Literal["frames"] = "frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded(Pictures):
    """Pictures of which most build on those before: at `bitrate_kbps`, or at the quality `crf` (None: the other).

    At least every `keyframe_s` there is one that stands for itself.
    """

    bitrate_kbps: int | None = None
    crf: int | None = None
    keyframe_s: Fraction = Fraction(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class H264Form(Encoded):
    """H.264 as Annex B, one access unit a chunk; up to `bframes` in a row are sent after the picture they build on."""

    bframes: int = 0
    codec: Literal["h264"] = "h264"
    kind: Literal["frames"] = "frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceForm(Encoded):
    """One container, cut at every `slice_s` of its time (None: not cut): H.264 in fragmented MP4, VP8 in WebM.

    What stands at its head is sent with the first slice, or apart, before it.
    """

    container: Literal["fmp4", "webm"]
    slice_s: Fraction | None
    header: Literal["first", "apart"] = "first"
    kind: Literal["video"] = "video"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileForm:
    """The clip's own file as it is, in one chunk."""

    container: Literal["file"] = "file"
    kind: Literal["video"] = "video"


@dataclass(frozen=True, slots=True)
class RecordingForm:
    """What a recorder makes of sound: one file, cut where each chunk of `sound` ends.

    webm and ogg hold Opus, whatever the format of `sound`; wav holds its samples behind a head of open length.
    """

    container: Literal["webm", "ogg", "wav"]
    sound: AudioForm
    kind: Literal["audio"] = "audio"


@dataclass(frozen=True, slots=True)
class LandmarksForm:
    """Frames of landmarks as JSON objects at their own times, or thinned to `fps`.

    `members` are taken of each frame (none: all of them), a missing one as null. With `batch` a chunk is a list of so
    many frames, due with its last one.
    """

    members: tuple[str, ...] = ()
    batch: int | None = None
    fps: Fraction | None = None
    kind: Literal["landmarks"] = "landmarks"


@dataclass(frozen=True, slots=True)
class PluginForm:
    """As a plug-in encodes it, of this name, version and options: encoded media is found again by them."""

    name: str
    version: str
    options: tuple[tuple[str, str], ...]
    kind: Literal["audio", "frames", "video", "landmarks"]


class Encoder(Protocol):
    """A plug-in that encodes and cuts. `version` changes when the same file would be encoded to other bytes."""

    version: str

    def chunks(self, track: Track, made: Made) -> Iterator[tuple[int, bytes]]:
        """Each chunk with its due time: when the last of the media in it has been captured, in ns from the beginning
        of the clip; they must not fall. By the end `made.duration_ns` is the media's length.
        """


OwnForm = AudioForm | RecordingForm | FrameForm | H264Form | SliceForm | FileForm | LandmarksForm
MediaForm = OwnForm | PluginForm
TRACKS: Final[dict[str, Kind]] = {  # what each is made of
    "audio": "audio",
    "frames": "video",
    "video": "video",
    "landmarks": "landmarks",
}


def with_silence(form: MediaForm, lead_in_s: float, tail_s: float) -> MediaForm:
    """The form with silence around each clip's sound; pictures and landmarks have none."""
    if isinstance(form, RecordingForm):
        return replace(form, sound=replace(form.sound, lead_in_s=lead_in_s, tail_s=tail_s))
    return replace(form, lead_in_s=lead_in_s, tail_s=tail_s) if isinstance(form, AudioForm) else form

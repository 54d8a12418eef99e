"""Pictures on their way into an encoder: upright, as large as asked, each at its own time.

What encoders make is the same on every machine: they run in one thread, and without a look ahead. They give a packet
for each picture, in the same order where there are no B-frames.
"""

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

import av
from av.video.frame import PictureType, VideoFrame
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media.decode import MediaError
from loadbench.media.form import Encoded, H264Form
from loadbench.media.made import Made
from loadbench.media.video import even, planes, shots

USUAL_KBPS: Final = 1000  # about what a browser's recorder makes of a camera
USUAL_FPS: Final = 30  # what an encoder reckons with; it goes by the pictures' own times
FAR: Final = 1 << 20  # pictures to the next keyframe that we do not ask for
X264: Final = {"preset": "veryfast", "tune": "zerolatency", "sc_threshold": "0", "forced-idr": "1"}
# Below 0 VP8's speed is fixed; above, the encoder goes by the processor's time, and gives other bytes each run.
VP8: Final = {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0", "auto-alt-ref": "0"}


def options(codec: str, form: Encoded) -> dict[str, str]:
    """What FFmpeg's encoder of this name is told beside what `Feed` tells it."""
    told = {"g": str(FAR), "bf": str(form.bframes if isinstance(form, H264Form) else 0)}
    if form.crf is not None:
        told["crf"] = str(form.crf)
    else:
        rate = str((form.bitrate_kbps or USUAL_KBPS) * 1000)
        told |= {"b": rate, "maxrate": rate, "bufsize": rate}
    return (X264 if codec == "libx264" else VP8) | told


class Feed:
    """The pictures of a track for one encoder, with times in whole `tick`s."""

    def __init__(self, track: Track, form: Encoded, made: Made, tick: Fraction) -> None:
        self._spans: dict[int, tuple[Fraction, Fraction]] = {}
        self._track, self._form, self._made, self._tick = track, form, made, tick

    def frames(self, context: Any) -> Iterator[VideoFrame | None]:
        """What to encode, and None at the end. The first picture sets the encoder up. Raises MediaError."""
        pts, key_at, size = -1, Fraction(0), None
        for at, until, image in _seen(shots(self._track, self._form, self._made), self._made):
            if size is None:
                size = even(image.size)
                context.width, context.height = size
                context.pix_fmt, context.time_base, context.framerate = "yuv420p", self._tick, USUAL_FPS
                context.thread_count = 1
            frame = planes(image, size)
            pts = max(pts + 1, round(at / self._tick))
            frame.pts, frame.time_base, frame.duration = pts, self._tick, max(1, round((until - at) / self._tick))
            if at >= key_at:
                frame.pict_type, key_at = PictureType.I, at + self._form.keyframe_s
            self._spans[pts] = at, until
            yield frame
        yield None

    def seen(self, packet: Any) -> tuple[Fraction, Fraction]:
        """From when and until when the picture of a packet is seen. To be asked once for each, as it was encoded."""
        return self._spans.pop(packet.pts)


@contextlib.contextmanager
def encoding(track: Track) -> Iterator[None]:
    """An encoder's trouble inside the block becomes a MediaError."""
    try:
        yield
    except av.error.FFmpegError as error:
        raise MediaError([f"{track.path}: its pictures cannot be encoded ({error.strerror})"]) from error


def _seen(
    pictures: Iterator[tuple[Fraction, Image.Image]], made: Made
) -> Iterator[tuple[Fraction, Fraction, Image.Image]]:
    """A picture is seen until the next one comes, the last until the end of the media."""
    waiting: tuple[Fraction, Image.Image] | None = None
    for at, image in pictures:
        if waiting is not None:
            yield waiting[0], at, waiting[1]
        waiting = at, image
    if waiting is not None:
        yield waiting[0], Fraction(made.duration_ns, 1_000_000_000), waiting[1]

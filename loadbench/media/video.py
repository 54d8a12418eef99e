"""Any video file or folder of frames as upright pictures, each due at its own time: JPEG, or bare.

Bare pictures are rows of red, green, blue (`rgb24`), or a plane each of Y, U and V (`i420`), with the colours of BT.601
in the limited range, U and V half as large.
"""

import io
import math
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from av.buffer import Buffer
from av.video.frame import VideoFrame
from PIL import Image, ImageOps, UnidentifiedImageError

from loadbench.corpus.clip import Track
from loadbench.media import strip
from loadbench.media.decode import TOLERANCE_S, MediaError, Shown
from loadbench.media.form import FrameForm, Pictures
from loadbench.media.frames import numbered
from loadbench.media.made import Made

Picture = Callable[[], Image.Image]
# Display matrix (a, b, c, d), by sign: x' = ax + cy, y' = bx + dy with y downwards; how Pillow does the same.
TURNS: Final[dict[tuple[int, int, int, int], Image.Transpose]] = {
    (0, -1, 1, 0): Image.Transpose.ROTATE_90,
    (-1, 0, 0, -1): Image.Transpose.ROTATE_180,
    (0, 1, -1, 0): Image.Transpose.ROTATE_270,
    (-1, 0, 0, 1): Image.Transpose.FLIP_LEFT_RIGHT,
    (1, 0, 0, -1): Image.Transpose.FLIP_TOP_BOTTOM,
    (0, 1, 1, 0): Image.Transpose.TRANSPOSE,
    (0, -1, -1, 0): Image.Transpose.TRANSVERSE,
}
WIDE_RANGE: Final = (16, 18)  # transfer characteristics PQ and HLG, ITU-T H.273


def chunks(track: Track, form: FrameForm, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, picture) of each frame of the track's segment, due at its own time in the segment.

    Variable frame rates stay. With `form.fps` at most one frame leaves per 1/fps, still at its own time. The media
    ends where its last frame goes. One frame is in memory at a time. Raises MediaError.
    """
    for at, image in shots(track, form, made):
        yield ns(at), 0, _packed(image, form)


def shots(track: Track, form: Pictures, made: Made) -> Iterator[tuple[Fraction, Image.Image]]:
    """Each frame of the segment that is wanted, as large as it is wanted, and its time in the segment; see `chunks`."""
    start, end, stop, slot, taken = track.offset_s, Fraction(0), None, -1, 0
    if track.duration_s is not None:
        stop = start + track.duration_s
    for at, until, picture in pictures(track, made):
        if stop is not None and at >= stop:
            end = stop
            break
        end = until
        if at < start:
            continue
        if form.fps:
            before, slot = slot, math.floor((at - start) * form.fps)
            if slot == before:
                continue
        taken += 1
        yield at - start, _fitted(picture(), form)
    if not taken:
        raise MediaError(
            [f"{track.path}: no frame lies in the segment from {float(start)} s; it ends at {float(end):.3f} s"]
        )
    if stop is not None:
        if stop - end > TOLERANCE_S:
            made.notes.append(f"{track.path}: ends {float(stop - end):.3f} s before the end of the declared segment")
        end = min(end, stop)
    made.duration_ns = ns(end - start)


def ns(seconds: Fraction) -> int:
    """Nanoseconds, rounded up: never before the picture was taken."""
    return math.ceil(seconds * 1_000_000_000)


def pictures(track: Track, made: Made) -> Iterator[tuple[Fraction, Fraction, Picture]]:
    """From and until when each picture is seen, and how to get it: frames that are left out need not be converted."""
    if track.pattern is not None:
        frames = numbered(track, made.notes)
        period, first = 1 / (track.fps or Fraction(25)), frames[0][0]
        for number, path in frames:
            at = (number - first) * period  # a missing number is a lost frame: those after it keep their time
            yield at, at + period, partial(_read, path)
        return
    told = False
    for shown in (made.shared or strip.pictures(track)).read(track.offset_s, made.notes):
        if not told and shown.frame.color_trc in WIDE_RANGE:
            made.notes.append(f"{track.path}: high dynamic range, converted to 8 bits without tone mapping")
            told = True
        yield shown.at_s, shown.until_s, partial(_upright, shown)


def _read(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise MediaError([f"{path}: cannot be read as a picture ({error})"]) from error


def _upright(shown: Shown) -> Image.Image:
    """With square pixels, turned and mirrored as the file asks: which hand is which depends on it."""
    image: Image.Image = shown.frame.to_image()  # type: ignore[no-untyped-call]
    if shown.pixel_aspect > 1:
        image = image.resize((image.width, max(1, round(image.height / shown.pixel_aspect))))
    elif shown.pixel_aspect < 1:
        image = image.resize((max(1, round(image.width * shown.pixel_aspect)), image.height))
    matrix = shown.frame.side_data.get("DISPLAYMATRIX")
    if isinstance(matrix, Buffer):
        a, b, _, c, d = struct.unpack("=5i", bytes(matrix)[:20])
        turn = TURNS.get((_sign(a), _sign(b), _sign(c), _sign(d)))
        image = image if turn is None else image.transpose(turn)
    return image


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _fitted(image: Image.Image, form: Pictures) -> Image.Image:
    """As large as the form wants it: within its bounds and never enlarged, or exactly so, with black borders."""
    if form.fit == "pad" and form.width and form.height:
        return ImageOps.pad(image, (form.width, form.height), Image.Resampling.BILINEAR, color="black")
    scale = min(1.0, (form.width or image.width) / image.width, (form.height or image.height) / image.height)
    if scale == 1.0:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.BILINEAR)  # over all pixels of the source, so nothing flickers


def _packed(image: Image.Image, form: FrameForm) -> bytes:
    if form.codec == "rgb24":
        return image.tobytes()
    if form.codec == "i420":
        return planes(image, even(image.size)).to_ndarray().tobytes()
    out = io.BytesIO()
    image.save(out, "JPEG", quality=form.quality)
    return out.getvalue()


def even(size: tuple[int, int]) -> tuple[int, int]:
    """The next larger size of which half a plane is a whole number of pixels."""
    return size[0] + size[0] % 2, size[1] + size[1] % 2


def planes(image: Image.Image, size: tuple[int, int]) -> VideoFrame:
    """A picture as 4:2:0 of this size: in its upper left corner, the rest black; what is too large is made smaller."""
    if image.size != size:
        canvas = Image.new("RGB", size)
        canvas.paste(image if image.width <= size[0] and image.height <= size[1] else ImageOps.contain(image, size))
        image = canvas
    frame: VideoFrame = VideoFrame.from_image(image)  # type: ignore[no-untyped-call]
    return frame.reformat(format="yuv420p")

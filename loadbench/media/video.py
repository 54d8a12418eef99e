"""Any video file or folder of frames as upright JPEG pictures, each due at its own time."""

import io
import math
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from av.buffer import Buffer
from PIL import Image, ImageOps, UnidentifiedImageError

from loadbench.corpus.clip import Track
from loadbench.media import strip
from loadbench.media.decode import TOLERANCE_S, MediaError, Shown
from loadbench.media.form import FrameForm
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
    """(due_ns, 0, JPEG) of each frame of the track's segment, due at its own time in the segment.

    Variable frame rates stay. With `form.fps` at most one frame leaves per 1/fps, still at its own time. The media
    ends where its last frame goes. One frame is in memory at a time. Raises MediaError.
    """
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
        yield _ns(at - start), 0, _jpeg(_fitted(picture(), form), form.quality)
    if not taken:
        raise MediaError(
            [f"{track.path}: no frame lies in the segment from {float(start)} s; it ends at {float(end):.3f} s"]
        )
    if stop is not None:
        if stop - end > TOLERANCE_S:
            made.notes.append(f"{track.path}: ends {float(stop - end):.3f} s before the end of the declared segment")
        end = min(end, stop)
    made.duration_ns = _ns(end - start)


def _ns(seconds: Fraction) -> int:
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


def _fitted(image: Image.Image, form: FrameForm) -> Image.Image:
    """Within the form's bounds, in its own proportions, never enlarged."""
    scale = min(1.0, (form.width or image.width) / image.width, (form.height or image.height) / image.height)
    if scale == 1.0:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.BILINEAR)  # over all pixels of the source, so nothing flickers


def _jpeg(image: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()

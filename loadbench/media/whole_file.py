"""A clip's own file as it is, for services that are sent a whole video."""

from collections.abc import Iterator

from loadbench.corpus.clip import Track
from loadbench.media.decode import TOLERANCE_S, MediaError, measure
from loadbench.media.made import Made
from loadbench.media.video import ns


def chunks(track: Track, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, the file), due at the end of its media. Raises MediaError where a clip is not all of one file."""
    if track.pattern is not None:
        raise MediaError([f"{track.path}: is a folder of frames, and the profile sends files (media.container: file)"])
    length_s = measure(track.path, "video", track.fps, made.notes).duration_s
    if track.offset_s or (track.duration_s is not None and length_s - track.duration_s > TOLERANCE_S):
        what = "the clip is only a part of this file, and the profile sends files whole (media.container: file)"
        raise MediaError([f"{track.path}: {what}"])
    made.duration_ns = ns(length_s)
    yield made.duration_ns, 0, track.path.read_bytes()

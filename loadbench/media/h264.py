"""Pictures as H.264, one access unit a chunk, in the byte stream format of ITU-T H.264, Annex B.

Keyframes carry the parameter sets, so that a decoder can begin at any of them.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from av import CodecContext

from loadbench.corpus.clip import Track
from loadbench.media.encoder import Feed, encoding, options
from loadbench.media.form import H264Form
from loadbench.media.made import Made
from loadbench.media.video import ns

TICK: Final = Fraction(1, 90_000)  # s; the clock of video in MPEG systems and RTP, in which the usual rates are whole


def chunks(track: Track, form: H264Form, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, access unit) of each picture of `video.shots`, in the order of decoding.

    Due at the picture's own time or at that of a later one which leaves before it, for without that it cannot be
    decoded, and nobody has that before it was taken. Raises MediaError.
    """
    context = CodecContext.create("libx264", "w")
    context.options = options("libx264", form)
    feed, latest = Feed(track, form, made, TICK), Fraction(0)
    with encoding(track):
        for frame in feed.frames(context):
            for packet in context.encode(frame):
                latest = max(latest, feed.seen(packet)[0])
                yield ns(latest), 0, bytes(packet)

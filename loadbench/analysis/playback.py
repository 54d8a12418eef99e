"""How output media would have played: what came, how smoothly, at which rate."""

import math
from collections.abc import Mapping
from typing import Any

from loadbench.results.media import MediaOutput
from loadbench.results.record import Utterance


class Playbacks:
    """The output media of the utterances that were added, by channel. `media` holds the medium of each."""

    def __init__(self, media: Mapping[str, str]) -> None:
        self._found: dict[str, list[MediaOutput]] = {name: [] for name in media}

    def add(self, utterance: Utterance) -> None:
        """Count what came in one utterance."""
        for name, channel in utterance.channels.items():
            if channel.media is not None:
                self._found.setdefault(name, []).append(channel.media)

    def summary(self) -> dict[str, Any]:
        """As published, by channel; what nobody knows is None.

        `n` utterances had media, `opened` of them are not containers that nobody decoded, and `silent` of these had
        nothing to hear or to see. `gaps` are of those opened: in how many utterances, how many, the longest, and all
        time in which a player had nothing to play. `fps` is the lowest and the median rate of pictures.
        """
        return {name: _summary(found) for name, found in sorted(self._found.items())}


def _summary(found: list[MediaOutput]) -> dict[str, Any]:
    opened = [media for media in found if media.decoded]
    lengths = [media.media_s for media in opened if media.media_s is not None]
    frames = [media.frames for media in opened if media.frames is not None]
    rates = sorted(media.fps for media in opened if media.fps is not None)
    gaps = [length for media in opened for _, length in media.gaps]
    return {
        "n": len(found),
        "opened": len(opened),
        "silent": sum(media.first_ns is None for media in opened),
        "bytes": sum(media.bytes for media in found),
        "pieces": sum(media.pieces for media in found),
        "broken": sum(media.broken for media in found),
        "frames": sum(frames) if frames else None,
        "media_s": sum(lengths) if lengths else None,
        "fps": {"min": rates[0], "p50": rates[math.ceil(len(rates) / 2) - 1]} if rates else None,
        "gaps": {
            "utterances": sum(bool(media.gaps) for media in opened),
            "n": len(gaps),
            "longest_s": max(gaps) / 1e9 if gaps else None,
            "starved_s": sum(media.starved_ns for media in opened) / 1e9,
        },
    }

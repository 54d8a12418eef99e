"""What the service answers: the reference of the clip that it hears, by its name or by its very bytes."""

import mmap
from collections.abc import Callable, Mapping
from pathlib import Path

from loadbench.corpus import read
from loadbench.corpus.clip import Clip
from loadbench.media import prepare
from loadbench.session.load import media_form
from loadbench.session.profile import ChannelPart, Profile

Payloads = Mapping[str, bytes | memoryview]  # by clip: its media as the profile sends it, in one piece


class Answers:
    """The clips that the service knows, and what it says where it knows none."""

    def __init__(self, profile: Profile, text: str, clips: Mapping[str, Clip], payloads: Payloads) -> None:
        self._channels = profile.channels
        self._text = text
        self._clips = clips
        self._payloads = payloads

    @classmethod
    def of(cls, profile: Profile, text: str, corpus: Path | None, cache: Path | None = None) -> "Answers":
        """Read the corpus and encode it as the profile does, to know it again. Raises CorpusError, MediaError."""
        if corpus is None:
            return cls(profile, text, {}, {})
        clips = read.clips(corpus)
        tail_s = sum(step.silence_s or 0.0 for step in profile.end)
        folders = prepare.prepare(
            clips, media_form(profile.media), cache or prepare.default_cache(), None, tail_silence_s=tail_s
        )
        payloads = {name: _mapped(folder) for name, folder in folders.items()}
        return cls(profile, text, {clip.id: clip for clip in clips}, payloads)

    def hearing(self, named: str | None) -> "Recall":
        """Begin to listen to an utterance, whose clip the client may have named."""
        return Recall(named if named in self._clips else None, self._payloads)

    def text(self, clip: str | None, channel: str) -> str:
        """What to say on a channel: the clip's reference of that kind, or the sentence for unknown media."""
        known = self._clips.get(clip or "")
        return (_reference(known, self._channels[channel]) if known else None) or self._text


class Recall:
    """Which clip a stream of media is: the one that it still agrees with, byte for byte."""

    def __init__(self, named: str | None, payloads: Payloads) -> None:
        self._named = named
        self._left = {} if named else dict(payloads)
        self._at = 0

    def hear(self, payload: bytes) -> None:
        """Take the next chunk."""
        end = self._at + len(payload)
        self._left = {name: data for name, data in self._left.items() if data[self._at : end] == payload}
        self._at = end

    def clip(self, *, over: bool) -> str | None:
        """The clip, if there is only one that it can be; when the media is over, only one that is over too."""
        if self._named:
            return self._named
        left = [name for name, data in self._left.items() if not over or len(data) == self._at]
        return left[0] if len(left) == 1 or (over and left) else None


def _gloss(clip: Clip) -> str | None:
    return " ".join(clip.gloss) if clip.gloss else None


def _transcript(clip: Clip) -> str | None:
    return clip.transcript


def _translation(clip: Clip) -> str | None:
    return clip.text


# What a channel says of a clip: the first of these references that the clip has.
REFERENCES: dict[str, tuple[Callable[[Clip], str | None], ...]] = {
    "gloss": (_gloss, _transcript, _translation),
    "recognition": (_transcript, _translation, _gloss),
    "translation": (_translation, _transcript, _gloss),
    "media": (_translation, _transcript, _gloss),
}


def _reference(clip: Clip, part: ChannelPart) -> str | None:
    ways = REFERENCES["gloss" if part.unit == "gloss" else part.stage]
    return next((text for way in ways if (text := way(clip))), None)


def _mapped(folder: Path) -> bytes | memoryview:
    """All payloads of a chunk plan in a row, without reading them in."""
    with (folder / "payload.bin").open("rb") as file:
        if not file.seek(0, 2):
            return b""
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

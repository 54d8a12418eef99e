"""What a viewer gets: how long a line can be read, how fast one would have to read, how often text changes under the
eye, how long nothing comes, and how far spoken output reaches into what is said next.

Pure functions of a channel's timeline. Each utterance is a screen of its own, empty at first (see `screen`). Whatever
is a rate or a share counts against media time, never against the time that the service took, and a gap reaches from one
change to the next, also where the source has ended meanwhile: so output that comes later never looks better. The one
thing that growing delay buys is that a line stays longer, and that is true: it stands beside `through`, how far a
reader is behind, which is then worse.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from loadbench.analysis.quantile import quantiles
from loadbench.analysis.response import medium_of
from loadbench.analysis.screen import Line, Screen, screened
from loadbench.results.outcome import ending
from loadbench.results.record import SessionRecord, Utterance
from loadbench.results.run import RunHeader

MOST: Final = ("p50", "p95", "max")
LEAST: Final = ("min", "p10", "p50")


class Reader(NamedTuple):
    """How fast somebody reads; None: nobody has said. Where both are set, both hold."""

    characters_per_s: float | None = None
    words_per_s: float | None = None

    @property
    def known(self) -> bool:
        """Whether any speed is set."""
        return bool(self.characters_per_s or self.words_per_s)

    def needs_ns(self, text: str) -> int:
        """The time to read a line; 0 where no speed is set."""
        by_characters = len(text) / self.characters_per_s if self.characters_per_s else 0.0
        by_words = len(text.split()) / self.words_per_s if self.words_per_s else 0.0
        return round(max(by_characters, by_words) * 1e9)


class Setting(NamedTuple):
    """What is looked at: the screen, the reader, and from where on a gap is too long (None: nobody has said)."""

    layout: str
    characters: int
    rows: int
    reader: Reader = Reader()
    gap_s: float | None = None


class Reading(NamedTuple):
    """A reader who takes the lines in their order, each once it stands whole. Run clock.

    `through_ns` is when the last one is read, None without lines; `unread` the characters not read at the source end.
    """

    through_ns: int | None
    unread: int


def read(screen: Screen, reader: Reader, source_end_ns: int) -> Reading:
    """How somebody gets through what a screen showed, at their own speed; nothing leaves before they have read it."""
    through_ns, unread = None, 0
    for line in screen.lines:
        text = screen.text[line.start : line.stop]
        begun_ns = line.whole_ns if through_ns is None else max(through_ns, line.whole_ns)
        through_ns = begun_ns + reader.needs_ns(text)
        unread += len(text) if through_ns > source_end_ns else 0
    return Reading(through_ns, unread)


def gaps_ns(changed_ns: Iterable[int], from_ns: int) -> list[int]:
    """The stretches without any change, from `from_ns` to the last change; what changed before `from_ns` is no part."""
    marks = [from_ns, *(at_ns for at_ns in changed_ns if at_ns > from_ns)]
    return [after - before for before, after in pairwise(marks)]


def blank_ns(screen: Screen, from_ns: int, to_ns: int) -> int:
    """How much of that time the screen was empty."""
    spans = (
        (from_ns if a is None else max(a, from_ns), to_ns if b is None else min(b, to_ns)) for a, b in screen.blank
    )
    return sum(max(0, end - begin) for begin, end in spans)


class _Texts:
    """What came of one channel of texts."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.n = self.media_ns = self.active_ns = self.heard_ns = self.spoken = 0
        self.changes = self.blank_ns = self.active_blank_ns = self.quick = self.judged = self.unread = self.read = 0
        self.gap_failed = self.gaps = self.long_gaps = self.excess_ns = 0
        self.left, self.open = array("q"), 0
        self.speeds = array("d")
        self.longest, self.longest_cut = array("q"), array("q")
        self.through, self.through_failed = array("q"), 0

    def add(self, screen: Screen, utterance: Utterance, zero_ns: int, ended_ns: int, kind: str) -> None:
        """One utterance whose media began; `kind` is how it ended."""
        media_ns = utterance.media_ns if kind != "cut" else max(0, min(utterance.media_ns, ended_ns - zero_ns))
        self.n += 1
        self.media_ns += media_ns
        self.changes += screen.taken_back
        self.blank_ns += blank_ns(screen, zero_ns, zero_ns + media_ns)
        if utterance.onset_ns is not None and utterance.activity_end_ns is not None:
            begin, end = zero_ns + utterance.onset_ns, zero_ns + min(utterance.activity_end_ns, media_ns)
            self.active_ns += max(0, end - begin)
            self.active_blank_ns += blank_ns(screen, begin, end)
            if kind == "finished":
                self.heard_ns += max(0, end - begin)
                self.spoken += len(screen.text.strip())
        self._gaps(screen, zero_ns + (utterance.onset_ns or 0), ended_ns, kind)
        for line in screen.lines:
            self._line(line, screen.text[line.start : line.stop], ended_ns)
        if self._setting.reader.known and kind != "cut":
            self._read(screen, zero_ns + utterance.media_ns, kind)

    def _gaps(self, screen: Screen, from_ns: int, ended_ns: int, kind: str) -> None:
        found = gaps_ns(screen.changed_ns, from_ns)
        limit_ns = None if self._setting.gap_s is None else self._setting.gap_s * 1e9
        self.gaps += len(found)
        if limit_ns is not None:
            self.long_gaps += sum(gap > limit_ns for gap in found)
            self.excess_ns += sum(round(gap - limit_ns) for gap in found if gap > limit_ns)
        if kind == "failed" or (kind == "finished" and not screen.changed_ns):
            self.gap_failed += 1  # it waits for ever
        elif kind == "finished":
            self.longest.append(max(found, default=0))
        elif ended_ns > from_ns:
            last_ns = max([from_ns, *screen.changed_ns[-1:]])
            self.longest_cut.append(max([*found, ended_ns - last_ns]))

    def _line(self, line: Line, text: str, ended_ns: int) -> None:
        needs_ns = self._setting.reader.needs_ns(text)
        if line.left_ns is None:
            stayed_ns = max(0, ended_ns - line.whole_ns)
            self.open += 1  # for how much longer it stays nobody knows: we hung up
            self.judged += stayed_ns >= needs_ns
            return
        stayed_ns = line.left_ns - line.whole_ns
        self.left.append(stayed_ns)
        self.speeds.append(len(text) * 1e9 / stayed_ns if stayed_ns else float("inf"))
        self.judged += 1
        self.quick += stayed_ns < needs_ns

    def _read(self, screen: Screen, source_end_ns: int, kind: str) -> None:
        found = read(screen, self._setting.reader, source_end_ns)
        self.read += sum(line.stop - line.start for line in screen.lines)
        self.unread += found.unread
        if kind == "finished" and found.through_ns is not None:
            self.through.append(found.through_ns - source_end_ns)
        else:
            self.through_failed += 1

    def summary(self) -> dict[str, Any]:
        """As published by `Viewing.summary`."""
        setting, speeds = self._setting, np.sort(np.array(self.speeds))
        return {
            "n": self.n,
            "media_s": self.media_ns / 1e9,
            "lines": {
                "n": len(self.left) + self.open,
                "open": self.open,
                "readable": quantiles(self.left, stats=LEAST),
                "characters_per_s": {"p50": _nearest(speeds, 0.5), "p90": _nearest(speeds, 0.9)},
                "too_fast": {"n": self.quick, "of": self.judged} if setting.reader.known else None,
            },
            "reader": {
                "through": quantiles(self.through, self.through_failed, stats=MOST),
                "unread_share": _over(self.unread, self.read),
            }
            if setting.reader.known
            else None,
            "characters_per_media_s": _over(self.spoken * 1e9, self.heard_ns),
            "changes": {"n": self.changes, "per_media_min": _over(self.changes * 60e9, self.media_ns)},
            "gaps": {
                "n": self.gaps,
                "longest": quantiles(self.longest, self.gap_failed, self.longest_cut, MOST),
                "too_long": {"n": self.long_gaps, "excess_s": self.excess_ns / 1e9} if setting.gap_s else None,
            },
            "blank": {
                "share": _over(self.blank_ns, self.media_ns),
                "active_share": _over(self.active_blank_ns, self.active_ns),
            },
        }


class Viewing:
    """What the viewers of the utterances that were added got, by channel."""

    def __init__(self, header: RunHeader, setting: Setting) -> None:
        self._setting, self._media, self._parts = setting, header.channel_media, header.channel_stages
        self._texts: defaultdict[str, _Texts] = defaultdict(lambda: _Texts(setting))
        self._talk: defaultdict[str, tuple[array[int], list[int]]] = defaultdict(lambda: (array("q"), [0, 0]))
        self.left_out = 0

    def add(self, record: SessionRecord) -> None:
        """Count the utterances of a session; one whose media never began had no viewer and is left out."""
        self.left_out += not record.utterances
        for number, utterance in enumerate(record.utterances):
            zero_ns, following = utterance.media_zero_ns, record.utterances[number + 1 :]
            if zero_ns is None:
                self.left_out += 1
                continue
            kind = ending(utterance.outcome or record.outcome)
            for name in dict.fromkeys([*self._parts, *utterance.channels]):
                channel = utterance.channels.get(name)
                if medium_of(self._media, name) is None:
                    updates = channel.updates if channel else ()
                    screen = screened(updates, self._setting.characters, self._setting.rows)
                    self._texts[name].add(screen, utterance, zero_ns, record.ended_ns, kind)
                elif following:
                    media = channel.media if channel else None
                    self._heard(name, media.playback_end_ns if media else None, following[0])

    def _heard(self, name: str, played_ns: int | None, following: Utterance) -> None:
        reaches, counts = self._talk[name]
        zero_ns = following.media_zero_ns
        if played_ns is None or zero_ns is None:
            counts[1] += 1
            return
        reach_ns = max(0, played_ns - zero_ns - (following.onset_ns or 0))
        counts[0] += reach_ns > 0
        reaches.append(reach_ns)

    def summary(self) -> dict[str, Any]:
        """As published: the setting, and by channel what texts were and how far speech or signing ran over.

        `readable` is how long a line stood whole before it left, over those that did; `open` ones were still there when
        the session ended. `too_fast` is of those that left, and of open ones that had stayed long enough. `over` is how
        far playback reaches beyond the onset of the session's next utterance (beyond its media zero where no onset is
        known); 0 where it does not.
        """
        setting = self._setting
        over = {
            name: {
                "n": len(reaches),
                "overlapping": counts[0],
                "left_out": counts[1],
                "over": quantiles(reaches, stats=MOST),
            }
            for name, (reaches, counts) in sorted(self._talk.items())
        }
        return {
            "layout": {"name": setting.layout, "characters": setting.characters, "rows": setting.rows},
            "limits": {**setting.reader._asdict(), "gap_s": setting.gap_s},
            "left_out": self.left_out,
            "texts": {name: texts.summary() for name, texts in sorted(self._texts.items())},
            "spoken": over,
        }


def _nearest(values: "np.ndarray[Any, Any]", share: float) -> float | None:
    """An observed value; None where there is none, or where a line left at once."""
    if not len(values):
        return None
    found = float(np.quantile(values, share, method="inverted_cdf"))
    return found if np.isfinite(found) else None


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None

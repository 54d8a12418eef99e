"""The units of a text as they came to stand: when each was first shown, when it no longer changed, when it was final.

Times are receive times of the messages that brought them. A unit is *stable* since it stands in its place and all
before it stands as well: a reader who reads on never has to go back. Units that did not stay are in none of it.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from loadbench.analysis.alignment import levenshtein
from loadbench.results.record import Channel, ClipFacts, Update
from loadbench.results.reference import Kind, Unit

_WORD: Final = re.compile(r"\S+")
_CHARACTER: Final = re.compile(r"\S")
STATES: Final = ("shown", "stable", "final")


class Units(NamedTuple):
    """The units that stood in the end. Points on the run clock; `final_ns` is None for one that never was final."""

    texts: list[str]
    shown_ns: list[int]
    stable_ns: list[int]
    final_ns: list[int | None]


class Lags(NamedTuple):
    """How long after its end in the source each unit was shown, stable and final, nanoseconds, signed.

    Only units that stand for one of the reference are in it. `ends_ns` is that one's end in media time. `spare` units
    were said and stand for none, `missed` ones of the reference were not said.
    """

    ends_ns: list[int]
    shown_ns: list[int]
    stable_ns: list[int]
    final_ns: list[int | None]
    spare: int
    missed: int


class Spoken(NamedTuple):
    """A unit of the source, without case and punctuation, and the end of the word or sign it belongs to, media time."""

    text: str
    end_ns: int


def units(channel: Channel, unit: Unit) -> Units:
    """The units of what a channel showed in the end."""
    pattern, open_ended = (_CHARACTER, 0) if unit == "char" else (_WORD, 1)  # a word may grow where the text goes on
    shown, found, ends = "", Units([], [], [], []), list[int]()
    for update in channel.updates:
        keep, at_ns, kept = update.keep, update.at_ns, len(ends)
        shown = shown[:keep] + update.add
        while kept and ends[kept - 1] + open_ended > keep:
            kept -= 1
        texts = []
        del ends[kept:]
        for match in pattern.finditer(shown, ends[-1] if ends else 0):
            texts.append(match.group())
            ends.append(match.end())
        _take(found, kept, texts, at_ns)
        if update.settled:
            _settle(found.final_ns, ends, update)
    return found


def _take(found: Units, kept: int, texts: list[str], at_ns: int) -> None:
    """Units from number `kept` on become these; those at the front that are as they were keep their times.

    Of the others, one that was there before has been shown since then, as long as their order is the same.
    """
    stand, same = kept, 0
    while same < len(texts) and stand < len(found.texts) and texts[same] == found.texts[stand]:
        stand, same = stand + 1, same + 1
    before, since, new, at = found.texts[stand:], found.shown_ns[stand:], texts[same:], 0
    if before:
        for part in found:
            del part[stand:]
    for text in new:
        first_ns = at_ns
        if before and text in before[at:]:
            at = before.index(text, at) + 1
            first_ns = since[at - 1]
        found.texts.append(text)
        found.shown_ns.append(first_ns)
        found.stable_ns.append(at_ns)
        found.final_ns.append(None)


def _settle(final_ns: list[int | None], ends: list[int], update: Update) -> None:
    """Units within the settled text that were not final are final now."""
    for at in range(len(ends) - 1, -1, -1):
        if ends[at] <= update.settled:
            if final_ns[at] is not None:
                return
            final_ns[at] = update.at_ns


def spoken(facts: ClipFacts, kind: Kind, unit: Unit) -> list[Spoken]:
    """The units of the source whose times the corpus knows: words of the transcript, or signs; empty: it knows none.

    Units that are nothing but punctuation are not among them.
    """
    if kind == "transcript":
        spans, name = facts.words, "w"
    elif kind == "gloss" and facts.direction == "sign2spoken":
        spans, name = facts.gloss_spans, "gloss"
    else:
        return []
    pattern = _CHARACTER if unit == "char" else _WORD
    return [
        Spoken(bare, round(float(span["end"]) * 1e9))
        for span in spans
        for text in pattern.findall(str(span[name]))
        if (bare := _bare(text))
    ]


def lags(found: Units, source: Sequence[Spoken], zero_ns: int) -> Lags:
    """Each unit against the one of the source that it stands for, by the alignment with the fewest errors.

    Case and punctuation do not count; a unit that is nothing else is left aside. One that was said instead of another
    stands for none.
    """
    heard = [(text, at) for at, text in enumerate(map(_bare, found.texts)) if text]
    places = levenshtein([item.text for item in source], [text for text, _ in heard])
    pairs = [
        (at, source[place.behind - 1])
        for (text, at), place in zip(heard, places, strict=True)
        if place.paired and source[place.behind - 1].text == text
    ]
    return Lags(
        ends_ns=[item.end_ns for _, item in pairs],
        shown_ns=[found.shown_ns[at] - zero_ns - item.end_ns for at, item in pairs],
        stable_ns=[found.stable_ns[at] - zero_ns - item.end_ns for at, item in pairs],
        final_ns=[
            None if (at_ns := found.final_ns[at]) is None else at_ns - zero_ns - item.end_ns for at, item in pairs
        ],
        spare=len(heard) - len(pairs),
        missed=len(source) - len(pairs),
    )


@lru_cache(maxsize=65536)
def _bare(text: str) -> str:
    """Without punctuation and case."""
    return "".join(letter for letter in text.casefold() if unicodedata.category(letter)[0] not in "PZS")

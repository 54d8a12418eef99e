"""How steady a text was: tokens that were shown and taken back, by those that stood in the end.

Normalised erasure (Arivazhagan et al., IWSLT 2020): at each change, what was shown less what stayed of its beginning,
summed up, over the length of the final text. A token is a word; in scripts without spaces, a character.
"""

import re
from typing import Final, NamedTuple

from loadbench.results.record import Channel

_UNSPACED: Final = "\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff\uff00-\uff9f\U00020000-\U000323af"
_TOKEN: Final = re.compile(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]+")


class Draft(NamedTuple):
    """One output: its clip, the tokens that were taken back, and those that stood in the end."""

    clip: str
    erased: int
    final: int


def draft(clip: str, channel: Channel) -> Draft:
    """What became of a channel's text."""
    shown, tokens, erased = "", list[str](), 0
    for update in channel.updates:
        shown = shown[: update.keep] + update.add
        now = _TOKEN.findall(shown)
        erased += len(tokens) - _common(tokens, now)
        tokens = now
    return Draft(clip, erased, len(tokens))


def erasure(drafts: list[Draft]) -> float | None:
    """Pooled over all of them; None where no text stood in the end."""
    final = sum(item.final for item in drafts)
    return sum(item.erased for item in drafts) / final if final else None


def _common(before: list[str], after: list[str]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count

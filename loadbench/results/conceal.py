"""A record whose texts show no secret, neither whole nor letter by letter.

A channel's updates replay what was shown, so hiding secrets in each update alone would leave one that grows, or comes
in two messages. Here every state that was shown is masked by itself (`Masks.mask_shown`), and the updates replay the
masked states, at the same times. Up to seven characters of a secret that is just growing stay: they are nobody's.
"""

from typing import Final

import msgspec

from loadbench.results.masks import Masks
from loadbench.results.record import Channel, Segment, SessionRecord, Update, Utterance

OVERLAP: Final = 32  # what an update adds may complete the beginning of a secret that stood there before


def concealed(record: SessionRecord, masks: Masks) -> SessionRecord:
    """The record itself where there is nothing to hide, else one with other texts."""
    if not masks:
        return record
    utterances = [_utterance(utterance, masks) for utterance in record.utterances]
    if all(new is old for new, old in zip(utterances, record.utterances, strict=True)):
        return record
    return msgspec.structs.replace(record, utterances=utterances)


def _utterance(utterance: Utterance, masks: Masks) -> Utterance:
    if not any(_suspect(name, channel, masks) for name, channel in utterance.channels.items()):
        return utterance
    channels = {masks.mask_shown(name): _channel(channel, masks) for name, channel in utterance.channels.items()}
    return msgspec.structs.replace(utterance, channels=channels)


def _suspect(name: str, channel: Channel, masks: Masks) -> bool:
    """Whether a closer look is worth its time: the beginning or the end of a secret was ever shown."""
    shown, pieces = "", [name]
    for update in channel.updates:
        kept = shown[: update.keep]
        pieces.append(kept[-OVERLAP:] + update.add)
        shown = kept + update.add
    return masks.touched_by("\0".join([*pieces, *(segment.text for segment in channel.segments)]))


def _channel(channel: Channel, masks: Masks) -> Channel:
    shown = masked = ""
    updates: list[Update] = []
    for update in channel.updates:
        shown = shown[: update.keep] + update.add
        before, masked = masked, masks.mask_shown(shown)
        settled = update.settled
        if masked != shown:
            settled = min(len(masked), len(masks.mask_shown(shown[:settled])))
        keep = _common(before, masked)
        updates.append(Update(update.at_ns, keep, masked[keep:], settled))
    segments = [_segment(segment, masks) for segment in channel.segments]
    return msgspec.structs.replace(channel, updates=updates, segments=segments)


def _segment(segment: Segment, masks: Masks) -> Segment:
    return msgspec.structs.replace(segment, text=masks.mask_shown(segment.text))


def _common(a: str, b: str) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

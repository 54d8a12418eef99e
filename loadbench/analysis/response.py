"""Response times: how long after which event another one came. Signed, and None where either is unknown.

Every one counts from the plan (media zero and the media's own length), never from the deed, so that a slow tester
cannot flatter the service.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from loadbench.results.outcome import ending
from loadbench.results.record import Channel, SessionRecord, Utterance


class Metric(NamedTuple):
    """A pair of events, printed beside the number: the same word means many things to many people."""

    start: str
    stop: str


METRICS: Final[dict[str, Metric]] = {
    "first_output_from_media": Metric("media zero", "first output"),
    "first_output_from_onset": Metric("onset", "first output"),
    "first_final_from_media": Metric("media zero", "first final"),
    "final_from_source_end": Metric("source end", "last final"),
    "final_from_activity_end": Metric("activity end", "last final"),
    "final_from_eos_msg": Metric("end mark", "last final"),
    "final_from_planned_end": Metric("planned end", "last final"),
    "done_from_source_end": Metric("source end", "done"),
    "first_byte_from_media": Metric("media zero", "first byte"),
    "first_frame_from_media": Metric("media zero", "first frame"),
    "first_frame_from_onset": Metric("onset", "first frame"),
    "first_sound_from_media": Metric("media zero", "first sound"),
    "first_sound_from_onset": Metric("onset", "first sound"),
    "playback_end_from_source_end": Metric("source end", "playback end"),
    "playback_end_from_planned_end": Metric("planned end", "playback end"),
}

_MEDIA_STOPS: Final = frozenset({"first byte", "first frame", "first sound", "playback end"})
_OF_MEDIUM: Final = {"audio": _MEDIA_STOPS - {"first frame"}, "video": _MEDIA_STOPS - {"first sound"}}

Kind = Literal["exact", "at_least", "never", "left_out"]


class Observation(NamedTuple):
    """What one utterance says about one metric, for the population of all that were started.

    `exact`: the span. `at_least`: it was cut after this span, unanswered. `never`: it failed, or finished and said
    nothing here. `left_out`: it was not at risk yet, or the metric does not apply to it; no span.
    """

    kind: Kind
    span_ns: int | None = None


@cache
def applicable(medium: str | None) -> tuple[str, ...]:
    """The metrics of a channel of texts (None), of audio or of video."""
    if medium is None:
        return tuple(name for name, metric in METRICS.items() if metric.stop not in _MEDIA_STOPS)
    stops = _OF_MEDIUM[medium] | {"done"}
    return tuple(name for name, metric in METRICS.items() if metric.stop in stops)


def first_metric(medium: str | None) -> str:
    """The metric of the first thing to be read, heard or seen on a channel."""
    return {None: "first_output_from_media", "audio": "first_sound_from_media"}.get(medium, "first_frame_from_media")


def medium_of(media: Mapping[str, str], channel: str) -> str | None:
    """The medium of a channel, or of the one that it is a part of; None for texts."""
    return media.get(channel) or media.get(channel.partition(":")[0])


def responses(utterance: Utterance, record: SessionRecord, channel: Channel) -> dict[str, int | None]:
    """The span of each metric that such a channel has, in nanoseconds, signed: a negative one came early.

    None where an event is not known.

    The last final of an utterance that did not finish is not the end of its output: there those spans are None.
    `final_from_planned_end` is known for a session's first utterance only; later ones have no plan of their own.
    """
    starts, stops = _starts(utterance, record), _stops(utterance, record, channel)
    names = applicable(channel.media.medium if channel.media else None)
    return {name: _minus(stops[METRICS[name].stop], starts[METRICS[name].start]) for name in names}


def events(utterance: Utterance, record: SessionRecord, channel: Channel) -> dict[str, int | None]:
    """When each event of `METRICS` was, start or stop, run clock; None where it is not known."""
    return _starts(utterance, record) | _stops(utterance, record, channel)


def observations(
    utterance: Utterance, record: SessionRecord, channel: Channel | None, medium: str | None = None
) -> dict[str, Observation]:
    """What this utterance counts as in each metric of such a channel; `channel` is None where nothing came on it.

    A container that nobody opened is left out of what only a decoder knows.
    """
    sealed = channel is not None and channel.media is not None and not channel.media.decoded
    starts, stops = _starts(utterance, record), _stops(utterance, record, channel or Channel())
    missing = _never_known(utterance)
    kind = ending(_outcome(utterance, record))
    found = {}
    for name in applicable(medium):
        metric = METRICS[name]
        start, stop = starts[metric.start], stops[metric.stop]
        if metric.start in missing or (sealed and kind != "failed" and metric.stop in _MEDIA_STOPS - {"first byte"}):
            found[name] = Observation("left_out")
        elif kind == "failed":
            found[name] = Observation("never")
        elif start is not None and stop is not None:
            found[name] = Observation("exact", stop - start)
        elif kind == "cut":
            found[name] = _cut(start, record.ended_ns)
        else:  # a service need not have a done event, but a channel without text has not answered
            found[name] = Observation("left_out" if start is None or metric.stop == "done" else "never")
    return found


def premature(utterance: Utterance, channel: Channel) -> bool:
    """Whether output came before there was anything to interpret (before the onset; where unknown, media zero)."""
    zero = utterance.media_zero_ns
    return zero is not None and channel.first_ns is not None and channel.first_ns < zero + (utterance.onset_ns or 0)


def connecting(record: SessionRecord) -> list[dict[str, int | None]]:
    """For each connection the spans from dialling to `tcp` and to `opened` (after TLS and handshake), nanoseconds."""
    return [
        {"tcp": _minus(link.tcp_ns, link.dialled_ns), "opened": _minus(link.opened_ns, link.dialled_ns)}
        for link in record.connections
    ]


def readying(record: SessionRecord) -> int | None:
    """From the open connection to the service being ready (its opening script is over), nanoseconds."""
    if record.ready_ns is None:
        return None
    opened = [link.opened_ns for link in record.connections if link.opened_ns is not None]
    return _minus(record.ready_ns, max((at for at in opened if at <= record.ready_ns), default=None))


def asking(record: SessionRecord) -> int | None:
    """From the prelude's first request to its last answer, nanoseconds; None where nothing was asked, or in vain."""
    if not record.prelude or not record.connections:
        return None
    return _minus(record.prelude[-1].ended_ns, record.prelude[0].began_ns)


def _starts(utterance: Utterance, record: SessionRecord) -> dict[str, int | None]:
    zero = utterance.media_zero_ns
    return {
        "media zero": zero,
        "onset": _plus(zero, utterance.onset_ns),
        "source end": utterance.source_end_ns,
        "activity end": _plus(zero, utterance.activity_end_ns),
        "end mark": utterance.eos_ns,
        "planned end": record.planned_ns + utterance.media_ns if utterance.index == 0 else None,
    }


def _stops(utterance: Utterance, record: SessionRecord, channel: Channel) -> dict[str, int | None]:
    finished = ending(_outcome(utterance, record)) == "finished"
    media = channel.media
    return {
        "first output": channel.first_ns if media is None else None,
        "first final": channel.first_final_ns,
        "last final": channel.last_final_ns if finished else None,
        "done": utterance.done_ns if finished else None,
        "first byte": media.first_byte_ns if media else None,
        "first frame": media.first_frame_ns if media else None,
        "first sound": media.first_sound_ns if media else None,
        "playback end": media.playback_end_ns if media and finished else None,
    }


def _never_known(utterance: Utterance) -> frozenset[str]:
    """Start events that this utterance does not have, however it ends."""
    unknown = {
        "onset": utterance.onset_ns is None,
        "activity end": utterance.activity_end_ns is None,
        "planned end": utterance.index > 0,
    }
    return frozenset(name for name, missing in unknown.items() if missing)


def _cut(start_ns: int | None, ended_ns: int) -> Observation:
    if start_ns is None or ended_ns <= start_ns:
        return Observation("left_out")
    return Observation("at_least", ended_ns - start_ns)


def _outcome(utterance: Utterance, record: SessionRecord) -> str:
    return utterance.outcome or record.outcome


def _plus(zero_ns: int | None, span_ns: int | None) -> int | None:
    return None if zero_ns is None or span_ns is None else zero_ns + span_ns


def _minus(stop_ns: int | None, start_ns: int | None) -> int | None:
    return None if stop_ns is None or start_ns is None else stop_ns - start_ns

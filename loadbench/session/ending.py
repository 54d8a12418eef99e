"""How it ended: an outcome and a sentence, from the end of its connection and what had been said until then.

Pure: no state, no clock. The sentences are for people, with the values that they ask for next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loadbench.results.media import Medium
from loadbench.results.outcome import side
from loadbench.results.record import Channel, SessionRecord, Utterance
from loadbench.session.hearing import is_part
from loadbench.session.script import Compiled
from loadbench.session.wire import Cause

DONE: Final = "done"  # not an outcome: this end of the connection is the end of the output that the profile names
NO_CLOSE_FRAME: Final = 1006  # RFC 6455, 7.4.1: reserved for a connection that went away without a close

# kind of cause -> outcome, for those that mean the same whenever they come
_PLAIN: Final = {
    "refused": ("connect_failed", "nobody answers at the address"),
    "proxy": ("connect_failed", "the proxy did not let us through"),
    "dns": ("dns", "the name of the service has no address"),
    "tls": ("tls", "the TLS handshake failed"),
    "resource": ("no_resource", "this machine has run out of file handles or ports"),
    "protocol": ("target_error", "the service broke the protocol"),
    "too_big": ("our_limit", "a message is over our limit of message_bytes"),
    "aborted": ("internal", "our side dropped the connection unasked"),
    "no_pong": ("lost", "a ping of ours found no answer in time, which the profile takes for the end"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a conversation had come when its connection ended. `marked`: the end mark has been asked to be sent.
    `final`: there had been a final text.
    """

    opened: bool
    marked: bool
    close_is_done: bool
    said: bool
    moment: str
    final: bool = False


def seconds(span_ns: int) -> str:
    """A span for people: `1.50 s`."""
    return f"{span_ns / 1e9:.2f} s"


def moment(utterance: Utterance, at_ns: int) -> str:
    """Where in the utterance a point on the run clock lies: `1.50 s into the media`."""
    if utterance.media_zero_ns is None or utterance.source_end_ns is None or at_ns < utterance.media_zero_ns:
        return "before any media"
    if at_ns <= utterance.source_end_ns:
        return f"{seconds(at_ns - utterance.media_zero_ns)} into the media"
    return f"{seconds(at_ns - utterance.source_end_ns)} after the end of the media"


def of_loss(how: Compiled, cause: Cause, standing: Standing) -> tuple[str, str]:
    """Outcome (or `DONE`) and sentence of a conversation whose connection ended before its output was done."""
    reason = f": {cause.reason}" if cause.reason else ""
    if cause.kind in _PLAIN:
        outcome, sentence = _PLAIN[cause.kind]
        return outcome, f"{sentence}{reason}, {standing.moment}"
    if cause.kind == "rejected":
        return _of_refusal(how, cause)
    code = cause.code if cause.kind == "closed" else NO_CLOSE_FRAME
    expected = code is None or (code in how.expected and (standing.marked or code != NO_CLOSE_FRAME))
    if expected and standing.marked and standing.close_is_done:
        return DONE, "close"
    named = f"closed by {'us' if cause.by == 'us' else 'target'} {'' if code is None else code}".rstrip()
    status = how.status_of_close(code, cause.reason, said=standing.said)
    if status is not None:
        return status, f"{named}{reason}, {standing.moment}"
    if code == NO_CLOSE_FRAME and not expected:
        return _of_cut(cause, standing, reason)
    if not expected:
        return "target_error", f"{named}{reason}, {standing.moment}"
    if not standing.marked:
        had = "after a final" if standing.final else "without final"
        return "closed_early", f"{named} {had}, {standing.moment}, before the end mark{reason}"
    if standing.said:
        return "no_final", f"{named} {standing.moment}, and never said that the output was complete{reason}"
    return "no_output", f"{named} {standing.moment}, and had said nothing at all{reason}"


def of_no_answer(cause: Cause) -> tuple[str, str]:
    """Outcome and sentence of a request of the prelude that found no answer."""
    reason = f": {cause.reason}" if cause.reason else ""
    if cause.kind == "too_big":
        return "our_limit", cause.reason
    outcome, sentence = _PLAIN.get(cause.kind, ("connect_failed", "the connection was cut before there was an answer"))
    return outcome, f"{sentence}{reason}"


def _of_refusal(how: Compiled, cause: Cause) -> tuple[str, str]:
    body = cause.body.decode("utf-8", "backslashreplace").strip()
    outcome = how.status_of_answer(cause.status, body) or "rejected"
    later = "" if cause.retry_after_s is None else f", retry after {cause.retry_after_s:g} s"
    moved = f", a redirect to {cause.location}, which is not followed" if cause.location else ""
    detail = body or cause.reason
    return outcome, f"refused with HTTP status {cause.status}{later}{moved}" + (f": {detail}" if detail else "")


def _of_cut(cause: Cause, standing: Standing, reason: str) -> tuple[str, str]:
    way = "reset" if cause.kind == "reset" else "cut"
    if not standing.opened:
        return "connect_failed", f"the connection was {way} before it stood{reason}"
    return "lost", f"lost without close: the connection was {way} {standing.moment}{reason}"


def of_output(channels: Mapping[str, Channel], headline: str, medium: Medium | None = None) -> tuple[str, str]:
    """Outcome and sentence of an utterance that is done; `medium` is that of a headline channel of media.

    ok asks for a non-empty final on the headline channel, of which `headline:...` are parts; a final elsewhere does
    not answer for it. Of media it asks for something to hear or to see, and of a container, which is opened later, for
    something at all.
    """
    ours = {name for name in channels if is_part(name, headline)}
    if medium is not None:
        return _of_media([channels[name] for name in sorted(ours)], headline, medium)
    if any(channels[name].last_final_ns is not None for name in ours):
        return "ok", ""
    finals = sorted(name for name, channel in channels.items() if channel.last_final_ns is not None)
    if finals:
        return "no_final", f"no final on channel {headline}, only on {', '.join(finals)}"
    if any(channel.first_ns is not None for channel in channels.values()):
        return "no_final", "done, but no text was ever final"
    return "no_output", "done, and the service had said nothing at all"


def judged_again(record: SessionRecord, headline: str, medium: Medium | None) -> None:
    """Judge the finished utterances of a record again, whose media has been opened since: what nobody can hear or see
    is no output. The times stay.
    """
    if medium is None or record.outcome != "ok":
        return
    for utterance in record.utterances:
        if utterance.outcome == "ok":
            utterance.outcome, sentence = of_output(utterance.channels, headline, medium)
            record.cause = record.cause or sentence
    record.outcome = next((part.outcome for part in record.utterances if part.outcome not in ("ok", None)), "ok")
    record.side = side(record.outcome)


def _of_media(ours: Sequence[Channel], headline: str, medium: Medium) -> tuple[str, str]:
    found = [channel.media for channel in ours if channel.media is not None]
    if any(media.first_ns is not None or not media.decoded for media in found):
        return "ok", ""
    size = sum(media.bytes for media in found)
    if not size:
        return "no_output", f"done, and no media came on channel {headline}"
    missing = "no audible sample" if medium == "audio" else "no picture that can be decoded"
    return "no_output", f"done, with {size} bytes on channel {headline} and {missing} among them"

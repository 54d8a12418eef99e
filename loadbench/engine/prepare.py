"""Payloads into wire messages, once before the run, so that nothing is encoded or masked while it goes on."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from loadbench.media.plan import ChunkPlan
from loadbench.session.message import MediaMessage, media_messages
from loadbench.session.plugin import Frame, Framing
from loadbench.session.profile import Profile
from loadbench.session.wire import Kind
from loadbench.transports.contract import Encoder, Transport


def wire_plans(
    profile: Profile,
    folders: dict[str, Path],
    transport: Transport,
    out: Path,
    random: Callable[[int], bytes],
    *,
    fresh: bool = False,
    framing: Framing | None = None,
) -> dict[str, tuple[Path, bool]]:
    """For each clip the folder, below `out`, of a `ChunkPlan` of its media as it goes over the wire.

    True beside it: messages hold something of the session's own, and the plan holds the parts that all share, for
    `Encoder.joined`. End marks are not among them. `random` draws a mask for each message; with `fresh` each session
    will draw its own, and the parts are left as they are; so they are for a `framing` whose messages hold something of
    the session's own. Raises PluginError.
    """
    messages = media_messages(profile.media, profile.transport.form)
    encoder = transport.encoder(random, profile.transport.encoding)
    independent = all(message.independent for message in messages)
    made: dict[str, tuple[Path, bool]] = {}
    for number, (clip, folder) in enumerate(folders.items()):
        payloads = ChunkPlan.load(folder)
        place = out / f"{number:05d}"
        bare = fresh or (framing is not None and not independent)
        wires = _wired(payloads, messages, None if bare else encoder, framing, independent=independent)
        sizes = payloads.media.tolist()
        ChunkPlan.write(place, wires, payloads.duration_ns, payloads.tracks, media=sizes)
        made[clip] = place, fresh or not independent
    return made


def _wired(
    payloads: ChunkPlan,
    messages: Sequence[MediaMessage],
    encoder: Encoder | None,
    framing: Framing | None,
    *,
    independent: bool,
) -> Iterator[tuple[int, int, bytes]]:
    """Wire messages, or their shared parts; bare ones where no encoder is given."""
    for index in range(len(payloads)):
        due_ns, payload = int(payloads.due_ns[index]), payloads.wire(index)
        track, number, count = payloads.place(index)
        message = messages[track]
        if encoder is None:
            wire = message.shared(payload)
        elif independent:
            kind: Kind = message.kind
            whole = message.whole(payload, number, count, due_ns)
            if framing is not None:
                kind, whole = framing.encode(Frame(message.kind, whole, "media", number, number == count - 1))
            wire = encoder.whole(kind, whole)
        else:
            wire = encoder.shared(message.shared(payload))
        yield due_ns, track, wire

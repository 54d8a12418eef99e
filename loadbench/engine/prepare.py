"""Payloads into wire messages, once before the run, so that nothing is encoded or masked while it goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

from loadbench.media.plan import ChunkPlan
from loadbench.session.message import MediaMessage
from loadbench.session.profile import Profile
from loadbench.transports.contract import Encoder, Transport


def wire_plans(
    profile: Profile,
    folders: dict[str, Path],
    transport: Transport,
    out: Path,
    random: Callable[[int], bytes],
    *,
    fresh: bool = False,
) -> dict[str, tuple[Path, bool]]:
    """For each clip the folder, below `out`, of a `ChunkPlan` of its media as it goes over the wire.

    True beside it: messages hold something of the session's own, and the plan holds the parts that all share, for
    `Encoder.joined`. End marks are not among them. `random` draws a mask for each message; with `fresh` each session
    will draw its own, and the parts are left as they are.
    """
    message, encoder = MediaMessage(profile.media, profile.transport.form), transport.encoder(random)
    made: dict[str, tuple[Path, bool]] = {}
    for number, (clip, folder) in enumerate(folders.items()):
        payloads = ChunkPlan.load(folder)
        place = out / f"{number:05d}"
        wires = _bare(payloads, message) if fresh else _wired(payloads, message, encoder)
        sizes = payloads.media.tolist()
        ChunkPlan.write(place, wires, payloads.duration_ns, payloads.tracks, media=sizes)
        made[clip] = place, fresh or not message.independent
    return made


def _wired(payloads: ChunkPlan, message: MediaMessage, encoder: Encoder) -> Iterator[tuple[int, int, bytes]]:
    count = len(payloads)
    for index in range(count):
        due_ns, payload = int(payloads.due_ns[index]), payloads.wire(index)
        if message.independent:
            wire = encoder.whole(message.kind, message.whole(payload, index, count, due_ns))
        else:
            wire = encoder.shared(message.shared(payload))
        yield due_ns, int(payloads.track[index]), wire


def _bare(payloads: ChunkPlan, message: MediaMessage) -> Iterator[tuple[int, int, bytes]]:
    for index in range(len(payloads)):
        yield int(payloads.due_ns[index]), int(payloads.track[index]), message.shared(payloads.wire(index))

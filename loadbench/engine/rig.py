"""What the sessions of a run share, and what each of them is to do."""

from collections.abc import Callable
from dataclasses import dataclass

from loadbench.engine.address import Addresses
from loadbench.engine.alarm import Agenda
from loadbench.engine.health import Heart
from loadbench.engine.ledger import Ledger
from loadbench.engine.pacer import Wheel
from loadbench.engine.pipe import Outbound, Start
from loadbench.engine.reel import Reel
from loadbench.engine.workload import Slot
from loadbench.results.masks import Masks
from loadbench.session.machine import Compiled
from loadbench.session.message import MediaMessage
from loadbench.session.profile import Profile
from loadbench.session.wire import ClipTask, Limits
from loadbench.transports.contract import Asker, Clock, Encoder, Transport


@dataclass(slots=True, frozen=True)
class Rig:
    """What all sessions of a run share. `asker` is None where the profile has no prelude."""

    start: Start
    profile: Profile
    compiled: Compiled
    limits: Limits
    transport: Transport
    encoder: Encoder
    messages: tuple[MediaMessage, ...]  # by track
    endpoints: tuple[Addresses, ...]
    masks: Masks
    wheel: Wheel
    agenda: Agenda
    heart: Heart
    clock: Clock
    origin_ns: int
    emit: Callable[[Outbound], None]
    ledger: Ledger
    asker: Asker | None = None


@dataclass(slots=True, frozen=True)
class Role:
    """What one session is to do. `number` counts sessions from 0; beside each clip, for which time it is streamed.

    `due_ns` is when it could begin: as planned, or as soon as an endpoint was free. `endpoint` is which of the rig's;
    None: it found none, and is never to connect.
    """

    id: str
    number: int
    slot: Slot
    parts: list[tuple[Reel, int]]
    log_chunks: bool
    log_messages: bool
    due_ns: int
    endpoint: int | None = 0
    log_media: bool = False

    @property
    def tasks(self) -> list[ClipTask]:
        """The clips as the conversation wants them."""
        return [reel.task(attempt) for reel, attempt in self.parts]

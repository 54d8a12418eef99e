"""The canary: a few sessions against a responder of ours that answers at once, beside the sessions of a run.

What they measure is the tester, the loopback and the responder, and so no less than the tester's own share of what the
others measure. They share the wheel, the agenda, the transport and the media with the run, and its books not at all:
their chunks go into a ledger of their own, and of their events only `CanaryRecord` leaves the engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Final

import msgspec

from loadbench.engine.address import Addresses
from loadbench.engine.alarm import MS
from loadbench.engine.drive import Driver
from loadbench.engine.ledger import Ledger
from loadbench.engine.pipe import Canary, Outbound, Start
from loadbench.engine.reel import Reel
from loadbench.engine.rig import Rig, Role
from loadbench.engine.workload import Schedule, Slot
from loadbench.results.record import CanaryRecord, SessionRecord

FIRST_NS: Final = 100 * MS  # after the run's beginning
PAUSE_NS: Final = 1000 * MS  # between two sessions of one user
FIRST_NUMBER: Final = 1_000_003  # far from the run's sessions, whose places on the chunk clock follow their numbers
PLACEHOLDER: Final = "canary"  # for secrets, which do not leave for anywhere but the target


class Aviary:
    """Keeps the canaries of a run: each user's sessions follow one another from `begin` to `close`.

    The shortest clips come first, so that a short run has some that came to their end. An error in here ends the
    canaries and is told to `note`; it never reaches the run.
    """

    def __init__(
        self,
        canary: Canary,
        rig: Rig,
        reels: Sequence[Reel],
        schedule: Schedule,
        note: Callable[[Exception], None],
    ) -> None:
        start = elsewhere(rig.start, canary.url, canary.params)
        self._emit = rig.emit
        addresses = Addresses(start, rig.profile)
        self._rig = replace(rig, start=start, endpoints=(addresses,), emit=self._heard, ledger=Ledger())
        self._users, self._schedule, self._note = canary.users, schedule, note
        self._reels = cycle(sorted(reels, key=lambda reel: reel.media_ns))
        self._active: dict[str, Driver] = {}
        self._count = 0
        self._closed = False

    def begin(self, at_ns: int) -> None:
        """Let the first sessions begin soon after this, each user's a little later than the one's before."""
        for user in range(self._users):
            self._later(user, at_ns + FIRST_NS + user * PAUSE_NS // self._users)

    def close(self) -> None:
        """Cut what still sings, without a word."""
        self._closed = True
        for driver in list(self._active.values()):
            driver.stop("time_up")

    def _later(self, user: int, at_ns: int) -> None:
        self._rig.agenda.at(at_ns, partial(self._start_one, user, at_ns))

    def _start_one(self, user: int, planned_ns: int) -> None:
        if self._closed:
            return
        try:
            slot = Slot(planned_ns, user, self._schedule.window(planned_ns), self._schedule.stage(planned_ns))
            number, self._count = self._count, self._count + 1
            role = Role(
                id=f"{PLACEHOLDER}-{number}",
                number=FIRST_NUMBER + number,
                slot=slot,
                parts=[(next(self._reels), 0)],
                log_chunks=False,
                log_messages=False,
                due_ns=planned_ns,
            )
            driver = Driver(self._rig, role, self._over)
            self._active[role.id] = driver
            driver.begin()
        except Exception as error:  # ours, and no reason to disturb the run
            self._note(error)
            self.close()

    def _over(self, driver: Driver, _outcome: str) -> None:
        del self._active[driver.role.id]
        self._rig.ledger.gather()
        if not self._closed:
            self._later(driver.role.slot.user, self._rig.clock() + PAUSE_NS)

    def _heard(self, event: Outbound) -> None:
        if isinstance(event, SessionRecord) and not self._closed:
            reel, _ = self._active[event.id].role.parts[0]
            self._emit(_record(event, self._rig.profile.headline, reel.due_ns[0]))


def elsewhere(start: Start, url: str, params: dict[str, str]) -> Start:
    """The same, to a responder of ours at `url`, with nothing that was meant for the target's eyes only."""
    return msgspec.structs.replace(
        start,
        url=url,
        prelude_at="http" + url.removeprefix("ws").removeprefix("http"),
        headers=[],
        env={},
        params=params,
        secrets=dict.fromkeys(start.secrets, PLACEHOLDER),
        identify=False,
        tls={},
        proxy="",
        media_start="on_ready",
    )


def _record(record: SessionRecord, headline: str, first_due_ns: int) -> CanaryRecord:
    """`first_due_ns` is when the first chunk is due, from media zero: no responder can answer before that."""
    link = record.connections[0] if record.connections else None
    opened_ns = link.opened_ns if link else None
    first_ns = final_ns = None
    for utterance in record.utterances[:1]:
        zero_ns, end_ns, channel = utterance.media_zero_ns, utterance.source_end_ns, utterance.channels.get(headline)
        if channel is not None and zero_ns is not None and channel.first_ns is not None:
            first_ns = channel.first_ns - zero_ns - first_due_ns
        if channel is not None and end_ns is not None and channel.last_final_ns is not None:
            final_ns = channel.last_final_ns - end_ns
    return CanaryRecord(
        id=record.id,
        worker=record.worker,
        clip=record.utterances[0].clip if record.utterances else "",
        window=record.window,
        begun_ns=record.begun_ns,
        outcome=record.outcome,
        side=record.side,
        cause=record.cause,
        connect_span_ns=None if link is None or opened_ns is None else opened_ns - link.dialled_ns,
        first_span_ns=first_ns,
        final_span_ns=final_ns,
        lateness_max_ns=record.lateness.max_ns,
        tainted=record.tainted,
    )

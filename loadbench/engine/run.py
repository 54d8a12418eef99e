"""The engine: a workload carried out, from `Ready` to `Finished`. It knows its messages, and no process or pipe."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

from loadbench import plugins
from loadbench.engine import health, workload
from loadbench.engine.address import Addresses, MissingFieldError
from loadbench.engine.alarm import MS, Agenda, MakeAlarm, Reminder, kernel_alarm
from loadbench.engine.books import Books
from loadbench.engine.canary import Aviary
from loadbench.engine.drive import Driver
from loadbench.engine.pacer import Wheel
from loadbench.engine.pipe import Begin, Finished, Outbound, Ready, Start, Stop
from loadbench.engine.pool import Pool
from loadbench.engine.reel import Reel
from loadbench.engine.rig import Rig, Role
from loadbench.results.masks import Masks
from loadbench.results.outcome import ending
from loadbench.session.machine import compile_profile
from loadbench.session.message import media_kinds, media_messages
from loadbench.session.profile import Profile
from loadbench.session.wire import Limits
from loadbench.transports import load as load_transport
from loadbench.transports import load_asker
from loadbench.transports.contract import Asker, Clock, Transport

SECOND_NS: Final = 1_000_000_000
LEAD_NS: Final = 50 * MS  # from the word that it is ready to the first session
GATHER_NS: Final = 50 * MS  # between two looks at what was sent, and how late
SETTLE_NS: Final = SECOND_NS  # after the ramp, when the last of its sessions stand


class Engine:
    """Carries out one `Start`; made on the running loop. Raises ValueError or OSError for what cannot be carried out.

    `emit` takes each message and must not block. `facts` go into `Ready`, `levels` are read for each tick, and `settle`
    is called when the ramp is over. The clock, the alarms and the transport can be others in tests.
    """

    def __init__(
        self,
        start: Start,
        emit: Callable[[Outbound], None],
        *,
        clock: Clock = time.monotonic_ns,
        make_alarm: MakeAlarm = kernel_alarm,
        transport: Transport | None = None,
        asker: Asker | None = None,
        facts: dict[str, Any] | None = None,
        levels: Callable[[], dict[str, float]] = dict,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._start, self._emit, self._clock = start, emit, clock
        self._levels, self._settle = levels, settle
        profile = Profile.model_validate(start.profile)
        transport = transport or load_transport(profile.transport.carrier)
        self._reels = [Reel(entry) for entry in start.clips]
        if not self._reels:
            raise ValueError("there is no clip to stream")
        found = plugins.load(profile)
        endpoints = tuple(Addresses(start, profile, auth=found.auth, url=url) for url in start.urls or [start.url])
        if profile.prelude:
            asker = asker or load_asker()
        for addresses in endpoints:
            _check(addresses, self._reels[0], transport, asker)
        self._begin_ns = start.begin_ns if start.begin_ns is not None else -(-(clock() + LEAD_NS) // MS) * MS
        self._agenda = Agenda(clock, make_alarm)
        wheel = Wheel(clock, make_alarm)
        self._rig = Rig(
            start=start,
            profile=profile,
            compiled=compile_profile(profile, found),
            limits=_limits(start, endpoints[0].message_bytes),
            transport=transport,
            encoder=transport.encoder(os.urandom, profile.transport.encoding),
            messages=media_messages(profile.media, profile.transport.form),
            endpoints=endpoints,
            masks=Masks([*start.secrets.values(), *start.hidden]),
            wheel=wheel,
            ledger=wheel.ledger,
            asker=asker,
            agenda=self._agenda,
            heart=health.Heart(clock, make_alarm),
            clock=clock,
            origin_ns=self._begin_ns,
            emit=emit,
        )
        self._books = Books(start, media_kinds(profile.media), self._rig.wheel, self._rig.heart, clock)
        self._pool = Pool(len(endpoints), start.per_endpoint, start.seed)
        self._waiting: deque[workload.Slot] = deque()
        self._schedule = workload.Schedule(start.workload, self._begin_ns, start.seed)
        self._aviary = start.canary and Aviary(start.canary, self._rig, self._reels, self._schedule, self._note)
        speakers = [reel.fields.get("speaker", "") for reel in self._reels]
        dialogue = start.workload.model == "dialogue"
        self._decks = workload.decks(speakers, start.order, start.seed, dialogue=dialogue)
        self._starts = Reminder(self._agenda, self._guarded(self._start_due))
        self._next_tick_ns = self._begin_ns + SECOND_NS
        self._media_left_ns = None if start.budget_media_s is None else round(start.budget_media_s * 1e9)
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reason, self._error = "completed", ""
        self._facts = (facts or {}) | {"alarm": self._agenda.alarm_name, "clips": len(self._reels)}

    @property
    def started(self) -> int:
        """Sessions begun so far."""
        return self._books.started

    def take(self, message: Begin | Stop) -> None:
        """Begin one session more, or come to an end; at any time."""
        if isinstance(message, Begin):
            self._schedule.begin(message.session, message.planned_ns)
            self._starts.by(self._schedule.next_ns)
        else:
            self._close(message.outcome)
            self._cut_waiting(message.outcome)
            self._cut_at(self._clock() + round(message.drain_s * 1e9), message.outcome)

    async def run(self) -> None:
        """From `Ready` until every session has ended and been recorded, and `Finished`. May be called once."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._heard_of)
        self._emit(Ready(begin_ns=self._begin_ns, pid=os.getpid(), facts=self._facts))
        self._agenda.at(self._begin_ns, self._guarded(self._begin))
        try:
            with self._books.collections.watched():
                await self._done
        finally:
            if self._aviary:
                self._aviary.close()
            for waker in (self._agenda, self._rig.wheel, self._rig.heart):
                waker.close()
            loop.set_exception_handler(None)
        self._emit_tick()
        self._emit(
            Finished(ended_ns=self._clock(), started=self._books.started, reason=self._reason, error=self._error)
        )

    def _begin(self) -> None:
        self._books.begin(self._begin_ns)
        self._rig.heart.start(self._begin_ns)
        self._agenda.at(self._next_tick_ns, self._guarded(self._tick))
        self._gather()
        self._agenda.at(self._schedule.ramped_ns + SETTLE_NS, self._guarded(self._settle))
        drain_s = self._start.workload.drain_s
        if self._schedule.end_ns is not None and drain_s is not None:
            self._cut_at(self._schedule.end_ns + round(drain_s * 1e9), "time_up")
        if self._aviary:
            self._aviary.begin(self._begin_ns)
        self._start_due()
        self._look_for_the_end()

    # ---- during

    def _start_due(self) -> None:
        """Begin one session that is due; the agenda comes back for the next, and lets the loop read in between."""
        due_ns = self._schedule.next_ns
        if due_ns is not None and due_ns <= self._clock():
            slot = self._schedule.pop()
            endpoint = None if self._waiting else self._pool.take()
            if endpoint is None:
                self._waiting.append(slot)
            else:
                self._start_one(slot, slot.planned_ns, endpoint)
        self._starts.by(self._schedule.next_ns)

    def _wake_waiting(self) -> None:
        """An endpoint may be free now; in a turn of the loop's own, for whoever says so is still ending."""
        if self._waiting:
            now = self._clock()
            self._agenda.at(now, self._guarded(partial(self._start_waiting, now)))

    def _start_waiting(self, free_ns: int) -> None:
        if self._waiting and (endpoint := self._pool.take()) is not None:
            self._start_one(self._waiting.popleft(), free_ns, endpoint)

    def _cut_waiting(self, outcome: Literal["interrupted", "time_up"]) -> None:
        """No endpoint was free for these until the end: they count as started and cut, and connect to nobody."""
        while self._waiting:
            driver = self._start_one(self._waiting.popleft(), self._clock(), None)
            if driver is not None:
                driver.stop(outcome)

    def _start_one(self, slot: workload.Slot, due_ns: int, endpoint: int | None) -> Driver | None:
        """Begin it; None where the budget is used up. `due_ns` is when it could begin: what follows is our lateness.

        A session that waited for an endpoint waited for the service, which takes no more at a time. It keeps its plan,
        and what is measured from the plan holds the wait; the tester is not to blame for it.
        """
        deck = self._decks[(slot.party or 0) % len(self._decks)]
        parts = [(self._reels[clip], attempt) for clip, attempt in islice(deck, self._start.workload.utterances)]
        if self._media_left_ns is not None:
            self._media_left_ns -= sum(reel.media_ns for reel, _ in parts)
            if self._media_left_ns < 0:
                self._close("budget")
                self._schedule.ended(slot.user, self._clock())
                self._leave(endpoint)
                self._look_for_the_end()
                return None
        number = self._books.started
        role = Role(
            id=slot.name or f"{self._start.worker}-s{number}",
            number=number,
            slot=slot,
            parts=parts,
            log_chunks=self._sampled(number, self._start.sample_chunks),
            log_messages=self._sampled(number, self._start.sample_messages),
            log_media=number < self._start.sample_media,
            due_ns=due_ns,
            endpoint=endpoint,
        )
        answered = self._answered if slot.party is not None else None
        driver = Driver(self._rig, role, self._over, answered)
        self._books.began(driver, max(0, self._clock() - due_ns))
        driver.begin()
        return driver

    def _leave(self, endpoint: int | None) -> None:
        if endpoint is not None:
            self._pool.free(endpoint)
        self._wake_waiting()

    def _sampled(self, number: int, size: int) -> bool:
        """Spread over the run where its length in sessions is known, else the first ones."""
        total = self._start.workload.sessions or 0
        stride = max(1, -(-total // size)) if size else 1
        return number % stride == 0 and number // stride < size

    def _answered(self, driver: Driver) -> None:
        """The other party of a dialogue may think of what to say while the connection is still closing."""
        self._schedule.answered(driver.role.slot.user, self._clock())
        self._starts.by(self._schedule.next_ns)

    def _over(self, driver: Driver, outcome: str) -> None:
        self._books.ended(driver, outcome)
        self._leave(driver.role.endpoint)
        self._schedule.ended(driver.role.slot.user, self._clock(), failed=ending(outcome) == "failed")
        self._starts.by(self._schedule.next_ns)
        self._look_for_the_end()

    def _tick(self) -> None:
        self._emit_tick()
        missed = max(0, self._clock() - self._next_tick_ns) // SECOND_NS
        self._next_tick_ns += (missed + 1) * SECOND_NS
        self._agenda.at(self._next_tick_ns, self._guarded(self._tick))

    def _gather(self) -> None:
        self._rig.ledger.gather()
        self._books.look_round(GATHER_NS / SECOND_NS)
        self._agenda.at(self._clock() + GATHER_NS, self._guarded(self._gather))

    def _emit_tick(self) -> None:
        now = self._clock()
        self._emit(self._books.tick(now, self._schedule, self._levels()))

    # ---- the end

    def _close(self, reason: str) -> None:
        if self._reason == "completed":
            self._reason = reason
        self._schedule.close()
        self._look_for_the_end()

    def _cut_at(self, at_ns: int, outcome: Literal["interrupted", "time_up"]) -> None:
        def cut() -> None:
            if self._books.active or self._waiting:
                self._close(outcome)
            self._cut_waiting(outcome)
            for driver in self._books.active.values():
                self._agenda.at(at_ns, partial(driver.stop, outcome))

        self._agenda.at(at_ns, cut)

    def _look_for_the_end(self) -> None:
        idle = not self._books.active and not self._waiting
        if self._schedule.exhausted and idle and not self._done.done():
            self._done.set_result(None)

    def _guarded(self, call: Callable[[], None]) -> Callable[[], None]:
        """For what no session answers for: an error cuts the run, aloud, rather than leaving it to hang."""

        def guarded() -> None:
            try:
                call()
            except Exception as error:
                self._note(error)
                self._close("failed")
                self._cut_at(self._clock(), "interrupted")
                raise

        return guarded

    def _note(self, error: Exception) -> None:
        """The first error is the one that `Finished` tells of."""
        self._error = self._error or self._rig.masks.mask(f"{type(error).__name__}: {error}")

    def _heard_of(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that the loop caught: in the log, and the first one in `Finished`."""
        error = context.get("exception")
        self._note(error if isinstance(error, Exception) else RuntimeError(str(context.get("message"))))
        loop.default_exception_handler(context)


def _check(addresses: Addresses, reel: Reel, transport: Transport, asker: Asker | None) -> None:
    try:
        addresses.check(addresses.fields("check", reel.fields), transport, asker)
    except MissingFieldError as error:
        raise ValueError(str(error)) from None


def _limits(start: Start, message_bytes: int) -> Limits:
    given = {name: value for name, value in start.limits.items() if name != "message_bytes"}
    return Limits(**given, message_bytes=message_bytes)  # type: ignore[arg-type]  # close_s is never None

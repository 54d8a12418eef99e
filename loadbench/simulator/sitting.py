"""One client's session with the service: its opening, its media, its slot, what is said to it, and what is logged."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from loadbench.session.profile import Profile
from loadbench.simulator.answers import Answers
from loadbench.simulator.behave import SECOND, Course, Fate, Gate, Line, Slips, ns
from loadbench.simulator.hear import Ear, Frame, Grammar
from loadbench.simulator.log import Entry, Log, Spoken
from loadbench.simulator.mouth import Mouth
from loadbench.simulator.options import Options
from loadbench.simulator.speak import Speaker

QUIET_NS = SECOND // 2  # where a profile has no end mark, media that pauses so long is over
PATIENT_NS = SECOND  # and where the client waits for quiet before it marks the end: it waits for some seconds
FAREWELL_NS = 5 * SECOND  # a client that does not close after the done message is closed on
TRY_AGAIN_LATER = 1013  # the close code of a service that is full, where a profile has none of its own


class Wire(Protocol):
    """A connection, as a session needs it."""

    async def say(self, message: str | bytes) -> None:
        """Send one message, of text or of bytes."""

    async def close(self, code: int | None) -> None:
        """End politely; None: with the usual code."""

    async def drop(self, how: str | int) -> None:
        """Cut: "fin", "rst" or a close code."""


class Mind(Protocol):
    """What makes texts out of media: a timetable, or a recogniser. One for each utterance."""

    def ready(self, now_ns: int, /) -> None:
        """The opening is over."""

    def begin(self, now_ns: int, /) -> None:
        """The session has its slot."""

    def chunk(self, payload: bytes, /) -> None:
        """Media has arrived, with or without a slot."""

    def end(self, now_ns: int, /) -> None:
        """The media is over, and the session has its slot."""

    def gone(self) -> None:
        """Nobody listens any more."""


@dataclass(slots=True)
class House:
    """What all sessions of a service share."""

    options: Options
    profile: Profile
    speaker: Speaker
    grammar: Grammar
    answers: Answers
    log: Log
    clock: Callable[[], int]
    mind: Callable[["Sitting", Course], Mind]
    fate: Fate = field(init=False)
    gate: Gate = field(init=False)
    line: Line = field(init=False)
    slips: Slips = field(init=False)
    heard_before: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fate = Fate(self.options)
        self.gate = Gate(self.options)
        self.line = Line(self.options.capacity)
        self.slips = Slips(self.options.wrong_rate, self.options.seed)


class Sitting:
    """One connection. The server tells it what comes in; it says things through its mouth, at their times."""

    def __init__(self, house: House, wire: Wire, course: Course, entry: Entry) -> None:
        self.house = house
        self.course = course
        self._wire = wire
        self._named = entry.clip
        mute_s = house.options.silent_after_s
        self.mouth = Mouth(house.gate, house.clock, None if mute_s is None else entry.opened_ns + ns(mute_s))
        self._ear = Ear(house.grammar)
        self._ready = self._refused = False
        self._begin_utterance(entry)

    def _begin_utterance(self, entry: Entry) -> None:
        self.entry = entry
        self.voice = self.house.speaker.voice({"session.id": entry.session, "session.uuid": entry.session})
        self.recall = self.house.answers.hearing(self._named)
        self._mind = self.house.mind(self, self.course)
        self._hash, self._also_hash = hashlib.sha256(), hashlib.sha256()
        self._first_digest = b""
        self._ms: float | None = None
        self._latest: list[Any] = []
        self._slot_ns: int | None = None
        self._holds = self._leaves_later = self._marked = self._finals_over = self._leaving = self._over = False

    # ---- what comes in

    def opened(self) -> None:
        """The connection stands."""
        now_ns, speaker = self.entry.opened_ns, self.house.speaker
        if self.house.options.greeting:
            self._later(now_ns, self.house.options.greeting)
        if speaker.greeting is not None:
            self._later(now_ns, speaker.greeting)
        if self.course.refused:
            self._refuse(now_ns)
        else:
            self._advance(now_ns)

    def heard(self, frame: Frame, data: bytes, now_ns: int) -> None:
        """A message, or a piece of a body."""
        if self._refused:
            return
        heard = self._ear.hear(frame, data)
        if heard.violation and heard.violation not in self.entry.violations:
            self.entry.violations.append(heard.violation)
        if heard.kind == "open":
            if self._over:
                self._next_utterance()
            self._advance(now_ns)
        elif heard.kind == "media":
            self._chunk(heard.payload, heard.ms, now_ns)
        elif heard.kind == "also":
            self.entry.also_ns.append(now_ns)
            self.entry.also_bytes.append(len(heard.payload))
            self._also_hash.update(heard.payload)
        if heard.kind == "end" or heard.last:
            self.ended(now_ns, last=heard.last)

    def ended(self, now_ns: int, *, last: bool = True) -> None:
        """The end mark, or the end of the body. Finals count from the first mark, done is only said after the last."""
        self._marked = self._marked or last
        if self._refused or self._over:
            return
        if self.entry.end_ns is None:
            self.entry.end_ns = now_ns
            if not self.entry.chunks_ns:
                self.house.line.enter(self._begin, now_ns)
            elif self._slot_ns is not None:
                self._mind.end(now_ns)
        elif self._finals_over:
            self.finals_over(now_ns)

    def gone(self, now_ns: int, by: Literal["client", "service", "network"], code: int | None) -> None:
        """The connection is no more."""
        self.entry.closed_ns, self.entry.close_by, self.entry.close_code = now_ns, by, code
        self._mind.gone()
        if not self._leaves_later:
            self.leave()
        self._write()

    # ---- what goes out; to be awaited in deeds of the mouth

    async def say_partial(self, texts: dict[str, str]) -> None:
        """Show texts, by channel, that may still change."""
        said = [message for name, text in texts.items() for message in self.voice.partial(name, text, self.heard_ms)]
        self._latest = said or self._latest
        raws = [self._padded(self._raw(message)) for message in said * self.house.options.repeats]
        if any(text.strip() for text in texts.values()) and self.entry.first_sent_ns is None:
            raws = self._first_output(raws)
        for raw in raws:
            await self._wire.say(raw)

    async def say_final(self, texts: dict[str, str]) -> None:
        """Make texts final, by channel."""
        said = [message for name, text in texts.items() for message in self.voice.final(name, text, self.heard_ms)]
        self._latest = []
        raws = [self._raw(message) for message in said]
        if any(text.strip() for text in texts.values()):
            raws = self._first_output(raws) if self.entry.first_sent_ns is None else raws
            self.entry.final_sent_ns = self.house.clock()
        for name, text in texts.items():
            self.entry.text[name] = " ".join(filter(None, (self.entry.text.get(name), text)))
        for raw in raws:
            await self._wire.say(raw)

    async def say_media(self, channel: str, data: bytes, *, sounds: bool) -> None:
        """Send a piece of output media; `sounds`: there is something to hear in it."""
        message = self.house.speaker.media[channel].message(data)
        raw = message if isinstance(message, bytes) else self._raw(message)
        spoken = self.entry.media.setdefault(channel, Spoken())
        if sounds and spoken.sound is None:
            spoken.sound = len(spoken.sent_ns)
        spoken.sent_ns.append(self.house.clock())
        spoken.bytes += len(data)
        await self._wire.say(raw)

    def finals_over(self, now_ns: int) -> None:
        """The last final has been said: done follows, as soon as the last end mark is in."""
        self._finals_over = True
        if not self._marked or self._leaving:
            return
        self._leaving = True
        if self.house.options.trailer:
            self._later(now_ns, self.house.options.trailer)
        self.mouth.at(now_ns + ns(self.house.options.done_s), self._done)

    def leave(self) -> None:
        """Give the slot back, or step out of the line."""
        if not self._holds:
            self.house.line.forget(self._begin)
        else:
            self._holds = False
            self.house.line.leave(self.house.clock())

    def leave_at(self, due_ns: int) -> None:
        """Give the slot back at this time, whether or not the client is still there."""
        self._leaves_later = True
        asyncio.get_running_loop().call_later(max(0, due_ns - self.house.clock()) / 1e9, self.leave)

    @property
    def ready(self) -> bool:
        """Whether the opening is over."""
        return self._ready

    @property
    def heard_ms(self) -> float:
        """Media time so far: what the last chunk bore, or else how long before it the first came."""
        chunks_ns = self.entry.chunks_ns
        if self._ms is not None or not chunks_ns:
            return self._ms or 0.0
        return (chunks_ns[-1] - chunks_ns[0]) / 1e6

    @property
    def cached(self) -> bool:
        """Whether this media has been heard before: its first chunk, or all of it once it is over."""
        digest = self._first_digest if self.entry.end_ns is None else self._hash.digest()
        return self.house.options.cache and digest in self.house.heard_before

    # ---- inside

    def _advance(self, now_ns: int) -> None:
        while (at := self._ear.owed()) is not None:
            if self.house.speaker.waits[at] is not None:
                self._later(now_ns, self.house.speaker.waits[at])
        if self._ear.opened and not self._ready:
            self._ready = True
            self._mind.ready(now_ns)

    def _next_utterance(self) -> None:
        """Another one on the same connection."""
        self._write()
        self._ready = False
        self._begin_utterance(
            Entry(
                session=self.entry.session,
                utterance=self.entry.utterance + 1,
                clip=self._named,
                peer=self.entry.peer,
                opened_ns=self.entry.opened_ns,
            )
        )

    def _chunk(self, payload: bytes, ms: float | None, now_ns: int) -> None:
        if self._over:
            self._next_utterance()
            self._advance(now_ns)
        entry, house = self.entry, self.house
        entry.chunks_ns.append(now_ns)
        entry.chunk_bytes.append(len(payload))
        entry.media_bytes += len(payload)
        self._hash.update(payload)
        self._ms = ms
        self.recall.hear(payload)
        self._mind.chunk(payload)
        if len(entry.chunks_ns) == 1:
            self._first_digest = self._hash.digest()
            self._first(now_ns)
        if self._slot_ns is not None:
            self._acknowledge(now_ns, 1)
        if not house.grammar.marked or house.grammar.quiet_first:
            count, pause_ns = len(entry.chunks_ns), PATIENT_NS if house.grammar.marked else QUIET_NS
            pause_ns = max(pause_ns, 2 * house.grammar.gap_ns)
            self.mouth.at(now_ns + pause_ns, lambda _: self._over_if(count, now_ns))

    def _first(self, now_ns: int) -> None:
        if self.course.drop_ns is not None:
            self.mouth.at(now_ns + self.course.drop_ns, self._drop)
        if self.house.line.full and self.house.options.overflow == "reject":
            self._refuse(now_ns)
        else:
            self.house.line.enter(self._begin, now_ns)

    def _begin(self, now_ns: int) -> None:
        self._slot_ns, self._holds = now_ns, True
        if self.entry.chunks_ns:
            self.entry.waited_ns = now_ns - self.entry.chunks_ns[0]
            self._acknowledge(now_ns, len(self.entry.chunks_ns) if self.entry.waited_ns else 0)
        self._mind.begin(now_ns)
        if self.entry.end_ns is not None:
            self._mind.end(now_ns)

    def _refuse(self, now_ns: int) -> None:
        """Turn the client away in the profile's own words."""
        self._refused = True
        self.entry.outcome = "rejected"
        messages, code = self.house.speaker.rejection("all slots are taken")

        async def deed(_: int) -> None:
            for message in messages:
                await self._wire.say(self._raw(message))
            await self._wire.close(code if code or messages else TRY_AGAIN_LATER)

        self.mouth.at(now_ns, deed)

    def _acknowledge(self, now_ns: int, count: int) -> None:
        ack, ms = self.house.profile.media.ack, self._ms
        if ack is None or not self.house.options.acks or self.house.profile.transport.kind == "requests":
            return  # of a request its answer is the acknowledgement

        async def deed(_: int) -> None:
            own = self.house.speaker.ack(ms)
            if own is None and not self.house.speaker.channels:
                messages = []
            elif own is None:  # any message is an acknowledgement: the partial again, or an empty one
                messages = self._latest[-1:] or self.voice.partial(self.house.speaker.channels[0], "")
            else:
                messages = [own]
            for message in messages:
                await self._wire.say(self._raw(message))

        for _ in range(count):
            self.mouth.at(now_ns, deed)

    async def _over_if(self, count: int, last_ns: int) -> None:
        if len(self.entry.chunks_ns) == count and self.entry.end_ns is None:
            self.ended(last_ns, last=not self.house.grammar.marked)

    async def _done(self, _: int) -> None:
        self._over = True
        self._ear.again()
        self.entry.outcome = "ok"
        self.house.heard_before |= {self._first_digest, self._hash.digest()}
        speaker = self.house.speaker
        for message in speaker.farewell:
            await self._wire.say(self._raw(message))
        if speaker.done is not None:
            await self._wire.say(self._raw(speaker.done))
        if speaker.closes:
            await self._wire.close(None)
        else:
            self._advance(self.house.clock())
            entry = self.entry
            self.mouth.at(self.house.clock() + FAREWELL_NS, lambda _: self._farewell(entry))

    async def _farewell(self, entry: Entry) -> None:
        if self.entry is entry:
            await self._wire.close(None)

    async def _drop(self, _: int) -> None:
        self.entry.outcome = "dropped"
        await self._wire.drop(self.house.options.drop)

    def _later(self, due_ns: int, message: Any) -> None:
        async def deed(_: int) -> None:
            await self._wire.say(self._raw(message))

        self.mouth.at(due_ns, deed)

    def _first_output(self, raws: list[str]) -> list[str]:
        """Stamp the first output and, where this session is one of those, cut it so that it cannot be read."""
        self.entry.first_sent_ns = self.house.clock()
        if self.course.garbled and raws:
            newline = "\n" if raws[0].endswith("\n") else ""
            return [raws[0].rstrip("\n")[:-2] + newline, *raws[1:]]
        return raws

    def _raw(self, message: Any) -> str:
        return self.house.speaker.wire(message, sse=self.house.options.sse)

    def _padded(self, raw: str) -> str:
        missing = self.house.options.pad_bytes - len(raw.encode()) if self.house.options.pad_bytes else 0
        return raw.replace("{", "{" + " " * missing, 1) if missing > 0 else raw

    def _write(self) -> None:
        self.entry.media_sha256 = self._hash.hexdigest()
        self.entry.also_sha256 = self._also_hash.hexdigest() if self.entry.also_bytes else ""
        self.house.log.write(self.entry)

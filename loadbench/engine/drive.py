"""One session driven: between the transport that tells, the wheel that sends and the conversation that decides.

A driver never decides what a message means, and no error in it reaches another session.
"""

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, cast
from urllib.parse import parse_qsl

from loadbench.engine.address import MissingFieldError
from loadbench.engine.alarm import Reminder
from loadbench.engine.pacer import ChunkLog, Stream, media_zero
from loadbench.engine.reel import Reel
from loadbench.engine.rig import Rig, Role
from loadbench.engine.workload import phase_ms
from loadbench.results.conceal import concealed
from loadbench.results.masks import Masks, shorten
from loadbench.results.media import HEAD_BYTES, MediaPiece, ending, opening, stem
from loadbench.results.outcome import side
from loadbench.results.record import Aside, ChunkTimes, Lateness, Message, SessionRecord, Started, Utterance
from loadbench.session.machine import Conversation
from loadbench.session.plugin import Frame, PluginError
from loadbench.session.profile import MediaFormat
from loadbench.session.wire import (
    Abort,
    Action,
    Ask,
    Cause,
    Dial,
    Ended,
    Opened,
    Progress,
    Send,
    Shut,
    StartMedia,
    StopMedia,
)
from loadbench.transports.contract import AddressError, Buffer, Link

MESSAGE_CHARACTERS: Final = 64 * 1024
MEDIA_BYTES: Final = 32  # of a binary message that is media: enough to see what it is; a sample is kept elsewhere


class Driver:
    """A session from its beginning to its record, which `emit` gets; then `over` is told its outcome, once.

    `answered`, if any, is called before that, when the session has all that it waited for.
    """

    def __init__(
        self,
        rig: Rig,
        role: Role,
        over: Callable[["Driver", str], None],
        answered: Callable[["Driver"], None] | None = None,
    ) -> None:
        self._rig, self._over, self._answered = rig, over, answered
        self._addresses = rig.endpoints[role.endpoint or 0]
        self.role = role
        self._begun_ns = rig.clock()
        fields = self._addresses.fields(role.id, role.parts[0][0].fields)
        self._talk = Conversation(
            rig.profile,
            role.tasks,
            rig.limits,
            fields,
            session=role.id,
            planned_ns=role.slot.planned_ns,
            compiled=rig.compiled,
            heard=rig.ledger.messages,
            progress=self._progress,
            keep=self._keep if role.log_media else None,
        )
        self._masks = rig.masks
        self._files: dict[tuple[int, str], str] = {}
        self._kept_bytes = 0
        self._link: Link | None = None
        self._lost = False
        self._ended = False
        self._acting = False
        self._reminder = Reminder(rig.agenda, self._woken)
        self._dialling: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._streams: dict[int, Stream] = {}
        self._bytes_sent = self._bytes_received = self._told_bytes = 0
        self._paused_ns: int | None = None
        self._blocked_ns = self._unsent_max = 0

    # ---- what the engine calls

    def begin(self) -> None:
        """Say that the session has started, and do what comes first: ask, or dial; nothing without an endpoint."""
        rig, role = self._rig, self.role
        rig.emit(
            Started(
                id=role.id,
                worker=rig.start.worker,
                user=role.slot.user,
                stage=role.slot.stage,
                window=role.slot.window,
                planned_ns=role.slot.planned_ns,
                begun_ns=self._begun_ns,
                clips=[reel.id for reel, _ in role.parts],
            )
        )
        self._hide(self._talk.confidential)
        if role.endpoint is not None:
            self._tell(self._talk.begin, rig.clock())

    def stop(self, outcome: Literal["interrupted", "time_up"]) -> None:
        """Cut the session."""
        self._tell(self._talk.stop, outcome, self._rig.clock())

    def fresh_bytes(self) -> int:
        """Bytes of media handed over since this was asked last."""
        known = self._told_bytes
        self._told_bytes = sum(stream.volume(self.role.parts[at][0].media_sums) for at, stream in self._streams.items())
        return self._told_bytes - known

    @property
    def also_chunks(self) -> int:
        """Chunks of a second medium handed over so far."""
        reels = {at: self.role.parts[at][0] for at in self._streams}
        return sum(stream.volume(reels[at].also_sums) for at, stream in self._streams.items() if reels[at].also_sums)

    # ---- what the transport tells (transports.contract.Listener)

    def opened(self, facts: Opened) -> None:
        """See `Listener`."""
        self._tell(self._talk.opened, facts)

    def answered(self, status: int, at_ns: int, content_type: str = "") -> None:
        """See `Listener`."""
        self._tell(self._talk.answered, status, at_ns, content_type)

    def received(self, data: str | bytes, arrival_ns: int) -> None:
        """See `Listener`."""
        ascii_or_bytes = isinstance(data, bytes) or data.isascii()
        self._bytes_received += len(data) if ascii_or_bytes else len(cast(str, data).encode())
        if self.role.log_messages:
            is_media = isinstance(data, bytes) and self._rig.profile.receive.binary is not None
            limit = MEDIA_BYTES if is_media else MESSAGE_CHARACTERS
            self._rig.emit(_message(self.role.id, data, arrival_ns, self._masks, limit))
        if not self._ended and self._talk.received(data, arrival_ns):
            self._follow()

    def _keep(self, utterance: int, channel: str, form: MediaFormat, data: bytes, at_ns: int) -> None:
        """Hand a piece of output media on, as long as the session has not had its share."""
        self._kept_bytes += len(data)
        if self._kept_bytes > self._rig.start.media_bytes:
            return
        file, head = self._files.get((utterance, channel), ""), b""
        if not file:
            kind = ending(form.format, data[:HEAD_BYTES])
            file = self._files[utterance, channel] = f"{stem(self.role.id, utterance, channel)}.{kind}"
            head = opening(form.format, form.rate_hz, form.channels)
        self._rig.emit(
            MediaPiece(
                session=self.role.id, utterance=utterance, channel=channel, at_ns=at_ns, file=file, data=data, head=head
            )
        )

    def paused(self, at_ns: int) -> None:
        """See `Listener`."""
        self._paused_ns = at_ns
        self._rig.ledger.paused(self.role.id, at_ns)

    def resumed(self, at_ns: int) -> None:
        """See `Listener`."""
        if self._paused_ns is not None:
            self._blocked_ns += max(0, at_ns - self._paused_ns)
            self._paused_ns = None
            self._rig.ledger.resumed(self.role.id, at_ns)

    def lost(self, cause: Cause) -> None:
        """See `Listener`."""
        self._lost = True
        self.resumed(cause.at_ns)
        for stream in self._streams.values():
            stream.stop()
        self._tell(self._talk.lost, cause)

    # ---- before the connection

    def _ask(self, request: Ask) -> None:
        rig, asker = self._rig, self._rig.asker
        if asker is None:
            raise RuntimeError("there is nobody who could ask")

        async def ask() -> None:
            came = await asker.ask(self._addresses.asking(request, self._talk.fields), self._addresses.tls, rig.clock)
            self._tell(self._talk.asked, came)

        self._asking = asyncio.get_running_loop().create_task(ask())
        self._asking.add_done_callback(self._asked)

    def _asked(self, task: "asyncio.Task[None]") -> None:
        if self._asking is task:
            self._asking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._break(error)

    def _hide(self, values: list[str]) -> None:
        """Keep these out of all that is written of this session; an address in its parts too, as others show them."""
        if values:
            parts = [value for text in values if "?" in text for _, value in parse_qsl(text.partition("?")[2])]
            start = self._rig.start
            self._masks = Masks([*start.secrets.values(), *start.hidden, *values, *parts])

    # ---- dialling

    def _dial(self) -> None:
        rig = self._rig
        self._hide(self._talk.confidential)
        address = self._addresses.of(self._talk.fields)
        self._hide([*self._talk.confidential, *address.hidden])
        self._tell(self._talk.dialled, rig.clock(), self._addresses.place(self._talk.fields))

        async def dial() -> None:
            self._link = await rig.transport.dial(address, self, rig.clock)

        self._dialling = asyncio.get_running_loop().create_task(dial())
        self._dialling.add_done_callback(self._dialled)

    def _dialled(self, task: "asyncio.Task[None]") -> None:
        self._dialling = None
        if task.cancelled():
            if not self._lost:  # cancelled before it ran, so the transport never heard of it
                self.lost(Cause("aborted", self._rig.clock(), by="us"))
        elif (error := task.exception()) is not None:
            self._break(error)
        elif self._ended and self._link is not None:
            self._link.abort()

    # ---- doing what the conversation asks

    def _tell(self, tell: Callable[..., None], *what: object) -> None:
        if self._ended:
            return
        try:
            tell(*what)
        except Exception as error:  # ours: recorded as the outcome of this session
            self._break(error)
        else:
            self._follow()

    def _follow(self) -> None:
        """Do what the conversation has asked for."""
        try:
            self._act()
        except Exception as error:  # ours, as above
            self._break(error)

    def _act(self) -> None:
        """Do all that is asked, and what is asked in turn; a transport may tell us something while we do."""
        if self._acting:
            return
        self._acting = True
        try:
            while actions := self._talk.take():
                for action in actions:
                    self._do(action)
        finally:
            self._acting = False
        if self._answered is not None and self._talk.outcome == "ok":
            tell, self._answered = self._answered, None
            tell(self)
        self._arm()

    def _do(self, action: Action) -> None:
        match action:
            case Ask():
                self._ask(action)
            case Dial():
                self._dial()
            case Send():
                self._send(action)
            case StartMedia(index):
                self._start_media(index)
            case StopMedia():
                for stream in self._streams.values():
                    stream.stop()
            case Shut(code):
                if self._link is not None:
                    self._link.shut(code)
            case Abort():
                self._drop()
            case Ended():
                self._end()

    def _send(self, action: Send) -> None:
        if self._link is None:
            return
        kind, payload, framing = action.kind, action.payload, self._rig.compiled.framing
        if framing is not None and kind != "end" and action.role != "poll":
            kind, payload = framing.encode(Frame(kind, payload, action.role, self._progress().chunks))
        wire = self._rig.encoder.whole(kind, payload, action.role)
        self._unsent_max = max(self._unsent_max, self._link.write(wire))
        self._bytes_sent += len(wire)
        self._talk.sent(action, self._rig.clock())

    def _drop(self) -> None:
        if self._link is not None:
            self._link.abort()
        elif self._dialling is not None:
            self._dialling.cancel()
        elif self._asking is not None:
            self._asking.cancel()

    def _arm(self) -> None:
        if not self._ended:
            self._reminder.by(self._talk.deadline_ns)

    def _woken(self) -> None:
        deadline_ns, now = self._talk.deadline_ns, self._rig.clock()
        if deadline_ns is not None and deadline_ns <= now:
            self._tell(self._talk.wake, now)
        else:
            self._arm()

    # ---- media

    def _progress(self) -> Progress:
        """What has been handed over of the utterance at hand."""
        if not self._streams:
            return Progress(0, 0, 0)
        index = max(self._streams)
        stream, reel = self._streams[index], self.role.parts[index][0]
        gone = stream.sent + len(stream.dropped)
        return Progress(stream.sent, reel.due_ns[gone - 1] if gone else 0, stream.volume(reel.media_sums))

    def _start_media(self, index: int) -> None:
        rig, link, now = self._rig, self._link, self._rig.clock()
        if link is None:
            return
        reel, _ = self.role.parts[index]
        zero_ns = self._zero_ns(index, reel, now)
        self._talk.media_started(index, zero_ns, now)
        stream = Stream(
            link,
            self._joined(reel) if reel.joined else reel.wire,
            reel.due_ns,
            zero_ns,
            begun_ns=now,
            ended=partial(self._media_ended, index),
            broke=self._break,
            drop_late=rig.start.late == "drop_late" and len(rig.messages) == 1 and rig.profile.media.kind != "audio",
            log=ChunkLog() if self.role.log_chunks else None,
            even=reel.even,
        )
        self._streams[index] = stream
        rig.wheel.add(stream, rig.ledger)

    def _zero_ns(self, index: int, reel: Reel, now_ns: int) -> int:
        """Where media time begins: by the plan, or as soon as the service is ready and the session's clock ticks."""
        start = self._rig.start
        if start.media_start == "on_plan" and index == 0:
            return self.role.slot.planned_ns
        phase = phase_ms(start.workload.phase, self.role.number, reel.interval_ms, start.seed)
        return media_zero(now_ns, self._rig.origin_ns, reel.interval_ms, phase)

    def _joined(self, reel: Reel) -> Callable[[int], Buffer]:
        """Wire messages with this session's own parts around the shared ones."""
        messages, encoder, fields = self._rig.messages, self._rig.encoder, self._talk.fields
        framing, fresh = self._rig.compiled.framing, self._rig.start.mask == "fresh"

        def wire(index: int) -> Buffer:
            track, number, count = reel.place(index)
            message = messages[track]
            try:
                before, after = message.around(fields, number, count, reel.due_ns[index])
            except KeyError as error:
                raise MissingFieldError(error.args[0]) from None
            part = reel.wire(index)
            if framing is not None:
                frame = Frame(message.kind, b"".join((before, part, after)), "media", number, number == count - 1)
                joined = encoder.whole(*framing.encode(frame))
            elif fresh:
                joined = encoder.whole(message.kind, b"".join((before, part, after)))
            else:
                joined = encoder.joined(message.kind, before, part, after)
            self._bytes_sent += len(joined)
            return joined

        return wire

    def _media_ended(self, index: int, at_ns: int) -> None:
        self._tell(self._talk.media_ended, index, self._streams[index].sent, at_ns)

    # ---- the end

    def _break(self, error: BaseException) -> None:
        """An error of ours ends this session; where even its conversation cannot go on, it is recorded without it."""
        if self._ended:
            raise error
        if isinstance(error, MissingFieldError | AddressError | PluginError):
            outcome, sentence = "profile_error", str(error)
        else:
            outcome, sentence = "internal", f"{type(error).__name__}: {error}"
        try:
            self._talk.fail(outcome, sentence, self._rig.clock())
            self._act()
        except Exception as second:
            sentence = f"{sentence}; then {type(second).__name__}: {second}"
        if not self._ended:
            self._finish(self._bare_record(outcome, sentence))

    def _end(self) -> None:
        if self._ended:
            return
        role = self.role
        record = self._talk.record(
            worker=self._rig.start.worker,
            user=role.slot.user,
            stage=role.slot.stage,
            window=role.slot.window,
            begun_ns=self._begun_ns,
        )
        self._finish(record)

    def _bare_record(self, outcome: str, cause: str) -> SessionRecord:
        role, now = self.role, self._rig.clock()
        return SessionRecord(
            id=role.id,
            worker=self._rig.start.worker,
            user=role.slot.user,
            stage=role.slot.stage,
            window=role.slot.window,
            planned_ns=role.slot.planned_ns,
            begun_ns=self._begun_ns,
            ended_ns=now,
            utterances=[
                Utterance(index=0, clip=task.id, attempt=task.attempt, media_ns=task.media_ns, outcome=outcome)
                for task in role.tasks[:1]
            ],
            outcome=outcome,
            side=side(outcome),
            cause=shorten(cause, 500),
        )

    def _finish(self, record: SessionRecord) -> None:
        self._ended, self._answered = True, None  # who hears of the end needs no other word
        self._reminder.close()
        words = b"" if self._link is None else self._link.aside()
        if not self._lost:
            self._drop()
        now = self._rig.clock()
        self.resumed(now)
        try:
            self._fill(record, now)
            own = self._masks is not self._rig.masks  # who writes the record knows the run's secrets, not a session's
            self._rig.emit(concealed(record, self._masks) if own else record)
            for index, stream in self._streams.items():
                stream.stop()
                if stream.log is not None:
                    self._rig.emit(_chunk_times(self.role.id, index, stream, stream.log))
            if words:
                text = self._rig.masks.mask(words.decode("utf-8", "backslashreplace"))
                self._rig.emit(Aside(session=self.role.id, text=text))
        finally:
            self._link = None
            self._over(self, record.outcome)
            self._streams = {}

    def _fill(self, record: SessionRecord, now_ns: int) -> None:
        """What the conversation could not know: the tester's own deeds, and how it fared meanwhile."""
        streams, masks = self._streams, self._masks
        for utterance in record.utterances:
            stream = streams.get(utterance.index)
            if stream is not None:
                utterance.chunks_sent, utterance.chunks_dropped = stream.sent, len(stream.dropped)
                utterance.media_bytes = stream.volume(self.role.parts[utterance.index][0].media_sums)
        gap_ns = self._rig.heart.longest_between(self._begun_ns, now_ns)
        late_ns = [stream.ledger.leave(stream.row) for stream in streams.values()]
        record.lateness = Lateness(
            chunks=sum(stream.sent for stream in streams.values()),
            sum_ns=sum(sum_ns for sum_ns, _ in late_ns),
            max_ns=max((max_ns for _, max_ns in late_ns), default=0),
            start_ns=max(0, self._begun_ns - self.role.due_ns),
            blocked_ns=self._blocked_ns,
            unsent_max_bytes=max([self._unsent_max, *(stream.unsent_max for stream in streams.values())]),
            gap_max_ns=gap_ns,
        )
        record.endpoint_wait_ns = self.role.due_ns - record.planned_ns or None
        if len(self._rig.endpoints) > 1 and self.role.endpoint is not None:
            record.endpoint = masks.mask(self._addresses.name)
        record.tainted = gap_ns > self._rig.start.thresholds.taint_gap_ms * 1e6
        shared = [(stream, self.role.parts[index][0]) for index, stream in streams.items()]
        record.bytes_sent = self._bytes_sent + sum(
            stream.volume(reel.wire_sums) for stream, reel in shared if not reel.joined
        )
        record.bytes_received = self._bytes_received
        record.cause = masks.mask(record.cause)
        record.raw = [masks.mask(text) for text in record.raw]
        record.warnings = [masks.mask(text) for text in record.warnings]
        for asked in record.prelude:
            asked.name, asked.cause = masks.mask(asked.name), masks.mask(asked.cause)
        for connection in record.connections:
            connection.close_reason = masks.mask(connection.close_reason)
            connection.remote = connection.remote and masks.mask(connection.remote)


def _chunk_times(session: str, index: int, stream: Stream, log: ChunkLog) -> ChunkTimes:
    due, sent, unsent = (times.tobytes() for times in log.times(stream))
    zero_ns, begun_ns = stream.zero_ns, stream.begun_ns
    return ChunkTimes(
        session=session, utterance=index, media_zero_ns=zero_ns, begun_ns=begun_ns, due=due, sent=sent, unsent=unsent
    )


def _message(session: str, data: str | bytes, at_ns: int, masks: Masks, limit: int) -> Message:
    cut, part = len(data) > limit, data[:limit]
    if isinstance(part, bytes):
        text = base64.b64encode(masks.mask_bytes(part)).decode("ascii")
        return Message(session=session, at_ns=at_ns, data=text, binary=True, cut=cut)
    return Message(session=session, at_ns=at_ns, data=masks.mask_message(part), cut=cut)

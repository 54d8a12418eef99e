"""The conversation of one session, without I/O: it is told what happened and when, and says what to do next.

Theory of operation
===================
A driver (`engine`) owns the connection and the clock. It calls the methods below as things happen, and after each call
takes the actions that the conversation asks for. It sleeps until `deadline_ns`, and then calls `wake`.

    phase       the driver says                        the conversation says
    idle        begin                                  Ask, the prelude's first request; else Dial
    asking      asked, each time                       the next Ask; behind the last one, back to idle: Dial
    idle        dialled                                -
    dialling    opened                                 the opening script: Send ...
    opening     received (a wait is fulfilled)         Send ..., at last StartMedia(i): the service is ready
                                                       (the opening script, and what each utterance begins with)
    waiting     media_started(i, zero)                 -
    media       media_ended(i), from source end on     the end script: Send ..., the last of them is the end mark
    ending      sent, received, lost: the output is    the next utterance: back to opening; or Shut
                done, and the grace has passed
    closing     lost                                   Ended
    ended       -                                      nothing, ever again

In every phase: `received` is read by the profile's rules (`hearing`), and then offered to the script's step that waits;
`lost` before the output is done, a limit that has passed, or a message that says so ends the session with an outcome
(`ending`). A failure asks for StopMedia, and Shut where the service still talks, Shut and Abort where it was given up.
Ended comes once and last.

Each utterance has the end script to itself: what is done, the end mark, final texts. A service that says "done" before
the end mark is believed when the script comes to the done step, with the time at which it said so.

A deadline is a name in `_deadlines`; what it means stands in `_WHEN_DUE`. A deadline that is no longer wanted is taken
out; no other state tells whether it runs. Times never go back: a time older than the last one that was told counts as
that one. All times are on the run clock. Whatever the service sends, no method raises.
"""

import functools
import json
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, cast

from loadbench.results.record import Acks, Connection, Prelude, SessionRecord, Utterance
from loadbench.session.books import Books
from loadbench.session.ending import DONE, Standing, moment, of_loss, of_no_answer, of_output, seconds
from loadbench.session.hearing import MESSAGE_KINDS, Heard, Hearing, shown
from loadbench.session.prelude import Request, captured, refusal, shown_address
from loadbench.session.profile import MediaFormat, Profile
from loadbench.session.script import (
    Compiled,
    Deed,
    Expect,
    Finish,
    Grace,
    Lull,
    Polling,
    Refuse,
    Say,
    Step,
    chosen,
    compile_profile,
    nanoseconds,
)
from loadbench.session.text import RuleError
from loadbench.session.wire import (
    Abort,
    Action,
    Answer,
    Cause,
    ClipTask,
    Dial,
    Ended,
    Limits,
    Opened,
    Progress,
    Send,
    Shut,
    StartMedia,
    StopMedia,
)  # fmt: skip

__all__ = ["MESSAGE_KINDS", "Compiled", "Conversation", "compile_profile"]

Phase = Literal["idle", "asking", "dialling", "opening", "waiting", "media", "ending", "closing", "ended"]
Method = TypeVar("Method", bound=Callable[..., None])


_DEAF: Final = ("idle", "asking", "dialling", "ended")
_UNCONNECTED: Final = ("idle", "asking", "dialling")


def _never_raises(method: Method) -> Method:
    """A fault of ours costs the session that met it, with its cause in the record, and never the run."""

    @functools.wraps(method)
    def guarded(self: "Conversation", *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._break(error)

    return cast(Method, guarded)


class Conversation:
    """One session. `fields` fill templates; `compiled` is shared by all sessions of a profile.

    `heard`, by `MESSAGE_KINDS`, is counted up as well as the session's own `messages`: what all sessions have heard.
    `progress` tells how much of the utterance at hand has been handed over; it is asked when a message counts that.
    `keep` gets each piece of media that is output: the utterance's index, channel, form, payload and arrival.
    """

    def __init__(
        self,
        profile: Profile,
        tasks: Sequence[ClipTask],
        limits: Limits,
        fields: Mapping[str, str],
        *,
        session: str,
        planned_ns: int,
        compiled: Compiled | None = None,
        heard: dict[str, int] | None = None,
        progress: Callable[[], Progress] | None = None,
        keep: Callable[[int, str, MediaFormat, bytes, int], None] | None = None,
    ) -> None:
        if not tasks:
            raise ValueError("a conversation carries at least one clip")
        self._how = compiled or compile_profile(profile)
        self._tasks = tuple(tasks)
        self._limits = limits
        self._fields = {"session.id": session, "count.chunks_sent": "0", **fields}
        self._keep_piece = keep
        self._hearing = Hearing(self._how, limits.message_bytes, self._fields, heard, keep and self._kept)
        self._progress = progress
        self._question = 0
        self._before: tuple[Step, ...] = self._how.opening + self._how.begin
        self._ending = self._how.ending(self._fields)
        self._settled_ns: int | None = None
        self._poll: Polling | None = None  # what asks for the output, from its step on
        self._asked_ns = 0  # when it last did
        self._quiet_ns = self._how.promote_after_ns
        self._phase: Phase = "idle"
        self._now_ns = 0
        self._actions: list[Action] = []
        self._deadlines: dict[str, int] = {}
        self._step = 0
        self._early_done_ns: int | None = None
        self._marks: list[tuple[Send, Utterance]] = []
        self._shut = False
        self._last_message_ns: int | None = None
        self._books = Books(session, planned_ns)
        self._begin_utterance()

    # ---- what the driver may ask

    def take(self) -> list[Action]:
        """The actions asked for since the last call, in order."""
        actions = self._actions
        if actions:
            self._actions = []
        return actions

    @property
    def outcome(self) -> str | None:
        """How the session ends, once that is settled."""
        return self._books.outcome

    @property
    def ready_ns(self) -> int | None:
        """When the opening script was through; None: it is not yet."""
        return self._books.ready_ns

    @property
    def ended(self) -> bool:
        """Whether Ended has been said; the record is complete then."""
        return self._phase == "ended"

    @property
    def deadline_ns(self) -> int | None:
        """When `wake` must be called at the latest; None: nothing waits for the clock."""
        return min(self._deadlines.values(), default=None)

    @property
    def messages(self) -> dict[str, int]:
        """Decoded messages so far by kind, of `MESSAGE_KINDS`; each is counted once."""
        return self._hearing.counts

    @property
    def acked(self) -> int:
        """Messages so far that acknowledge a chunk; chunks sent minus these is the service's backlog."""
        return self._hearing.acked

    @property
    def confidential(self) -> list[str]:
        """What the prelude has given, and what was signed with a secret: not to be written down."""
        names = [name for request in self._how.prelude for name, _ in request.captures]
        fields = {f"captured.{name}" for name in names} | {f"signed.{name}" for name in self._how.signing.confidential}
        return [self._fields[field] for field in sorted(fields) if field in self._fields]

    @property
    def fields(self) -> Mapping[str, str]:
        """What fills templates now: what was given, the clip at hand, what was captured. Live; not to be changed."""
        return self._fields

    def record(
        self, *, worker: str, user: int, stage: str, window: Literal["warmup", "measure", "drain"], begun_ns: int
    ) -> SessionRecord:
        """What is known of the session. Raises ValueError before Ended."""
        return self._books.record(
            self._hearing.counts, worker=worker, user=user, stage=stage, window=window, begun_ns=begun_ns
        )

    # ---- what the driver says: before the connection

    @_never_raises
    def begin(self, now_ns: int) -> None:
        """The session's turn has come."""
        if self._phase == "idle" and self._books.connection is None:
            at_ns = self._at(now_ns)
            if self._how.prelude:
                self._phase = "asking"
                self._due_in("session", at_ns, self._limits.session_s)
            self._follow_prelude(at_ns)

    @_never_raises
    def asked(self, came: Answer | Cause) -> None:
        """What came of the last Ask: an answer, or why there was none."""
        at_ns = self._at(came.at_ns)
        if self._phase != "asking":
            return
        self._drop("answer")
        request, kept = self._how.prelude[self._question], self._books.prelude[-1]
        kept.ended_ns = at_ns
        kept.status = came.status
        found = self._judged(request, came)
        if isinstance(found, tuple):
            kept.cause = found[1]
            self._unanswered(*found, at_ns)
        else:
            self._fields |= {f"captured.{name}": value for name, value in found.items()}
            self._question += 1
            self._follow_prelude(at_ns)

    def _judged(self, request: Request, came: Answer | Cause) -> dict[str, str] | tuple[str, str]:
        """What an answer gives, by name; or an outcome and a sentence."""
        if isinstance(came, Cause):
            return of_no_answer(came)
        if not request.goes_on(came.status):
            body = came.body.decode("utf-8", "backslashreplace")
            return refusal(came, self._how.status_of_answer(came.status, body))
        return captured(request, came)

    # ---- what the driver says: connection and media

    @_never_raises
    def dialled(self, now_ns: int, fields: Mapping[str, str] | None = None) -> None:
        """Connecting has begun. `fields` are those that have only become known with the address."""
        if self._phase != "idle":
            return
        at_ns = self._at(now_ns)
        self._phase = "dialling"
        self._fields |= fields or {}
        self._books.connection = Connection(dialled_ns=at_ns)
        self._due_in("connect", at_ns, self._limits.connect_s)
        if "session" not in self._deadlines:
            self._due_in("session", at_ns, self._limits.session_s)

    @_never_raises
    def opened(self, facts: Opened) -> None:
        """The connection stands."""
        if self._phase != "dialling":
            return
        at_ns = self._at(facts.at_ns)
        self._phase = "opening"
        self._drop("connect")
        self._books.opened(facts, at_ns)
        self._due_in("ready", at_ns, self._limits.ready_s)
        self._keep_alive(at_ns)
        self._follow_opening(at_ns)

    @_never_raises
    def answered(self, status: int, at_ns: int, content_type: str = "") -> None:
        """The head of an HTTP response is in, a good one."""
        self._at(at_ns)
        if self._books.connection is not None and not self.ended:
            self._books.connection.status = status
        self._hearing.content_type(content_type)

    def received(self, data: str | bytes, arrival_ns: int) -> bool:
        """A message, or a part of a response's body, arrived. False where the driver need not look what follows.

        While media goes out a message asks for nothing, and can only put a deadline off.
        """
        try:
            if self._listening:
                for heard in self._hearing.listen(data, self._at(arrival_ns)):
                    self._heard(heard)
                    if not self._listening:
                        break
        except Exception as error:  # as `_never_raises`, without its cost for each message
            self._break(error)
        return self._phase != "media" or self._quiet_ns is not None

    @_never_raises
    def lost(self, cause: Cause) -> None:
        """The connection is no more."""
        if self._phase == "ended":
            return
        at_ns = self._at(cause.at_ns)
        if cause.kind == "closed" and self._listening:
            for heard in self._hearing.flush(at_ns):
                if not self._listening:
                    break
                self._heard(heard)
        self._books.lost(cause, at_ns)
        if self.outcome is None and self._is_done:
            self._after_done(cause)
        elif self.outcome is None:
            self._judge_loss(cause, at_ns)
        self._end(at_ns)

    @_never_raises
    def media_started(self, index: int, zero_ns: int, now_ns: int) -> None:
        """The driver's answer to StartMedia: media time of utterance `index` begins at `zero_ns`."""
        at_ns = self._at(now_ns)
        utterance = self._utterance
        if self._phase != "waiting" or index != utterance.index:
            return
        self._phase = "media"
        utterance.media_zero_ns = zero_ns
        utterance.source_end_ns = zero_ns + utterance.media_ns
        self._due_in("final", utterance.source_end_ns, self._limits.final_s)
        self._due_in("silence", max(at_ns, zero_ns), self._limits.silence_s)
        if self._how.profile.keepalive and self._how.profile.keepalive.when == "idle":
            self._drop("keepalive")

    @_never_raises
    def media_ended(self, index: int, sent: int, now_ns: int) -> None:
        """The last chunk of utterance `index` was handed over, `sent` of them in all."""
        at_ns = self._at(now_ns)
        utterance = self._utterance
        if self._phase != "media" or index != utterance.index or utterance.source_end_ns is None:
            return
        utterance.chunks_sent = sent
        self._fields["count.chunks_sent"] = str(sent)
        if at_ns < utterance.source_end_ns:  # the end mark never goes before the end of the media
            self._deadlines["source_end"] = utterance.source_end_ns
        else:
            self._begin_end(at_ns)

    @_never_raises
    def sent(self, action: Send, at_ns: int) -> None:
        """A message that was asked for was handed over."""
        at_ns = self._at(at_ns)
        for index, (mark, utterance) in enumerate(self._marks):
            if mark is action:
                utterance.eos_ns = at_ns
                del self._marks[index]
                return

    @_never_raises
    def wake(self, now_ns: int) -> None:
        """Time has passed: whatever was due until now happens, oldest first."""
        at_ns = self._at(now_ns)
        while (due := min(self._deadlines, key=self._deadlines.__getitem__, default=None)) is not None:
            if self._deadlines[due] > at_ns:
                return
            del self._deadlines[due]
            _WHEN_DUE[due](self, at_ns)

    @_never_raises
    def stop(self, outcome: Literal["interrupted", "time_up"], now_ns: int) -> None:
        """The run is over: the session is cut, with what there is. One that is done already keeps its own outcome."""
        if self.ended:
            return
        at_ns = self._at(now_ns)
        said = "interrupted" if outcome == "interrupted" else "the time of the run was up"
        self._settle(outcome, f"{said} {moment(self._utterance, at_ns)}")
        self._give_up(at_ns)

    @_never_raises
    def fail(self, outcome: str, detail: str, now_ns: int) -> None:
        """The tester itself cannot go on with this session: no_resource, internal, worker_lost and the like."""
        if self.ended:
            return
        at_ns = self._at(now_ns)
        self._settle(outcome, detail)
        self._give_up(at_ns)

    # ---- small words

    @property
    def _utterance(self) -> Utterance:
        return self._books.utterances[-1]

    @property
    def _is_first(self) -> bool:
        return len(self._books.utterances) == 1

    @property
    def _is_last(self) -> bool:
        return len(self._books.utterances) == len(self._tasks)

    @property
    def _is_done(self) -> bool:
        return bool(self._utterance.done_rule)

    @property
    def _listening(self) -> bool:
        """After our Shut nothing counts any more, and after an outcome nothing changes it."""
        if self._phase == "media":  # what ends a session, or shuts it, ends this phase too
            return True
        return self._books.outcome is None and self._phase not in _DEAF and not self._shut

    @property
    def _past_mark(self) -> bool:
        mark = self._ending.mark
        return self._phase == "ending" and (mark is None or self._step > mark)

    def _at(self, now_ns: int) -> int:
        if now_ns > self._now_ns:
            self._now_ns = now_ns
        return self._now_ns

    def _due_in(self, name: str, from_ns: int, span_s: float | None) -> None:
        if span_s is not None:
            self._deadlines[name] = from_ns + nanoseconds(span_s)

    def _drop(self, *names: str) -> None:
        for name in names:
            self._deadlines.pop(name, None)

    def _ask(self, action: Action) -> None:
        self._actions.append(action)

    def _say(self, say: Say, role: Literal["open", "end", "keepalive", "poll"], at_ns: int) -> Send | None:
        """Ask for a message; None where a field of it has no value, which ends the session."""
        if say.counts:
            self._count()
        try:
            payload = say.render(self._fields)
        except KeyError as error:
            self._refuse(
                "profile_error", f"a message of the profile needs {{{error.args[0]}}}, which has no value", at_ns
            )
            return None
        action = Send(say.kind, payload, role)
        self._ask(action)
        self._keep_alive(at_ns)
        return action

    def _count(self) -> None:
        """Bring {count.*} up to date."""
        self._fields["count.acked"] = str(self._hearing.acked)
        if self._progress is not None:
            chunks, media_ns, media_bytes = self._progress()
            self._fields["count.chunks_sent"] = str(chunks)
            self._fields["count.media_ms"] = str(media_ns // 1_000_000)
            self._fields["count.bytes_sent"] = str(media_bytes)

    def _kept(self, channel: str, form: MediaFormat, data: bytes, at_ns: int) -> None:
        if self._keep_piece is not None:
            self._keep_piece(self._utterance.index, channel, form, data, at_ns)

    # ---- messages

    def _heard(self, heard: Heard) -> None:
        at_ns = self._last_message_ns = heard.at_ns
        utterance = self._utterance
        zero_ns = utterance.media_zero_ns
        if utterance.first_message_ns is None and zero_ns is not None and at_ns >= zero_ns:
            utterance.first_message_ns = at_ns
        if heard.acked:
            self._acknowledged(utterance, heard)
        if heard.warning:
            self._books.warn(heard.warning)
        if heard.ending is not None:
            self._books.raw.append(heard.raw)
            self._refuse(heard.ending[0], f"{heard.ending[1]}, {moment(utterance, at_ns)}", at_ns)
            return
        if "silence" in self._deadlines:
            self._due_in("silence", max(at_ns, zero_ns or 0), self._limits.silence_s)
        if heard.changed and self._quiet_ns is not None:
            self._deadlines.setdefault("promote", at_ns + self._quiet_ns)
        if self._hearing.owed:
            self._settled_ns = None
        elif heard.settled and self._past_mark:
            self._settled_ns = at_ns
        self._offer(heard)

    @staticmethod
    def _acknowledged(utterance: Utterance, heard: Heard) -> None:
        acks = utterance.acks = utterance.acks or Acks()
        acks.count += 1
        if heard.echo_ms is not None and utterance.media_zero_ns is not None:
            trip_ns = heard.at_ns - utterance.media_zero_ns - heard.echo_ms * 1_000_000
            acks.echoed += 1
            acks.trip_sum_ns += trip_ns
            acks.trip_max_ns = trip_ns if acks.trip_max_ns is None else max(acks.trip_max_ns, trip_ns)

    def _offer(self, heard: Heard) -> None:
        """Show a message to the step of the script that waits."""
        if self._phase == "media" and not heard.done:
            return  # no script waits while media goes out
        at_ns = heard.at_ns
        if self._poll is not None and not self._is_done:
            self._deadlines["poll"] = max(at_ns, self._asked_ns + self._poll.every_ns)
        step = self._waiting_step
        match step:
            case Expect():
                if step.fits(heard.item) and self._capture(step, heard):
                    self._drop("wait")
                    self._step += 1
                    (self._follow_opening if self._phase == "opening" else self._follow_end)(at_ns)
                return
            case Lull():
                self._deadlines["quiet"] = at_ns + step.for_ns
            case Finish() if not self._is_done:
                if (heard.done and "message" in step.on) or (step.fits is not None and step.fits(heard.item)):
                    self._done("message", at_ns)
                elif "first_final" in step.on and self._hearing.headline_final_ns is not None:
                    self._done("first_final", self._hearing.headline_final_ns)
                elif "settled" in step.on and self._settled_ns is not None:
                    self._done("settled", self._settled_ns)
                elif step.quiet_ns is not None:
                    self._deadlines["done_quiet"] = at_ns + step.quiet_ns
                return
        if heard.done and self._phase in ("media", "ending") and not self._is_done and self._early_done_ns is None:
            self._early_done_ns = at_ns
            self._books.warn(f"the service said that it was done {moment(self._utterance, at_ns)}, before the end mark")

    @property
    def _waiting_step(self) -> Deed | None:
        if self._phase == "opening":
            return self._before[self._step].do
        if self._phase == "ending" and self._step < len(self._ending.steps):
            return self._ending.steps[self._step]
        return None

    @property
    def _timeout(self) -> str:
        step = self._waiting_step
        span_ns = step.timeout_ns if isinstance(step, Expect | Finish) else None
        return f"{(span_ns or 0) / 1e9:g} s"

    def _capture(self, step: Expect, heard: Heard) -> bool:
        for name, select in step.capture.items():
            try:
                value = chosen(select, heard.item)
            except RuleError:
                value = None
            if value is None or (value == "" and name not in step.may_be_empty):
                found = "nothing" if value is None else "an empty text"
                self._books.raw.append(shown(json.dumps(heard.item, default=str)))
                self._refuse("profile_error", f"{{captured.{name}}} found {found} in the message", heard.at_ns)
                return False
            self._fields[f"captured.{name}"] = value if isinstance(value, str) else json.dumps(value, default=str)
        return True

    # ---- the scripts

    def _follow_prelude(self, at_ns: int) -> None:
        """Ask the next question; behind the last one, dial."""
        if self._question == len(self._how.prelude):
            self._phase = "idle"
            self._ask(Dial())
            return
        try:
            ask = self._how.prelude[self._question].ask(self._fields)
        except KeyError as error:
            self._unanswered("profile_error", f"it needs {{{error.args[0]}}}, which has no value", at_ns)
            return
        self._books.prelude.append(Prelude(name=shown_address(ask), began_ns=at_ns))
        self._deadlines["answer"] = at_ns + ask.timeout_ns
        self._ask(ask)

    def _unanswered(self, outcome: str, sentence: str, at_ns: int) -> None:
        """The prelude came to nothing, and so does the session."""
        self._settle(outcome, f"request {self._question + 1} of the prelude: {sentence}")
        self._end(at_ns)

    def _follow_opening(self, at_ns: int) -> None:
        """Go on with the script until a step that waits; behind its end the service is ready."""
        while self._step < len(self._before):
            step = self._before[self._step]
            if step.taken(self._fields):
                if isinstance(step.do, Expect):
                    if step.do.timeout_ns is not None:
                        self._deadlines["wait"] = at_ns + step.do.timeout_ns
                    return
                if not self._spoken(step.do, "open", at_ns):
                    return
            self._step += 1
        self._drop("ready")
        if self._books.ready_ns is None:
            self._books.ready_ns = at_ns
        self._ask_for_media(at_ns)

    def _spoken(self, step: Deed, role: Literal["open", "end"], at_ns: int) -> bool:
        """Say it; False where that ends the session, which is what a step that refuses is for."""
        if isinstance(step, Say):
            return self._say(step, role, at_ns) is not None
        if isinstance(step, Refuse):
            fields = defaultdict(lambda: "nothing", self._fields)  # it is said all the same
            self._refuse("profile_error", step.sentence(fields), at_ns)
        return False

    def _ask_for_media(self, at_ns: int) -> None:
        self._phase = "waiting"
        self._ask(StartMedia(self._utterance.index))
        self._keep_alive(at_ns)

    def _begin_utterance(self) -> None:
        task = self._tasks[len(self._books.utterances)]
        self._books.begin(task)
        self._utterance.acks = None if self._how.ack is None else Acks()
        self._fields["clip.id"] = task.id
        self._fields.update({f"clip.{name.removeprefix('clip.')}": value for name, value in task.fields.items()})
        index = str(len(self._books.utterances) - 1)
        self._fields["utterance.index"] = index
        named = f"{self._fields.get('session.uuid', self._books.session)}/{index}"
        self._fields["utterance.uuid"] = str(uuid.uuid5(uuid.NAMESPACE_OID, named))
        self._hearing.begin()
        self._early_done_ns = self._settled_ns = None

    def _begin_end(self, at_ns: int) -> None:
        self._phase = "ending"
        self._step = 0
        self._ending = self._how.ending(self._fields)
        self._drop("source_end")
        self._keep_alive(at_ns)
        self._follow_end(at_ns)

    def _follow_end(self, at_ns: int) -> None:
        """Go on with the end script until a step that waits; behind its end the utterance is finished."""
        while self._phase == "ending" and self._step < len(self._ending.steps):
            if self._waits(self._ending.steps[self._step], at_ns):
                return
            self._step += 1
        if self._phase != "ending":
            return
        if not self._is_done:  # a script without a done step: nobody said that it was all, so there is no time of it
            self._close_output(
                "quiet" if any(isinstance(step, Lull) for step in self._ending.steps) else "end of script"
            )
        self._finish_utterance()
        if self.outcome is not None:
            self._hang_up(at_ns)
        else:
            self._begin_utterance()
            self._open_utterance(at_ns)

    def _open_utterance(self, at_ns: int) -> None:
        """What each utterance begins with, on a connection that stands."""
        self._phase, self._step, self._before = "opening", 0, self._how.begin
        if self._before:
            self._due_in("ready", at_ns, self._limits.ready_s)
        self._follow_opening(at_ns)

    def _waits(self, step: Deed, at_ns: int) -> bool:
        """Take a step of the end script; True where something must happen before the next one."""
        match step:
            case Refuse():
                self._spoken(step, "end", at_ns)
            case Expect():
                if step.timeout_ns is not None:
                    self._deadlines["wait"] = at_ns + step.timeout_ns
            case Polling():
                self._poll = step
                return not self._poll_again(at_ns)
            case Say():
                action = self._say(step, "end", at_ns)
                if action is not None and self._step == self._ending.mark:
                    self._marks.append((action, self._utterance))
                    self._drop("keepalive")  # nothing may follow the end mark
                return action is None
            case Lull():
                self._drop("silence")  # here silence is what we wait for
                self._deadlines["quiet"] = at_ns + step.for_ns
                self._deadlines["quiet_most"] = at_ns + step.max_ns
            case Grace():
                self._deadlines["grace"] = at_ns + step.for_ns
            case Finish():
                return self._awaits_done(step, at_ns)
        return True

    def _poll_again(self, at_ns: int) -> bool:
        """Poll; the next time is set by the answer. False where that ended the session."""
        self._asked_ns = at_ns
        return self._poll is None or self._say(self._poll.request, "poll", at_ns) is not None

    def _awaits_done(self, step: Finish, at_ns: int) -> bool:
        if self._is_done:
            return False
        early = {
            "message": self._early_done_ns,
            "first_final": self._hearing.headline_final_ns,
            "settled": self._settled_ns,
        }
        for rule, said_ns in early.items():
            if rule in step.on and said_ns is not None:
                self._close_output(rule, said_ns)
                return False
        if step.timeout_ns is not None:
            self._deadlines["done"] = at_ns + step.timeout_ns
        if step.quiet_ns is not None:
            self._deadlines["done_quiet"] = at_ns + step.quiet_ns
        return True

    def _done(self, rule: str, said_ns: int | None) -> None:
        """The awaited end of the output has come."""
        self._close_output(rule, said_ns)
        self._step += 1
        self._follow_end(self._now_ns)

    def _close_output(self, rule: str, said_ns: int | None = None) -> None:
        self._utterance.done_rule = rule
        self._utterance.done_ns = said_ns
        self._poll = None
        self._drop(
            "silence", "final", "done", "done_quiet", "promote", "poll", "wait", *(["session"] if self._is_last else [])
        )
        self._promote()

    def _promote(self) -> None:
        if self._how.profile.never_final.rule != "explicit":
            self._hearing.promote()

    def _finish_utterance(self) -> None:
        """Judge an utterance that is done; after the last one, the session."""
        utterance = self._utterance
        self._promote()
        utterance.channels, utterance.clock = self._hearing.channels(), self._hearing.clock
        profile = self._how.profile
        medium = profile.media_channels.get(profile.headline)
        utterance.outcome, sentence = of_output(utterance.channels, profile.headline, medium)
        self._books.cause = self._books.cause or sentence
        if self._is_last:
            outcomes = [each.outcome for each in self._books.utterances]
            self._books.outcome = next((outcome for outcome in outcomes if outcome != "ok"), "ok")
            self._deadlines.clear()

    # ---- endings

    def _hang_up(self, at_ns: int) -> None:
        """The polite end: ours, or first a wait for the service's."""
        self._phase = "closing"
        self._deadlines.clear()
        finish = self._ending.finish
        if finish is not None and finish.target_closes and self.outcome == "ok":
            self._due_in("their_close", at_ns, self._limits.close_s)
        else:
            self._shut_down(at_ns)

    def _shut_down(self, at_ns: int) -> None:
        self._shut = True
        self._ask(Shut())
        self._due_in("close", at_ns, self._limits.close_s)

    def _refuse(self, outcome: str, sentence: str, at_ns: int) -> None:
        """End a session whose service still talks: close, and wait for the other side's close."""
        self._settle(outcome, sentence)
        self._phase = "closing"
        self._shut_down(at_ns)

    def _give_up(self, at_ns: int) -> None:
        """End now, on a service that does not answer or has no time left: a close, but no wait for an answer."""
        if self._phase not in _UNCONNECTED and not self._shut:
            self._ask(Shut())
        if self._phase != "idle":
            self._ask(Abort())
            self._books.lost(Cause("aborted", at_ns, by="us"), at_ns)
        self._end(at_ns)

    def _settle(self, outcome: str, sentence: str) -> None:
        """The first outcome stays, and an utterance that is done keeps its own. Media stops; texts stay as they are."""
        if self._phase in ("waiting", "media"):
            self._ask(StopMedia())
        books, utterance = self._books, self._utterance
        if books.outcome is None and self._is_done:
            self._finish_utterance()
        if books.outcome is not None:
            books.warn(sentence)
            return
        books.outcome, books.cause = outcome, sentence
        self._deadlines.clear()
        if utterance.outcome is None:
            utterance.outcome = outcome
            utterance.channels, utterance.clock = self._hearing.channels(), self._hearing.clock

    def _end(self, at_ns: int) -> None:
        if self.ended:
            return
        self._phase = "ended"
        self._deadlines.clear()
        self._books.ended_ns = at_ns
        self._ask(Ended())

    def _break(self, error: Exception) -> None:
        """An error of ours: the session ends with it."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        sentence = f"{type(error).__name__} at {where.name}:{where.lineno}: {error}"
        if self.outcome is not None:
            self._books.warn(sentence)
        else:
            self._books.outcome, self._books.cause = "internal", sentence
            self._utterance.outcome = "internal"
        if not self.ended:
            self._actions += [StopMedia(), Abort()] if self._books.connection or self._books.prelude else []
            self._end(self._now_ns)

    # ---- the end of the connection

    def _judge_loss(self, cause: Cause, at_ns: int) -> None:
        """The connection ended before the output was done, unless its end is what the profile waits for."""
        finish = self._ending.finish
        standing = Standing(
            opened=self._phase not in _UNCONNECTED,
            marked=self._past_mark,
            close_is_done=finish is not None and finish.by_close,
            said=self._hearing.said,
            moment=moment(self._utterance, at_ns),
            final=any(channel.last_final_ns is not None for channel in self._hearing.channels().values()),
        )
        outcome, sentence = of_loss(self._how, cause, standing)
        if outcome != DONE:
            self._settle(outcome, sentence)
            return
        self._close_output(sentence, at_ns)
        self._after_done(cause)

    def _after_done(self, cause: Cause) -> None:
        """The connection ended and the utterance at hand is done, though perhaps not the session."""
        self._finish_utterance()
        code = cause.code if cause.kind == "closed" else None
        if cause.kind != "closed" or (code is not None and code not in self._how.expected):
            self._books.warn(
                f"after the output was done the connection ended: {cause.kind} {code or ''} {cause.reason}".rstrip()
            )
        if self.outcome is None:
            carried, asked = len(self._books.utterances), len(self._tasks)
            self._begin_utterance()
            self._settle("closed_early", f"closed after {carried} of {asked} utterances")

    # ---- deadlines

    def _keep_alive(self, at_ns: int) -> None:
        """Count anew from a message of ours; media is the keep-alive where the profile asks for one when idle."""
        keepalive = self._how.profile.keepalive
        if keepalive is None or self._past_mark or self._phase in (*_UNCONNECTED, "closing", "ended"):
            return
        if keepalive.when == "always":
            self._deadlines.setdefault("keepalive", at_ns + nanoseconds(keepalive.every_s))
        elif self._phase != "media":
            self._deadlines["keepalive"] = at_ns + nanoseconds(keepalive.every_s)

    def _keepalive_due(self, at_ns: int) -> None:
        if self._how.keepalive is not None:
            self._say(self._how.keepalive, "keepalive", at_ns)

    def _lapse(self, outcome: str, sentence: str, at_ns: int) -> None:
        self._settle(outcome, sentence)
        self._give_up(at_ns)

    def _answer_due(self, at_ns: int) -> None:
        self._books.prelude[-1].ended_ns = at_ns
        timeout_s = self._how.prelude[self._question].timeout_ns / 1e9
        self._books.prelude[-1].cause = sentence = f"no answer within {timeout_s:g} s"
        self._lapse("silent", f"request {self._question + 1} of the prelude: {sentence}", at_ns)

    def _connect_due(self, at_ns: int) -> None:
        self._lapse("connect_failed", f"no connection within {self._limits.connect_s:g} s", at_ns)

    def _ready_due(self, at_ns: int) -> None:
        since = "the connection" if self._is_first else "the end of the utterance before"
        self._unready(f"not ready within {self._limits.ready_s:g} s of {since}", at_ns)

    def _wait_due(self, at_ns: int) -> None:
        if self._phase == "ending":
            self._unfinished(f"no message that fits within {self._timeout}, at step {self._step + 1} of the end", at_ns)
            return
        self._unready(f"no message that fits within {self._timeout}", at_ns)

    def _unready(self, sentence: str, at_ns: int) -> None:
        outcome = "silent" if self._last_message_ns is None else "target_error"
        self._lapse(outcome, f"{sentence}, at {self._where}; {self._last_message(at_ns)}", at_ns)

    @property
    def _where(self) -> str:
        """The step of which script it is."""
        opening = len(self._how.opening) if self._is_first else 0
        if self._step < opening:
            return f"step {self._step + 1} of the opening script"
        return f"step {self._step - opening + 1} of what an utterance begins with"

    def _silence_due(self, at_ns: int) -> None:
        limit = f"nothing within our silence limit of {self._limits.silence_s:g} s"
        self._lapse("silent", f"{limit}, {moment(self._utterance, at_ns)}; {self._last_message(at_ns)}", at_ns)

    def _last_message(self, at_ns: int) -> str:
        if self._last_message_ns is None:
            return "no message ever came"
        return f"the last message is {seconds(at_ns - self._last_message_ns)} old"

    def _final_due(self, at_ns: int) -> None:
        self._unfinished(f"no end of output within {self._limits.final_s:g} s of the end of the media", at_ns)

    def _done_due(self, at_ns: int) -> None:
        self._unfinished(f"no end of output within {self._timeout} of the end mark", at_ns)

    def _unfinished(self, sentence: str, at_ns: int) -> None:
        self._lapse("no_final", f"{sentence}; {self._last_message(at_ns)}", at_ns)

    def _done_quiet_due(self, at_ns: int) -> None:
        del at_ns  # when it was done nobody said
        self._done("quiet", None)

    def _session_due(self, at_ns: int) -> None:
        limit = f"our session limit of {self._limits.session_s:g} s"
        self._lapse("our_limit", f"{limit} was over {moment(self._utterance, at_ns)}", at_ns)

    def _next_step_due(self, at_ns: int) -> None:
        self._drop("quiet", "quiet_most")
        if not self._is_done and self._utterance.source_end_ns is not None:
            self._due_in("silence", at_ns, self._limits.silence_s)
        self._step += 1
        self._follow_end(at_ns)

    def _promote_due(self, at_ns: int) -> None:
        quiet_ns = self._quiet_ns or 0
        oldest_ns = self._hearing.promote(at_ns - quiet_ns)
        if oldest_ns is not None:
            self._deadlines["promote"] = oldest_ns + quiet_ns

    def _their_close_due(self, at_ns: int) -> None:
        self._books.warn(f"the service did not close within {self._limits.close_s:g} s of its last output")
        self._shut_down(at_ns)

    def _close_due(self, at_ns: int) -> None:
        self._books.warn(f"the service did not answer our close within {self._limits.close_s:g} s")
        self._give_up(at_ns)


_WHEN_DUE: Final[dict[str, Callable[[Conversation, int], Any]]] = {
    "answer": Conversation._answer_due,
    "connect": Conversation._connect_due,
    "ready": Conversation._ready_due,
    "wait": Conversation._wait_due,
    "silence": Conversation._silence_due,
    "source_end": Conversation._begin_end,
    "final": Conversation._final_due,
    "done": Conversation._done_due,
    "poll": Conversation._poll_again,
    "done_quiet": Conversation._done_quiet_due,
    "session": Conversation._session_due,
    "quiet": Conversation._next_step_due,
    "quiet_most": Conversation._next_step_due,
    "grace": Conversation._next_step_due,
    "promote": Conversation._promote_due,
    "their_close": Conversation._their_close_due,
    "close": Conversation._close_due,
    "keepalive": Conversation._keepalive_due,
}

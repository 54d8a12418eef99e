"""What will be recorded of one session, written down as it comes to be known."""

from typing import Final, Literal

from loadbench.results.masks import shorten
from loadbench.results.outcome import side
from loadbench.results.record import Connection, Prelude, SessionRecord, Utterance
from loadbench.session.wire import Cause, ClipTask, Opened

SENTENCE_CHARACTERS: Final = 500
WARNINGS: Final = 20


class Books:
    """One session's books. The first outcome stays; warnings are bounded in number and length."""

    def __init__(self, session: str, planned_ns: int) -> None:
        self.session = session
        self.planned_ns = planned_ns
        self.outcome: str | None = None
        self.cause = ""
        self.ready_ns: int | None = None
        self.ended_ns: int | None = None
        self.prelude: list[Prelude] = []
        self.connection: Connection | None = None
        self.utterances: list[Utterance] = []
        self.raw: list[str] = []
        self._warnings: list[str] = []

    def warn(self, text: str) -> None:
        """Keep a sentence that is no outcome."""
        if len(self._warnings) < WARNINGS:
            self._warnings.append(shorten(text, SENTENCE_CHARACTERS))

    def begin(self, task: ClipTask) -> None:
        """The next utterance."""
        self.utterances.append(
            Utterance(
                index=len(self.utterances),
                clip=task.id,
                attempt=task.attempt,
                media_ns=task.media_ns,
                onset_ns=task.onset_ns,
                activity_end_ns=task.activity_end_ns,
                chunks_planned=task.chunks,
            )
        )

    def opened(self, facts: Opened, at_ns: int) -> None:
        """The connection stands."""
        if (line := self.connection) is not None:
            line.opened_ns, line.tcp_ns, line.tls_ns = at_ns, facts.tcp_ns, facts.tls_ns
            line.local, line.remote, line.status = facts.local, facts.remote, facts.status

    def lost(self, cause: Cause, at_ns: int) -> None:
        """The connection is no more."""
        if (line := self.connection) is not None:
            line.ended_ns, line.cause = at_ns, cause.kind
            line.close_by, line.close_code, line.close_reason = cause.by, cause.code, cause.reason
            line.status = line.status if cause.status is None else cause.status
            line.retry_after_s, line.pongs_missed = cause.retry_after_s, cause.pongs_missed

    def record(
        self,
        messages: dict[str, int],
        *,
        worker: str,
        user: int,
        stage: str,
        window: Literal["warmup", "measure", "drain"],
        begun_ns: int,
    ) -> SessionRecord:
        """The record. Raises ValueError while the session goes on."""
        if self.outcome is None or self.ended_ns is None:
            raise ValueError(f"session {self.session} has not ended")
        return SessionRecord(
            id=self.session,
            worker=worker,
            user=user,
            stage=stage,
            window=window,
            planned_ns=self.planned_ns,
            begun_ns=begun_ns,
            ready_ns=self.ready_ns,
            ended_ns=self.ended_ns,
            prelude=self.prelude,
            connections=[self.connection] if self.connection else [],
            utterances=self.utterances,
            outcome=self.outcome,
            side=side(self.outcome),
            cause=shorten(self.cause, SENTENCE_CHARACTERS),
            warnings=self._warnings,
            messages={kind: count for kind, count in messages.items() if count},
            raw=self.raw,
        )

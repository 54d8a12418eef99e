"""What scorers get: one row for each utterance and channel, with the text that was timed and what it should have been.

A row is keyed by session, utterance, attempt and channel, so that three sessions of one clip are three rows, and the
order in which they finished does not matter. Nobody is lost: a session that failed has a row with an empty hypothesis,
which counts as one deletion for each unit of its reference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from loadbench.results.bundle import Bundle
from loadbench.results.media import Transcript
from loadbench.results.outcome import ending
from loadbench.results.record import Channel, ClipFacts, SessionRecord, Started, Utterance
from loadbench.results.reference import REFERENCES, Kind, Unit, language_of, references, tokens, unit_in
from loadbench.scoring.normalise import normalise

IN_FLIGHT: Final = "in_flight"  # no outcome: the run was killed around the session


class OutputsError(ValueError):
    """Outputs that cannot be scored: every problem, each a sentence."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One output and its right answers (the first is the reference, others are as good). Glosses are joined by spaces.

    `complete`: the utterance finished, and `hypothesis` is its whole text, "" where it said nothing. Else `hypothesis`
    is "" and `unfinished` keeps what was shown. `partial_only`: none of the shown text was final. `counted` is False
    for one that was cut before it could have finished: it says nothing about the service.
    """

    session: str
    utterance: int
    attempt: int
    channel: str
    clip: str
    window: str
    direction: str
    stage: str
    reference: Kind
    language: str
    unit: Unit
    references: list[str]
    hypothesis: str = ""
    unfinished: str = ""
    partial_only: bool = False
    complete: bool
    counted: bool = True
    outcome: str

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What pairs a row with its reference."""
        return self.session, self.utterance, self.attempt, self.channel


def rows(bundle: Bundle) -> Iterator[Row]:
    """The rows of a bundle, in the order in which sessions ended; sessions in flight come last and are not counted.

    Channels whose clip has no such reference have no row. What was said aloud has one where it was made text; where
    that failed, it is not counted. Streams.
    """
    clips, stages = bundle.clips(), bundle.header.channel_stages
    heard = bundle.transcripts()
    open_: dict[str, Started] = {}
    for event in bundle.sessions():
        if isinstance(event, Started):
            open_[event.id] = event
        else:
            start = open_.pop(event.id, None)
            yield from _of_session(event, start.clips if start else [], clips, stages, heard)
    for start in open_.values():
        lost = _lost(start)
        yield from _of_session(lost, start.clips, clips, stages, heard)


def compared(row: Row, text: str) -> list[str]:
    """A text of the row as it is compared: normalised, and cut into its units."""
    return tokens(normalise(text, row.unit, row.language), row.unit)


def encode(found: Iterable[Row]) -> Iterator[bytes]:
    """Lines of `outputs.jsonl`: the same bytes for the same rows."""
    return (msgspec.json.encode(row, order="deterministic") + b"\n" for row in found)


def read(lines: Iterable[bytes | str], source: str) -> list[Row]:
    """Rows from lines of `outputs.jsonl`, perhaps made by hand. Raises OutputsError with every line that is none."""
    found, problems = [], []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Row))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problems.append(f"{source}:{number}: no output row: {error}")
    problems += doubled(found)
    if problems:
        raise OutputsError(problems)
    return found


def pair(expected: Mapping[str, Sequence[str]], outputs: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    """Outputs by id for each expected id, None where one is missing. Raises OutputsError for an id that nobody expects,
    one that comes twice, and for a reference that is a bare text (it would be scored letter by letter).
    """
    problems = [
        f"the references of {name} must be a list of texts, not a text"
        for name, texts in expected.items()
        if isinstance(texts, str)
    ]
    found: dict[str, str | None] = dict.fromkeys(expected)
    for name, text in outputs:
        if name not in expected:
            problems.append(f"there is an output for {name}, and no reference: remove it, or add the reference")
        elif found[name] is not None:
            problems.append(f"there are two outputs for {name}")
        else:
            found[name] = text
    if problems:
        raise OutputsError(problems)
    return found


def doubled(found: Iterable[Row]) -> list[str]:
    """A sentence for each row whose key was there before."""
    seen, problems = set(), []
    for row in found:
        if row.key in seen:
            problems.append("two outputs for session {}, utterance {}, attempt {}, channel {}".format(*row.key))
        seen.add(row.key)
    return problems


def _of_session(
    record: SessionRecord,
    planned: Sequence[str],
    clips: Mapping[str, ClipFacts],
    stages: Mapping[str, str],
    heard: Mapping[tuple[str, int, str], Transcript],
) -> Iterator[Row]:
    for utterance in [*record.utterances, *_not_begun(record, planned)]:
        facts = clips.get(utterance.clip)
        for channel, stage in stages.items():
            kind = REFERENCES.get((stage, facts.direction)) if facts else None
            if facts is None or kind is None or not (right := references(facts, kind)):
                continue
            row = _row(record, utterance, facts, channel, stage, kind, right)
            if stage == "media":
                spoken = heard.get((record.id, utterance.index, channel))
                yield from [] if spoken is None else [_spoken(row, spoken)]
            else:
                yield row


def _row(
    record: SessionRecord,
    utterance: Utterance,
    facts: ClipFacts,
    channel: str,
    stage: str,
    kind: Kind,
    right: list[str],
) -> Row:
    outcome = utterance.outcome or record.outcome
    shown = utterance.channels.get(channel) or Channel()
    complete = outcome != IN_FLIGHT and ending(outcome) == "finished"
    return Row(
        session=record.id,
        utterance=utterance.index,
        attempt=utterance.attempt,
        channel=channel,
        clip=utterance.clip,
        window=record.window,
        direction=facts.direction,
        stage=stage,
        reference=kind,
        language=language_of(facts, kind),
        unit=unit_in(facts, kind),
        references=right,
        hypothesis=shown.text if complete else "",
        unfinished="" if complete else shown.text,
        partial_only=bool(shown.text) and not shown.settled_text,
        complete=complete,
        counted=complete or _at_risk(utterance, record, outcome),
        outcome=outcome,
    )


def _spoken(row: Row, heard: Transcript) -> Row:
    """The row of what was said aloud."""
    text, known = heard.text or "", heard.text is not None
    return msgspec.structs.replace(
        row,
        hypothesis=text if row.complete else "",
        unfinished="" if row.complete else text,
        counted=row.counted and known,
    )


def _not_begun(record: SessionRecord, planned: Sequence[str]) -> list[Utterance]:
    """The utterances that a session was to carry and ended before."""
    begun = {utterance.index for utterance in record.utterances}
    return [
        Utterance(index=index, clip=clip, attempt=0, media_ns=0)
        for index, clip in enumerate(planned)
        if index not in begun
    ]


def _at_risk(utterance: Utterance, record: SessionRecord, outcome: str) -> bool:
    if outcome == IN_FLIGHT:
        return False
    end = utterance.source_end_ns
    return ending(outcome) == "failed" or (end is not None and record.ended_ns > end)


def _lost(start: Started) -> SessionRecord:
    """A session of which only the beginning is known."""
    return SessionRecord(
        id=start.id,
        worker=start.worker,
        user=start.user,
        stage=start.stage,
        window=start.window,
        planned_ns=start.planned_ns,
        begun_ns=start.begun_ns,
        ended_ns=start.begun_ns,
        outcome=IN_FLIGHT,
        side="none",
    )

"""Kept speech made text by a command of the user's choice, so that what was said aloud can be scored.

The command is started once. It reads the path of a file a line and answers each with a JSON line, {"text": ...}, or
{"error": ...}. What it cannot do is data: it stands in `transcripts.jsonl`, and such an output is not counted.
"""

import contextlib
import os
import select
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from loadbench.results.bundle import Bundle, write_whole
from loadbench.results.media import Transcript
from loadbench.scoring.outputs import OutputsError

ANSWER_S: Final = 120.0  # for one file
END_S: Final = 5.0
READ_BYTES: Final = 64 * 1024
LONGEST_ANSWER: Final = 1024 * 1024


def transcribe(bundle: Bundle, command: str, *, answer_s: float = ANSWER_S) -> list[Transcript]:
    """Make text of all speech that the bundle holds, and write `transcripts.jsonl`. Files stand there as they came:
    samples as WAV, containers as the service sent them.

    Raises OutputsError where the command cannot be started, OSError where the file cannot be written.
    """
    found: list[Transcript] = []
    with _Command(command, answer_s) as recogniser:
        for session, utterance, channel, path, size in _speech(bundle):
            try:
                text, error = recogniser.ask(_whole(path, size)), ""
            except _FailedError as failed:
                text, error = None, str(failed)
            found.append(Transcript(session=session, utterance=utterance, channel=channel, text=text, error=error))
    write_whole(bundle.folder / "transcripts.jsonl", (msgspec.json.encode(each) + b"\n" for each in found))
    return found


def _speech(bundle: Bundle) -> Iterator[tuple[str, int, str, Path, int]]:
    """What was kept, with how many bytes came."""
    for record in bundle.records():
        for utterance in record.utterances:
            for name, channel in sorted(utterance.channels.items()):
                path = bundle.media(record.id, utterance.index, name)
                if channel.media is not None and channel.media.medium == "audio" and path is not None:
                    yield record.id, utterance.index, name, path.absolute(), channel.media.bytes


def _whole(path: Path, size: int) -> Path:
    """The path of a file that holds all that was said. Raises _FailedError for a part, which would score as errors."""
    if path.stat().st_size < size:
        raise _FailedError("only a part of it was kept: raise record.media_mib")
    return path


class _FailedError(Exception):
    """One file could not be made text; says why."""


class _Command:
    """The command while it runs."""

    def __init__(self, command: str, answer_s: float) -> None:
        self._answer_s = answer_s
        self._rest = b""
        self._over = ""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command, on the user's word
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except (OSError, ValueError, IndexError) as error:
            raise OutputsError([f"the command for transcripts cannot be started: {error}"]) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it may be gone already
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def ask(self, path: Path) -> str:
        """The text of one file. Raises _FailedError, and after the command's end for all that follow."""
        if not self._over and self._process.stdin is not None:
            try:
                self._process.stdin.write(os.fsencode(path) + b"\n")
                return _text(self._line())
            except OSError:
                self._over = "the command is gone"
        raise _FailedError(self._over)

    def _line(self) -> bytes:
        stream, until_s = self._process.stdout, time.monotonic() + self._answer_s
        while b"\n" not in self._rest:
            left_s = max(0.0, until_s - time.monotonic())
            if stream is None or not select.select([stream], [], [], left_s)[0]:
                self._over = f"no answer within {self._answer_s:g} s"
                self._process.kill()  # a late answer would be taken for that of the next file
                raise _FailedError(self._over)
            data = os.read(stream.fileno(), READ_BYTES)
            self._rest += data
            if not data or len(self._rest) > LONGEST_ANSWER:
                self._over = "the command ended" if not data else "the command's answer has no end"
                raise _FailedError(self._over)
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def _text(line: bytes) -> str:
    try:
        answer: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise _FailedError(f"the command's answer is no JSON: {line[:80]!r}") from None
    text = answer.get("text") if isinstance(answer, dict) else None
    if isinstance(text, str):
        return text
    said = answer.get("error") if isinstance(answer, dict) else None
    raise _FailedError(str(said) if said else f"the command's answer has no text: {line[:80]!r}")

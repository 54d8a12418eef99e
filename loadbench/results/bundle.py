"""The bundle: a folder that tells what a run was and what came of it, readable after kill -9 at any point.

`run.json` is written first and `done.json` last; between them lines are only ever appended, whole, and each flush is
sealed: a seal hashes the file's previous seal and the new bytes, so that damage shows (forgery does not). Readers skip
a torn last line, say so, and call a bundle without `done.json` incomplete.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from loadbench.results.conceal import concealed
from loadbench.results.masks import Masks
from loadbench.results.media import Transcript, stem
from loadbench.results.odd import oddity
from loadbench.results.record import Aside, CanaryRecord, ChunkTimes, ClipFacts, Message, SessionRecord, Started
from loadbench.results.run import SCHEMA_VERSION, Done, RunHeader
from loadbench.results.tick import Tick

STEMS: Final = ("sessions", "ticks", "chunks", "messages", "clips", "canary", "stderr")
SEALED: Final = frozenset(("run.json", *(f"{stem}.jsonl" for stem in STEMS)))
MEDIA: Final = "media"  # the folder of output media
_MEDIA_FILE: Final = re.compile(rf"{MEDIA}/[\w-][\w.-]*")
PIECE_BYTES: Final = 1 << 20
MOST_LINES: Final = 10  # of each file, whose trouble is told one by one
T = TypeVar("T")

# Words of our own, never of the far side: a password "measure" must not unmake the window "measure".
OURS: Final = frozenset(
    (
        *("type", "id", "session", "worker", "stage", "window", "outcome", "side", "finality", "close_by", "reason"),
        *("run_id", "headline_channel", "headline_metric", "metric", "stat", "channel", "clip", "clips", "direction"),
        *("source_lang", "target_lang", "text_unit", "gloss_unit"),
    )
)
FREE: Final = frozenset(("plan", "effective", "profile", "versions", "machine", "corpus"))


class BundleError(ValueError):
    """The user's trouble with a bundle: every problem, each a sentence that says what to do next."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class Seal(msgspec.Struct, kw_only=True, frozen=True):
    """`seal` is the SHA-256 of the file's previous seal (hex, "" for its first) and the `length` bytes at `offset`.

    `at_ns` is when the flush was asked for, on the run clock, None where nobody said.
    """

    file: str
    offset: int
    length: int
    seal: str
    at_ns: int | None = None


class BundleWriter:
    """Writes a run down. All methods may be called from any thread; `append` never waits for the disk.

    `error` is the first failure to write, raised once by the call that met it. After it nothing more is written: what
    was written before stays whole, and the bundle stays incomplete.
    """

    def __init__(self, folder: Path, header: RunHeader, masks: Masks) -> None:
        self.folder = folder
        self.error: BundleError | None = None
        self._closed = False
        self._masks = masks
        self._gate = threading.Lock()  # held for moments: the buffers
        self._disk = threading.Lock()  # held while writing
        self._buffers: dict[str, list[bytes]] = {f"{stem}.jsonl": [] for stem in STEMS}
        self._files: dict[str, _Appended] = {}
        try:
            _refuse_a_run(folder)
            folder.mkdir(parents=True, exist_ok=True)
            text = msgspec.json.format(self._line(header), indent=2) + b"\n"
            write_whole(folder / "run.json", [text], sync=True)
            self._files = {name: _Appended(folder / name) for name in (*self._buffers, "seals.jsonl")}
            self._heads = {"run.json": _seal("", text)}
            self._seal([Seal(file="run.json", offset=0, length=len(text), seal=self._heads["run.json"])])
        except OSError as error:
            raise BundleError([f"cannot write a bundle to {folder}: {why(error)}; choose another --out"]) from None

    def append(self, stem: str, record: msgspec.Struct) -> None:
        """Keep a record for the next flush. `stem` is one of `STEMS`."""
        line = self._line(record) + b"\n"
        with self._gate:
            self._buffers[f"{stem}.jsonl"].append(line)

    def keep(self, file: str, data: bytes) -> None:
        """Keep bytes for `media/FILE`, to be appended with the next flush, as they are."""
        with self._gate:
            self._buffers.setdefault(f"{MEDIA}/{file}", []).append(data)

    def flush(self, at_ns: int | None = None) -> None:
        """Write and seal all that was appended. Raises BundleError the first time that the disk takes no more."""
        with self._writing() as possible:
            with self._gate:
                waiting = {name: b"".join(lines) for name, lines in self._buffers.items() if lines}
                for name in waiting:
                    self._buffers[name] = []
            if possible and waiting:
                self._seal([self._add(name, data, at_ns) for name, data in waiting.items()])

    def snapshot(self, name: str, text: str) -> None:
        """Put a whole file beside the records, for instance `metrics.prom`; it replaces an earlier one at once."""
        with self._writing() as possible:
            if possible:
                write_whole(self.folder / name, [self._masks.mask(text, cut=False).encode()])

    def finish(self, done: Done) -> None:
        """Flush, and write `done.json` with the last seal of each file. What is appended afterwards is not written."""
        self.flush(done.ended_ns)
        with self._writing() as possible:
            if possible:
                for file in self._files.values():
                    file.settle()
                last = msgspec.structs.replace(done, heads=dict(self._heads))
                text = msgspec.json.format(self._line(last), indent=2) + b"\n"
                write_whole(self.folder / "done.json", [text], sync=True)
            self._closed = True
            for file in self._files.values():
                file.close()

    @contextmanager
    def _writing(self) -> Iterator[bool]:
        """Hold the disk; whether it may be written to. The first refusal becomes `error`."""
        with self._disk:
            try:
                yield self.error is None and not self._closed
            except OSError as error:
                text = (
                    f"cannot write to {self.folder}: {why(error)}; what was written before is intact:"
                    " free some space, or choose another --out, and run again"
                )
                self.error = BundleError([text])
                raise self.error from None

    def _add(self, name: str, data: bytes, at_ns: int | None) -> Seal:
        if name not in self._files:
            (self.folder / MEDIA).mkdir(exist_ok=True)
            self._files[name] = _Appended(self.folder / name)
        offset = self._files[name].add(data)
        self._heads[name] = _seal(self._heads.get(name, ""), data)
        return Seal(file=name, offset=offset, length=len(data), seal=self._heads[name], at_ns=at_ns)

    def _seal(self, seals: list[Seal]) -> None:
        self._files["seals.jsonl"].add(b"".join(msgspec.json.encode(seal) + b"\n" for seal in seals))

    def _line(self, record: msgspec.Struct) -> bytes:
        if isinstance(record, SessionRecord):
            record = concealed(record, self._masks)
        line = msgspec.json.encode(record)
        # Chunk times are numbers in base64: no text of anybody's, and a mask among them would unmake them.
        if isinstance(record, ChunkTimes) or not self._masks.found_in(line.decode()):
            return line
        return msgspec.json.encode(_masked(msgspec.json.decode(line), self._masks))


class Bundle:
    """Reads a bundle, whole or not. Raises BundleError where there is none, or one of a newer loadbench.

    The iterators stream, so that a hundred thousand records need no more memory than one. `problems` gathers what they
    had to skip, and is complete once they have run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._problems: dict[str, None] = {}
        self._unread: dict[str, set[int]] = {}
        self.header = _read_header(folder)
        self.done = self._read_done()

    @property
    def complete(self) -> bool:
        """Whether the run came to its end and said so."""
        return self.done is not None

    @property
    def problems(self) -> list[str]:
        """What could not be read so far, each once; of many lines of a file the first ones, and how many more."""
        more = {name: len(lines) - MOST_LINES for name, lines in self._unread.items()}
        return [*self._problems, *(f"{name}: {n} lines more cannot be read" for name, n in more.items() if n > 0)]

    @property
    def unread(self) -> int:
        """How many lines had to be skipped so far, each counted once."""
        return sum(map(len, self._unread.values()))

    def sessions(self) -> Iterator[Started | SessionRecord]:
        """Starts and ends in the order in which they were written; a start always comes before its end."""
        return self._lines("sessions", msgspec.json.Decoder(Started | SessionRecord))

    def started(self) -> Iterator[Started]:
        """All starts."""
        return (line for line in self.sessions() if isinstance(line, Started))

    def records(self) -> Iterator[SessionRecord]:
        """All ends."""
        return (line for line in self.sessions() if isinstance(line, SessionRecord))

    def in_flight(self) -> list[Started]:
        """Sessions that began and never ended: the run was killed around them."""
        open_: dict[str, Started] = {}
        for line in self.sessions():
            if isinstance(line, Started):
                open_[line.id] = line
            else:
                open_.pop(line.id, None)
        return list(open_.values())

    def ticks(self) -> Iterator[Tick]:
        """The engine's seconds."""
        return self._lines("ticks", msgspec.json.Decoder(Tick))

    def chunks(self) -> Iterator[ChunkTimes]:
        """Per-chunk times of the sampled sessions."""
        return self._lines("chunks", msgspec.json.Decoder(ChunkTimes))

    def messages(self) -> Iterator[Message]:
        """Raw messages of the sampled sessions."""
        return self._lines("messages", msgspec.json.Decoder(Message))

    def canaries(self) -> Iterator[CanaryRecord]:
        """The sessions against the responder of ours."""
        return self._lines("canary", msgspec.json.Decoder(CanaryRecord))

    def asides(self) -> Iterator[Aside]:
        """What local programs said on their standard error."""
        return self._lines("stderr", msgspec.json.Decoder(Aside))

    def clips(self) -> dict[str, ClipFacts]:
        """The clips that were used, by id."""
        return {facts.id: facts for facts in self._lines("clips", msgspec.json.Decoder(ClipFacts))}

    def media(self, session: str, utterance: int, channel: str) -> Path | None:
        """The file that holds the output media of an utterance on a channel; None where none was kept."""
        return next(iter(sorted((self.folder / MEDIA).glob(f"{stem(session, utterance, channel)}.*"))), None)

    def transcripts(self) -> dict[tuple[str, int, str], Transcript]:
        """What was made of kept speech, by session, utterance and channel."""
        found = self._lines("transcripts", msgspec.json.Decoder(Transcript))
        return {(each.session, each.utterance, each.channel): each for each in found}

    def verify(self) -> list[str]:
        """Where the files do not agree with their seals; empty for a bundle that is as it was written.

        Bytes after the last seal are named as well: a run that was killed while it wrote leaves some.
        """
        return [f"{name}: {text}" for name, text in [*self._unlike_seals(), *self._unsealed()]]

    def damage(self) -> list[str]:
        """A sentence for each file that is not as it was written: changed, cut, or gone. Reads every file once.

        What a killed run leaves, bytes that were not sealed yet, is no damage; after `done.json` it is.
        """
        found: dict[str, list[str]] = {}
        for name, text in [*self._unlike_seals(), *(self._unsealed() if self.complete else [])]:
            if text not in found.setdefault(name, []):
                found[name].append(text)
        if not (self.folder / "seals.jsonl").is_file():
            found = {"seals.jsonl": ["is missing, so that nobody can say whether the other files are as written"]}
        return [
            f"damaged: {name}: {texts[0]}" + (f" (and {len(texts) - 1} more)" if len(texts) > 1 else "")
            for name, texts in sorted(found.items())
        ]

    def _unlike_seals(self) -> Iterator[tuple[str, str]]:
        heads: dict[str, str] = {}
        for seal in self._lines("seals", msgspec.json.Decoder(Seal)):
            wanted = _seal_of(self.folder, seal, heads.get(seal.file, ""))
            heads[seal.file] = seal.seal
            if wanted != seal.seal:
                yield (
                    seal.file,
                    (
                        f"bytes {seal.offset} to {seal.offset + seal.length} do not match their seal;"
                        " the file was damaged or changed"
                        if (self.folder / seal.file).is_file()
                        else "the file is missing"
                    ),
                )
        told = self.done.heads if self.done is not None else heads
        for name in sorted({*heads, *told}):
            if heads.get(name) != told.get(name):
                yield name, "its last seal is not the one in done.json"

    def _unsealed(self) -> Iterator[tuple[str, str]]:
        ends = {f"{stem}.jsonl": 0 for stem in STEMS}
        ends |= {seal.file: seal.offset + seal.length for seal in self._lines("seals", msgspec.json.Decoder(Seal))}
        for name, end in ends.items():
            size = _size(self.folder / name) if _sealed(name) else 0
            if size > end:
                yield name, f"{size - end} bytes after the last seal are not sealed"

    def _lines(self, stem: str, decoder: "msgspec.json.Decoder[T]") -> Iterator[T]:
        path = self.folder / f"{stem}.jsonl"
        if not path.is_file():
            return
        try:
            opened = path.open("rb")
        except OSError as error:
            self._note(f"{path.name} cannot be opened: {why(error)}")
            return
        with opened as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    self._note(f"{path.name}: the last line ({number}) is torn and was skipped")
                    return
                try:
                    item = decoder.decode(line)
                    doubt = oddity(item, line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    doubt = _words(error)
                if doubt:
                    self._skip(path.name, number, doubt)
                else:
                    yield item

    def _read_done(self) -> Done | None:
        path = self.folder / "done.json"
        if not path.is_file():
            self._note("done.json is missing: the run did not come to its end, so the bundle is incomplete")
            return None
        try:
            data = path.read_bytes()
            done = msgspec.json.decode(data, type=Done)
            doubt = oddity(done, data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
            done, doubt = None, _words(error)
        if doubt:
            self._note(f"done.json cannot be read, so the bundle counts as incomplete: {doubt}")
        return None if doubt else done

    def _skip(self, name: str, number: int, why: str) -> None:
        lines = self._unread.setdefault(name, set())
        lines.add(number)
        if len(lines) <= MOST_LINES:
            self._note(f"{name}: line {number} cannot be read and was skipped: {why}")

    def _note(self, problem: str) -> None:
        self._problems.setdefault(problem)


class _Appended:
    """A file that grows by whole pieces: a piece that does not fit is taken back."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO | Any = path.open("xb", buffering=0)
        self._end = 0

    def add(self, data: bytes) -> int:
        """Append all of `data`; where it begins. Raises OSError, and then nothing of it is left."""
        begin, rest = self._end, memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            with suppress(OSError):  # a torn last line is skipped by readers
                self._file.truncate(begin)
            raise
        self._end = begin + len(data)
        return begin

    def settle(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _refuse_a_run(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BundleError([f"{folder} is a file; --out must name a folder"])
    names = ["run.json", "done.json", "seals.jsonl", *(f"{stem}.jsonl" for stem in STEMS)]
    held = [name for name in names if (folder / name).exists()]
    if held:
        raise BundleError([f"{folder} already holds a run ({held[0]}); choose another --out, or move that one away"])


def _read_header(folder: Path) -> RunHeader:
    path = folder / "run.json"
    try:
        if not path.is_file():
            raise BundleError([f"{folder} holds no run: it has no run.json; name the folder that --out named"])
        data = path.read_bytes()
        found = msgspec.json.decode(data)
        version = found.get("schema_version") if isinstance(found, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            text = f"schema {version}, and this one reads up to {SCHEMA_VERSION}"
            raise BundleError([f"{folder} was written by a newer loadbench ({text}); update loadbench to read it"])
        header = msgspec.convert(found, RunHeader)
        doubt = oddity(header, data)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError, OSError) as error:
        doubt = _words(error)
    if doubt:
        raise BundleError([f"{path} cannot be read: {doubt}; the bundle cannot be used without it"])
    return header


def write_whole(path: Path, parts: Iterable[bytes], *, sync: bool = False) -> None:
    """Write a file that is there whole or not at all, also after a power cut where `sync`; it replaces an earlier one.

    Raises OSError, and then nothing of it is left, and the earlier one is still there.
    """
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("wb") as file:
            file.writelines(parts)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _seal(previous: str, data: bytes) -> str:
    return hashlib.sha256(previous.encode() + data).hexdigest()


def _sealed(name: str) -> bool:
    """Whether a file of this name is of those that are sealed; others are not looked at, wherever they may lie."""
    return name in SEALED or _MEDIA_FILE.fullmatch(name) is not None


def _seal_of(folder: Path, seal: Seal, previous: str) -> str:
    """What the seal of these bytes would be; "" where there are no such bytes."""
    path = folder / seal.file
    if not _sealed(seal.file) or seal.offset < 0 or not 0 <= seal.length <= _size(path) - seal.offset:
        return ""
    digest, left = hashlib.sha256(previous.encode()), seal.length
    with suppress(OSError), path.open("rb") as file:
        file.seek(seal.offset)
        while left and (piece := file.read(min(left, PIECE_BYTES))):
            digest.update(piece)
            left -= len(piece)
    return "" if left else digest.hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _words(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return why(error) if isinstance(error, OSError) else str(error)


def why(error: OSError) -> str:
    """What the system said, in small letters: "no space left on device"."""
    return (error.strerror or type(error).__name__).lower()


def _masked(value: Any, masks: Masks, ours: frozenset[str] = OURS) -> Any:
    """`value` with secrets hidden in every string that is not a word of our own; keys are names and stay."""
    if isinstance(value, str):
        return masks.mask(value, cut=False)
    if isinstance(value, list):
        return [_masked(item, masks, ours) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if key in ours else _masked(item, masks, frozenset() if key in FREE else ours)
        for key, item in value.items()
    }

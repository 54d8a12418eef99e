"""A real recogniser behind the same server: Moonshine, streaming English, on this machine's processors.

One model serves all sessions, each with a stream of its own; the recognition itself runs in a few threads and lets go
of Python's lock, so that arrivals are stamped on time. It needs the extra `demo`.
"""

import array
import asyncio
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

from loadbench.session.profile import Profile
from loadbench.simulator.behave import Course
from loadbench.simulator.options import Options, OptionsError
from loadbench.simulator.sitting import Sitting

FULL_SCALE = 32768.0
UPDATE_S = 0.5  # of media between two looks at the text


class Moonshine:
    """The model, and the threads that run it. Raises OptionsError where it cannot serve the profile.

    Whoever starts the process sets OMP_NUM_THREADS=1 before; else each thread of ours would spread over all processors.
    """

    def __init__(self, profile: Profile, options: Options) -> None:
        self.rate_hz = _fitting_rate(profile)
        self.channels = [name for name, part in profile.channels.items() if part.stage == "recognition"]
        try:
            from moonshine_voice import ModelArch, MoonshineError, Transcriber, get_model_path
        except ImportError as error:
            raise OptionsError(['the engine moonshine is not installed: pip install "loadbench[demo]"']) from error
        self.model = Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)
        self.errors: type[Exception] = MoonshineError
        self.pool = ThreadPoolExecutor(options.threads, thread_name_prefix="recognise")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.model.close()

    def mind(self, sitting: Sitting, course: Course) -> "Listener":
        """What recognises one utterance."""
        return Listener(self, sitting, says_final=course.final)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the recogniser's transcript, as it stands."""

    text: str
    final: bool


class Listener:
    """Recognises one utterance: its chunks in order, one thread at a time."""

    def __init__(self, engine: Moonshine, sitting: Sitting, *, says_final: bool) -> None:
        self._engine = engine
        self._sitting = sitting
        self._says_final = says_final
        self._stream: Any = None
        self._lines: list[Line] = []
        self._odd = b""
        self._work: deque[bytes | None] = deque()  # None: the end
        self._running: asyncio.Task[None] | None = None
        self._trouble: Exception | None = None

    def ready(self, now_ns: int) -> None:
        """Nothing follows from the opening."""

    def begin(self, now_ns: int) -> None:
        """Recognition begins with the media, whatever the slot."""

    def chunk(self, payload: bytes) -> None:
        """Recognise this too, when its turn comes."""
        self._take(payload)

    def end(self, _: int) -> None:
        """Nothing more will come."""
        self._take(None)

    def gone(self) -> None:
        """Nobody listens any more."""
        self._work.clear()
        if self._running is None or self._running.done():
            self._close()

    def _take(self, work: bytes | None) -> None:
        self._work.append(work)
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._recognise())

    async def _recognise(self) -> None:
        loop = asyncio.get_running_loop()
        while self._work:
            pieces, over = self._next()
            for line in await loop.run_in_executor(self._engine.pool, self._heard, pieces, over):
                self._say(line)
            if self._trouble is not None:
                self._sitting.entry.violations.append(f"the recogniser failed: {self._trouble}")
            if over:
                self._over()
                self._close()
        if self._sitting.entry.closed_ns is not None:
            self._close()

    def _next(self) -> tuple[bytes, bool]:
        """All that is waiting, at once: who is behind need not look at each chunk by itself."""
        pieces = bytearray()
        while self._work:
            work = self._work.popleft()
            if work is None:
                return bytes(pieces), True
            pieces += work
        return bytes(pieces), False

    def _heard(self, data: bytes, over: bool) -> list[Line]:
        """In a thread: the lines that are new or have changed. What the engine raises is kept in `_trouble`."""
        self._lines = []
        data = self._odd + data
        even = len(data) - len(data) % 2
        self._odd = data[even:]
        try:
            if self._stream is None:
                self._stream = self._engine.model.create_stream(update_interval=UPDATE_S)
                self._stream.add_listener(self._note)
                self._stream.start()
            if even:
                self._stream.add_audio(samples(data[:even]), self._engine.rate_hz)
            if over:
                self._stream.stop()
        except self._engine.errors as error:
            self._trouble = error
        return self._lines

    def _note(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "Error":
            self._trouble = event.error
        elif kind in ("LineTextChanged", "LineCompleted") and event.line.text:
            self._lines.append(Line(event.line.text.strip(), final=kind == "LineCompleted"))

    def _say(self, line: Line) -> None:
        texts = dict.fromkeys(self._engine.channels, line.text)

        async def deed(_: int) -> None:
            if line.final and self._says_final:
                await self._sitting.say_final(texts)
            else:
                await self._sitting.say_partial(texts)

        self._sitting.mouth.at(self._sitting.house.clock(), deed)

    def _over(self) -> None:
        async def deed(now_ns: int) -> None:
            self._sitting.leave()
            if self._says_final:
                self._sitting.finals_over(now_ns)
            else:
                self._sitting.entry.outcome = "no_final"

        self._sitting.mouth.at(self._sitting.house.clock(), deed)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def samples(data: bytes) -> list[float]:
    """Signed 16-bit little-endian samples as the recogniser wants them, from -1 to 1."""
    values = array.array("h", data)
    if sys.byteorder == "big":
        values.byteswap()
    return [value / FULL_SCALE for value in values]


def _fitting_rate(profile: Profile) -> int:
    part = profile.media
    if part.kind != "audio" or part.format != "s16le" or part.container is not None:
        sent = f"{part.kind} {part.container or part.format}"
        raise OptionsError([f"the engine moonshine hears s16le audio, and {profile.name} sends {sent}"])
    return part.rate_hz

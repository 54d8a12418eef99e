"""What a simulated service is like: every delay, limit and habit as one plain value."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Literal

Draw = Callable[[Random], float]

SERVED = ("websocket", "http", "requests")  # transports at whose other end a server stands
KINDS = {
    "constant": 1,  # seconds
    "uniform": 2,  # from, to
    "bimodal": 3,  # usual, slow, share of slow
    "lognormal": 2,  # median, sigma: a heavy tail
}


class OptionsError(ValueError):
    """The simulator was asked for something that it cannot be; `problems` names all of it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A service to simulate. Spans are seconds; a *delay* is a number of seconds or one of the words below.

    Delay: `0.3` | `uniform:0.2,0.4` | `bimodal:0.2,2.0,0.1` (usual, slow, share of slow) | `lognormal:0.3,1.0`
    (median, sigma). Shares (`..._rate`) are exact and not drawn: of n sessions n * rate behave so, evenly spread.

    profile            a shipped name or a path: how to speak
    stdio              be a local program: one session, from standard input to standard output
    host               where to listen: this machine only, unless asked otherwise
    port               where to listen; 0 takes a free one
    first_s            delay of the first output after the FIRST chunk's arrival
    final_s            delay of the final after the end mark's arrival
    partial_every_s    further partials at this distance, one word more each; 0: only the first
    finals_s           cut the text into so many segments, with finals so long after the end mark, instead of `final_s`
    media_first_s      delay of the first piece of output media after the first chunk's arrival; then in real time
    media_silence_s    so much silence in front of output sound
    media_gaps_s       AT,LENGTH,...: after AT seconds of output media all that follows comes LENGTH later
    done_s             the done message, or the close, so long after the last final
    capacity           so many sessions are served at once, from their first chunk to their final; None: all
    overflow           what the others do: "wait" in line, unheard until they have a slot, or "reject"
    service_s          a slot is held so long after the end mark; None: as `final_s`
    reject_first       refuse the first so many sessions
    reject_rate        refuse this share of the sessions
    reject_status      refuse at the handshake with this HTTP status; None: in the profile's own words
    retry_after_s      with a `Retry-After` header
    token_valid_s      from so long after a token's first use, sessions with that `Authorization` are refused with 401
    drop               how a connection is cut: "fin", "rst" or a close code
    drop_s             cut so long after the first chunk; None: never
    drop_rate          the share of sessions that are cut
    freeze_s           (from, to) after the first connection: nothing at all, then everything at once; to None: for ever
    silent_after_s     from so long after its connection a session hears nothing more, with the socket open; None: never
    never_final_rate   the share of sessions that get no final, no done and no close
    premature_s        the final so long after the opening, before its sound, and only done at the end mark; None: never
    wrong_rate         this share of all words is replaced by a wrong one
    garble_rate        the share of sessions whose first output is cut in its middle, so that it cannot be read
    tick_s             outputs leave only on whole multiples of this; 0: at once
    cache              media heard before is answered at once
    empty_partials     so many empty and blank partials before the first output
    repeats            each partial is said so many times
    acks               answer each chunk where the profile has an acknowledgement
    greeting           this text as the first message, before anything else; "" for none
    trailer            this text as a message after the last final; "" for none
    pong               answer pings (WebSocket)
    read_pause_s       read so slowly: a pause after each message, so that senders feel it
    pad_bytes          partials in JSON are blown up to so many bytes with blanks
    cut_bytes          write an HTTP body in pieces of so many bytes, wherever they cut; 0: message by message
    sse                server-sent events instead of lines, where the profile lets the content type decide
    corpus             a manifest: answer each clip's reference
    text               what is said where no clip is known
    engine             "simulated", or "moonshine": a real recogniser, with delays of its own
    threads            with an engine: how many threads recognise
    nice               with an engine: lower this process's priority by so much; 0: not at all
    log                JSON lines: what was heard and said, one line for each session at its end
    seed               of everything drawn
    """

    profile: str = "vosk"
    stdio: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    first_s: str | float = 0.3
    final_s: str | float = 0.5
    partial_every_s: float = 0.5
    finals_s: tuple[float, ...] = ()
    media_first_s: str | float = 0.3
    media_silence_s: float = 0.2
    media_gaps_s: tuple[float, ...] = ()
    done_s: float = 0.0
    capacity: int | None = None
    overflow: Literal["wait", "reject"] = "wait"
    service_s: float | None = None
    reject_first: int = 0
    reject_rate: float = 0.0
    reject_status: int | None = None
    retry_after_s: float | None = None
    token_valid_s: float | None = None
    drop: str | int = "fin"
    drop_s: float | None = None
    drop_rate: float = 1.0
    freeze_s: tuple[float, float | None] | None = None
    silent_after_s: float | None = None
    never_final_rate: float = 0.0
    premature_s: float | None = None
    wrong_rate: float = 0.0
    garble_rate: float = 0.0
    tick_s: float = 0.0
    cache: bool = False
    empty_partials: int = 0
    repeats: int = 1
    acks: bool = True
    greeting: str = ""
    trailer: str = ""
    pong: bool = True
    read_pause_s: float = 0.0
    pad_bytes: int = 0
    cut_bytes: int = 0
    sse: bool = False
    corpus: Path | None = None
    text: str = "the red boat leaves at nine"
    engine: Literal["simulated", "moonshine"] = "simulated"
    threads: int = 2
    nice: int = 0
    log: Path | None = None
    seed: int = 7

    def __post_init__(self) -> None:
        problems = [*_numbers(self), *_words(self)]
        if problems:
            raise OptionsError(problems)


def delay(given: str | float, name: str = "delay") -> Draw:
    """How to draw a delay, in seconds. Raises OptionsError with what is allowed."""
    kind, colon, rest = str(given).partition(":")
    if not colon:
        kind, rest = "constant", kind
    try:
        values = [float(value) for value in rest.split(",")]
    except ValueError:
        values = []
    if len(values) != KINDS.get(kind) or not all(0 <= value < math.inf for value in values):
        allowed = "seconds, or uniform:A,B, bimodal:USUAL,SLOW,SHARE or lognormal:MEDIAN,SIGMA"
        raise OptionsError([f"{name} is {allowed}, not {given!r}"])
    return _DRAWS[kind](*values)


def _constant(seconds: float) -> Draw:
    return lambda _: seconds


def _uniform(low: float, high: float) -> Draw:
    return lambda random: random.uniform(low, high)


def _bimodal(usual: float, slow: float, share: float) -> Draw:
    return lambda random: slow if random.random() < share else usual


def _lognormal(median: float, sigma: float) -> Draw:
    return lambda random: median * random.lognormvariate(0.0, sigma)


_DRAWS: dict[str, Callable[..., Draw]] = {
    "constant": _constant,
    "uniform": _uniform,
    "bimodal": _bimodal,
    "lognormal": _lognormal,
}


def _numbers(options: Options) -> list[str]:
    problems = []
    for field in fields(options):
        value = getattr(options, field.name)
        if not isinstance(value, int | float):
            continue
        if not math.isfinite(value):
            problems.append(f"{field.name} must be a number, and is {value}")
        elif field.name.endswith("_rate") and not 0 <= value <= 1:
            problems.append(f"{field.name} is a share from 0 to 1, not {value}")
        elif field.name != "seed" and value < 0:
            problems.append(f"{field.name} must not be below 0, and is {value}")
    if options.port > 65535:
        problems.append(f"port is at most 65535, not {options.port}")
    if options.capacity == 0 or options.threads == 0 or options.repeats == 0:
        problems.append("capacity, threads and repeats are at least 1")
    return [*problems, *_spans(options)]


def _spans(options: Options) -> Iterator[str]:
    frozen = options.freeze_s
    gaps = options.media_gaps_s
    for name, spans in (("freeze_s", frozen or ()), ("finals_s", options.finals_s), ("media_gaps_s", gaps)):
        if not all(at is None or math.isfinite(at) for at in spans):
            yield f"{name} must be numbers of seconds"
    if frozen is not None and (len(frozen) != 2 or frozen[0] is None or frozen[0] < 0):
        yield "freeze_s is two numbers of seconds, from and to; only the second may be left out"
    elif frozen is not None and frozen[1] is not None and frozen[1] < frozen[0]:
        yield f"freeze_s ends before it begins: {frozen[0]} to {frozen[1]}"
    if len(gaps) % 2 or any(at is None or at < 0 for at in gaps) or list(gaps[::2]) != sorted(gaps[::2]):
        yield "media_gaps_s are pairs of seconds from 0, where and how long, and the places must not fall"
    finals = options.finals_s
    if any(at is None or at < 0 for at in finals) or list(finals) != sorted(finals):
        yield "finals_s are numbers of seconds from 0, and must not fall"


def _words(options: Options) -> list[str]:
    problems = []
    for name in ("first_s", "final_s", "media_first_s"):
        try:
            delay(getattr(options, name), name)
        except OptionsError as error:
            problems += error.problems
    for name, allowed in (("overflow", ("wait", "reject")), ("engine", ("simulated", "moonshine"))):
        if getattr(options, name) not in allowed:
            problems.append(f"{name} is {' or '.join(allowed)}, not {getattr(options, name)!r}")
    if not re.fullmatch(r"fin|rst|[1-4]\d{3}", str(options.drop)):
        problems.append(f"drop is fin, rst or a close code from 1000 to 4999, not {options.drop!r}")
    if options.reject_status is not None and not 400 <= options.reject_status <= 599:
        problems.append(f"reject_status is an HTTP status from 400 to 599, not {options.reject_status}")
    return problems

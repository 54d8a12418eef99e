"""What a simulated service decides: how long each thing takes, who is refused, who waits, which words go wrong.

No sockets and no clock: times come in as arguments, on `time.monotonic_ns`.
"""

import itertools
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from loadbench.simulator.options import Options, delay

SECOND = 1_000_000_000
# Scripts without spaces, where each character is a unit: CJK ideographs, kana, and their punctuation.
UNIT = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
GLOSS = re.compile(r"\S+")
WRONG_WORDS = ("violet", "seven", "under", "window", "harvest")
WRONG_CHARACTERS = ("错", "误", "谬")


def ns(seconds: float) -> int:
    """Seconds as whole nanoseconds."""
    return round(seconds * SECOND)


def share(rate: float) -> Callable[[int], bool]:
    """Which of 0, 1, 2 ... belong to a share: of the first n, exactly n * rate rounded down, evenly spread."""
    exact = Fraction(str(rate))
    return lambda number: (number + 1) * exact // 1 > number * exact // 1


@dataclass(frozen=True, slots=True)
class Course:
    """What happens to one session. Spans in nanoseconds; None: it does not happen."""

    first_ns: int
    media_ns: int
    finals_ns: tuple[int, ...]
    service_ns: int
    drop_ns: int | None
    refused: bool
    final: bool
    garbled: bool


class Fate:
    """Draws the course of each session, in the order in which they come."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._first = delay(options.first_s)
        self._final = delay(options.final_s)
        self._media = delay(options.media_first_s)
        self._dropped = share(options.drop_rate)
        self._refused = share(options.reject_rate)
        self._mute = share(options.never_final_rate)
        self._garbled = share(options.garble_rate)

    def course(self, number: int) -> Course:
        """The course of session `number`, from 0; the same for the same seed."""
        options = self._options
        random = Random(f"{options.seed}:{number}")
        first, final = ns(self._first(random)), ns(self._final(random))
        media = ns(self._media(random))
        finals = tuple(map(ns, options.finals_s)) or (final,)
        late = number - options.reject_first
        return Course(
            first_ns=first,
            media_ns=media,
            finals_ns=finals,
            service_ns=finals[-1] if options.service_s is None else ns(options.service_s),
            drop_ns=None if options.drop_s is None or not self._dropped(number) else ns(options.drop_s),
            refused=late < 0 or self._refused(late),
            final=not self._mute(number),
            garbled=self._garbled(number),
        )


class Gate:
    """When something may leave: not while the service is frozen, and only on its ticks."""

    def __init__(self, options: Options) -> None:
        self._tick_ns = ns(options.tick_s)
        self._freeze = options.freeze_s
        self._epoch_ns: int | None = None

    def leaves(self, due_ns: int) -> int | None:
        """The moment at which what is due then leaves; None: never. The first call sets the service's zero."""
        if self._epoch_ns is None:
            self._epoch_ns = due_ns
        at = due_ns - self._epoch_ns
        if self._freeze is not None and at >= ns(self._freeze[0]):
            if self._freeze[1] is None:
                return None
            at = max(at, ns(self._freeze[1]))
        if self._tick_ns:
            at = -(-at // self._tick_ns) * self._tick_ns
        return self._epoch_ns + at


class Line:
    """The slots of a service, and the line before them: first come, first served."""

    def __init__(self, capacity: int | None) -> None:
        self._free = capacity
        self._waiting: deque[Callable[[int], None]] = deque()

    @property
    def full(self) -> bool:
        """Whether the next one would have to wait."""
        return self._free == 0

    def enter(self, begin: Callable[[int], None], now_ns: int) -> None:
        """Call `begin` with the time as soon as there is a slot, perhaps at once."""
        if self.full:
            self._waiting.append(begin)
            return
        if self._free is not None:
            self._free -= 1
        begin(now_ns)

    def leave(self, now_ns: int) -> None:
        """Give a slot back; the one who has waited longest has it now."""
        if self._waiting:
            self._waiting.popleft()(now_ns)
        elif self._free is not None:
            self._free += 1

    def forget(self, begin: Callable[[int], None]) -> bool:
        """Step out of the line; False where it was not in it."""
        try:
            self._waiting.remove(begin)
        except ValueError:
            return False
        return True


class Slips:
    """Puts wrong words into texts: exactly the asked share of all words that pass through, evenly spread."""

    def __init__(self, rate: float, seed: int) -> None:
        self._slips = share(rate)
        self._random = Random(f"{seed}:words")
        self._words = 0

    def spoil(self, text: str, *, glosses: bool = False) -> str:
        """The text, with its share of wrong words."""

        def replaced(found: re.Match[str]) -> str:
            self._words += 1
            if not self._slips(self._words - 1):
                return found[0]
            pool = WRONG_WORDS if found[0].isascii() else WRONG_CHARACTERS
            return self._random.choice([word for word in pool if word != found[0]])

        return (GLOSS if glosses else UNIT).sub(replaced, text)


def prefixes(text: str, *, glosses: bool = False) -> list[str]:
    """The text as it grows: a word more each time, a character where words are not set apart; a gloss stays whole."""
    return [text[: found.end()] for found in (GLOSS if glosses else UNIT).finditer(text)]


def pieces(text: str, count: int, *, glosses: bool = False) -> list[str]:
    """The text in `count` parts of about equal length, cut between words; parts may be empty when there are few."""
    ends = [0, *(found.end() for found in (GLOSS if glosses else UNIT).finditer(text))]
    cuts = [ends[round((len(ends) - 1) * at / count)] for at in range(count + 1)]
    return [text[begin:end].strip() for begin, end in itertools.pairwise(cuts)]

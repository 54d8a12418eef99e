"""Secrets become `***`, in whatever form they come back, also where somebody cut the text in the middle of one.

Forms: as they are, percent-encoded, JSON-escaped (also repeatedly), in base64 wherever they begin in it, in hex. All
spellings of a text have one canonical form, in bytes, in which plain searching finds them; a span that was found is
carried back to the text as it stood.

A text that is cut before it is masked may end within a secret. `shorten` cuts with a mark, and a piece of a secret that
touches the end of a text or such a mark is hidden from four characters on. The price: an ordinary text that happens to
end in the first four characters of a secret ends in `***` instead.
"""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

MASK: Final = "***"
CUT: Final = "…"
SHORTEST: Final = 4

# What is looked for besides whole secrets: nothing; pieces at a cut; pieces wherever a string of a message begins or
# ends, or a shown text does, since a secret may come in two messages or grow from one to the next.
Reach = Literal["whole", "cut", "message", "shown"]

_HEX: Final = rb"[0-9A-Fa-f]"
_ESCAPED: Final = (
    rb"%%(?:25)*(?P<percent>%(h)s{2})"
    rb"|\\+u(?P<high>[dD][89abAB]%(h)s{2})\\+u(?P<low>[dD][c-fC-F]%(h)s{2})"
    rb"|\\+u(?P<unit>%(h)s{4})|\\+x(?P<byte>%(h)s{2})|\\+"
) % {b"h": _HEX}
_SPELLED: Final = re.compile(_ESCAPED)
# An escape that was itself cut belongs to the piece before it.
_SPELLED_OR_CUT: Final = re.compile(
    rb"(?P<torn>(?:%%(?:25)*%(h)s?|\\+u[dD][89abAB]%(h)s{2}(?:\\+(?:u%(h)s{0,3})?)?|\\+(?:u%(h)s{0,3}|x%(h)s?)?)"
    rb"(?=\Z|%(cut)s))|" % {b"h": _HEX, b"cut": CUT.encode()} + _ESCAPED
)
_BLANK: Final = re.compile(rb"\s+")
_CUTS: Final = re.compile(CUT.encode())
_QUOTES: Final = re.compile(rb'"')
# A JSON escape and the character that it stands for become the same letter, and backslashes vanish.
_LETTERS: Final = bytes.maketrans(b"\b\f\n\r\t", b"bfnrt")


def shorten(text: str, most: int) -> str:
    """`text` in at most so many characters, with a mark where it was cut, by which `Masks` knows the place."""
    return text if len(text) <= most else text[: most - 1] + CUT


def shorten_front(text: str, most: int) -> str:
    """As `shorten`, for the end of a text."""
    return text if len(text) <= most else CUT + text[len(text) - most + 1 :]


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of a secret, in bytes, and the shortest pieces of it that are hidden: at a cut, and elsewhere."""

    whole: bytes
    head: bytes
    tail: bytes
    half_head: bytes
    half_tail: bytes


class Masks:
    """Hides known secrets in text.

    A secret of fewer than four characters is not hidden: it would hit harmless text everywhere ("5", "en") and is no
    secret that a report could betray. `too_short` counts them, so that a door can say so.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if secret}
        usable = sorted(secret for secret in known if len(secret) >= SHORTEST)
        self.too_short = len(known) - len(usable)
        self._plus = any(" " in secret for secret in usable)
        self._signs = (b"%", b"\\", b"+") if self._plus else (b"%", b"\\")
        forms = [form for secret in usable for form in _forms(secret)]
        spellings = (_Form(*[text] * 5) for secret in usable for text in _spellings(secret))
        self._raw = _usable([*(_form(text, unit, _utf8) for text, unit in forms), *spellings])
        self._ends = tuple({end for form in self._raw for end in (form.head, form.tail)})
        self._canonical = _usable(_form(text, unit, self._canonise) for text, unit in forms)
        self._unspaced = _usable(_form(text, unit, _without_blanks) for text, unit in forms)

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._raw)

    def found_in(self, text: str) -> bool:
        """Whether any form of a secret stands in `text`."""
        return any(True for _ in self._spans(_utf8(text), "whole"))

    def mask(self, text: str, *, cut: bool = True) -> str:
        """`text` with each form of each secret replaced by `***`; so is a piece of four characters at a cut.

        `cut=False` is for text of which it is known that nobody cut it, such as a setting of the user's own.
        """
        return self._masked(text, "cut" if cut else "whole")

    def mask_bytes(self, data: bytes) -> bytes:
        """As `mask_message`, for UTF-8 or any other bytes; what is not UTF-8 passes through unchanged."""
        return _without(data, self._spans(data, "message"))

    def mask_message(self, data: str) -> str:
        """As `mask`, and also pieces at either end of a quoted string, or of all: half of a secret, at most eight.

        So a secret that comes in two messages, or grows letter by letter, is not spelled out by them together. One in
        three pieces may leave its middle.
        """
        return self._masked(data, "message")

    def mask_shown(self, text: str) -> str:
        """For what a channel showed: white space within a secret does not matter (a joint may have put it there).

        Pieces at either end of the text as in `mask_message`.
        """
        return self._masked(text, "shown")

    def touched_by(self, text: str) -> bool:
        """Whether a beginning or an end of any form stands in `text`; if not, no part of it would be masked."""
        data = _utf8(text)
        views = [(data, self._raw), (_BLANK.sub(b"", data), self._unspaced)]
        if any(sign in data for sign in self._signs):
            views.append((self._canonise(text), self._canonical))
        return any(_touched(view, forms) for view, forms in views)

    def _masked(self, text: str, reach: Reach) -> str:
        data = _utf8(text)
        spans = list(self._spans(data, reach))
        return _without(data, spans).decode("utf-8", "surrogatepass") if spans else text

    def _spans(self, data: bytes, reach: Reach) -> Iterator[tuple[int, int]]:
        """Places in `data`, in any order; they may overlap."""
        if any(end in data for end in self._ends):  # mostly not, and then that was all
            yield from _found(data, self._raw, reach)
        if self._raw and any(sign in data for sign in self._signs):
            pattern = _SPELLED if reach == "whole" else _SPELLED_OR_CUT
            plain = self._finish(pattern.sub(_meant, data))
            if _touched(plain, self._canonical):
                yield from map(_View(data, pattern).span, _found(plain, self._canonical, reach))
        if reach == "shown":
            plain = _BLANK.sub(b"", data)
            if plain != data and _touched(plain, self._unspaced):
                yield from map(_View(data, _BLANK).span, _found(plain, self._unspaced, reach))

    def _canonise(self, text: str) -> bytes:
        return self._finish(_SPELLED.sub(_meant, _utf8(text)))

    def _finish(self, data: bytes) -> bytes:
        data = data.translate(_LETTERS)
        return data.replace(b"+", b" ") if self._plus else data


class _View:
    """The way back from bytes in which each match of a pattern was replaced by what it stands for."""

    def __init__(self, data: bytes, pattern: re.Pattern[bytes]) -> None:
        self._pieces: list[tuple[int, int, int]] = []  # begin here, begin and end there
        here = there = 0
        for found in pattern.finditer(data):
            for part, begin, end in (
                (data[there : found.start()], there, found.start()),
                (_meant(found), *found.span()),
            ):
                if part:
                    self._pieces.append((here, begin, end))
                    here += len(part)
            there = found.end()
        self._pieces.append((here, there, len(data)))
        self._size, self._end = here + len(data) - there, len(data)
        self._begins = [begin for begin, _, _ in self._pieces]

    def span(self, place: tuple[int, int]) -> tuple[int, int]:
        """Where a place in the outcome stood before; at the end of all, with whatever vanished behind it."""
        begin, end = place
        return self._there(begin)[0], self._end if end == self._size else self._there(end - 1)[1]

    def _there(self, place: int) -> tuple[int, int]:
        """Where a byte came from: itself, or the whole of what it stands for."""
        at = bisect_right(self._begins, place) - 1
        here, begin, end = self._pieces[at]
        size = self._begins[at + 1] - here if at + 1 < len(self._begins) else end - begin
        return (begin, end) if size != end - begin else (begin + place - here, begin + place - here + 1)


def _meant(found: re.Match[bytes]) -> bytes:
    """What an escape stands for; nothing for a run of backslashes, an escape cut short, white space."""
    kind = found.lastgroup
    if kind is None or kind == "torn":
        return b""
    digits = found["high"] + found["low"] if kind == "low" else found[kind]
    value = bytes.fromhex(digits.decode())
    return value if len(value) == 1 else value.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


def _touched(data: bytes, forms: Iterable[_Form]) -> bool:
    return any(form.head in data or form.tail in data for form in forms)


def _found(data: bytes, forms: Iterable[_Form], reach: Reach) -> Iterator[tuple[int, int]]:
    ends, halves_end, begins, halves_begin = _borders(data, reach)
    for form in forms:
        if form.head in data:  # mostly it is not, and whatever is looked for but the end of a secret begins with it
            yield from _all(data, form.whole)
            for end in ends:
                yield from _piece_before(data, end, form.whole, form.head)
            for end in halves_end:
                yield from _piece_before(data, end, form.whole, form.half_head)
        if (begins or halves_begin) and form.tail in data:
            for begin in begins:
                yield from _piece_after(data, begin, form.whole, form.tail)
            for begin in halves_begin:
                yield from _piece_after(data, begin, form.whole, form.half_tail)


def _borders(data: bytes, reach: Reach) -> tuple[list[int], list[int], list[int], list[int]]:
    """Where pieces may end, and where halves; where pieces may begin, and where halves."""
    if reach == "whole":
        return [], [], [], []
    if reach == "shown":
        return [], [len(data)], [], [0]
    cuts = [mark.span() for mark in _CUTS.finditer(data)]
    ends, begins = [len(data), *(begin for begin, _ in cuts)], [end for _, end in cuts]
    if reach == "cut":
        return ends, [], begins, []
    quotes = [mark.start() for mark in _QUOTES.finditer(data)]
    return ends, quotes, begins, [0, *(place + 1 for place in quotes)]


def _all(data: bytes, form: bytes) -> Iterator[tuple[int, int]]:
    place = data.find(form)
    while place >= 0:
        yield place, place + len(form)
        place = data.find(form, place + 1)


def _piece_before(data: bytes, end: int, form: bytes, head: bytes) -> Iterator[tuple[int, int]]:
    """The longest beginning of `form` that ends at `end`."""
    place = data.find(head, max(0, end - len(form)), end)
    while place >= 0:
        if form.startswith(data[place:end]):
            yield place, end
            return
        place = data.find(head, place + 1, end)


def _piece_after(data: bytes, begin: int, form: bytes, tail: bytes) -> Iterator[tuple[int, int]]:
    """The longest end of `form` that begins at `begin`."""
    place = data.rfind(tail, begin, begin + len(form))
    while place >= 0:
        if form.endswith(data[begin : place + len(tail)]):
            yield begin, place + len(tail)
            return
        place = data.rfind(tail, begin, place + len(tail) - 1)


def _without(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """`data` with a mask for each span, one for those that touch."""
    parts: list[bytes] = []
    reached = 0
    for begin, end in sorted(spans):
        if begin > reached or not parts:
            parts += (data[reached:begin], MASK.encode())
        reached = max(reached, end)
    return b"".join([*parts, data[reached:]])


def _forms(secret: str) -> Iterator[tuple[str, int]]:
    """What a secret looks like, spelling aside, with how many characters of it stand for one of the secret."""
    yield secret, 1
    yield from ((core, 1) for core in _base64_cores(secret))
    digits = secret.encode("utf-8", "surrogatepass").hex()
    yield from ((digits, 2), (digits.upper(), 2))


def _spellings(secret: str) -> tuple[bytes, ...]:
    """The usual spellings, for secrets of which hardly anything is left without their escapes."""
    return json.dumps(secret)[1:-1].encode(), quote(secret, safe="", errors="surrogatepass").encode()


def _form(text: str, unit: int, encode: Callable[[str], bytes]) -> _Form:
    whole, least = encode(text), SHORTEST * unit
    half = max(least, min(2 * least, -(-len(text) // 2)))
    head, half_head = (whole[: len(encode(text[:size]))] for size in (least, half))
    tail, half_tail = (whole[len(whole) - len(encode(text[len(text) - size :])) :] for size in (least, half))
    return _Form(whole, head, tail, half_head, half_tail)


def _usable(forms: Iterable[_Form]) -> list[_Form]:
    """Each once, in a fixed order. Without escapes or white space a form may be too short to be told from others."""
    return sorted({form for form in forms if len(form.whole) >= SHORTEST and form.head}, key=lambda form: form.whole)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _without_blanks(text: str) -> bytes:
    return _BLANK.sub(b"", _utf8(text))


def _base64_cores(secret: str) -> set[str]:
    """What `secret` looks like inside base64, wherever it begins: the characters that depend on it alone."""
    data = _utf8(secret)
    cores = set()
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(before) + data).decode("ascii")
        core = text[skipped : (before + len(data)) * 8 // 6]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores

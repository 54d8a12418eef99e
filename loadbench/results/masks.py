"""Secrets become `***`, in whatever form they come back: as they are, percent-encoded, JSON-escaped, or in base64."""

import base64
import json
import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
SHORTEST: Final = 4


class Masks:
    """Hides known secrets in text.

    A secret of fewer than four characters is not hidden: it would hit harmless text everywhere ("5", "en") and is no
    secret that a report could betray. `too_short` counts them, so that a door can say so.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if secret}
        usable = {secret for secret in known if len(secret) >= SHORTEST}
        self.too_short = len(known) - len(usable)
        # The longest first: a secret that holds another one is hidden whole.
        forms = {form for secret in usable for form in (secret, *_base64_cores(secret))}
        self._plain = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(_any_spelling, self._plain))) if forms else None
        self._signs = "%\\+" if any(" " in secret for secret in usable) else "%\\"

    def found_in(self, text: str) -> bool:
        """Whether any form of a secret stands in `text`."""
        if any(form in text for form in self._plain):
            return True
        # The pattern costs a hundred times as much, and only an encoding's sign can make it find more.
        if self._pattern is None or not any(sign in text for sign in self._signs):
            return False
        return self._pattern.search(text) is not None

    def mask(self, text: str) -> str:
        """`text` with each form of each secret replaced by `***`."""
        return self._pattern.sub(MASK, text) if self._pattern is not None and self.found_in(text) else text

    def mask_bytes(self, data: bytes) -> bytes:
        """As `mask`, for UTF-8 or any other bytes; what is not UTF-8 passes through unchanged."""
        if self._pattern is None:
            return data
        return self.mask(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _any_spelling(secret: str) -> str:
    """A pattern for `secret` in which each character may be plain, percent-encoded or JSON-escaped, also repeatedly."""
    return "".join(_spellings(character) for character in secret)


def _spellings(character: str) -> str:
    percent = "".join(_percent(byte) for byte in character.encode("utf-8", "surrogatepass"))
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\+u(?i:{units[place : place + 4]})" for place in range(0, len(units), 4))
    short = json.dumps(character)[1:-1]  # \" or \n, and a backslash more for each time that JSON stands inside JSON
    others = [rf"\\+{re.escape(short[-1])}"] if len(short) == 2 else []
    others += [r"\+"] if character == " " else [r"\\+/"] if character == "/" else []
    return f"(?:{'|'.join([re.escape(character), percent, escaped, *others])})"


def _percent(byte: int) -> str:
    return f"%(?:25)*(?i:{byte:02x})"


def _base64_cores(secret: str) -> set[str]:
    """What `secret` looks like inside base64, wherever it begins: the characters that depend on it alone."""
    data = secret.encode("utf-8", "surrogatepass")
    cores = set()
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(before) + data).decode("ascii")
        core = text[skipped : (before + len(data)) * 8 // 6]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores

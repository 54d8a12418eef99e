"""Signatures: what a service wants to have worked out from secrets, names and the time, as pure functions.

The time comes in as a field. A value may use those worked out before it, as {signed.NAME}.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from loadbench.session.profile import Signed
from loadbench.session.template import Text, compile_text

Fields = Mapping[str, str]
Work = Callable[[Fields], str]


@dataclass(frozen=True, slots=True)
class Signing:
    """The values to work out, in order. `confidential` are the names of those that secrets went into."""

    steps: tuple[tuple[str, Work], ...] = ()
    confidential: frozenset[str] = frozenset()

    def fields(self, given: Fields) -> dict[str, str]:
        """{signed.*} for a session with these fields. KeyError names a field that has no value."""
        made: dict[str, str] = {}
        for name, work in self.steps:
            made[f"signed.{name}"] = work({**given, **made})
        return made


def compile_signing(parts: Mapping[str, Signed]) -> Signing:
    """Make the section ready, once for all sessions."""
    steps: list[tuple[str, Work]] = []
    confidential: set[str] = set()
    for name, part in parts.items():
        work, names = _work(part)
        steps.append((name, work))
        if any(used.startswith("secret.") or used.removeprefix("signed.") in confidential for used in names):
            confidential.add(name)
    return Signing(tuple(steps), frozenset(confidential))


def _work(part: Signed) -> tuple[Work, frozenset[str]]:
    """What to do, and the fields that go into it."""
    if part.hmac is not None:
        return _hmac(part)
    if part.sorted_query is not None:
        return _sorted_query(part.sorted_query, quoted=part.quote is not False)
    for given, change in ((part.md5, _md5), (part.base64, _base64), (part.quote, quoted_text), (part.text, str)):
        if isinstance(given, str):
            text = compile_text(given)
            return _changed(text, change), text.names
    raise ValueError("a signed value is exactly one of its functions")


def _changed(text: Text, change: Callable[[str], str]) -> Work:
    return lambda fields: change(text.render(fields))


def _hmac(part: Signed) -> tuple[Work, frozenset[str]]:
    key, message, algorithm = compile_text(part.key or ""), compile_text(part.message or ""), str(part.hmac)
    as_hex = part.as_ == "hex"

    def work(fields: Fields) -> str:
        code = hmac.new(key.render(fields).encode(), message.render(fields).encode(), algorithm)
        return code.hexdigest() if as_hex else base64.b64encode(code.digest()).decode("ascii")

    return work, key.names | message.names


def _sorted_query(values: Mapping[str, str], *, quoted: bool) -> tuple[Work, frozenset[str]]:
    texts = {name: compile_text(values[name]) for name in sorted(values)}
    write = quoted_text if quoted else str

    def work(fields: Fields) -> str:
        return "&".join(f"{name}={write(text.render(fields))}" for name, text in texts.items())

    return work, frozenset[str]().union(*(text.names for text in texts.values()))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def quoted_text(text: str) -> str:
    """Percent-encoded; only the unreserved characters of RFC 3986, 2.3 stay."""
    return quote(text, safe="")

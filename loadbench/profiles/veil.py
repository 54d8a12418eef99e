"""Secrets that pass by: found by the names under which they travel, and hidden wherever they show up from then on."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from loadbench.plan import SECRET_NAME
from loadbench.results.masks import MASK, Masks

SCHEMES: Final = re.compile(r"(?i)bearer|basic|token|digest")  # words before a secret, and none themselves
LONG: Final = 24  # a subprotocol of so many letters is no name any more
TOKEN: Final = re.compile(r"\S{16,}")  # what a service gives out under such a name, and not a word that it recognised
PUBLIC: Final = ("sec-websocket-key", "sec-websocket-accept")  # drawn anew for each handshake, and no secret


class Veil:
    """Learns secrets and hides them. `names`, in lower case, are secret beside those that look like it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name.lower() for name in names}
        self._known: dict[str, str] = {}
        self._masks = Masks(())

    @property
    def known(self) -> dict[str, str]:
        """The secrets so far, each with a name that a profile can call it by."""
        return dict(self._known)

    def address(self, url: str) -> str:
        """An address without its secrets."""
        parts = urlsplit(url)
        for secret in (parts.password, unquote(parts.password or "")):
            self._learn("password", secret)
        for name, value in parse_qsl(parts.query):
            if self._is_secret(name):
                self._learn(name, value)
        return self.text(url)

    def headers(self, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Headers without their secrets."""
        shown = {}
        for name, value in pairs:
            secret = self._is_secret(name) and name.lower() not in PUBLIC
            if secret:
                for word in value.split():
                    if not SCHEMES.fullmatch(word):
                        self._learn(name, word)
            elif name.lower() == "sec-websocket-protocol":
                self._subprotocols(value)
            shown[name] = MASK if secret else self.text(value)
        return {name: self.text(value) for name, value in shown.items()}

    def message(self, value: Any, *, ours: bool) -> None:
        """Learn what is secret in a decoded message; `ours`: the client's, where the name alone tells."""
        for name, inner in _pairs(value):
            if self._is_secret(name) and (ours or name.lower() in self._names or TOKEN.fullmatch(inner)):
                self._learn(name, inner)

    def text(self, text: str) -> str:
        """Without any secret that is known by now."""
        return self._masks.mask_message(text) if self._masks else text

    def exact(self, text: str) -> str:
        """Without any whole secret; pieces of one stay, so that a file stays what it is."""
        return self._masks.mask(text, cut=False)

    def data(self, data: bytes) -> bytes:
        """As `text`."""
        return self._masks.mask_bytes(data) if self._masks else data

    def _subprotocols(self, value: str) -> None:
        """Browsers cannot set headers, so some services take a key as a subprotocol."""
        before = ""
        for word in map(str.strip, value.split(",")):
            if SECRET_NAME.search(before) or len(word) >= LONG:
                self._learn("key", word)
            before = word

    def _is_secret(self, name: str) -> bool:
        return name.lower() in self._names or SECRET_NAME.search(name) is not None

    def _learn(self, name: str, value: str | None) -> None:
        if value and value not in self._known:
            self._known[value] = re.sub(r"\W+", "_", name).strip("_").lower() or "secret"
            self._masks = Masks(self._known)


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                yield str(key), inner
            else:
                yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)

"""Where a session goes and what it says of itself there: the plan's and the profile's templates, filled in for it."""

import time
import uuid
from collections.abc import Callable, Iterable
from random import Random
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from loadbench.engine.pipe import Start
from loadbench.session.message import FORM_TYPE
from loadbench.session.profile import Profile, RequestsPart
from loadbench.session.template import Text, compile_text
from loadbench.session.wire import Limits
from loadbench.transports.contract import Address, Requests, Tls

SESSION_HEADER: Final = "x-loadbench-session"
USUAL_PORTS: Final = {"ws": 80, "http": 80, "wss": 443, "https": 443}


class MissingFieldError(Exception):
    """A template asks for a field that has no value in this session."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the profile or the address needs {{{name}}}, which has no value")


class Addresses:
    """Makes the fields and the address of each session. `wall_ns` is the calendar's clock, for {time.*}."""

    def __init__(self, start: Start, profile: Profile, wall_ns: Callable[[], int] = time.time_ns) -> None:
        part = profile.transport
        self._start, self._part, self._wall_ns = start, part, wall_ns
        self._url = compile_text(start.url or part.url or "")
        self._query = [(name, compile_text(value)) for name, value in part.query]
        self._headers = _merged(part.headers.items(), start.headers)
        self._subprotocols = [compile_text(name) for name in part.subprotocols]
        self._tls = Tls(**start.tls)
        self._proxy = compile_text(start.proxy)
        self._requests = _requests(part.requests)
        self._content_type = _content_type(profile)
        self.message_bytes = part.max_message_bytes or int(start.limits.get("message_bytes") or Limits().message_bytes)
        self._constant = {f"param.{name}": value for name, value in (dict(profile.params) | start.params).items()}
        self._constant |= {f"secret.{name}": value for name, value in start.secrets.items()}

    def fields(self, session: str, clip: dict[str, str]) -> dict[str, str]:
        """What templates of this session may use. The same seed and run give the same {session.uuid}.

        Raises MissingFieldError for a field that the url asks for and no session has.
        """
        random = Random(f"{self._start.seed}:{self._start.run_id}:{session}")
        wall_ns = self._wall_ns()
        fields = self._constant | {f"clip.{name}": value for name, value in clip.items()}
        fields |= {
            "session.id": session,
            "session.uuid": str(uuid.UUID(int=random.getrandbits(128), version=4)),
            "time.unix": str(wall_ns // 1_000_000_000),
            "time.unix_ms": str(wall_ns // 1_000_000),
        }
        url = urlsplit(self._address({"host": "", "port": ""} | fields))
        port = url.port or USUAL_PORTS.get(url.scheme)
        return fields | {"host": url.hostname or "", "port": str(port or "")}

    def of(self, fields: dict[str, str]) -> Address:
        """The address that a session with these fields dials. Raises MissingFieldError."""
        try:
            return self._of(fields)
        except KeyError as error:
            raise MissingFieldError(error.args[0]) from None

    def _address(self, fields: dict[str, str]) -> str:
        try:
            return self._url.render(fields)
        except KeyError as error:
            raise MissingFieldError(error.args[0]) from None

    def _of(self, fields: dict[str, str]) -> Address:
        part = self._part
        headers = [(name, value.render(fields)) for name, value in self._headers]
        if self._start.identify:
            headers.append((SESSION_HEADER, fields["session.id"]))
        return Address(
            url=_with_query(self._address(fields), [(name, value.render(fields)) for name, value in self._query]),
            headers=tuple(headers),
            subprotocols=tuple(name.render(fields) for name in self._subprotocols),
            method=part.method,
            content_type=self._content_type,
            compression=part.compression,
            message_bytes=self.message_bytes,
            tls=self._tls,
            proxy=self._proxy.render(fields),
            requests=self._requests,
            ping_every_s=part.ping.every_s,
            ping_timeout_s=part.ping.timeout_s,
        )


def _content_type(profile: Profile) -> str | None:
    part = profile.transport
    if part.form is not None:
        return FORM_TYPE
    if part.kind == "requests" and part.content_type is None:
        return "application/json" if profile.media.frame == "text" else "application/octet-stream"
    return part.content_type


def _requests(part: RequestsPart | None) -> Requests | None:
    if part is None:
        return None
    poll = part.poll
    return Requests(
        media=_line(part.media),
        open=None if part.open is None else _line(part.open),
        end=None if part.end is None else _line(part.end),
        poll=None if poll is None else _line(poll.request),
        poll_every_s=None if poll is None else poll.every_ms / 1000,
    )


def _line(line: str) -> tuple[str, str]:
    """`PUT /input` as method and path."""
    method, _, path = line.partition(" ")
    return method, path


def _merged(profiles: Iterable[tuple[str, str]], plans: Iterable[tuple[str, str]]) -> list[tuple[str, Text]]:
    """Headers of both; the plan's go before a profile's of the same name."""
    plans = list(plans)
    given = {name.lower() for name, _ in plans}
    kept = [(name, value) for name, value in profiles if name.lower() not in given]
    return [(name, compile_text(value)) for name, value in (*kept, *plans)]


def _with_query(url: str, query: list[tuple[str, str]]) -> str:
    if not query:
        return url
    address, mark, fragment = url.partition("#")
    joint = "" if address.endswith(("?", "&")) else "&" if "?" in address else "?"
    return f"{address}{joint}{urlencode(query, quote_via=quote)}{mark}{fragment}"

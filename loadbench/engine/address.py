"""Where a session goes and what it says of itself there: the plan's and the profile's templates, filled in for it."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from random import Random
from typing import Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from loadbench.engine.pipe import Start
from loadbench.results.masks import Masks
from loadbench.session.message import FORM_TYPE
from loadbench.session.plugin import Auth, Connecting, Credentials, PluginError, called
from loadbench.session.prelude import compile_prelude
from loadbench.session.profile import Profile, RequestsPart
from loadbench.session.signing import compile_signing
from loadbench.session.template import Text, compile_text
from loadbench.session.wire import Ask, Limits
from loadbench.transports.contract import Address, AddressError, Asker, Requests, Tls, Transport

SESSION_HEADER: Final = "x-loadbench-session"
SESSION_VARIABLE: Final = "LOADBENCH_SESSION"  # the same for a local program
PROGRAM: Final = "exec:"
USUAL_PORTS: Final = {"ws": 80, "http": 80, "wss": 443, "https": 443}


class MissingFieldError(Exception):
    """A template asks for a field that has no value in this session."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the profile or the address needs {{{name}}}, which has no value")


class _SoFar(dict[str, str]):
    """Fields before anything was signed or asked: what will come of that is empty."""

    def __missing__(self, name: str) -> str:
        if name.startswith(("signed.", "captured.")):
            return ""
        raise KeyError(name)


class Addresses:
    """Makes the fields and the address of each session. `wall_ns` is the calendar's clock, for {time.*}.

    `auth` is the plug-in that the profile names; without it nothing is added. `url` is the endpoint where the start has
    several, and `name` what it is called where something is written.
    """

    def __init__(
        self,
        start: Start,
        profile: Profile,
        wall_ns: Callable[[], int] = time.time_ns,
        auth: Auth | None = None,
        url: str | None = None,
    ) -> None:
        part = profile.transport
        self._auth, self._auth_name = auth, profile.auth and profile.auth.kind
        self._auth_options = _texts(profile.auth.options if profile.auth else {})
        self._start, self._part, self._wall_ns = start, part, wall_ns
        self.name = _bare(url or start.url)
        self._url = compile_text(url or start.url or part.url or "")
        self._query = [(name, compile_text(value)) for name, value in part.query]
        self._headers = _merged(part.headers.items(), start.headers)
        self._subprotocols = [compile_text(name) for name in part.subprotocols]
        self._signing = compile_signing(profile.signed)
        self._prelude = [compile_prelude(step) for step in profile.prelude]
        self._env, self._options = _texts(start.env), _texts(part.options)
        self.tls = Tls(**start.tls)
        self._proxy = compile_text(start.proxy)
        self._requests = _requests(part.requests)
        self._content_type = _content_type(profile)
        self.message_bytes = part.max_message_bytes or int(start.limits.get("message_bytes") or Limits().message_bytes)
        self._constant = {f"param.{name}": value for name, value in (dict(profile.params) | start.params).items()}
        self._constant |= {f"secret.{name}": value for name, value in start.secrets.items()}

    def fields(self, session: str, clip: dict[str, str]) -> dict[str, str]:
        """What templates of this session may use. The same seed and run give the same {session.uuid}.

        What the prelude will capture is not among them, and where the url waits for that, host and port are not either.
        Raises MissingFieldError for a field that the url asks for and no session has.
        """
        random = Random(f"{self._start.seed}:{self._start.run_id}:{session}")
        wall_ns = self._wall_ns()
        seconds, millis = wall_ns // 1_000_000_000, wall_ns // 1_000_000
        fields = self._constant | {f"clip.{name}": value for name, value in clip.items()}
        fields |= {
            "session.id": session,
            "session.uuid": str(uuid.UUID(int=random.getrandbits(128), version=4)),
            "random.hex": f"{random.getrandbits(64):016x}",
            "time.unix": str(seconds),
            "time.unix_ms": str(millis),
            "time.rfc1123": formatdate(seconds, usegmt=True),
            "time.iso": f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}Z",
        }
        fields |= self.place(fields)
        try:
            return fields | self._signing.fields(fields)
        except KeyError as error:
            raise MissingFieldError(error.args[0]) from None

    def place(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Host and port of the url, as far as these fields tell them.

        Raises MissingFieldError, and AddressError for what is no url.
        """
        known = _SoFar({"host": "", "port": "", **fields})
        address = self._address(known)
        if address.startswith(PROGRAM):  # a command line, which only looks like an address
            return {"host": "", "port": ""}
        try:
            url = urlsplit(address)
            port = url.port or USUAL_PORTS.get(url.scheme)
        except ValueError:
            raise AddressError(["target.url: the host or the port cannot be read"]) from None
        if not url.hostname and any(name.startswith("captured.") and name not in fields for name in self._url.names):
            return {}
        return {"host": url.hostname or "", "port": str(port or "")}

    def check(self, fields: dict[str, str], transport: Transport, asker: Asker | None) -> None:
        """Raise AddressError, MissingFieldError or PluginError for what no session with such fields could dial or ask.

        What waits for an answer of the prelude is left out. Contacts nobody.
        """
        later = {f"captured.{name}": "later" for request in self._prelude for name, _ in request.captures}
        if self._url.names.isdisjoint(later):
            transport.check(self.of(later | fields))
        for request in self._prelude if asker is not None else ():
            try:
                ask = self.asking(request.ask(later | fields), fields)
            except KeyError as error:
                raise MissingFieldError(error.args[0]) from None
            if asker is not None and request.address.names.isdisjoint(later):
                asker.check(ask, self.tls)

    def asking(self, ask: Ask, fields: Mapping[str, str]) -> Ask:
        """A request of the prelude as it is sent: through the proxy, if there is one; for a run that is kept to
        ourselves, to where `prelude_at` says.
        """
        ask = replace(ask, proxy=self._proxy.render(fields))
        if self._start.prelude_at is None:
            return ask
        there, meant = urlsplit(self._start.prelude_at), urlsplit(ask.url)
        return replace(ask, url=urlunsplit((there.scheme, there.netloc, meant.path, meant.query, "")))

    def of(self, fields: Mapping[str, str]) -> Address:
        """The address that a session with these fields dials. Raises MissingFieldError, and PluginError."""
        try:
            return self._authorised(self._of(fields), fields)
        except KeyError as error:
            raise MissingFieldError(error.args[0]) from None

    def _authorised(self, address: Address, fields: Mapping[str, str]) -> Address:
        """With what the auth plug-in adds."""
        auth = self._auth
        if auth is None:
            return address
        params, secrets = (
            {key.removeprefix(group): value for key, value in fields.items() if key.startswith(group)}
            for group in ("param.", "secret.")
        )
        options = {name: value.render(fields) for name, value in self._auth_options}
        connecting = Connecting(address.url, address.headers, params, secrets, options, self._wall_ns())
        try:
            return called(f"the auth {self._auth_name}", lambda: _with(address, auth(connecting)))
        except PluginError as error:  # it was given the secrets, and may say them to somebody who reads no record
            masks = Masks([*self._start.secrets.values(), *self._start.hidden])
            raise PluginError(masks.mask(str(error))) from None

    def _address(self, fields: Mapping[str, str]) -> str:
        try:
            return self._url.render(fields)
        except KeyError as error:
            raise MissingFieldError(error.args[0]) from None

    def _of(self, fields: Mapping[str, str]) -> Address:
        part = self._part
        headers = [(name, value.render(fields)) for name, value in self._headers]
        env = [(name, value.render(fields)) for name, value in self._env]
        if self._start.identify:
            headers.append((SESSION_HEADER, fields["session.id"]))
            env.append((SESSION_VARIABLE, fields["session.id"]))
        return Address(
            url=_with_query(self._address(fields), [(name, value.render(fields)) for name, value in self._query]),
            headers=tuple(headers),
            subprotocols=tuple(name.render(fields) for name in self._subprotocols),
            method=part.method,
            content_type=self._content_type,
            compression=part.compression,
            message_bytes=self.message_bytes,
            tls=self.tls,
            proxy=self._proxy.render(fields),
            requests=self._requests,
            ping_every_s=part.ping.every_s,
            ping_timeout_s=part.ping.timeout_s,
            ping_close=part.ping.close,
            env=tuple(env),
            options=tuple((name, value.render(fields)) for name, value in self._options),
        )


def _bare(url: str) -> str:
    """An address without user, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""  # a problem of the plan, told elsewhere
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _texts(templates: Mapping[str, str]) -> list[tuple[str, Text]]:
    return [(name, compile_text(value)) for name, value in templates.items()]


def _with(address: Address, credentials: Credentials) -> Address:
    """The address with these; a header goes before one of the same name."""
    headers, query = dict(credentials.headers), dict(credentials.query)
    if not all(isinstance(text, str) for part in (headers, query) for pair in part.items() for text in pair):
        raise TypeError("it gave names or values that are no texts")
    kept = [(name, value) for name, value in address.headers if name.lower() not in {each.lower() for each in headers}]
    return replace(
        address,
        url=_with_query(address.url, list(query.items())),
        headers=(*kept, *headers.items()),
        hidden=credentials.hidden,
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

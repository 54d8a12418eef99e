"""What a plug-in of the profile language promises, and the plug-ins of one profile, ready to be used.

Nothing here looks for one: `loadbench.plugins` does that, before anything starts. What a plug-in raises in a session
comes out as `PluginError`, which ends that session as profile_error.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar

from loadbench.results.masks import shorten
from loadbench.session.decode import DecodeError, Raw
from loadbench.session.profile import Profile
from loadbench.session.wire import Kind

if TYPE_CHECKING:
    from loadbench.session.text import Model

T = TypeVar("T")
Key = tuple[str, tuple[tuple[str, str], ...]]  # of a plug-in with its options
Role = Literal["open", "media", "end", "keepalive"]


class PluginError(Exception):
    """A plug-in failed in a session, or before one; `problems` says so in one sentence."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problems = [problem]


@dataclass(frozen=True, slots=True)
class Connecting:
    """A connection that is about to be made, as an auth plug-in sees it. Holds secrets.

    `url` has its query already; `headers` are those that would be sent. `params` and `secrets` go by their names,
    `options` are those of the profile with their fields filled in. `unix_ns` is the calendar's time.
    """

    url: str
    headers: tuple[tuple[str, str], ...]
    params: Mapping[str, str]
    secrets: Mapping[str, str]
    options: Mapping[str, str]
    unix_ns: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is to be added to it. Values are hidden wherever something is written, but for the names in `public`."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    public: Collection[str] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The values that must not be written down."""
        return tuple(
            value for part in (self.headers, self.query) for name, value in part.items() if name not in self.public
        )


Auth = Callable[[Connecting], Credentials]


class Frame(NamedTuple):
    """A message of ours before it is framed.

    `number` is that of its chunk, from 0; of a scripted message, how many chunks of the utterance had gone before it.
    `last`: the last chunk of the utterance.
    """

    kind: Literal["text", "binary"]
    payload: bytes
    role: Role
    number: int
    last: bool = False


class Codec(Protocol):
    """How messages are framed. One serves all sessions."""

    def encode(self, frame: Frame) -> bytes | str:
        """The message as it is sent: binary, or a text. The same frame always gives the same."""

    def decoder(self) -> Callable[[str | bytes], Iterable[str | bytes]]:
        """For one connection: what makes the messages that rules read of each one that comes.

        It raises ValueError for what is no message of this framing, which is the service's fault.
        """


class Framing:
    """A codec in use."""

    def __init__(self, name: str, codec: Codec) -> None:
        self._name, self._codec = f"the codec {name}", codec

    def encode(self, frame: Frame) -> tuple[Kind, bytes]:
        """A message as it goes to the transport. Raises PluginError."""
        framed = called(self._name, lambda: self._codec.encode(frame))
        if isinstance(framed, str):
            return "text", framed.encode()
        if not isinstance(framed, bytes | bytearray):
            raise PluginError(f"{self._name} gave {type(framed).__name__}, and neither bytes nor a text")
        return "binary", bytes(framed)

    def decoder(self) -> Callable[[Raw], list[Raw]]:
        """For one connection. It raises DecodeError for what is no message, and PluginError."""
        decode = called(self._name, self._codec.decoder)

        def decoded(data: Raw) -> list[Raw]:
            try:
                messages = called(self._name, lambda: list(decode(data)), passing=ValueError)
            except ValueError as error:
                raise DecodeError(f"{self._name} cannot read it: {error}") from error
            for message in messages:
                if not isinstance(message, str | bytes):
                    raise PluginError(f"{self._name} gave {type(message).__name__}, and neither bytes nor a text")
            return messages

        return decoded


@dataclass(frozen=True, slots=True)
class Plugins:
    """Those that a profile names. `texts` go by the `key` of their part."""

    auth: Auth | None = None
    framing: Framing | None = None
    texts: "Mapping[Key, Model]" = field(default_factory=dict)


NONE: Final = Plugins()


class NeverError(Exception):
    """Raised by nobody."""


def called(what: str, call: Callable[[], T], *, passing: type[Exception] = NeverError) -> T:
    """What a plug-in's function gives. Whatever it raises but `passing` comes out as PluginError, also SystemExit."""
    try:
        return call()
    except passing:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what} failed: {shorten(f'{type(error).__name__}: {error}', 200)}") from error


def named(profile: Profile, *, auth: bool = True) -> list[str]:
    """The plug-ins that a profile names, for people: `codec volcengine`; without its transport, or auth as well."""
    parts: list[tuple[str, Any]] = [("auth", profile.auth if auth else None), ("codec", profile.transport.codec)]
    parts += [("text model", rule.text.plugin) for rule in profile.receive.rules if rule.text is not None]
    parts += [("media encoder", medium.encoder) for medium in (profile.media, profile.media.also) if medium is not None]
    return list(dict.fromkeys(f"{what} {part.kind}" for what, part in parts if part is not None))

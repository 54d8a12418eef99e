"""How bytes travel: each transport takes wire messages, stamps what arrives at the edge, and says how it ended."""

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from loadbench.transports.contract import Asker, Transport

KINDS: Final = ("websocket", "http", "requests", "process")  # what a profile may say
NAMES: Final = (*KINDS, "upload", "memory")
GROUP: Final = "loadbench.transports"  # entry points: NAME = "module:transport", an object that keeps the contract
_PROMISED: Final = ("name", "encoder", "check", "dial")


class TransportError(ValueError):
    """No such transport, or one that cannot be used: the user's trouble."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problems = [problem]


def load(name: str) -> Transport:
    """The transport of that name, ours or a plug-in's; its client library is imported only now. TransportError."""
    if name in NAMES:
        return cast(Transport, import_module(f"loadbench.transports.{name}").transport)
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        near = get_close_matches(name, [*NAMES, *found], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise TransportError(
            f"transport.kind: no transport is called {name!r}{hint}; built in: {', '.join(KINDS)}; plug-ins"
            f" installed: {', '.join(sorted(found)) or 'none'}; to have another, install its package beside loadbench,"
            f" in the same environment: it names {name!r} as an entry point in the group {GROUP}"
        )
    return _loaded(found[name])


def _loaded(point: EntryPoint) -> Transport:
    """Whatever a plug-in does when it is imported is told in one line."""
    try:
        found: Any = point.load()
    except Exception as error:
        raise TransportError(
            f"transport.kind: the plug-in {point.name} ({point.value}) cannot be loaded:"
            f" {type(error).__name__}: {error}"
        ) from error
    missing = [word for word in _PROMISED if not hasattr(found, word)]
    if missing:
        raise TransportError(
            f"transport.kind: the plug-in {point.name} ({point.value}) is no transport: it lacks {', '.join(missing)}"
        )
    return cast(Transport, found)


def load_asker() -> Asker:
    """What carries out the requests of a prelude; its parser is imported only now."""
    return cast(Asker, import_module("loadbench.transports.ask"))

"""How bytes travel: each transport takes wire messages, stamps what arrives at the edge, and says how it ended."""

from importlib import import_module
from typing import cast

from loadbench.transports.contract import Asker, Transport

NAMES = ("websocket", "http", "upload", "requests", "memory")


def load(name: str) -> Transport:
    """The transport of that name; its client library is imported only now."""
    if name not in NAMES:
        raise ValueError(f"no transport is called {name!r}; there are {', '.join(NAMES)}")
    return cast(Transport, import_module(f"loadbench.transports.{name}").transport)


def load_asker() -> Asker:
    """What carries out the requests of a prelude; its parser is imported only now."""
    return cast(Asker, import_module("loadbench.transports.ask"))

"""How bytes travel: each transport takes wire messages, stamps what arrives at the edge, and says how it ended."""

from importlib import import_module
from typing import Final, cast

from loadbench import plugins
from loadbench.transports.contract import Asker, Transport

KINDS: Final = ("websocket", "http", "requests", "process")  # what a profile may say
NAMES: Final = (*KINDS, "upload", "memory")
GROUP: Final = "loadbench.transports"  # entry points: NAME = "module:transport", an object that keeps the contract
_PROMISED: Final = ("name", "encoder", "check", "dial")


def load(name: str) -> Transport:
    """The transport of that name, ours or a plug-in's; its client library is imported only now. NoPluginError."""
    if name in NAMES:
        return cast(Transport, import_module(f"loadbench.transports.{name}").transport)
    return cast(Transport, plugins.find(GROUP, name, "transport.kind", "transport", _PROMISED, KINDS))


def load_asker() -> Asker:
    """What carries out the requests of a prelude; its parser is imported only now."""
    return cast(Asker, import_module("loadbench.transports.ask"))

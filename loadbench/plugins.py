"""Plug-ins found by their entry points, and looked for by doors alone, before anything starts.

What is missing or broken is the user's trouble, told in one sentence. The contracts stand in `session/plugin.py`,
`media/form.py` (`Encoder`) and `transports/contract.py`; docs/plugins.md shows them at work.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, Final

from loadbench.media.form import Encoder
from loadbench.session.plugin import Framing, Plugins
from loadbench.session.profile import PluginPart, Profile

AUTH: Final = "loadbench.auth"  # entry points: NAME = "module:function"
CODECS: Final = "loadbench.codecs"
TEXTS: Final = "loadbench.texts"
ENCODERS: Final = "loadbench.encoders"


class NoPluginError(ValueError):
    """No such plug-in, or one that cannot be used. `problems` holds all of them, a sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def find(
    group: str, name: str, key: str, what: str, promised: Sequence[str] = ("__call__",), built_in: Sequence[str] = ()
) -> Any:
    """What the plug-in of that name is. Raises NoPluginError, which says `key` of the profile and `what` it should be.

    It must have all that is `promised`. `built_in` are the names of those that need no plug-in.
    """
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        near = get_close_matches(name, [*built_in, *found], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        ours = f"; built in: {', '.join(built_in)}" if built_in else ""
        raise NoPluginError(
            [
                f"{key}: no {what} is called {name!r}{hint}{ours}; plug-ins installed:"
                f" {', '.join(sorted(found)) or 'none'}; to have another, install its package beside loadbench, in the"
                f" same environment: it names {name!r} as an entry point in the group {group}"
            ]
        )
    point = found[name]
    plugin = _tried(point.load, f"{key}: the plug-in {name} ({point.value}) cannot be loaded")
    return _whole(plugin, promised, f"{key}: the plug-in {name} ({point.value}) is no {what}")


def load(profile: Profile) -> Plugins:
    """The plug-ins that a profile names, but for its transport and its encoders. Raises NoPluginError with all."""
    problems: list[str] = []
    auth = framing = None
    texts: dict[Any, Any] = {}
    if (part := profile.auth) is not None:
        auth = _noted(problems, lambda: find(AUTH, part.kind, "auth.kind", "auth"))
    if (codec := profile.transport.codec) is not None:
        key = "transport.codec"
        made = _noted(problems, lambda: _made(CODECS, codec, key, "codec", ("encode", "decoder")))
        framing = None if made is None else Framing(codec.kind, made)
    for number, rule in enumerate(profile.receive.rules):
        if rule.text is not None and (named := rule.text.plugin) is not None and named.key not in texts:
            key = f"receive.rules[{number}].text.plugin"
            texts[named.key] = _noted(problems, lambda: _made(TEXTS, named, key, "text model", ("__call__",)))  # noqa: B023 - called at once
    if problems:
        raise NoPluginError(problems)
    return Plugins(auth, framing, texts)


def encoders(profile: Profile) -> dict[tuple[str, tuple[tuple[str, str], ...]], Encoder]:
    """The media encoders that a profile names, by the `key` of their parts. Raises NoPluginError with all problems."""
    problems: list[str] = []
    found: dict[Any, Any] = {}
    for key, medium in (("media", profile.media), ("media.also", profile.media.also)):
        if medium is not None and (part := medium.encoder) is not None:
            promised = ("version", "chunks")
            made = _noted(problems, lambda: _made(ENCODERS, part, f"{key}.encoder", "media encoder", promised))  # noqa: B023 - called at once
            found[part.key] = made
    if problems:
        raise NoPluginError(problems)
    return found


def _made(group: str, part: PluginPart, key: str, what: str, promised: Sequence[str]) -> Any:
    """What the plug-in's function makes of its options."""
    make = find(group, part.kind, f"{key}.kind", what)
    made = _tried(lambda: make(dict(part.options)), f"{key}: the plug-in {part.kind} does not take its options")
    return _whole(made, promised, f"{key}: what the plug-in {part.kind} makes is no {what}")


def _whole(found: Any, promised: Sequence[str], otherwise: str) -> Any:
    missing = [word for word in promised if not hasattr(found, word)]
    if missing:
        raise NoPluginError([f"{otherwise}: it lacks {', '.join(missing)}"])
    return found


def _tried(call: Callable[[], Any], otherwise: str) -> Any:
    """Whatever a plug-in does when it is imported or made is told in one line."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise NoPluginError([f"{otherwise}: {told}"]) from error


def _noted(problems: list[str], call: Callable[[], Any]) -> Any:
    try:
        return call()
    except NoPluginError as error:
        problems += error.problems
        return None

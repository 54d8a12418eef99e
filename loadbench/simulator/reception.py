"""The service's side of a prelude: what is asked before a connection is answered with what the profile will capture."""

import re
from dataclasses import dataclass
from typing import Any

from loadbench.session.profile import PreludeStep, Profile
from loadbench.session.template import compile_text
from loadbench.simulator import invert
from loadbench.simulator.branches import Branches


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers one request of the prelude. `where` are the captures that lead on, with the way there."""

    method: str
    target: re.Pattern[str]
    status: int
    captures: dict[str, str]
    where: dict[str, str]
    branches: Branches

    def answer(self, host: str) -> Any:
        """The answer of a service that is reached at `host`."""
        message: Any = None
        for name, selector in self.captures.items():
            value = f"{self.where[name]}://{host}/simulated" if name in self.where else self.branches.value(name)
            message = invert.put(message, selector, value)
        return {} if message is None else message


class Reception:
    """All that is asked before the connection. Raises invert.NoInverseError for an answer that cannot be made."""

    def __init__(self, profile: Profile) -> None:
        branches = Branches(profile)
        self._desks = [_desk(profile, step, branches) for step in profile.prelude]
        for desk in self._desks:
            desk.answer("h")

    def desk(self, method: str, target: str) -> Desk | None:
        """Who answers this request; None: it is none of the prelude."""
        return next((desk for desk in self._desks if desk.method == method and desk.target.fullmatch(target)), None)


def _desk(profile: Profile, step: PreludeStep, branches: Branches) -> Desk:
    method, _, url = step.request.partition(" ")
    scheme = "ws" if profile.transport.kind == "websocket" else "http"
    where = {}
    for name in step.capture:
        if (profile.transport.url or "").startswith(f"{{captured.{name}}}"):
            where[name] = scheme
        elif any(later.request.partition(" ")[2].startswith(f"{{captured.{name}}}") for later in profile.prelude):
            where[name] = "http"
    return Desk(method, _pattern(url), next(iter(step.expect), 200), step.capture, where, branches)


def _pattern(url: str) -> re.Pattern[str]:
    """Whatever the template can become behind the host; with or without a query that it does not speak of."""
    target = re.sub(r"^(https?://[^/?]*|\{[^{}]*\})", "", url)
    parts = compile_text(target).parts
    made = "".join(re.escape(part) if isinstance(part, str) else ".*" for part in parts)
    return re.compile(f"{made or '/?'}(/simulated)?(\\?.*)?", re.DOTALL)

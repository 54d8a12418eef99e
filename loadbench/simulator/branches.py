"""Which steps of a profile a client takes, as far as the service can know: it knows what it says itself."""

import json
from collections.abc import Iterator
from typing import Any, Final

from loadbench.session.profile import EndStep, OpenStep, Profile, When

MADE_UP: Final = "simulated"


class Branches:
    """The values that the service gives to be captured, such that no step refuses them where that can be."""

    def __init__(self, profile: Profile) -> None:
        self._steps: list[OpenStep | EndStep] = [*profile.open, *profile.begin, *profile.end]
        self._given = {name: self._chosen(f"captured.{name}") for name in _captures(profile)}

    def value(self, name: str) -> Any:
        """What {captured.NAME} shall be, as JSON: a text that is a number, true or false is said as one."""
        text = self._given.get(name, MADE_UP)
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return text if isinstance(value, str | list | dict) or value is None else value

    def takes(self, step: OpenStep | EndStep) -> bool | None:
        """Whether a client takes this step; None: that depends on what only the client knows."""
        when = step.when
        if when is None:
            return True
        text = self._given.get(when.field.removeprefix("captured.")) if when.field.startswith("captured.") else None
        return None if text is None else _holds(when, text)

    def _chosen(self, field: str) -> str:
        asked = [step for step in self._steps if step.when is not None and step.when.field == field]
        texts = [
            MADE_UP,
            *(text for step in asked if step.when for text in (step.when.equals, step.when.differs) if text),
        ]
        refused = [step.when for step in asked if step.refuse is not None and step.when]
        return next((text for text in texts if not any(_holds(when, text) for when in refused)), MADE_UP)


def _holds(when: When, text: str) -> bool:
    return text == when.equals if when.equals is not None else text != when.differs


def _captures(profile: Profile) -> Iterator[str]:
    for request in profile.prelude:
        yield from request.capture
    for step in (*profile.open, *profile.begin):
        yield from step.wait.capture if step.wait else ()

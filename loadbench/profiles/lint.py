"""What the structure of a good profile tells: rules that can never fire, channels that nothing feeds."""

from collections.abc import Iterator
from typing import Any

from loadbench.profiles import condition
from loadbench.profiles.finding import Finding, Line
from loadbench.session.message import MediaMessage
from loadbench.session.profile import Profile


def structure(profile: Profile, line: Line) -> Iterator[Finding]:
    """All that can be said without a message."""
    yield from _dead_rules(profile, line)
    yield from _unfed_channels(profile, line)
    yield from _own_media(profile, line)


def rule_line(line: Line, number: int) -> int:
    """Where a rule stands; rules count from 0 here."""
    return line(("receive", "rules", number))


def _dead_rules(profile: Profile, line: Line) -> Iterator[Finding]:
    shelf = condition.Shelf()
    for number, atoms in enumerate(map(condition.atoms, profile.receive.rules)):
        here = {"rule": number + 1, "line": rule_line(line, number)}
        path = condition.contradiction(atoms)
        if path is not None:
            what = f"can never fire: {'.'.join(path)} would have to have two values at once"
            yield Finding(weight="warning", what=what, advice="part it into two rules", **here)
        if profile.receive.fire == "all":
            continue
        taker = shelf.first_implied(atoms)
        if taker is None:
            shelf.put(number, atoms)  # what a dead rule would take, its taker takes
        else:
            what = f"can never fire: rule {taker + 1} comes first and takes all that it would fit"
            yield Finding(weight="warning", what=what, advice=f"put it before rule {taker + 1}, or fire: all", **here)


def _unfed_channels(profile: Profile, line: Line) -> Iterator[Finding]:
    """By the raw names: a rule without a channel feeds the first one, and `NAME:{...}` feeds NAME."""
    receive: dict[str, Any] = profile.receive.model_dump(exclude_none=True)
    binary = receive.get("binary")
    fed = {str(binary.get("channel", ""))} if isinstance(binary, dict) else set()
    for rule in receive["rules"]:
        if rule.keys() & {"text", "media"}:
            fed.add(str(rule.get("channel") or next(iter(profile.channels))))
    bases = {name.partition(":")[0] for name in fed}
    for name in profile.channels.keys() - bases - fed:
        what = f"channel {name}: no rule gives it anything"
        yield Finding(
            weight="warning", line=line(("channels", name)), what=what, advice="give it a rule, or take it out"
        )


def _own_media(profile: Profile, line: Line) -> Iterator[Finding]:
    message = MediaMessage(profile.media)
    if message.independent:
        return
    names = ", ".join(f"{{{name}}}" for name in sorted(message.names))
    what = f"media messages depend on the session ({names}): each session puts its own parts around the shared payload"
    place = next(key for key in ("message", "first", "last") if getattr(profile.media, key) is not None)
    advice = "costs processor time with many users; leave the field out where the service does not need it"
    yield Finding(weight="fact", line=line(("media", place)), what=what, advice=advice)

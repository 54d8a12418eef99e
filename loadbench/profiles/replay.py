"""What recorded messages say against a profile: they are heard by its rules as a session would hear them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from loadbench.profiles.condition import Truthy, atoms
from loadbench.profiles.finding import Finding, Line
from loadbench.profiles.lint import rule_line
from loadbench.profiles.recorded import Conversation, Recording
from loadbench.session.hearing import Heard, Hearing
from loadbench.session.plugin import NONE, Plugins
from loadbench.session.profile import Profile, Rule
from loadbench.session.script import Compiled, Finish, Meaning, chosen, compile_profile
from loadbench.session.select import SELECT_ERRORS, compile_condition
from loadbench.session.text import RuleError
from loadbench.session.wire import Limits

MOST_PATHS: Final = 2000
STOOD: Final = 2  # so many messages with the same text behind its last change: it had settled
TELLING_LETTERS: Final = 4  # a shorter final may well begin the next sentence by chance
UNFIT: Final = ("parse_error", "profile_error", "our_limit")  # outcomes by which a message refutes a profile


@dataclass
class Tally:
    """What one rule met. `taken` counts, by the rule that took them, messages that this one fits as well."""

    fired: int = 0
    fits: int = 0
    taken: Counter[int] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)  # by selector: how often it gave anything
    items: int = 0
    empty: Counter[str] = field(default_factory=Counter)  # by bare path: how often it kept the rule from fitting
    finals: int = 0
    changed: int = 0  # finals of this rule that changed after all
    resumed: int = 0  # finals of this rule that the next segment begins with


@dataclass
class Shown:
    """What a channel showed in all conversations. `stood` is how often its last text came again, unmarked."""

    partials: int = 0
    finals: int = 0
    stood: int = 0
    rule: int = 0


@dataclass
class Replay:
    """A recording heard by a profile."""

    messages: int = 0
    scripted: int = 0  # those that no rule fits, and that a script waits for
    kinds: Counter[str] = field(default_factory=Counter)
    rules: list[Tally] = field(default_factory=list)
    channels: dict[str, Shown] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)  # outcome: the first sentence
    flags: dict[str, set[bool]] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)

    @property
    def unread(self) -> int:
        """Messages that mean nothing to the profile."""
        return self.kinds["unmatched"] - self.scripted

    @property
    def matched(self) -> int:
        """Messages that a text rule took."""
        return sum(self.kinds[kind] for kind in ("partial", "final", "empty", "unchanged"))


def replay(profile: Profile, recording: Recording, plugins: Plugins = NONE) -> Replay:
    """Hear it all."""
    how = compile_profile(profile, plugins)
    found = Replay(rules=[Tally() for _ in how.meanings])
    for conversation in recording.conversations:
        _hear(how, conversation, found)
    return found


def findings(profile: Profile, recording: Recording, line: Line, plugins: Plugins = NONE) -> Iterator[Finding]:
    """All that the recording says against the profile."""
    found = replay(profile, recording, plugins)
    for sentence in found.troubles.values():
        advice = "a session would end with this message"
        yield Finding(weight="error", line=line(("receive",)), what=sentence, advice=advice)
    for number, (rule, tally) in enumerate(zip(profile.receive.rules, found.rules, strict=True)):
        for weight, what, advice in _of_rule(rule, tally, found):
            yield Finding(weight=weight, line=rule_line(line, number), rule=number + 1, what=what, advice=advice)
    yield from _of_channels(profile, found, line)
    yield from _of_scripts(compile_profile(profile, plugins), found, line)
    for count, why in ((recording.cut, "not kept whole"), (recording.left, "too many")):
        if count:
            yield Finding(weight="fact", line=1, what=f"{count} recorded messages are passed over: {why}")
    if found.unread:
        what = f"no rule fits {found.unread} of {found.messages} recorded messages"
        advice = "fine where they say nothing; a rule with event: ignore says so"
        yield Finding(weight="fact", line=line(("receive", "rules")), what=what, advice=advice)


def scripted(how: Compiled) -> list[Callable[[Any], bool]]:
    """The conditions on which the scripts wait, without those that any message fulfils."""
    steps = [*how.profile.open, *how.profile.begin]
    waits = [step.wait for step in steps if step.wait and (step.wait.has or step.wait.match)]
    tests = [compile_condition(wait.has, wait.match) for wait in waits]
    return [*tests, *(step.do.fits for step in how.end if isinstance(step.do, Finish) and step.do.fits is not None)]


# ---- hearing


def _hear(how: Compiled, conversation: Conversation, found: Replay) -> None:
    names = re.findall(r"\{([\w.]+)\}", " ".join(rule.channel or "" for rule in how.profile.receive.rules))
    fields = dict.fromkeys(names, "x")
    hearing = Hearing(how, Limits().message_bytes, fields)
    hearing.content_type("text/event-stream" if conversation.is_sse else "application/x-ndjson")
    watch = _Watch(hearing, found)
    last_ns = 0
    for at_ns, data in conversation.messages:
        last_ns = max(last_ns, at_ns)
        for heard in hearing.listen(data, last_ns):
            _note(how, heard, found, watch, fields)
    for heard in hearing.flush(last_ns):
        _note(how, heard, found, watch, fields)
    watch.end()


def _note(how: Compiled, heard: Heard, found: Replay, watch: "_Watch", fields: dict[str, str]) -> None:
    found.messages += 1
    found.kinds[heard.kind] += 1
    if heard.ending is not None and heard.ending[0] in UNFIT:
        found.troubles.setdefault(heard.ending[0], f"{heard.ending[1]} (message {found.messages})")
    if heard.item is None:
        return
    item = heard.item
    found.scripted += heard.kind == "unmatched" and any(fits(item) for fits in scripted(how))
    found.items.append(item)
    _gather(item, "", found)
    fitting = [number for number, meaning in enumerate(how.meanings) if meaning.fits(item)]
    fired = fitting[:1] if how.first_only else fitting
    for number in fitting:
        found.rules[number].fits += 1
        if number not in fired:
            found.rules[number].taken[fired[0]] += 1
    for number, meaning in enumerate(how.meanings):
        if number in fired:
            _fire(meaning, item, found.rules[number])
        elif number not in fitting:
            _look_for_traps(how.profile.receive.rules[number], item, found.rules[number])
    speaking = next((number for number in fired if how.meanings[number].text is not None), None)
    if speaking is not None:
        watch.look(speaking, heard.kind, _channel(how.meanings[speaking], fields, item))


def _fire(meaning: Meaning, item: Any, tally: Tally) -> None:
    tally.fired += 1
    try:
        items = [item] if meaning.each is None else chosen(meaning.each, item) or []
    except RuleError:
        return  # the session's own trouble, which is told already
    for each in items if isinstance(items, list) else []:
        tally.items += 1
        selectors: dict[str, Callable[[Any], Any]] = dict(meaning.text.selectors) if meaning.text else {}
        if meaning.detail is not None:
            selectors["detail"] = meaning.detail
        for name, select in selectors.items():
            try:
                tally.found[name] += select(each) is not None
            except SELECT_ERRORS:
                continue


def _look_for_traps(rule: Rule, item: Any, tally: Tally) -> None:
    """Bare paths whose empty value keeps the rule from fitting."""
    bare = [atom.path for atom in atoms(rule) if isinstance(atom, Truthy)]
    for path in bare:
        value = item
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str | list | dict) and not value:
            tally.empty[".".join(path)] += 1


def _channel(meaning: Meaning, fields: dict[str, str], item: Any) -> str:
    if isinstance(meaning.channel, str):
        return meaning.channel
    try:
        return meaning.channel(fields, item)
    except RuleError:
        return ""


def _gather(value: Any, path: str, found: Replay) -> None:
    """Every path of a message, and every switch with the values that it takes."""
    if len(found.paths) >= MOST_PATHS:
        return
    if path:
        found.paths.setdefault(path)
    if isinstance(value, bool):
        found.flags.setdefault(path, set()).add(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _gather(inner, f"{path}.{key}" if path else str(key), found)
    elif isinstance(value, list) and value:
        _gather(value[0], f"{path}[0]", found)


class _Watch:
    """Looks at the channels of one conversation after each message, for what was final and has changed since."""

    def __init__(self, hearing: Hearing, found: Replay) -> None:
        self._hearing, self._found = hearing, found
        self._final: dict[tuple[str, str], tuple[str, int]] = {}  # text and rule
        self._last: dict[str, tuple[str, str, int]] = {}  # the channel's newest final: key, text, rule
        self._resumed: set[tuple[str, str]] = set()
        self._stood: Counter[str] = Counter()

    def look(self, rule: int, kind: str, channel: str) -> None:
        shown = self._found.channels.setdefault(channel, Shown(rule=rule))
        shown.partials += kind == "partial"
        self._stood[channel] = self._stood[channel] + 1 if kind == "unchanged" else 0
        board = self._hearing.channels().get(channel)
        segments = {} if board is None else {segment.key: segment for segment in board.segments}
        for (name, key), (text, by) in list(self._final.items()):
            now = segments.get(key)
            if name == channel and (now is None or now.text != text):
                self._found.rules[by].changed += 1
                del self._final[name, key]
        for key, segment in segments.items():
            self._compare(channel, key, segment.text)
            if segment.final_ns is not None and (channel, key) not in self._final:
                self._final[channel, key] = (segment.text, rule)
                self._found.rules[rule].finals += 1
                shown.finals += 1
            if segment.final_ns is not None:
                self._last[channel] = (key, segment.text, rule)

    def _compare(self, channel: str, key: str, text: str) -> None:
        """Whether this segment, a later one, goes on with what was said to be final before it."""
        before = self._last.get(channel)
        if before is None or before[0] == key or (channel, before[0]) in self._resumed or (channel, key) in self._final:
            return
        if len(before[1]) >= TELLING_LETTERS and text.startswith(before[1]):
            self._resumed.add((channel, before[0]))
            self._found.rules[before[2]].resumed += 1

    def end(self) -> None:
        for channel, count in self._stood.items():
            board = self._hearing.channels().get(channel)
            if board is not None and board.segments and board.segments[-1].final_ns is None:
                self._found.channels[channel].stood = max(self._found.channels[channel].stood, count)


# ---- judging


def _of_rule(rule: Rule, tally: Tally, found: Replay) -> Iterator[tuple[Any, str, str]]:
    if not tally.fits:
        missing = [path for path in _paths_of(rule) if path not in found.paths]
        near = [close for path in missing for close in get_close_matches(path, list(found.paths), 1, 0.7)]
        if near or rule.outcome is None:  # errors are seldom recorded, and their rules no less right
            advice = f"meant {near[0]}?" if near else ""
            yield "warning" if near else "fact", f"fits none of {found.messages} recorded messages", advice
    elif not tally.fired:
        taker, count = tally.taken.most_common(1)[0]
        yield "warning", f"never fires: rule {taker + 1} took {count} messages that it fits", f"before rule {taker + 1}"
    names = [name for name in _selectors(rule) if tally.items and not tally.found[name]]
    for name in names:
        expression = getattr(rule.text, name, None) if name != "detail" else rule.detail
        near = get_close_matches(str(expression), list(found.paths), 1, 0.6)
        yield (
            "warning",
            f"selects {name}: {expression}, which none of {tally.items} messages that it took has",
            f"meant {near[0]}?" if near else "take it out, or correct it",
        )
    for path, count in tally.empty.items():
        yield (
            "warning",
            f"does not fit {count} messages in which {path} is empty, for an empty text or list is false",
            f"has: {path}, if the key alone should count",
        )
    yield from _of_finals(tally, found)


def _of_finals(tally: Tally, found: Replay) -> Iterator[tuple[Any, str, str]]:
    flags = _flags(found)
    if tally.changed:
        what = f"marked {tally.finals} texts final, and {tally.changed} of them changed afterwards in the same segment"
        yield "warning", what, f"another mark of finality{flags}"
    if tally.resumed and tally.resumed * 2 >= tally.finals - 1:
        what = f"marked {tally.finals} texts final, and {tally.resumed} of them went on as the next segment's beginning"
        yield "warning", what, f"these are partials; another mark of finality{flags}"


def _of_channels(profile: Profile, found: Replay, line: Line) -> Iterator[Finding]:
    for name, shown in found.channels.items():
        if not shown.partials or profile.never_final.rule != "explicit":
            continue
        here = {"line": rule_line(line, shown.rule), "rule": shown.rule + 1}
        if shown.stood >= STOOD:
            what = f"leaves the last text of channel {name}, which came {shown.stood} times more, without a final"
            advice = f"never_final: {{rule: promote_on_quiet, quiet_s: ...}}, or a mark of finality{_flags(found)}"
            yield Finding(weight="warning", what=what, advice=advice, **here)
        elif not shown.finals:
            what = f"leaves channel {name} with {shown.partials} texts, and none of them final"
            advice = f"never_final: {{rule: promote_on_done}}, or a mark of finality{_flags(found)}"
            yield Finding(weight="warning", what=what, advice=advice, **here)


def _of_scripts(how: Compiled, found: Replay, line: Line) -> Iterator[Finding]:
    """Messages that the scripts wait for, and that never come."""
    for script, steps in {"open": how.profile.open, "begin": how.profile.begin}.items():
        for number, step in enumerate(steps):
            wait = step.wait
            if wait is not None and not _any_fits(wait.has, wait.match, found.items):
                what = f"{script}[{number}] waits for a message that none of {found.messages} recorded ones is"
                advice = "sessions would never be ready"
                yield Finding(weight="warning", line=line((script, number)), what=what, advice=advice)
    for finish in (step.do for step in how.end if isinstance(step.do, Finish)):
        named = finish.fits is not None and any(finish.fits(item) for item in found.items)
        if finish.on == {"message"} and not named and not found.kinds["done"]:
            what = f"the output is done with a message that none of {found.messages} recorded ones is"
            yield Finding(weight="warning", line=line(("end",)), what=what, advice="sessions would end without a final")


def _any_fits(has: str | list[str] | None, match: str | None, items: list[Any]) -> bool:
    fits = compile_condition(has, match)
    return any(fits(item) for item in items)


def _selectors(rule: Rule) -> list[str]:
    """The selectors of a rule whose finding nothing at all is a mistake."""
    text = rule.text
    names = [] if text is None else [name for name in _NAMED if isinstance(getattr(text, name), str)]
    return [*names, *(["detail"] if rule.detail is not None else [])]


def _paths_of(rule: Rule) -> list[str]:
    """The plain paths that a rule's condition names."""
    return [".".join(atom.path) for atom in atoms(rule) if hasattr(atom, "path")]


def _flags(found: Replay) -> str:
    """The switches of the messages that are sometimes on and sometimes off."""
    names = [path for path, values in found.flags.items() if len(values) > 1]
    return f" (switches that change: {', '.join(names[:3])})" if names else ""


_NAMED: Final = ("text", "final", "key", "replace", "committed", "items", "delete", "confidence", "start", "end")

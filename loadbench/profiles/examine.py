"""All that is wrong or odd in a profile, by its structure and by what a service was recorded to say."""

from pathlib import Path
from typing import Any, Final

import msgspec

from loadbench import plugins, transports
from loadbench.profiles import lint, recorded, replay
from loadbench.profiles.finding import Finding
from loadbench.report.visible import visible
from loadbench.session import load
from loadbench.session.plugin import named
from loadbench.session.profile import Profile

ORDER: Final = {"error": 0, "warning": 1, "fact": 2}


class Examined(msgspec.Struct, kw_only=True):
    """A good profile with what was found in it. `messages` counts the recorded ones that it was held against."""

    file: str
    name: str
    speaks: str
    headline: str
    plugins: list[str]
    messages: int
    findings: list[Finding]

    @property
    def errors(self) -> int:
        """Sessions would fail."""
        return self._count("error")

    @property
    def warnings(self) -> int:
        """Numbers would be wrong or missing."""
        return self._count("warning")

    def text(self) -> str:
        """For people."""
        verdict = "good" if not self.errors + self.warnings else f"{self.errors} errors, {self.warnings} warnings"
        held = f"; held against {self.messages} recorded messages" if self.messages else ""
        with_them = f", with {', '.join(self.plugins)}" if self.plugins else ""
        last = f"{self.name}: {verdict}; speaks {self.speaks}{with_them}, headline channel {self.headline}{held}"
        return "\n".join([*(visible(finding.text(self.file)) for finding in self.findings), last])

    def plain(self) -> dict[str, Any]:
        """For programs."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"errors": self.errors, "warnings": self.warnings}

    def code(self, *, strict: bool) -> int:
        """The exit code: 2 for errors, 1 for warnings where they count, else 0."""
        return 2 if self.errors else 1 if strict and self.warnings else 0

    def _count(self, weight: str) -> int:
        return sum(finding.weight == weight for finding in self.findings)


def examine(name_or_path: str, messages: Path | None) -> Examined:
    """A shipped profile, or a file. Raises ProfileError where it is no good profile at all, NoPluginError where a
    plug-in that it names is missing or broken, and RecordingError.
    """
    text, file = load.source(name_or_path)
    profile, line = load.load_marked(text, file)
    return _examined(profile, line, file, None if messages is None else recorded.read(messages))


def examine_text(text: str, file: str, recording: recorded.Recording) -> Examined:
    """As `examine`, of a profile that is not in a file yet. Raises ProfileError."""
    return _examined(*load.load_marked(text, file), file, recording)


def _examined(profile: Profile, line: load.Line, file: str, recording: recorded.Recording | None) -> Examined:
    transports.load(profile.transport.carrier)
    loaded = plugins.load(profile)
    plugins.encoders(profile)
    found = list(lint.structure(profile, line))
    if recording is not None:
        found += replay.findings(profile, recording, line, loaded)
    return Examined(
        file=file,
        name=profile.name,
        speaks=profile.transport.kind,
        headline=profile.headline,
        plugins=named(profile),
        messages=0 if recording is None else recording.count,
        findings=sorted(found, key=lambda finding: (ORDER[finding.weight], finding.line)),
    )

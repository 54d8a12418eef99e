"""Recorded messages of a service, from wherever they come: a bundle, a recording of ours, or plain JSON lines.

A plain line is {"at_ms": number, "data": text or JSON}; one of a recording has `from` and `connection` beside, and only
what the service said counts. A line of a bundle is a `Message`.
"""

import base64
import binascii
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

MESSAGES: Final = "messages.jsonl"  # in the folder of a bundle
MOST_MESSAGES: Final = 20_000  # beyond these nothing new is learnt
SSE: Final = ("data:", "event:", ":", "id:", "retry:")


class RecordingError(ValueError):
    """Recorded messages that cannot be used; `problems` says why, with lines."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass
class Conversation:
    """What the service said in one session: (nanoseconds, text or bytes), as it arrived. The zero is any."""

    messages: list[tuple[int, str | bytes]] = field(default_factory=list)

    @property
    def is_sse(self) -> bool:
        """Whether it looks like server-sent events: a recording need not have the response's head."""
        first = self.messages[0][1] if self.messages else ""
        text = first.decode("utf-8", "replace") if isinstance(first, bytes) else first
        return text.startswith(SSE)


@dataclass
class Recording:
    """Conversations in the order of their beginning. `cut` counts messages that were not kept whole, `left` those that
    were too many to be read.
    """

    conversations: list[Conversation]
    cut: int = 0
    left: int = 0

    @property
    def count(self) -> int:
        """All messages."""
        return sum(len(each.messages) for each in self.conversations)


def read(path: Path) -> Recording:
    """What a folder or a file holds. Raises RecordingError."""
    gathered = _Gathered()
    _read_lines(path / MESSAGES if path.is_dir() else path, gathered)
    if not gathered.by_name:
        raise RecordingError([f"{path}: holds no message of a service"])
    return Recording([Conversation(messages) for messages in gathered.by_name.values()], gathered.cut, gathered.left)


@dataclass
class _Gathered:
    by_name: dict[str, list[tuple[int, str | bytes]]] = field(default_factory=dict)
    cut: int = 0
    left: int = 0
    count: int = 0

    def add(self, name: str, at_ns: int, data: str, binary: bool, cut: bool) -> None:
        if cut:
            self.cut += 1
        elif self.count >= MOST_MESSAGES:
            self.left += 1
        else:
            self.count += 1
            whole = base64.b64decode(data) if binary else data
            self.by_name.setdefault(name, []).append((at_ns, whole))


def _read_lines(path: Path, gathered: _Gathered) -> None:
    problems = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                why = _line(line, gathered) if line.strip() else ""
                if why and line.endswith("\n"):  # a killed run tears its last line
                    problems.append(f"{path}:{number}: {why}")
    except OSError as error:
        raise RecordingError([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise RecordingError([f"{path}: is not UTF-8"]) from error
    if problems:
        raise RecordingError(problems)


def _line(line: str, gathered: _Gathered) -> str:
    """Take a line; what is wrong with it, or nothing."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            return "must be a JSON object"
        if entry.get("type") == "message":
            gathered.add(entry["session"], entry["at_ns"], entry["data"], bool(entry.get("binary")), _is_cut(entry))
            return ""
        if "data" in entry and entry.get("from", "service") == "service":
            text = entry["data"] if isinstance(entry["data"], str) else json.dumps(entry["data"], ensure_ascii=False)
            name = str(entry.get("connection", ""))
            gathered.add(name, round(entry["at_ms"] * 1e6), text, binary=False, cut=_is_cut(entry))
        elif "base64" in entry and entry.get("from") == "service":
            gathered.add(str(entry["connection"]), round(entry["at_ms"] * 1e6), entry["base64"], binary=True, cut=False)
    except (KeyError, TypeError) as error:
        return f"needs at_ms, a number, and data ({error})"
    except (json.JSONDecodeError, binascii.Error) as error:
        return f"cannot be read: {error}"
    return ""


def _is_cut(entry: dict[str, Any]) -> bool:
    return bool(entry.get("cut"))

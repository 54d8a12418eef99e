"""Small profiles and recordings for the tests of this room."""

import json
from pathlib import Path
from typing import Any

from loadbench.profiles import examine
from loadbench.profiles.examine import Examined
from loadbench.profiles.recorded import Conversation, Recording

HEAD = """\
name: sketch
transport: {kind: websocket}
media: {kind: audio, chunk_ms: 100}
end: [{done: {on: [close]}}]
"""


def text(*rules: str, head: str = HEAD, fire: str = "first", more: str = "") -> str:
    lines = "\n".join(f"    - {rule}" for rule in rules)
    return f"{head}{more}receive:\n  fire: {fire}\n  rules:\n{lines}\n"


def recording(*messages: Any) -> Recording:
    """Messages a tenth of a second apart; what is no text is JSON."""
    said = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    return Recording([Conversation([(number * 100_000_000, each) for number, each in enumerate(said)])])


def examined(profile: str, *messages: Any) -> Examined:
    return examine.examine_text(profile, "sketch.yaml", recording(*messages))


def whats(found: Examined, weight: str = "warning") -> list[str]:
    return [finding.what for finding in found.findings if finding.weight == weight]


def written(folder: Path, profile: str) -> str:
    path = folder / "sketch.yaml"
    path.write_text(profile)
    return str(path)

"""Write the table of shipped profiles into both READMEs again, from the profiles themselves.

    python -m scripts.profiles_table

The table stands between two comments; what is around it stays as it is.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from loadbench.session.load import load_profile, shipped
from loadbench.session.message import FLOATS, payload_of
from loadbench.session.profile import MediaPart, Profile

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- profiles: made by python -m scripts.profiles_table -->", "<!-- profiles: end -->"
HEADINGS = {
    "README.md": ("name", "service", "transport", "media", "text", "channels, **headline**", "checked"),
    "README.zh-CN.md": ("名称", "服务", "传输", "媒体", "文本模型", "通道，**主通道**", "如何核对"),
}
TRANSPORTS = {
    "websocket": "WebSocket",
    "http": "HTTP stream",
    "upload": "HTTP upload",
    "requests": "HTTP requests",
    "process": "local program",
}
FINALITY = {"explicit": "", "promote_on_done": ", promoted when done", "promote_on_quiet": ", promoted when quiet"}


def main() -> None:
    """Write both READMEs."""
    for name, headings in HEADINGS.items():
        path = ROOT / name
        path.write_text(written(path.read_text(encoding="utf-8"), headings), encoding="utf-8")


def written(text: str, headings: Sequence[str]) -> str:
    """The text of a README with its table made anew. Raises ValueError where the two comments are not there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the table goes between {BEGIN} and {END}, which must stand there once")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "".join((before, BEGIN, "\n\n", table(headings), "\n", END, after))


def table(headings: Sequence[str]) -> str:
    """A row for each shipped profile, in the order of their names."""
    rows = [headings, ["---"] * len(headings), *(row(load_profile(name)) for name in sorted(shipped()))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(profile: Profile) -> list[str]:
    """What the table says of one profile."""
    models = dict.fromkeys(rule.text.model for rule in profile.receive.rules if rule.text)
    channels = [f"**{name}**" if name == profile.headline else name for name in profile.channels]
    cells = [
        f"`{profile.name}`",
        profile.about,
        TRANSPORTS.get(profile.transport.carrier, profile.transport.carrier),
        media(profile.media),
        ", ".join(models) + FINALITY[profile.never_final.rule],
        ", ".join(channels),
        profile.checked,
    ]
    return [re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells]


def media(part: MediaPart) -> str:
    """What is sent, in a few words."""
    way = "binary"
    if part.kind == "landmarks":
        return "landmarks in JSON" if part.batch is None else f"landmarks in JSON, {part.batch} frames together"
    if part.frame == "text":
        way = "numbers in JSON" if payload_of(part.message) == FLOATS else "base64 in JSON"
    if part.kind == "frames":
        return f"{part.codec.upper()} frames, {way}"
    length_ms = part.chunk_ms if part.slice_ms is None else part.slice_ms
    length = f"{length_ms:g} ms" if length_ms is not None else f"{part.chunk_bytes} bytes"
    length = "whole clips" if part.pace == "whole" else length
    if part.kind == "video":
        return f"{part.container} video, {length}, {way}"
    coding = {"webm": "Opus in webm", "ogg": "Opus in ogg", "wav": f"{part.format} with a WAV head"}
    form = part.format if part.container is None else coding[part.container]
    return f"{form} {part.rate_hz / 1000:g} kHz, {length}, {way}"


if __name__ == "__main__":
    main()

"""Write the tables of odd media files in docs/media.md and its Chinese twin again, from the rows that the tests go by.

    python -m scripts.quirks_table

Each table stands between two comments; what is around it stays as it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.media.quirks import SIGHTS, SOUNDS, Sight, Sound

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- {}: made by python -m scripts.quirks_table -->", "<!-- {}: end -->"


class Words(NamedTuple):
    """What the tables say in one language; `name` is the column of the rows that holds theirs."""

    name: int
    head: Sequence[str]
    samples: str
    exact: str
    pictures: str
    unequal: str
    turned: str
    chosen: str
    said: str
    refused: str


WORDS = {
    "docs/media.md": Words(
        name=0,
        head=("file", "what becomes of it"),
        samples="{:,} samples",
        exact=", each as it was recorded",
        pictures="{} pictures of {} x {} in {:g} ms",
        unequal=", at {} ms",
        turned=", turned as the file asks",
        chosen=" (channel `{}`)",
        said="; noted: “{}”",
        refused="refused: “{}”",
    ),
    "docs/media.zh-CN.md": Words(
        name=1,
        head=("文件", "结果"),
        samples="{:,} 个采样",
        exact="，与录制时逐一相同",
        pictures="{} 帧，{} x {}，共 {:g} ms",
        unequal="，时刻为 {} ms",
        turned="，按文件要求转正",
        chosen="（声道 `{}`）",
        said="；提示：“{}”",
        refused="拒绝：“{}”",
    ),
}


def main() -> None:
    """Write both pages."""
    for name, words in WORDS.items():
        path = ROOT / name
        path.write_text(written(path.read_text(encoding="utf-8"), words), encoding="utf-8")


def written(text: str, words: Words) -> str:
    """A page with its two tables made anew. Raises ValueError where a table's two comments are not there once."""
    cells = {"sounds": [sound(row, words) for row in SOUNDS], "sights": [sight(row, words) for row in SIGHTS]}
    for name, rows in cells.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the table goes between {begin} and {end}, which must stand there once")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        table = "".join(f"| {' | '.join(row)} |\n" for row in (words.head, ["---"] * len(words.head), *rows))
        text = "".join((before, begin, "\n\n", table, "\n", end, after))
    return text


def sound(row: Sound, words: Words) -> list[str]:
    """What the table says of one audio file."""
    if row.refused:
        return [row[words.name], words.refused.format(row.refused)]
    exact = words.exact if row.exact is not None else ""
    chosen = words.chosen.format(row.channel) if row.channel is not None else ""
    return [row[words.name], words.samples.format(row.samples) + exact + chosen + _said(row, words)]


def sight(row: Sight, words: Words) -> list[str]:
    """What the table says of one video or folder of frames."""
    if row.refused:
        return [row[words.name], words.refused.format(row.refused)]
    told = words.pictures.format(len(row.due_ms), *row.size, round(row.duration_ms, 3))
    steps = {round(later - earlier, 6) for earlier, later in zip(row.due_ms, row.due_ms[1:], strict=False)}
    if len(steps) > 1:
        told += words.unequal.format(", ".join(f"{due_ms:g}" for due_ms in row.due_ms))
    if row.corners not in ("", "rgbw"):
        told += words.turned
    return [row[words.name], told + _said(row, words)]


def _said(row: Sound | Sight, words: Words) -> str:
    return words.said.format(row.said) if row.said else ""


if __name__ == "__main__":
    main()

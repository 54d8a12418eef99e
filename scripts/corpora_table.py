"""Write the table of known corpora into both READMEs again, from the layouts themselves.

    python -m scripts.corpora_table

The table stands between two comments; what is around it stays as it is.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from loadbench.corpus import layouts

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- corpora: made by python -m scripts.corpora_table -->", "<!-- corpora: end -->"
HEADINGS = {"README.md": ("layout", "what it is"), "README.zh-CN.md": ("布局", "说明")}


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
    """A row for each known layout, in the order in which they are tried."""
    known = [(f"`{layout.name}`", layout.about) for layout in layouts.known()]
    rows = [[re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in row] for row in known]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [headings, ["---"] * len(headings), *rows])


if __name__ == "__main__":
    main()

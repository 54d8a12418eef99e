"""The corpora that are known, each as a layout; the more specific before those that would also fit."""

from functools import cache
from importlib import import_module
from typing import Final

from loadbench.corpus import manifest
from loadbench.corpus.layout import Layout

# Modules of this folder, each with its LAYOUTS. Those told by a fixed name of a file or folder come before those told
# by what the first line of some file looks like.
MODULES: Final = (
    "phoenix",
    "csl",
    "how2sign",
    "dgs",
    "librispeech",
    "commonvoice",
    "mustc",
    "aishell",
    "kaldi",
    "folder",
    "wlasl",
    "coval",
    "nemo",
    "lists",
)


@cache
def known() -> tuple[Layout, ...]:
    """All layouts in the order in which they are tried. The native manifest names itself, so it is first."""
    found = [layout for name in MODULES for layout in import_module(f"{__name__}.{name}").LAYOUTS]
    return (manifest.LAYOUT, *found)

"""The corpora that are known, each as a layout; the more specific before those that would also fit."""

from functools import cache

from loadbench.corpus import manifest
from loadbench.corpus.layout import Layout


@cache
def known() -> tuple[Layout, ...]:
    """All layouts in the order in which they are tried. The native manifest names itself, so it is first.

    Those told by a fixed name of a file or folder come before those told by what the first line of a file looks like.
    The readers are imported only now: most commands need none of them.
    """
    from loadbench.corpus.layouts import (
        aishell,
        commonvoice,
        coval,
        csl,
        dgs,
        folder,
        how2sign,
        kaldi,
        librispeech,
        lists,
        mustc,
        nemo,
        phoenix,
        wlasl,
    )

    named = (phoenix, csl, how2sign, dgs, librispeech, commonvoice, mustc, aishell, kaldi, folder)
    looked_into = (wlasl, coval, nemo, lists)
    return (manifest.LAYOUT, *(layout for module in (*named, *looked_into) for layout in module.LAYOUTS))

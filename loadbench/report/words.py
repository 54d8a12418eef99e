"""The words of a report, a file for each language. Sentences that a judge wrote stay as they were written."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

LANGUAGES: Final = ("en", "zh")
Words = Mapping[str, str]


@cache
def words(lang: str) -> Words:
    """All words of a language. Raises ValueError for one that loadbench does not speak."""
    if lang not in LANGUAGES:
        raise ValueError(f"reports are written in {' or '.join(LANGUAGES)}, not {lang}")
    return tomllib.loads(resources.files("loadbench").joinpath(f"data/report/{lang}.toml").read_text("utf-8"))

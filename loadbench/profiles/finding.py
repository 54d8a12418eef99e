"""One thing found in a profile."""

from collections.abc import Callable
from typing import Literal

import msgspec

from loadbench.session.check import Place

Weight = Literal["error", "warning", "fact"]
Line = Callable[[Place], int]


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """What is wrong or odd, where, and what to do. `rule` counts from 1; None: it is about no rule.

    error: sessions would fail. warning: the numbers would be wrong or missing. fact: as it is, and good to know.
    """

    weight: Weight
    line: int
    what: str
    advice: str = ""
    rule: int | None = None

    def text(self, file: str) -> str:
        """For people, on one line."""
        about = "" if self.rule is None else f"rule {self.rule} "
        advice = f": {self.advice}" if self.advice else ""
        return f"{file}:{self.line}: {self.weight}: {about}{self.what}{advice}"

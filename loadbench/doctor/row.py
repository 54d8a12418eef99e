"""One finding."""

from typing import Literal

import msgspec

State = Literal["ok", "warning", "problem", "unknown"]


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """What was looked at, what was found, what is needed, and what to do where the two do not agree, line by line."""

    name: str
    state: State
    found: str
    needed: str = ""
    advice: str = ""

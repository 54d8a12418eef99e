"""Text from outside, made safe to look at: what would steer a terminal or turn the line around is shown, not obeyed."""

import re
from typing import Final

# C0 and C1 controls (but not the tab), and the marks that change the direction of what follows.
_STEERING: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """`text` on one line, each steering character as its code point, for instance ‹U+202E›."""
    return _STEERING.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)

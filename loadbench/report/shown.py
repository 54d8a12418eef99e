"""Figures as text for a terminal."""

from collections.abc import Mapping
from typing import Any


def value(found: Mapping[str, Any], usable: bool) -> str:
    """A percentile in seconds; ~ for too few samples, in brackets where the tester cannot vouch for it."""
    if found["value_s"] is None:
        return "never" if found["bound"] == "never" else "n/a"
    text = f"{'>=' if found['bound'] == 'at_least' else ''}{found['value_s']:.3f}{'' if found['reliable'] else '~'}"
    return text if usable else f"({text})"


def percent(share: float | None) -> str:
    """A share, or n/a where it is not known."""
    return "n/a" if share is None else f"{share * 100:.1f} %"

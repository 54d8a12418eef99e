"""Text that would steer is shown."""

import pytest

from loadbench.report.visible import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, 今天, שלום, 👋🏽", "plain, 今天, שלום, 👋🏽"),
        ("a\tb", "a\tb"),
        ("\x1b[31m", "‹U+001B›[31m"),
        ("a\r\nb", "a‹U+000D›‹U+000A›b"),
        ("\u202eabc\u2069", "‹U+202E›abc‹U+2069›"),
        ("\x9b", "‹U+009B›"),
        ("", ""),
    ],
)
def test_only_what_steers_is_changed(text: str, expected: str) -> None:
    assert visible(text) == expected

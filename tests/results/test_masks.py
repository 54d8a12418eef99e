"""Masks: no form of a secret gets through, and harmless text stays."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.results.masks import CUT, Masks, shorten, shorten_front

SECRETS = ["tok-FAKE-71", "key-FAKE-72", "pw-FAKE-73", 'p w/ü&"x']
MASKS = Masks(SECRETS)


FORMS = {
    "raw": lambda secret: secret,
    "percent-encoded": lambda secret: quote(secret, safe=""),
    "percent-encoded in lower case": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "percent-encoded in upper case, every byte": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "percent-encoded twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "as a form field": quote_plus,
    "inside JSON": json.dumps,
    "inside JSON inside JSON": lambda secret: json.dumps(json.dumps({"said": secret})),
    "inside JSON of UTF-8": lambda secret: json.dumps(secret, ensure_ascii=False),
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_in_any_spelling_is_hidden(form, secret: str) -> None:
    spelled = form(secret)
    shown = MASKS.mask(f"ws://host/?a={spelled}&b=1")
    assert spelled not in shown
    assert secret not in shown
    assert "***" in shown
    assert shown.startswith("ws://host/?a=")
    assert shown.endswith("&b=1")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "u", "us", "user:", "Basic x"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_in_base64_is_hidden_wherever_it_begins(secret: str, before: str, encode) -> None:
    encoded = encode((before + secret + "!tail").encode()).decode()
    shown = MASKS.mask(f"Authorization: Basic {encoded}")
    assert "***" in shown
    rest = shown.removeprefix("Authorization: Basic ")
    for part in rest.split("***"):
        assert len(part) < len(encoded) - len(secret)
    assert encoded not in shown


@pytest.mark.parametrize(
    "text",
    ["token-eval/list.tsv", "--users 5", "data/token-eval/list.tsv --users 5 --token", "FAKE", "key", "pw", "71"],
)
def test_harmless_text_stays(text: str) -> None:
    assert MASKS.mask(text) == text
    assert not MASKS.found_in(text)


def test_a_secret_shorter_than_four_characters_is_not_hidden_and_is_counted() -> None:
    masks = Masks(["5", "abc", "", "abcd"])
    assert masks.too_short == 2
    assert masks.mask("5 abc abcd") == "5 abc ***"


def test_a_secret_that_holds_another_is_hidden_whole() -> None:
    assert Masks(["pass", "password-1"]).mask("x password-1 pass") == "x *** ***"


def test_bytes_that_are_not_utf_8_pass_through_unchanged() -> None:
    data = b"\xff\xfe tok-FAKE-71 \x80"
    assert MASKS.mask_bytes(data) == b"\xff\xfe *** \x80"
    assert Masks([]).mask_bytes(data) == data


@given(st.text(min_size=4), st.text(), st.text())
def test_what_is_masked_no_longer_holds_the_secret(secret: str, before: str, after: str) -> None:
    shown = Masks([secret]).mask(before + secret + after)
    assert "***" in shown
    assert secret not in shown or secret in "".join([before, "***", after])


LONG = "hunter2-Zq9xxyS/7+A=="
PIECES = {
    "raw": lambda secret: secret,
    "percent-encoded": lambda secret: quote(secret, safe=""),
    "percent-encoded, every byte": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "inside JSON": lambda secret: json.dumps(secret)[1:-1],
    "inside JSON inside JSON": lambda secret: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode().rstrip("="),
    "in hex": lambda secret: secret.encode().hex(),
    "in upper hex": lambda secret: secret.encode().hex().upper(),
}


@pytest.mark.parametrize("spell", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("secret", [LONG, 'p w/ü&"x-and-more', "明天下午三点开会"])
def test_a_secret_cut_anywhere_is_hidden_up_to_the_cut(spell, secret: str) -> None:
    masks, spelled = Masks([secret]), spell(secret)
    whole = f"refused: {spelled} and so on"
    assert spelled not in masks.mask(whole)
    for most in range(len("refused: ") + 1, len(whole)):
        shown = masks.mask(whole[:most])
        left = shown.removeprefix("refused: ").removesuffix(" and so on")
        # Three characters may stay: of three bytes each, as %xx, with two backslashes before a \\uxxxx.
        assert len(left) <= len(spell(secret[:3])) + 11, (most, shown)
        assert shown.startswith("refused: ")
        assert spelled[: most - len("refused: ")][: len(spell(secret[:4])) + 1] in spell(secret)


def test_four_characters_before_a_cut_are_hidden_and_three_are_not() -> None:
    masks = Masks([LONG])
    assert masks.mask("token hun") == "token hun"
    assert masks.mask("token hunt") == "token ***"
    assert masks.mask("token hunter2-Zq9xxyS/7+A=") == "token ***"
    assert masks.mask("a hunt is on") == "a hunt is on"
    assert masks.mask("the hunt", cut=False) == "the hunt"
    assert masks.mask(LONG, cut=False) == "***"


def test_the_mark_of_a_cut_is_a_border_on_both_sides() -> None:
    masks = Masks([LONG])
    said = f"it said {shorten('xxxx' + LONG, 14)!r}, 1.50 s into the media; and {shorten_front(LONG + 'yyyy', 14)!r}"
    assert "hunter2-Z…" in said
    assert masks.mask(said) == f"it said 'xxxx***{CUT}', 1.50 s into the media; and '{CUT}***yyyy'"


def test_a_cut_text_is_not_longer_than_asked_and_a_short_one_is_whole() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert shorten_front("abcdef", 4) == "…def"
    assert shorten("abcd", 4) == shorten_front("abcd", 4) == "abcd"


def test_secrets_that_overlap_are_both_hidden() -> None:
    assert Masks(["abcdef", "defghijk"]).mask("x abcdefghijk y") == "x *** y"
    assert Masks(["longsecretabcd", "abcdefgh"]).mask("x longsecretabcd") == "x ***"
    assert Masks(["aaaaaaaa"]).mask("a" * 15) == "***"
    assert Masks(["pass", "password-1"]).mask("password") == "***"


@pytest.mark.parametrize("secret", ['\\"pq', 'a"b\\', "100%25", "a\\nb%", "%%%%", "\\\\\\\\"])
def test_a_secret_of_signs_is_hidden_in_its_spellings(secret: str) -> None:
    for spelled in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
        assert spelled not in Masks([secret]).mask(f"a {spelled} b"), spelled


def test_a_message_gives_no_half_of_a_secret_away() -> None:
    masks = Masks([LONG])
    first, second = LONG[:9], LONG[9:]
    assert masks.mask_message(json.dumps({"text": first})) == '{"text": "***"}'
    assert masks.mask_message(json.dumps({"text": second})) == '{"text": "***"}'
    assert masks.mask_message(json.dumps({"text": "hunter two"})) == '{"text": "hunter two"}'
    assert masks.mask_message(second + " indeed") == "*** indeed"
    assert masks.mask_bytes(json.dumps({"text": second}).encode() + b"\xff") == b'{"text": "***"}\xff'


def test_what_a_channel_shows_hides_a_secret_also_around_a_joint() -> None:
    masks = Masks([LONG])
    assert masks.mask_shown(f"it is {LONG[:6]} {LONG[6:]} I think") == "it is *** I think"
    assert masks.mask_shown(f"it is {LONG[:8]}") == "it is ***"
    assert masks.mask_shown(f"it is {LONG[:7]}") == f"it is {LONG[:7]}"
    assert masks.mask_shown("a hunter to the left") == "a hunter to the left"


def test_bytes_cut_within_a_character_are_hidden_with_it() -> None:
    assert Masks(["pässwörter"]).mask_bytes("xx pässwö".encode()[:-1]) == b"xx ***"


PAD, LETTERS = st.text(alphabet="xyz ,.:'"), 'abcdeABC0123456789-_/+ü明%\\"'


@given(st.text(alphabet=LETTERS, min_size=8, max_size=40), PAD, PAD, st.data())
def test_no_more_than_three_characters_of_a_secret_survive_at_a_cut(secret: str, before: str, after: str, data) -> None:
    kept = data.draw(st.integers(1, len(secret) - 1))
    masks, whole = Masks([secret]), before + secret + after
    for shown in (
        masks.mask(whole[: len(before) + kept]),
        masks.mask(shorten(whole + "!", len(before) + kept + 1)).removesuffix(CUT),
    ):
        assert shown.startswith(before)
        assert len(shown.removeprefix(before)) <= 3
    back = masks.mask(shorten_front("!" + whole, len(after) + kept + 1)).removeprefix(CUT)
    assert back.endswith(after)
    assert len(back.removesuffix(after)) <= 3
    bits = (before + secret).encode()
    cut = masks.mask_bytes(bits[: len(before) + data.draw(st.integers(1, len(secret.encode())))])
    assert cut.startswith(before.encode())
    assert len(cut.removeprefix(before.encode()).decode("utf-8", "ignore")) <= 3


@given(st.text(min_size=4, max_size=12), st.text(), st.text(), st.integers(0, 40))
def test_whatever_surrounds_a_cut_secret_nothing_raises_and_nothing_of_it_stays(
    secret: str, before: str, after: str, most: int
) -> None:
    masks = Masks([secret])
    text = (before + secret + after)[:most]
    shown = masks.mask(text)
    assert secret not in shown or secret in "***"
    for size in range(4, len(secret)):
        assert not shown.endswith(secret[:size]) or secret[:size].endswith("*"), "a beginning at the end is hidden"
    assert masks.touched_by(text) or shown == text

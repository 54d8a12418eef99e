"""Masks: no form of a secret gets through, and harmless text stays."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.results.masks import Masks

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
    ["token-eval/list.tsv", "--users 5", "data/token-eval/list.tsv --users 5 --token", "FAKE", "key-", "pw", "71"],
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

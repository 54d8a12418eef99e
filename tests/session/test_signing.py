"""Signatures that services ask for, worked out a second time in plain Python beside the profile that declares them."""

import base64
import hashlib
import hmac
from email.utils import formatdate
from urllib.parse import quote, urlencode

import pytest

from loadbench.session.profile import Signed
from loadbench.session.signing import Signing, compile_signing

AT = 1_700_000_000
FIELDS = {"time.unix": str(AT), "time.rfc1123": formatdate(AT, usegmt=True), "host": "h.example", "secret.key": "k/+ é"}


def signing(**parts: dict[str, object]) -> Signing:
    return compile_signing({name: Signed.model_validate(part) for name, part in parts.items()})


def hmac64(algorithm: str, key: str, message: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), message.encode(), algorithm).digest()).decode()


def test_rfc_2202_and_rfc_1321_vectors() -> None:
    made = signing(
        mac={"hmac": "sha1", "key": "Jefe", "message": "what do ya want for nothing?", "as": "hex"},
        digest={"md5": "abc"},
    )
    assert made.fields({}) == {
        "signed.mac": "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        "signed.digest": "900150983cd24fb0d6963f7d28e17f72",
    }


def test_iflytek_rtasr() -> None:
    made = signing(
        digest={"md5": "{param.appid}{time.unix}"},
        signa={"hmac": "sha1", "key": "{secret.key}", "message": "{signed.digest}"},
        quoted={"quote": "{signed.signa}"},
    ).fields(FIELDS | {"param.appid": "595f23df"})
    inner = hashlib.md5(f"595f23df{AT}".encode()).hexdigest()
    assert made["signed.quoted"] == urlencode({"": hmac64("sha1", FIELDS["secret.key"], inner)}).removeprefix("=")


def test_iflytek_iat_packs_a_signature_over_three_lines() -> None:
    made = signing(
        signature={
            "hmac": "sha256",
            "key": "{secret.key}",
            "message": "host: {host}\ndate: {time.rfc1123}\nGET /v2/iat HTTP/1.1",
        },
        authorization={
            "base64": 'api_key="{secret.id}", algorithm="hmac-sha256", headers="host date request-line", '
            'signature="{signed.signature}"'
        },
    ).fields(FIELDS | {"secret.id": "id-1"})
    lines = "\n".join(["host: h.example", "date: Tue, 14 Nov 2023 22:13:20 GMT", "GET /v2/iat HTTP/1.1"])
    pairs = {
        "api_key": "id-1",
        "algorithm": "hmac-sha256",
        "headers": "host date request-line",
        "signature": hmac64("sha256", FIELDS["secret.key"], lines),
    }
    packed = ", ".join(f'{name}="{value}"' for name, value in pairs.items())
    assert made["signed.authorization"] == base64.b64encode(packed.encode()).decode()


def test_tencent_signs_its_sorted_query_as_it_is_and_sends_it_quoted() -> None:
    query = {"voice_id": "{session.uuid}", "timestamp": "{time.unix}", "secretid": "{secret.id}", "nonce": "a b"}
    made = signing(
        query={"sorted_query": query, "quote": False},
        sent={"sorted_query": query},
        signature={
            "hmac": "sha1",
            "key": "{secret.key}",
            "message": "asr.cloud.tencent.com/asr/v2/{param.appid}?{signed.query}",
        },
        address={"text": "wss://asr.cloud.tencent.com/asr/v2/{param.appid}?{signed.sent}"},
    ).fields(FIELDS | {"session.uuid": "u-1", "secret.id": "id/1", "param.appid": "125"})
    values = {"nonce": "a b", "secretid": "id/1", "timestamp": str(AT), "voice_id": "u-1"}
    plain = "asr.cloud.tencent.com/asr/v2/125?" + "&".join(f"{name}={values[name]}" for name in sorted(values))
    assert made["signed.signature"] == hmac64("sha1", FIELDS["secret.key"], plain)
    assert made["signed.address"].partition("?")[2] == urlencode(values, quote_via=quote, safe="")


def test_only_unreserved_characters_stay_when_quoted() -> None:
    assert signing(a={"quote": "Aa0-._~ /+=&é"}).fields({})["signed.a"] == "Aa0-._~%20%2F%2B%3D%26%C3%A9"


def test_what_a_secret_went_into_is_confidential_by_whatever_way() -> None:
    made = signing(
        digest={"md5": "{time.unix}"},
        signa={"hmac": "sha512", "key": "{secret.key}", "message": "m"},
        packed={"base64": "{signed.signa}"},
        query={"sorted_query": {"t": "{time.unix}", "s": "{signed.packed}"}},
    )
    assert made.confidential == {"signa", "packed", "query"}


def test_a_field_without_a_value_is_named() -> None:
    with pytest.raises(KeyError, match=r"clip\.speaker"):
        signing(a={"md5": "{clip.speaker}"}).fields(FIELDS)

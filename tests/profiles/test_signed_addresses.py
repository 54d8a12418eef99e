"""What signed profiles dial, beside the same worked out by hand at a fixed time."""

import base64
import hashlib
import hmac
from urllib.parse import quote

import pytest

from loadbench.engine.address import Addresses
from loadbench.engine.pipe import Start, Workload
from loadbench.session.load import load_profile

AT_S = 1_764_000_000  # Mon, 24 Nov 2025 16:00:00 GMT
SECRETS = {
    "IFLYTEK_APPID": "595f23df",
    "IFLYTEK_API_KEY": "key-FAKE/1+",
    "IFLYTEK_API_SECRET": "secret-FAKE",
    "TENCENT_APPID": "1259228442",
    "TENCENT_SECRET_ID": "id-FAKE",
    "TENCENT_SECRET_KEY": "key-FAKE",
}


def dialled(name: str, *, at_s: int = AT_S, url: str = "") -> tuple[str, dict[str, str]]:
    """The address of one session at that time, and its fields."""
    profile, work = load_profile(name), Workload(model="closed")
    start = Start(run_id="r", worker="w", seed=7, profile={}, url=url, secrets=SECRETS, clips=[], workload=work)
    addresses = Addresses(start, profile, lambda: at_s * 1_000_000_000)
    fields = addresses.fields("s1", {"source_lang": "zh", "target_lang": "en"})
    return addresses.of(fields).url, fields


def hashed(algorithm: str, key: str, text: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), text.encode(), algorithm).digest()).decode()


def test_iflytek_rtasr_signs_the_md5_of_account_and_time() -> None:
    digest = hashlib.md5(b"595f23df1764000000").hexdigest()
    signa = quote(hashed("sha1", "key-FAKE/1+", digest), safe="")
    assert dialled("iflytek-rtasr")[0] == (
        f"wss://rtasr.xfyun.cn/v1/ws?appid=595f23df&ts=1764000000&signa={signa}&lang=cn"
    )


def test_iflytek_iat_signs_host_date_and_request_line_and_packs_the_signature() -> None:
    date = "Mon, 24 Nov 2025 16:00:00 GMT"
    signature = hashed("sha256", "secret-FAKE", f"host: iat-api.xfyun.cn\ndate: {date}\nGET /v2/iat HTTP/1.1")
    packed = 'api_key="key-FAKE/1+", algorithm="hmac-sha256", headers="host date request-line", '
    packed += f'signature="{signature}"'
    authorization = quote(base64.b64encode(packed.encode()).decode(), safe="")
    assert dialled("iflytek-iat")[0] == (
        f"wss://iat-api.xfyun.cn/v2/iat?authorization={authorization}"
        "&date=Mon%2C%2024%20Nov%202025%2016%3A00%3A00%20GMT&host=iat-api.xfyun.cn"
    )


@pytest.mark.parametrize(
    ("name", "path", "before", "after"),
    [
        ("tencent-asr", "asr/v2", "engine_model_type=16k_zh&expired=1764086400&needvad=1&nonce=1764000000",
         "timestamp=1764000000&voice_format=1"),
        ("tencent-translate", "asr/speech_translate", "expired=1764086400&nonce=1764000000",
         "source=zh&target=en&timestamp=1764000000&trans_model=hunyuan-translation-lite&voice_format=1"),
    ],
)  # fmt: skip
def test_tencent_signs_host_path_and_query_as_they_are_dialled(name: str, path: str, before: str, after: str) -> None:
    url, fields = dialled(name)
    plain = f"asr.cloud.tencent.com/{path}/1259228442?{before}&secretid=id-FAKE&{after}"
    plain += f"&voice_id={fields['session.uuid']}"
    assert url == f"wss://{plain}&signature={quote(hashed('sha1', 'key-FAKE', plain), safe='')}"


@pytest.mark.parametrize("name", ["iflytek-rtasr", "iflytek-iat", "tencent-asr", "tencent-translate"])
def test_the_signature_of_another_moment_is_another(name: str) -> None:
    signatures = [
        {key: value for key, value in dialled(name, at_s=at_s)[1].items() if key.startswith("signed.sig")}
        for at_s in (AT_S, AT_S + 1)
    ]
    assert signatures[0] != signatures[1]


def test_a_signature_is_made_for_the_host_that_is_dialled() -> None:
    url, fields = dialled("tencent-asr", url="ws://127.0.0.1:9/asr/v2/1259228442")
    plain = f"127.0.0.1/asr/v2/1259228442?{fields['signed.query']}"
    assert url.endswith(f"&signature={quote(hashed('sha1', 'key-FAKE', plain), safe='')}")

"""Where sessions of shipped profiles go, and what they say of themselves there."""

import pytest

from loadbench.engine.address import Addresses
from loadbench.engine.pipe import Start, Workload
from loadbench.session.load import load_profile, secret_names
from loadbench.transports.contract import Address

CLIP = {"id": "clip", "source_lang": "en", "target_lang": "fr"}


def dialled(name: str, url: str = "") -> Address:
    """The address of a session of this profile; secrets are called as they are."""
    profile = load_profile(name)
    start = Start(
        run_id="r",
        worker="w",
        seed=7,
        profile={},
        url=url or profile.transport.url or "",
        params=profile.params,
        secrets={secret: f"the-{secret}" for secret in secret_names(profile)},
        identify=False,
        clips=[],
        workload=Workload(model="closed"),
    )
    addresses = Addresses(start, profile)
    return addresses.of(addresses.fields("s1", CLIP))


@pytest.mark.parametrize(
    ("name", "url", "expected"),
    [
        (
            "deepgram-v1",
            "",
            "wss://api.deepgram.com/v1/listen?model=nova-3&language=en&encoding=linear16&sample_rate=16000&channels=1"
            "&interim_results=true&endpointing=300&vad_events=true",
        ),
        (
            "deepgram-v1",
            "ws://127.0.0.1:8000/v1/listen",
            "ws://127.0.0.1:8000/v1/listen?model=nova-3&language=en&encoding=linear16&sample_rate=16000&channels=1"
            "&interim_results=true&endpointing=300&vad_events=true",
        ),
        ("whisperlivekit", "ws://127.0.0.1:8000/asr", "ws://127.0.0.1:8000/asr?language=en&mode=full"),
        (
            "whisperlivekit-translation",
            "ws://127.0.0.1:8000/asr",
            "ws://127.0.0.1:8000/asr?language=en&target_language=fr&mode=full",
        ),
        ("openai-realtime", "", "wss://api.openai.com/v1/realtime?intent=transcription"),
        (
            "openai-realtime-translation",
            "",
            "wss://api.openai.com/v1/realtime/translations?model=gpt-realtime-translate",
        ),
    ],
)
def test_a_session_goes_to_the_service_s_own_address_or_to_the_plan_s_with_the_same_query(
    name: str, url: str, expected: str
) -> None:
    assert dialled(name, url).url == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deepgram-v1", "Token the-DEEPGRAM_API_KEY"),
        ("openai-realtime", "Bearer the-OPENAI_API_KEY"),
        ("openai-realtime-translation", "Bearer the-OPENAI_API_KEY"),
    ],
)
def test_a_key_goes_into_the_header_and_nowhere_else(name: str, value: str) -> None:
    address = dialled(name)
    assert address.headers == (("Authorization", value),)
    assert "the-" not in address.url


def test_funasr_is_offered_the_subprotocol_binary() -> None:
    assert dialled("funasr", "ws://127.0.0.1:10095").subprotocols == ("binary",)

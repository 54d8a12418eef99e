import pytest

from loadbench.profiles.veil import Veil

KEY = "sk-FAKE-0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", f"Bearer {KEY}", "***"),
        ("X-Api-Key", KEY, "***"),
        ("Sec-WebSocket-Protocol", f"token, {KEY}", "token, ***"),
        ("Accept", "text/plain", "text/plain"),
    ],
)
def test_a_secret_header_is_hidden_there_and_wherever_its_value_comes_again(name: str, value: str, shown: str) -> None:
    veil = Veil()
    assert veil.headers([(name, value)]) == {name: shown}
    if "***" in shown:
        assert veil.text(f'{{"again": "{KEY}"}}') == '{"again": "***"}'
        assert veil.data(f"x{KEY}y".encode()) == b"x***y"
        assert KEY in veil.known


def test_query_and_user_information_are_hidden_by_their_names() -> None:
    assert Veil().address(f"ws://me:{KEY}@h/p?token={KEY}&lang=en") == "ws://me:***@h/p?token=***&lang=en"


@pytest.mark.parametrize(
    "name", ["key", "accessKey", "app_key", "sig", "sign", "signa", "X-Amz-Signature", "jwt", "pwd"]
)
def test_what_opens_a_door_is_known_by_many_names(name: str) -> None:
    assert Veil().address(f"/p?{name}={KEY}&monkey=design") == f"/p?{name}=***&monkey=design"


def test_a_name_of_one_s_own_is_secret_in_header_query_and_message() -> None:
    veil = Veil(["Ticket"])
    assert veil.address("/p?ticket=open-sesame-1&a=b") == "/p?ticket=***&a=b"
    veil.message({"config": {"ticket": "open-sesame-2"}}, ours=True)
    assert veil.text("open-sesame-2") == "***"


def test_what_a_service_says_under_such_a_name_is_a_token_only_where_it_looks_like_one() -> None:
    veil = Veil()
    veil.message({"token": "hello there", "access_token": KEY}, ours=False)
    assert veil.text(f"hello there {KEY}") == "hello there ***"
    assert list(veil.known.values()) == ["access_token"]


def test_the_key_of_a_handshake_is_no_secret() -> None:
    assert Veil().headers([("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]) == {
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="
    }

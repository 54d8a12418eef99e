import h11
import pytest

from loadbench.transports.rejection import BODY_BYTES, RefusalReader, retry_after_s

DATE = (b"Date", b"Wed, 21 Oct 2026 07:28:00 GMT")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        ([(b"Retry-After", b"0")], 0.0),
        ([(b"retry-after", b" 120 ")], 120.0),
        ([DATE, (b"Retry-After", b"Wed, 21 Oct 2026 07:28:30 GMT")], 30.0),  # by the service's own clock
        ([DATE, (b"Retry-After", b"Wed, 21 Oct 2026 07:00:00 GMT")], 0.0),  # in its past already
        ([(b"Retry-After", b"Wed, 21 Oct 2015 07:28:00 GMT")], 0.0),
        ([(b"Retry-After", b"soon")], None),
        ([(b"Retry-After", b"-1")], None),
        ([(b"Retry-After", b"9" * 23)], None),  # no time that anybody meant
        ([(b"Retry-After", b"9" * 400)], None),
        ([(b"Retry-After", b"Fri, 31 Dec 9999 23:59:59 -2359")], None),
        ([(b"Retry-After", b"Fri, 31 Dec 0001 00:00:00 +2359")], 0.0),
        ([DATE, (b"Retry-After", b"Fri, 31 Dec 9999 23:59:59 GMT")], None),
        ([(b"Retry-After", "²".encode("latin-1"))], None),  # a digit for str.isdigit, not for a number
    ],
)
def test_retry_after_is_seconds_or_a_date(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_refusal_may_come_byte_by_byte():
    reader = RefusalReader()
    answer = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\nRetry-After: 7\r\n\r\nquota"
    done = [reader.feed(answer[at : at + 1], at_ns=at) for at in range(len(answer))]
    assert done == [False] * (len(answer) - 1) + [True]
    cause = reader.rejection.cause()
    assert (cause.kind, cause.status, cause.reason) == ("rejected", 429, "Too Many Requests")
    assert (cause.body, cause.retry_after_s) == (b"quota", 7.0)
    assert cause.at_ns == answer.index(b"\r\n\r\n") + 3


def test_no_more_than_a_bounded_piece_of_the_body_is_kept():
    reader = RefusalReader()
    assert not reader.feed(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000000000\r\n\r\n", 0)
    assert reader.feed(b"x" * 100_000, 1)
    assert reader.rejection.cause().body == b"x" * BODY_BYTES


def test_what_is_no_http_is_an_error():
    with pytest.raises(h11.RemoteProtocolError):
        RefusalReader().feed(b"\x00\x01\x02 garbage\r\n\r\n", 0)


@pytest.mark.parametrize(
    ("status", "where", "told"),
    [
        (307, b"http://user:pw@example.com:81/a/b?key=K-FAKE#top", "http://example.com:81/a/b"),
        (302, b"/elsewhere?token=T", "/elsewhere"),
        (302, b"http://[half", ""),
        (503, b"http://example.com/", ""),
        (308, b"/" + b"x" * 999, "/" + "x" * 198 + "…"),
    ],
)
def test_a_redirect_names_its_place_without_what_may_be_secret_in_it(status, where, told):
    reader = RefusalReader()
    reader.feed(b"HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, where), 0)
    assert reader.rejection.cause().location == told


@pytest.mark.parametrize(("answer", "http"), [(b"HT", True), (b"HTTP/1.1 5", True), (b"hello", False), (b"{", False)])
def test_what_is_no_http_is_known_from_its_first_bytes(answer, http):
    reader = RefusalReader()
    reader.feed(answer, 0)
    assert reader.is_http is http

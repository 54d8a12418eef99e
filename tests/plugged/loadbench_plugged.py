"""One plug-in of each kind: credentials, a codec in the shape of Volcengine's, a text model, a media encoder."""

import gzip
import hashlib
import hmac
import json
import struct
from itertools import takewhile
from urllib.parse import urlsplit

import av

from loadbench.session.plugin import Credentials

# Credentials: a signature of the path and the time, under a key that stays here.


def stamped(connecting):
    seconds = str(connecting.unix_ns // 1_000_000_000)
    message = f"{urlsplit(connecting.url).path} {seconds}".encode()
    signature = hmac.new(connecting.secrets["key"].encode(), message, hashlib.sha256).hexdigest()
    headers = {"X-App": connecting.options["app"], "X-Time": seconds, "X-Signature": signature}
    return Credentials(headers, public=("X-App", "X-Time"))


# A codec: four bytes of nibbles, a sequence number, a size, and the payload under gzip.

CONFIG, AUDIO, ANSWER, ERROR = 1, 2, 9, 15
NUMBERED, LAST = 1, 2  # flags


class Volcengine:
    def __init__(self, options):
        self._level = int(options.get("level", "9"))

    def encode(self, frame):
        """The first message is the configuration; each chunk is numbered after it, and the last one negatively."""
        kind, serialised = (AUDIO, 0) if frame.role == "media" else (CONFIG, 1)
        flags = NUMBERED | (LAST if frame.last else 0)
        number = frame.number + 2 if frame.role == "media" else 1
        payload = gzip.compress(frame.payload, self._level, mtime=0)
        head = bytes([0x11, kind << 4 | flags, serialised << 4 | 1, 0])
        return head + struct.pack(">iI", -number if frame.last else number, len(payload)) + payload

    def decoder(self):
        return answer


def answer(data):
    """What the service says, as JSON: {"last", "payload"}, or {"error", "message"}."""
    if isinstance(data, str) or len(data) < 8 or data[0] >> 4 != 1:
        raise ValueError("it has no header")
    kind, flags, packed = data[1] >> 4, data[1] & 15, data[2] & 15
    rest = data[4 * (data[0] & 15) :]
    if kind == ERROR:
        code, size = struct.unpack_from(">II", rest)
        return [json.dumps({"error": code, "message": rest[8 : 8 + size].decode()})]
    if kind != ANSWER:
        raise ValueError(f"a message of type {kind}")
    if flags & NUMBERED:
        rest = rest[4:]
    payload = rest[4 : 4 + int.from_bytes(rest[:4], "big")]
    payload = gzip.decompress(payload) if packed == 1 else payload
    return [json.dumps({"last": bool(flags & LAST), "payload": json.loads(payload)})]


# A text model: words on which two guesses in a row agree are final.


def agreement(options):
    most = int(options.get("words", "1000"))

    def model(board, rule, item, at_ns):
        words = rule.string("text", item).split()[:most]
        sure, last = board.kept.setdefault("sure", 0), board.kept.get("last", [])
        common = list(takewhile(lambda pair: pair[0] == pair[1], zip(words, last, strict=False)))
        agreed = len(words if rule.final(item) else common)
        for word in words[sure:agreed]:
            board.put(board.open_segment(rule), word, at_ns, final=True)
            board.close()
        sure = board.kept["sure"] = max(sure, agreed)
        board.kept["last"] = words
        board.put(board.open_segment(rule), " ".join(words[sure:]), at_ns)
        return bool(words)

    return model


# A media encoder: 8 kHz, unsigned bytes.


class Bytes:
    version = "1"

    def __init__(self, options):
        self._samples = int(options["chunk_ms"]) * 8

    def chunks(self, track, made):
        resampler, waiting, sent = av.AudioResampler("u8", "mono", 8000), b"", 0
        with av.open(str(track.path)) as file:
            for frame in (*file.decode(audio=0), None):
                for piece in resampler.resample(frame):
                    waiting += bytes(piece.planes[0])[: piece.samples]
                while len(waiting) >= self._samples or (frame is None and waiting):
                    chunk, waiting = waiting[: self._samples], waiting[self._samples :]
                    sent += len(chunk)
                    yield sent * 125_000, chunk
        made.duration_ns = sent * 125_000

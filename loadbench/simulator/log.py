"""What the service itself saw: one JSON line for each utterance, written when it is over.

Times are `time.monotonic_ns`, so that they can be laid beside those of a tester on the same machine.
"""

from pathlib import Path
from typing import IO, Literal

import msgspec


class Spoken(msgspec.Struct, kw_only=True):
    """Output media on one channel: when each piece was handed to the socket, and which was the first with sound."""

    sent_ns: list[int] = []
    bytes: int = 0
    sound: int | None = None


class Entry(msgspec.Struct, kw_only=True):
    """One utterance of one session, as the service saw it; None is what did not happen.

    `session` is the client's own name for it (header x-loadbench-session) or "peer-N". `chunks_ns` and `chunk_bytes`
    are arrivals of media, as payload after any base64; `also_ns` and `also_bytes` are those of a second medium. The two
    hashes are of all payloads in a row: with the sizes they tell of each chunk whether it came bit for bit.
    `first_sent_ns` and `final_sent_ns` are the first and the last non-empty text and final, as they were handed to the
    socket. `waited_ns`: for a slot. `text`: what was said as final, by channel. `media`: output media, by channel.
    """

    session: str
    utterance: int = 0
    clip: str | None = None
    peer: str = ""
    opened_ns: int
    chunks_ns: list[int] = []
    chunk_bytes: list[int] = []
    also_ns: list[int] = []
    also_bytes: list[int] = []
    media_bytes: int = 0
    media_sha256: str = ""
    also_sha256: str = ""
    end_ns: int | None = None
    first_sent_ns: int | None = None
    final_sent_ns: int | None = None
    closed_ns: int | None = None
    close_by: Literal["client", "service", "network", ""] = ""
    close_code: int | None = None
    outcome: Literal["ok", "rejected", "dropped", "no_final", "abandoned"] = "abandoned"
    text: dict[str, str] = {}
    media: dict[str, Spoken] = {}
    violations: list[str] = []
    waited_ns: int = 0


class Log:
    """Keeps the number of what was written and, where there is a path, the lines themselves; flushed line by line."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[bytes] | None = path.open("ab") if path is not None else None
        self.count = 0

    def write(self, entry: Entry) -> None:
        """Add a line."""
        self.count += 1
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            self._file.close()


def read(path: Path) -> list[Entry]:
    """The entries of a log, in the order in which the sessions ended."""
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines() if line]

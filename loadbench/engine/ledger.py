"""What sessions have done since somebody asked, written down as it happens: those of a run, or its canaries.

A loop over all sessions once a second would stand in the way of their chunks.
"""

from array import array
from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadbench.results.tick import LATENESS_EDGES_NS
from loadbench.session.machine import MESSAGE_KINDS

_EDGES: Final = np.array(LATENESS_EDGES_NS, dtype=np.int64)


class Taken(NamedTuple):
    """Since it was asked last: chunks, how late they were (counts by bucket, and the sum), messages by kind, and for
    how long sockets would take no more, over all sessions.
    """

    chunks: int
    lateness: dict[int, int]
    lateness_sum_ns: int
    messages: dict[str, int]
    blocked_ns: int


class Ledger:
    """How late chunks were, also by stream, each of which has a row; `messages` counts all that was ever heard."""

    def __init__(self) -> None:
        self.messages = dict.fromkeys(MESSAGE_KINDS, 0)
        self.late_ns: array[int] = array("q")
        self._rows: array[int] = array("q")
        self._sums_ns = np.zeros(0, dtype=np.int64)
        self._worst_ns = np.zeros(0, dtype=np.int64)
        self._free: list[int] = []
        self._logs: list[array[int] | None] = []
        self._lateness = np.zeros(len(_EDGES) + 1, dtype=np.int64)
        self._chunks = self._late_sum_ns = self._blocked_ns = 0
        self._told = dict(self.messages)
        self._paused_ns: dict[Hashable, int] = {}

    def enrol(self, log: "array[int] | None" = None) -> int:
        """A row for a stream; `log` gets how late each of its chunks was."""
        if not self._free:
            rows = len(self._logs)
            self._free = list(range(rows, 2 * rows + 16))
            self._logs += [None] * len(self._free)
            more = np.zeros(len(self._free), dtype=np.int64)
            self._sums_ns, self._worst_ns = (np.concatenate((old, more)) for old in (self._sums_ns, self._worst_ns))
        row = self._free.pop()
        self._sums_ns[row] = self._worst_ns[row] = 0
        self._logs[row] = log
        return row

    def leave(self, row: int) -> tuple[int, int]:
        """How late the chunks of a stream were, all together and at worst. The row is free again, the log complete."""
        self.gather()
        self._logs[row] = None
        self._free.append(row)
        return int(self._sums_ns[row]), int(self._worst_ns[row])

    def note(self, rows: list[int], late_ns: list[int]) -> None:
        """Of some chunks, whose each was and how late."""
        self._rows.extend(rows)
        self.late_ns.extend(late_ns)

    def gather(self) -> None:
        """Sort what has been noted. To be called some times a second: all at once it takes too long."""
        if not self.late_ns:
            return
        late_ns, rows = (np.array(noted, dtype=np.int64) for noted in (self.late_ns, self._rows))
        del self.late_ns[:], self._rows[:]
        self._lateness += _counts(late_ns)
        self._late_sum_ns += int(late_ns.sum())
        self._chunks += len(late_ns)
        order = np.argsort(rows, kind="stable")
        rows, late_ns = rows[order], late_ns[order]
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        whose = rows[first]
        self._sums_ns[whose] += np.add.reduceat(late_ns, first)
        self._worst_ns[whose] = np.maximum(self._worst_ns[whose], np.maximum.reduceat(late_ns, first))
        cuts = [*first.tolist(), len(rows)]
        for number, row in enumerate(whose.tolist()):
            log = self._logs[row]
            if log is not None:
                log.frombytes(late_ns[cuts[number] : cuts[number + 1]].tobytes())

    def paused(self, who: Hashable, at_ns: int) -> None:
        """Somebody's socket takes no more."""
        self._paused_ns.setdefault(who, at_ns)

    def resumed(self, who: Hashable, at_ns: int) -> None:
        """It takes bytes again, or is no more."""
        since_ns = self._paused_ns.pop(who, at_ns)
        self._blocked_ns += max(0, at_ns - since_ns)

    def take(self, at_ns: int) -> Taken:
        """All since the last call; those that are paused now have been so far."""
        self.gather()
        for who in list(self._paused_ns):
            self.resumed(who, at_ns)
            self.paused(who, at_ns)
        heard, self._told = self._told, dict(self.messages)
        messages = {kind: count - heard[kind] for kind, count in self._told.items() if count > heard[kind]}
        taken = Taken(self._chunks, _by_bucket(self._lateness), self._late_sum_ns, messages, self._blocked_ns)
        self._lateness[:] = 0
        self._chunks = self._late_sum_ns = self._blocked_ns = 0
        return taken


def fold(values_ns: "array[int]") -> dict[int, int]:
    """Values as counts by bucket of `LATENESS_EDGES_NS`."""
    return _by_bucket(_counts(np.array(values_ns, dtype=np.int64)))


def _counts(values_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(_EDGES, values_ns, side="left"), minlength=len(_EDGES) + 1)


def _by_bucket(counts: NDArray[np.int64]) -> dict[int, int]:
    return {int(bucket): int(counts[bucket]) for bucket in np.flatnonzero(counts)}

"""A player that starts with the first thing it gets, never skips and never plays faster: plain arithmetic."""

from typing import Final

GAP_NS: Final = 10_000_000  # shorter ones are jitter, which nobody sees or hears
MOST_GAPS: Final = 1000


class Player:
    """Told of each stretch of the output in its order; times on the run clock, places from the output's beginning.

    `gaps` are those of at least `GAP_NS` as (from, length), the first thousand; `starved_ns` sums up all.
    """

    def __init__(self) -> None:
        self.gaps: list[tuple[int, int]] = []
        self.starved_ns = 0
        self._shift_ns: int | None = None  # the run clock when place 0 is, or would have been, played
        self._until_ns = 0

    def take(self, place_ns: int, until_ns: int, at_ns: int) -> None:
        """What stands from `place_ns` up to `until_ns` in the output can be played from `at_ns` on."""
        if self._shift_ns is None:
            self._shift_ns, self._until_ns = at_ns - place_ns, until_ns
            return
        wanted_ns = self._shift_ns + place_ns
        if at_ns > wanted_ns:
            self._shift_ns += at_ns - wanted_ns
            self.starved_ns += at_ns - wanted_ns
            if at_ns - wanted_ns >= GAP_NS and len(self.gaps) < MOST_GAPS:
                self.gaps.append((wanted_ns, at_ns - wanted_ns))
        self._until_ns = max(self._until_ns, until_ns)

    @property
    def end_ns(self) -> int | None:
        """When all has been played; None where there was nothing."""
        return None if self._shift_ns is None else self._shift_ns + self._until_ns

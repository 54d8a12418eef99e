"""A thread that reads the device and the process under test each second, so that nobody waits for a sensor."""

import threading
from types import TracebackType
from typing import Final, Self

from loadbench.readings.device import Device
from loadbench.readings.target import Target

EVERY_S: Final = 1.0


class Watching:
    """Reads from `with` to its end. Without a target: the device alone."""

    def __init__(self, target: Target | None, device: Device | None = None) -> None:
        self._target, self._device = target, device or Device()
        self._latest: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, name="readings", daemon=True)

    def latest(self) -> dict[str, float]:
        """The last readings, at most about a second old; empty before the first. Each is told once."""
        latest, self._latest = self._latest, {}
        return latest

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(EVERY_S)

    def _read(self) -> None:
        while not self._over.wait(EVERY_S):
            try:
                self._latest = self._device.take() | (self._target.take() if self._target else {})
            except OSError:  # no file handle left to read them
                self._latest = {}

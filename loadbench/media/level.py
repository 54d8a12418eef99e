"""How loud a recording is from moment to moment: whether there is anything in it, whether it was cut off at the top.

One pass over a file serves all clips that are segments of it.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from av.audio.frame import AudioFrame
from numpy.typing import NDArray

from loadbench.corpus.clip import Track
from loadbench.media.audio import FULL_SCALE
from loadbench.media.decode import Facts, MediaError, audio_frames

FULL: Final = 1 - 2**-15  # the highest positive 16-bit sample
Levels = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a file holds. For each decoded frame (20 to 300 ms) and channel: mean square, and samples at full scale."""

    facts: Facts
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    energy: Levels
    full: Levels

    def loudest_dbfs(self, track: Track) -> float:
        """Level of the loudest frame of the track's segment, RMS; minus infinity where there is none."""
        energy = self._part(self.energy, track)
        top = float(energy.max()) if energy.size else 0.0
        return float(10 * np.log10(top)) if top else float("-inf")

    def full_scale_share(self, track: Track) -> float:
        """Share of the segment's samples at full scale, of the worst channel."""
        full, sizes = self._part(self.full, track), self._frames(self.sizes, track)
        return float((full.sum(axis=0) / sizes.sum()).max()) if full.size else 0.0

    def _part(self, levels: Levels, track: Track) -> Levels:
        part: Levels = self._frames(levels, track)
        return part[:, track.channel : track.channel + 1] if isinstance(track.channel, int) else part

    def _frames(self, rows: Any, track: Track) -> Any:
        rate = self.facts.rate_hz or 1
        first = int(np.searchsorted(self.starts + self.sizes, int(track.offset_s * rate), side="right"))
        if track.duration_s is None:
            return rows[first:]
        end = int((track.offset_s + track.duration_s) * rate)
        return rows[first : int(np.searchsorted(self.starts, end))]


def listen(path: Path, notes: list[str]) -> Heard:
    """Decode a file's sound to its end. Raises MediaError where it holds nothing or is damaged."""
    starts, sizes, energy, full = [], [], [], []
    samples, rate, channels = 0, 0, 0
    for frame, kept in audio_frames(path, notes):
        rate, channels = frame.sample_rate, frame.layout.nb_channels
        if kept:
            levels = np.abs(_planes(frame)[:, :kept])
            starts.append(samples)
            sizes.append(kept)
            energy.append((levels**2).mean(axis=1))
            full.append((levels >= FULL).sum(axis=1))
            if full[-1].shape != full[0].shape:
                raise MediaError([f"{path}: its number of channels changes on the way"])
        samples += kept
    heard = Heard(
        Facts(Fraction(samples, rate), rate_hz=rate, channels=channels),
        np.array(starts, np.int64),
        np.array(sizes, np.int64),
        np.array(energy, np.float64).reshape(len(starts), channels),
        np.array(full, np.float64).reshape(len(starts), channels),
    )
    if not np.isfinite(heard.energy).all():
        raise MediaError([f"{path}: some samples are not numbers"])
    return heard


def _planes(frame: AudioFrame) -> NDArray[np.float32]:
    """Samples by channel, full scale 1."""
    data: NDArray[Any] = frame.to_ndarray()
    planes = data if frame.format.is_planar else data.reshape(-1, frame.layout.nb_channels).T
    name = frame.format.name.removesuffix("p")
    scaled: NDArray[np.float32] = planes.astype(np.float32)
    if name == "u8":
        scaled -= 128
    scaled /= FULL_SCALE[name]
    return scaled

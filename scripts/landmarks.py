"""Write the landmarks of a video, for profiles that send them, with MediaPipe's holistic landmarker.

It needs an environment of its own, and a model file (`holistic_landmarker.task`), which MediaPipe's pages offer:

    python -m venv hands && hands/bin/pip install loadbench mediapipe
    hands/bin/python scripts/landmarks.py holistic_landmarker.task clip.mp4 clip.landmarks.jsonl

Each line of the result is a frame: `t`, the lists `pose`, `face`, `left_hand` and `right_hand` (empty where nothing was
found), and `landmarks`, the right hand or else the left one. Pictures are turned as the file asks before they are
looked at, for which hand is which depends on it.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadbench.corpus.clip import Track
from loadbench.media.made import Made
from loadbench.media.video import pictures

Detect = Callable[[NDArray[np.uint8], int], dict[str, Any]]  # a picture and its time in ms; what is in it
PARTS = ("pose", "face", "left_hand", "right_hand")


def write(video: Path, out: Path, detect: Detect) -> int:
    """What `detect` finds in each picture of a video, as a line each; how many there are. Raises MediaError.

    Times given to `detect` rise. A picture that is shown at no later time than the one before it is left out.
    """
    count, before_us, before_ms = 0, -1, -1
    with out.open("w", encoding="utf-8") as file:
        for at_s, _, picture in pictures(Track("video", video), Made()):
            at_us = round(at_s * 1_000_000)
            if at_us <= before_us:
                continue
            at_ms = max(before_ms + 1, at_us // 1000)
            frame = {"t": at_us / 1_000_000} | detect(np.asarray(picture().convert("RGB")), at_ms)
            file.write(json.dumps(frame, separators=(",", ":")) + "\n")
            count, before_us, before_ms = count + 1, at_us, at_ms
    return count


def members(result: Any) -> dict[str, Any]:
    """The members of a frame from a result of the holistic landmarker."""
    found = {part: [_point(point) for point in getattr(result, f"{part}_landmarks")] for part in PARTS}
    return {"landmarks": found["right_hand"] or found["left_hand"], **found}


def _point(point: Any) -> dict[str, float]:
    return {axis: round(float(getattr(point, axis)), 6) for axis in "xyz"}


def main(model: str, video: str, out: str) -> None:
    """Write one file."""
    import mediapipe
    from mediapipe.tasks.python import BaseOptions, vision

    options = vision.HolisticLandmarkerOptions(
        base_options=BaseOptions(model_asset_path=model), running_mode=vision.RunningMode.VIDEO
    )
    with vision.HolisticLandmarker.create_from_options(options) as landmarker:

        def detect(picture: NDArray[np.uint8], at_ms: int) -> dict[str, Any]:
            image = mediapipe.Image(mediapipe.ImageFormat.SRGB, np.ascontiguousarray(picture))
            return members(landmarker.detect_for_video(image, at_ms))

        print(f"{out}: {write(Path(video), Path(out), detect)} frames")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: landmarks.py MODEL.task VIDEO OUT.jsonl")
    main(*sys.argv[1:])

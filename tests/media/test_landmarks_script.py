"""What the script writes is what a corpus reads; the detector is a stand-in, for the real one has no model here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadbench.media import landmarks
from scripts.landmarks import members, write
from tests.media import making


def test_each_picture_of_a_video_is_a_frame_at_its_own_time(tmp_path: Path) -> None:
    film = making.video(tmp_path / "a.mp4", (0, 40, 160, 200))
    asked: list[tuple[int, tuple[int, ...]]] = []

    def detect(picture: NDArray[np.uint8], at_ms: int) -> dict[str, Any]:
        asked.append((at_ms, picture.shape))
        return {"landmarks": [{"x": float(picture[0, 0, 0] > 128), "y": 0.5, "z": 0.0}]}

    assert write(film, tmp_path / "a.jsonl", detect) == 4
    assert asked == [(0, (48, 64, 3)), (40, (48, 64, 3)), (160, (48, 64, 3)), (200, (48, 64, 3))]
    found = list(landmarks.frames(tmp_path / "a.jsonl"))
    assert [float(frame.at_s) for frame in found] == [0.0, 0.04, 0.16, 0.2]
    assert found[0].members == {"landmarks": [{"x": 1.0, "y": 0.5, "z": 0.0}]}  # the corner is red


def test_a_result_becomes_members_of_which_landmarks_is_the_hand_that_was_seen() -> None:
    hand = [SimpleNamespace(x=0.1234567, y=0.5, z=-0.25, visibility=None)]
    result = SimpleNamespace(pose_landmarks=hand, face_landmarks=[], left_hand_landmarks=hand, right_hand_landmarks=[])
    point = {"x": 0.123457, "y": 0.5, "z": -0.25}
    expected = {"landmarks": [point], "pose": [point], "face": [], "left_hand": [point], "right_hand": []}
    assert members(result) == expected

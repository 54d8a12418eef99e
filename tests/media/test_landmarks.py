"""Landmarks are read from JSON lines, and each frame is due at its own time."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Track
from loadbench.media import landmarks
from loadbench.media.decode import MediaError
from loadbench.media.form import LandmarksForm
from loadbench.media.made import Made

HAND = [{"x": 0.25, "y": 0.5, "z": -1e-3}]


def lines(*frames: Any) -> str:
    return "".join(f"{json.dumps(frame)}\n" for frame in frames)


def steady(count: int, period_ms: int = 40) -> str:
    return lines(*({"t": at * period_ms / 1000, "landmarks": HAND, "pose": [at]} for at in range(count)))


def made_of(path: Path, text: str, form: LandmarksForm, **track: Any) -> tuple[list[tuple[int, Any]], Made]:
    """Due times in ms with the decoded payloads, and what was said at the end."""
    path.write_text(text)
    made = Made()
    rows = list(landmarks.chunks(Track("landmarks", path, **track), form, made))
    return [(due_ns // 10**6, json.loads(data)) for due_ns, _, data in rows], made


def refused(path: Path, text: str, form: LandmarksForm | None = None, **track: Any) -> str:
    with pytest.raises(MediaError) as caught:
        made_of(path, text, form or LandmarksForm(), **track)
    return str(caught.value).replace(str(path), "FILE")


def test_frames_keep_their_times_their_members_and_their_values(tmp_path: Path) -> None:
    text = lines({"t": 0, "landmarks": HAND, "who": {"红": None}}, {"t": 0.04}, {"t": 0.2, "landmarks": []})
    rows, made = made_of(tmp_path / "a", text, LandmarksForm())
    assert rows == [(0, {"landmarks": HAND, "who": {"红": None}}), (40, {}), (200, {"landmarks": []})]
    assert made.duration_ns == 360_000_000  # the last lasts as long as the one before
    rows, _ = made_of(tmp_path / "a", text, LandmarksForm(("landmarks", "who")))
    assert rows[1] == (40, {"landmarks": None, "who": None})


def test_a_list_of_frames_with_mediapipes_timestamps_is_taken_too(tmp_path: Path) -> None:
    text = json.dumps([{"timestamp_ms": 0, "pose": [1]}, {"timestamp_ms": 33, "pose": [2]}], indent=1)
    rows, made = made_of(tmp_path / "a", "\ufeff" + text, LandmarksForm())
    assert (rows, made.duration_ns) == ([(0, {"pose": [1]}), (33, {"pose": [2]})], 66_000_000)


def test_a_segment_is_cut_and_its_times_count_from_its_start(tmp_path: Path) -> None:
    cut = {"offset_s": Fraction("0.08"), "duration_s": Fraction("0.1")}
    rows, made = made_of(tmp_path / "a", steady(10), LandmarksForm(("pose",)), **cut)
    assert (rows, made.duration_ns, made.notes) == (
        [(0, {"pose": [2]}), (40, {"pose": [3]}), (80, {"pose": [4]})], 100_000_000, []
    )  # fmt: skip
    rows, made = made_of(tmp_path / "a", steady(10), LandmarksForm(("pose",)), duration_s=Fraction(1))
    assert (len(rows), made.duration_ns) == (10, 400_000_000)
    assert made.notes == [f"{tmp_path / 'a'}: ends 0.600 s before the end of the declared segment"]


def test_frames_are_thinned_and_put_together_in_batches_due_with_their_last(tmp_path: Path) -> None:
    rows, _ = made_of(tmp_path / "a", steady(10), LandmarksForm(("pose",), fps=Fraction("12.5")))
    assert [due for due, _ in rows] == [0, 80, 160, 240, 320]
    rows, made = made_of(tmp_path / "a", steady(10), LandmarksForm(("pose",), batch=4))
    assert [due for due, _ in rows] == [120, 280, 360]
    assert [[frame["pose"][0] for frame in frames] for _, frames in rows] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert made.duration_ns == 400_000_000


def test_all_that_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    wrong = ['{"t": 0.1', "[1]", '{"pose": 1}', '{"t": "1"}', '{"t": true}', '{"t": -1}', '{"t": 0}', '{"t": NaN}']
    told = refused(tmp_path / "a", "\n".join(['{"t": 0}', "", *wrong, '{"t": 0.2}'])).split("\n")
    assert told[0].startswith("FILE: line 3: is no JSON: ")
    assert told[1:7] == [
        "FILE: line 4: must be a JSON object, one frame",
        "FILE: line 5: t is missing: the time of the frame, in seconds",
        "FILE: line 6: t must be a number, not '1'",
        "FILE: line 7: t must be a number, not True",
        "FILE: line 8: t must be 0 or more, not -1",
        "FILE: line 9: its time, 0 s, does not come after 0 s before it",
    ]
    assert told[7].startswith("FILE: line 10: is no JSON")
    assert len(told) == 8
    assert refused(tmp_path / "a", "x\n" * 50).count("\n") == landmarks.MOST_PROBLEMS


@pytest.mark.parametrize(
    ("text", "track", "form", "problem"),
    [
        ("", {}, LandmarksForm(), "FILE: holds no frames"),
        ("[]", {}, LandmarksForm(), "FILE: holds no frames"),
        ("[{]", {}, LandmarksForm(), "FILE: is no JSON list of frames: "),
        ("[" * 100_000, {}, LandmarksForm(), "FILE: is no JSON list of frames: "),
        ('{"t": 0, "a": ' + "[" * 100_000, {}, LandmarksForm(), "FILE: line 1: is no JSON: "),
        ('[{"t": 1}, {"t": 1}]', {}, LandmarksForm(), "FILE: frame 2: its time, 1 s, does not come after 1 s"),
        (steady(5), {"offset_s": Fraction(3)}, LandmarksForm(),
         "FILE: no frame lies in the segment from 3.0 s; it ends at 0.200 s"),
        (steady(5), {}, LandmarksForm(("hand", "pose")),
         "FILE: no frame has hand, which the profile sends; there is landmarks, pose"),
    ],
)  # fmt: skip
def test_a_file_that_gives_nothing_to_send_is_refused(
    tmp_path: Path, text: str, track: dict[str, Any], form: LandmarksForm, problem: str
) -> None:
    assert refused(tmp_path / "a", text, form, **track).startswith(problem)


def test_a_file_is_measured_from_zero_to_the_end_of_its_last_frame(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(steady(26))
    assert landmarks.measure(tmp_path / "a") == (facts := landmarks.Facts(Fraction("1.04"), fps=Fraction(25)))
    (tmp_path / "a").write_text(lines({"t": 0.5}))
    assert landmarks.measure(tmp_path / "a") == landmarks.Facts(Fraction("0.54"))
    assert facts.rate_hz is None
    with pytest.raises(MediaError, match="No such file"):
        landmarks.measure(tmp_path / "b")

"""The shipped corpus is good, small, and what it says it is."""

from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from loadbench.corpus import read
from loadbench.media import prepare
from loadbench.media.check import check
from loadbench.media.form import AudioForm, FrameForm
from loadbench.media.plan import ChunkPlan

FOLDER = Path(str(files("loadbench"))) / "data" / "demo"


def test_the_manifest_agrees_with_the_media_without_a_warning() -> None:
    report = check(FOLDER)
    assert (report.clips, report.problems.lines(), report.warnings.lines()) == (12, [], [])


def test_it_stays_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_500_000


def test_speech_lies_within_its_marks_and_only_there(tmp_path: Path) -> None:
    spoken = [clip for clip in read.clips(FOLDER) if clip.tracks[0].kind == "audio"]
    folders = prepare.prepare(spoken, AudioForm("s16le", 16_000, 160), tmp_path)
    assert len(spoken) == 11
    for clip in spoken:
        plan = ChunkPlan.load(folders[clip.id])
        level = np.array([np.abs(np.frombuffer(plan.wire(i), "<i2").astype(int)).mean() for i in range(len(plan))])
        assert clip.activity_start_s is not None
        assert clip.activity_end_s is not None
        inside = slice(round(clip.activity_start_s * 100), round(clip.activity_end_s * 100))
        outside = np.concatenate([level[: inside.start], level[inside.stop :]])
        assert outside.max() < 0.05 * level.max(), clip.id
        assert level[inside.start] > outside.max()
        assert 2 < plan.duration_ns / 1e9 < 6


def test_the_signer_moves_while_signing_and_rests_before_and_after(tmp_path: Path) -> None:
    (clip,) = [clip for clip in read.clips(FOLDER) if clip.direction == "sign2spoken"]
    plan = ChunkPlan.load(prepare.prepare([clip], FrameForm(), tmp_path)["sign-01"])
    assert len(plan) == 115
    assert plan.duration_ns == 4_600_000_000
    assert {after - before for before, after in pairwise(plan.due_ns.tolist())} == {40_000_000}


@pytest.mark.slow
def test_a_real_recogniser_understands_the_english_sentences(tmp_path: Path) -> None:
    pytest.importorskip("moonshine_voice.moonshine_api", reason="the demo extra is not installed")
    jiwer = pytest.importorskip("jiwer")
    from moonshine_voice.moonshine_api import ModelArch
    from moonshine_voice.transcriber import Transcriber
    from moonshine_voice.utils import get_model_path

    recogniser = Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)
    clips = [clip for clip in read.clips(FOLDER) if clip.source_lang == "en"]
    folders = prepare.prepare(clips, AudioForm("f32le", 16_000, 160_000), tmp_path)
    plain = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation()])
    for clip in clips:
        plan = ChunkPlan.load(folders[clip.id])
        sound = np.concatenate([np.frombuffer(plan.wire(i), "<f4") for i in range(len(plan))])
        heard = " ".join(line.text for line in recogniser.transcribe_without_streaming(sound.tolist(), 16_000).lines)
        assert jiwer.wer(plain(clip.transcript), plain(heard)) < 0.15, heard

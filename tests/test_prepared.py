"""What is found before anyone is contacted, beyond what a plan can know by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadbench import plan, prepared
from tests.test_main_job import tone


def ready(folder: Path, **more: Any) -> prepared.Prepared:
    asked = {"target.profile": "vosk", "target.url": "ws://127.0.0.1:9", "corpus.path": str(folder)}
    return prepared.prepare(plan.read(None, asked | {key.replace("__", "."): value for key, value in more.items()}))


def test_an_objective_on_a_channel_that_the_profile_does_not_have_is_refused(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, slo__final_from_source_end={"p95_s": 1.0, "channel": "zzz"})
    assert caught.value.problems == [
        "slo.final_from_source_end.channel: profile vosk has no channel zzz; it has transcript"
    ]
    ready(tmp_path, slo__final_from_source_end={"p95_s": 1.0, "channel": "transcript"}).close()


def test_late_audio_cannot_be_dropped_so_a_plan_that_asks_for_it_is_refused(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, media__late="drop_late")
    assert caught.value.problems == ["media.late: only frames may be dropped, and profile vosk sends audio"]
    ready(tmp_path, media__late="burst").close()


def test_what_is_secret_in_address_headers_and_parameters_goes_to_the_engine_as_what_it_must_hide(
    tmp_path: Path,
) -> None:
    tone(tmp_path, 1.0)
    asked = ready(
        tmp_path,
        target__url="ws://me:pw-FAKE-1@127.0.0.1:9/?api_key=key-FAKE-2",
        target__headers={"x-token": "tok-FAKE-3"},
    )
    try:
        assert {"pw-FAKE-1", "key-FAKE-2", "tok-FAKE-3"} <= set(asked.start.hidden)
    finally:
        asked.close()


def test_a_setting_that_begins_like_a_secret_stays_in_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tone(tmp_path, 1.0)
    monkeypatch.setenv("LB_TOKEN", "vosk-secret-71")
    asked = ready(tmp_path, target__secrets={"token": "env:LB_TOKEN"}, title="vosk-secret")
    try:
        assert asked.header.plan["target"]["profile"] == "vosk"
        assert asked.header.title == "vosk-secret"
    finally:
        asked.close()


def test_what_a_profile_sends_as_a_number_must_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tone(tmp_path, 1.0)
    for name in ("BAIDU_APPID", "BAIDU_API_KEY"):
        monkeypatch.setenv(f"LB_{name}", "seven")
    asked: dict[str, Any] = {
        "target__profile": "baidu-realtime",
        "target__secrets": {name: f"env:LB_{name}" for name in ("BAIDU_APPID", "BAIDU_API_KEY")},
    }
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, target__params={"dev_pid": "1537x"}, **asked)
    assert caught.value.problems == [
        "target.params.dev_pid must be a number: profile baidu-realtime sends it as one",
        "target.secrets.BAIDU_APPID must be a number: profile baidu-realtime sends it as one",
    ]
    monkeypatch.setenv("LB_BAIDU_APPID", "1000517")
    ready(tmp_path, **asked).close()


def test_a_clip_without_the_second_medium_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tone(tmp_path, 1.0)
    monkeypatch.setenv("LB_KEY", "made-up")
    with pytest.raises(plan.PlanError) as caught:
        ready(
            tmp_path, target__profile="qwen-livetranslate", target__secrets={"DASHSCOPE_API_KEY": "env:LB_KEY"},
            media__cache=str(tmp_path / "cache"),
        )  # fmt: skip
    (problem,) = caught.value.problems
    assert problem.endswith("manifest.jsonl:1: clip tone: has no video track, which the profile sends")


def test_the_headline_of_spoken_output_is_the_end_of_its_playback(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    asked = ready(tmp_path, target__profile="speech-to-speech", record__media=3, record__media_mib=2)
    asked.close()
    assert asked.header.headline_channel == "speech"
    assert asked.header.headline_metric == "playback_end_from_source_end"
    assert asked.header.channel_media == {"speech": "audio"}
    assert (asked.start.sample_media, asked.start.media_bytes) == (3, 2 * 1024 * 1024)
    rate = {"workload__model": "constant", "workload__rate": 1.0, "workload__duration_s": 1}
    asked = ready(tmp_path, target__profile="speech-to-sign", **rate)
    asked.close()
    assert asked.header.headline_metric == "playback_end_from_planned_end"


def test_of_a_service_that_answers_with_text_no_media_is_kept(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    asked = ready(tmp_path)
    asked.close()
    assert asked.start.sample_media == 0


def test_an_objective_that_a_channel_cannot_have_is_refused_with_those_that_can(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    slo = {"slo__final_from_source_end": {"p95_s": 1.0}, "slo__first_frame_from_media": {"p95_s": 1.0}}
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, target__profile="speech-to-speech", **slo)
    assert caught.value.problems == [
        "slo.final_from_source_end: channel speech has no such time; give channel = one of: text",
        "slo.first_frame_from_media: channel speech has no such time, and no other channel has it",
    ]
    slo = {"slo__final_from_source_end": {"p95_s": 1.0, "channel": "text"}, "slo__first_sound_from_media.p95_s": 1.0}
    ready(tmp_path, target__profile="speech-to-speech", **slo).close()


def test_sentences_and_times_of_signs_go_with_the_clip_into_the_bundle(tmp_path: Path) -> None:
    tone(tmp_path, 2.0)
    line = json.loads((tmp_path / "manifest.jsonl").read_text()) | {
        "gloss_spans": [{"gloss": "BOAT", "start": 0.5, "end": 1, "hand": "right"}],
        "segments": [
            {"offset": 0, "duration": 0.9, "transcript": "the red boat"},
            {"offset": 1, "duration": 1, "transcript": "leaves", "speaker": "b"},
        ],
    }
    (tmp_path / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    asked = ready(tmp_path)
    try:
        facts = asked.facts["tone"]
        assert facts.gloss_spans == [{"gloss": "BOAT", "start": 0.5, "end": 1.0}]
        assert [(part.offset, part.duration, part.transcript) for part in facts.segments] == [
            (0.0, 0.9, "the red boat"),
            (1.0, 1.0, "leaves"),
        ]
    finally:
        asked.close()

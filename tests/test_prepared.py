"""What is found before anyone is contacted, beyond what a plan can know by itself."""

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from loadbench import plan, prepared
from tests.media import making
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


def test_silence_before_a_clip_moves_its_activity_and_silence_after_it_its_end(tmp_path: Path) -> None:
    words = [{"w": "good", "start": 0.2, "end": 0.5}]
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    row = {"id": "a", "audio_filepath": "a.wav", "activity_start": 0.2, "activity_end": 0.75, "words": words}
    making.manifest(tmp_path, [row])
    asked = ready(tmp_path, media__lead_in_s=2.5, media__tail_s=0.5)
    try:
        clip, facts = asked.start.clips[0], next(iter(asked.facts.values()))
        assert (clip.onset_ns, clip.activity_end_ns) == (2_700_000_000, 3_250_000_000)
        assert list(asked.media_ns.values()) == [4_000_000_000]
        assert (facts.duration_s, facts.activity_start_s, facts.activity_end_s) == (4.0, 2.7, 3.25)
        assert facts.words == [{"w": "good", "start": 2.7, "end": 3.0}]
    finally:
        asked.close()
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, target__profile="sign-frames", media__tail_s=0.5)
    assert "media: only sound has lead_in_s and tail_s, and profile sign-frames sends pictures" in caught.value.problems


@pytest.mark.parametrize(
    ("media", "sentence"),
    [
        ("kind: frames, codec: h264", "profile mine sends h264, whose pictures build on those before them"),
        ("kind: video, container: webm, slice_ms: 500", "only frames may be dropped, and profile mine sends video"),
    ],
)
def test_late_pictures_on_which_others_build_cannot_be_dropped(tmp_path: Path, media: str, sentence: str) -> None:
    tone(tmp_path, 1.0)
    text = resources.files("loadbench").joinpath("data/profiles/sign-frames-binary.yaml").read_text()
    own = re.sub(r"media: .*", f"media: {{{media}}}", text).replace("name: sign-frames-binary", "name: mine")
    (tmp_path / "mine.yaml").write_text(own)
    with pytest.raises(plan.PlanError) as caught:
        ready(tmp_path, target__profile=str(tmp_path / "mine.yaml"), media__late="drop_late")
    assert caught.value.problems == [f"media.late: {sentence}"]


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


def rows(folder: Path, *names: str, **fields: Any) -> Path:
    usual = {"direction": "speech2text", "audio_filepath": "tone.wav", "source_lang": "en", "target_lang": "en"}
    tone(folder, 1.0)
    text = "".join(json.dumps(usual | {"id": name, "transcript": "hello"} | fields) + "\n" for name in names)
    (folder / "manifest.jsonl").write_text(text)
    return folder


def test_a_plan_chooses_clips_by_split_length_number_and_id(tmp_path: Path) -> None:
    rows(tmp_path, "a", "b", "c", tags=["dev"])
    chosen = {"limit": ["a", "b"], "ids": ["b", "c"]}
    for key, value in {"limit": 2, "ids": ["c", "b"]}.items():
        asked = ready(tmp_path, **{f"corpus__{key}": value}, corpus__split="dev", corpus__max_duration_s=1.5)
        assert list(asked.facts) == chosen[key]
        assert asked.header.corpus["layout"] == "native"
        asked.close()
    for key, value, said in [
        ("max_duration_s", 0.5, f"{tmp_path}: holds no clips of at most 0.5 s"),
        ("split", "test", f"{tmp_path}: holds no clips of split test"),
        ("ids", ["a", "x"], f"{tmp_path} has no clip x"),
        ("layout", "nativ", "no layout is called 'nativ'; known: native"),
    ]:
        with pytest.raises(plan.PlanError) as caught:
            ready(tmp_path, **{f"corpus__{key}": value})
        assert len(caught.value.problems) == 1
        assert caught.value.problems[0].startswith(said)


def test_estimated_activity_is_asked_for_and_marked(tmp_path: Path) -> None:
    asked = ready(rows(tmp_path, "a", "b"))
    assert asked.start.clips[0].onset_ns is None
    assert asked.header.corpus["activity_estimated"] == 0
    asked.close()
    asked = ready(tmp_path, corpus__estimate_activity=True)
    assert asked.start.clips[0].onset_ns == 0
    assert asked.start.clips[0].activity_end_ns == 1_000_000_000
    assert asked.header.corpus["activity_estimated"] == 2
    assert asked.facts["a"].activity_estimated
    asked.close()


def problems(folder: Path, **more: Any) -> list[str]:
    with pytest.raises(plan.PlanError) as caught:
        ready(folder, target__profile="simuleval", **more)
    return caught.value.problems


TWO = ["http://127.0.0.1:9", "http://127.0.0.1:10"]


def test_more_users_than_the_endpoints_take_are_refused(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    assert problems(tmp_path, target__url=TWO[0], workload__users=2) == [
        "workload.users = 2: 1 endpoint takes 1 at a time, 1 each; give more in target.urls (--url for each)"
    ]
    more = {"target__url": "", "target__urls": TWO}
    assert problems(tmp_path, **more, workload__users=3) == [
        "workload.users = 3: 2 endpoints take 2 at a time, 1 each; give more in target.urls (--url for each)"
    ]
    assert problems(tmp_path, **more, target__per_endpoint=2) == ["target.per_endpoint = 2: profile simuleval allows 1"]
    open_one = {"workload__model": "constant", "workload__rate": 9.0, "workload__duration_s": 2.0}
    for asked in (
        ready(tmp_path, target__profile="simuleval", **more, workload__users=2),
        ready(tmp_path, target__profile="simuleval", **more, **open_one),
    ):
        try:
            assert (asked.start.urls, asked.start.url, asked.start.per_endpoint) == (TWO, TWO[0], 1)
            assert prepared.dry_run(asked)["contacts"] == ", ".join(TWO)
        finally:
            asked.close()


def test_endpoints_are_addresses_none_of_them_twice_and_not_beside_an_address(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    assert problems(tmp_path, target__url=TWO[0], target__urls=[*TWO, TWO[1], "ftp:x", ""]) == [
        "target.urls[3] must begin with ws://, wss://, http://, https:// or exec:, for instance ws://127.0.0.1:2700",
        "target.urls[4] is empty",
        "target.urls: there is target.url beside it: give one or the other",
        "target.urls[2]: is there twice",
    ]
    assert problems(tmp_path, target__url="", target__urls=[TWO[0], "ws://127.0.0.1:9"]) == [
        "target.url: profile simuleval speaks http:// or https://, not ws://"
    ]
    asked = ready(tmp_path, target__url="", target__urls=["ws://me:pw-FAKE-1@127.0.0.1:9", "ws://127.0.0.1:9"])
    try:
        assert "pw-FAKE-1" in asked.start.hidden
    finally:
        asked.close()


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

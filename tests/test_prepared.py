"""What is found before anyone is contacted, beyond what a plan can know by itself."""

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

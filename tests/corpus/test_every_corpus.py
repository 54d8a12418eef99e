"""Every corpus that is known, made up in its own layout: checked with its media, converted, and streamed."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loadbench import prepared
from loadbench.corpus import line, read
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked
from loadbench.engine.pipe import Outbound
from loadbench.engine.run import Engine
from loadbench.media import check
from loadbench.plan import Plan
from loadbench.results.record import SessionRecord
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from tests.corpus import made, made_speech

pytestmark = pytest.mark.realtime
TOGETHER = 4  # runs at a time
CORPORA = {name: (build, Asked()) for name, build in made.SIGNED.items()} | made_speech.MADE
PROFILES = {"audio": "vosk", "video": "sign-frames-binary"}


class Streamed(NamedTuple):
    """A corpus, its clips, and what became of the sessions that carried one each."""

    path: Path
    clips: list[Clip]
    records: list[SessionRecord]


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Streamed]:
    folder = tmp_path_factory.mktemp("corpora")
    gate = asyncio.Semaphore(TOGETHER)

    async def one(name: str, urls: dict[str, str]) -> Streamed:
        build, asked = CORPORA[name]
        (folder / name).mkdir()
        path = await asyncio.to_thread(build, folder / name)
        clips = read.clips(path, asked)
        kind = clips[0].tracks[0].kind
        told = {key: value for key in ("source_lang", "target_lang") if (value := getattr(asked, key))}
        plan: dict[str, Any] = {
            "target": {"profile": PROFILES[kind], "url": urls[kind]},
            "corpus": {"path": str(path), **told},
            "workload": {"users": 1, "sessions": len(clips)},
            "media": {"cache": str(folder / "cache")},
        }
        records = list[SessionRecord]()

        def take(event: Outbound) -> None:
            if isinstance(event, SessionRecord):
                records.append(event)

        async with gate:
            ready = await asyncio.to_thread(prepared.prepare, Plan.model_validate(plan))
            try:
                await Engine(ready.start, take).run()
            finally:
                ready.close()
        return Streamed(path, clips, records)

    async def all_of_them() -> list[Streamed]:
        def simulator(kind: str) -> Any:
            return running(Options(profile=PROFILES[kind], first_s=0.05, final_s=0.05))

        async with simulator("audio") as audio, simulator("video") as video:
            return await asyncio.gather(*(one(name, {"audio": audio, "video": video}) for name in CORPORA))

    return dict(zip(CORPORA, asyncio.run(all_of_them()), strict=True))


@pytest.mark.parametrize("name", CORPORA)
def test_a_session_for_each_clip_is_ok(name: str, streamed: dict[str, Streamed]) -> None:
    found = streamed[name]
    assert {record.outcome for record in found.records} == {"ok"}
    assert sorted(each.clip for record in found.records for each in record.utterances) == sorted(
        clip.id for clip in found.clips
    )
    assert all(utterance.chunks_sent > 0 for record in found.records for utterance in record.utterances)


@pytest.mark.parametrize("name", CORPORA)
def test_the_check_of_it_and_of_its_media_names_the_layout_and_no_problem(
    name: str, streamed: dict[str, Streamed]
) -> None:
    found = check.check(streamed[name].path, CORPORA[name][1])
    assert (found.found.layout.name, found.clips) == (name, len(streamed[name].clips))
    assert found.problems.lines() == []


def media(clip: Clip) -> list[Track]:
    return [replace(track, path=track.path.resolve()) for track in clip.tracks]


@pytest.mark.parametrize("name", CORPORA)
def test_as_a_native_manifest_it_is_the_same_clips(name: str, streamed: dict[str, Streamed], tmp_path: Path) -> None:
    clips = streamed[name].clips
    lines = [json.dumps(line.of(clip, tmp_path), ensure_ascii=False) + "\n" for clip in clips]
    (tmp_path / "manifest.jsonl").write_text("".join(lines), encoding="utf-8")
    again = read.clips(tmp_path / "manifest.jsonl")
    assert [line.of(clip, tmp_path) for clip in again] == [line.of(clip, tmp_path) for clip in clips]
    assert [media(clip) for clip in again] == [media(clip) for clip in clips]

"""Each shipped profile from both sides: the simulator speaks it to a real run, over loopback sockets or over pipes."""

import asyncio
import contextlib
import json
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loadbench import prepared
from loadbench.engine.pipe import Outbound
from loadbench.engine.run import Engine
from loadbench.plan import Plan
from loadbench.results.record import Channel, SessionRecord, Utterance
from loadbench.session.load import load_profile, number_names, secret_names, shipped
from loadbench.session.profile import ChannelPart, Profile
from loadbench.simulator.log import Entry, Spoken, read
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from loadbench.simulator.speak import Speaker
from tests.media.making import tone, wav

pytestmark = [pytest.mark.realtime, pytest.mark.alone]
FIRST_S, FINAL_S, MEDIA_S = 0.3, 0.4, 1.2
LONG_S = 3.0  # of media that are to be cut in their middle, however late the service is
COARSE_S = 1.0  # what a busy machine may add
START_S = 10.0  # and what it may take to start a local program, which is an interpreter, while the media runs
TOGETHER = 6  # trips at a time
TEXTS = {"transcript": "the red boat leaves at nine", "text": "el barco rojo sale a las nueve"}
GLOSS = ["BOAT", "RED", "NINE"]


@dataclass
class Trip:
    """One session from both sides."""

    records: list[SessionRecord] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def take(self, event: Outbound) -> None:
        if isinstance(event, SessionRecord):
            self.records.append(event)


def length_s(profile: Profile, media_s: float = MEDIA_S) -> float:
    """The clip's: what is sent first comes as early in it, by its end, with all profiles."""
    return media_s + (profile.media.slice_ms or 0) / 1000


def corpus(folder: Path, profile: Profile, media_s: float) -> Path:
    """One clip of what the profile sends, with every kind of reference."""
    row: dict[str, Any] = {"id": "clip", "source_lang": "en", "target_lang": "es", **TEXTS}
    sound, pictures = (
        {"audio_filepath": "clip.wav"},
        {"frames_dir": "frames", "frames_pattern": "image%02d.png", "fps": 10},
    )
    wav(folder / "clip.wav", tone(media_s).astype("<i2").tobytes())
    (folder / "frames").mkdir()
    for number in range(round(media_s * 10)):
        picture = Image.new("RGB", (64, 48), (number * 9 % 256, 90, 200))
        picture.save(folder / "frames" / f"image{number:02d}.png")
    if profile.media.also is not None:
        tracks = [{"kind": "audio", "filepath": "clip.wav"}, {"kind": "video", **pictures}]
        row |= {"direction": "speech2text", "tracks": tracks}
    elif profile.media.kind == "audio":
        row |= {"direction": "speech2text", **sound}
    elif profile.media.kind == "landmarks":
        found = [
            {"t": at / 10, "landmarks": [{"x": at / 100, "y": 0.5, "z": 0.0}]} for at in range(round(media_s * 10))
        ]
        (folder / "clip.landmarks.jsonl").write_text("".join(f"{json.dumps(frame)}\n" for frame in found))
        row |= {"direction": "sign2spoken", "gloss": GLOSS, "landmarks_filepath": "clip.landmarks.jsonl"}
    else:
        row |= {"direction": "sign2spoken", "gloss": GLOSS, **pictures}
    if profile.media.kind == "audio" and any(part.unit == "gloss" for part in profile.channels.values()):
        row |= {"direction": "spoken2sign", "gloss": GLOSS}
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    return folder / "manifest.jsonl"


def reference(part: ChannelPart, profile: Profile) -> str:
    """What the simulator says on a channel of such a clip."""
    if part.unit == "gloss":
        return " ".join(GLOSS)
    return TEXTS["text" if part.stage == "translation" else "transcript"]


@contextlib.asynccontextmanager
async def serving(folder: Path, profile: Profile, path: Path, **habits: Any) -> AsyncIterator[str]:
    """The simulator: where it listens, or the command that is a local program."""
    log = folder / "log.jsonl"
    if profile.transport.kind == "process":
        words = {"profile": profile.name, "corpus": path, "first": FIRST_S, "final": FINAL_S, "log": log, **habits}
        flags = [word for name, value in words.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        yield "exec:" + shlex.join([sys.executable, "-m", "loadbench", "simulate", "--stdio", *flags])
        return
    options = Options(profile=profile.name, corpus=path, first_s=FIRST_S, final_s=FINAL_S, log=log, **habits)
    async with running(options) as url:
        yield url


async def travel(folder: Path, name: str, **habits: Any) -> Trip:
    """Let one session of ours talk with the simulator, both by the profile; `habits` are the latter's."""
    profile, trip = load_profile(name), Trip()
    path = await asyncio.to_thread(
        corpus, folder, profile, length_s(profile, LONG_S if "drop_s" in habits else MEDIA_S)
    )
    target: dict[str, Any] = {
        "profile": name, "secrets": {key: f"env:{variable(key, profile)}" for key in secret_names(profile)}
    }  # fmt: skip
    if profile.transport.kind == "process":
        target["env"] = {"LOADBENCH_CLIP": "{clip.id}"}
    async with serving(folder, profile, path, **habits) as url:
        if not profile.prelude:  # which else is told the address
            target["url"] = url
        plan = Plan.model_validate(
            {"target": target, "corpus": {"path": str(path)}, "workload": {"users": 1, "sessions": 1}}
        )
        ready = await asyncio.to_thread(prepared.prepare, plan, allow_exec=True)
        ready.start.prelude_at = url.replace("ws://", "http://")
        try:
            await Engine(ready.start, trip.take).run()
        finally:
            ready.close()
    trip.entries = read(folder / "log.jsonl")
    return trip


def variable(secret: str, profile: Profile) -> str:
    """Where a made-up value stands."""
    return "MADE_UP_NUMBER" if f"secret.{secret}" in number_names(profile) else "MADE_UP_TEXT"


FINE: dict[str, Any] = {}
REFUSES: dict[str, Any] = {"reject_rate": 1.0}
HANGS_UP: dict[str, Any] = {"drop_s": 0.5, "drop": "fin"}
HANGS_UP_AT_ONCE: dict[str, Any] = {"drop_s": 0.1, "drop": "fin"}
RESETS: dict[str, Any] = {"drop_s": 0.5, "drop": "rst"}
DIES: dict[str, Any] = {"drop_s": 0.05, "drop": "rst"}  # counted from its first chunk, which it reads late
Travel = Callable[[str, dict[str, Any]], Trip]


@pytest.fixture(scope="module")
def travelled(tmp_path_factory: pytest.TempPathFactory) -> Travel:
    """All trips of this module, some at a time, for most of their time is waiting; each is told by its own test."""
    wanted = [
        *((FINE, shipped()), (REFUSES, shipped())),
        *((HANGS_UP, carriers("websocket", "http")), (HANGS_UP_AT_ONCE, carriers("upload"))),
        *((RESETS, carriers("requests")), (DIES, carriers("process"))),
    ]

    async def all_of_them() -> dict[tuple[str, str], Trip | BaseException]:
        places = asyncio.Semaphore(TOGETHER)

        async def one(name: str, habits: dict[str, Any]) -> Trip:
            async with places:
                return await travel(tmp_path_factory.mktemp(name), name, **habits)

        asked = [(name, habits) for habits, names in wanted for name in names]
        trips = await asyncio.gather(*(one(*each) for each in asked), return_exceptions=True)
        return {(name, repr(habits)): trip for (name, habits), trip in zip(asked, trips, strict=True)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MADE_UP_NUMBER", "1000517")
        patch.setenv("MADE_UP_TEXT", "made-up-secret")
        found = asyncio.run(all_of_them())

    def told(name: str, habits: dict[str, Any]) -> Trip:
        trip = found[name, repr(habits)]
        if isinstance(trip, BaseException):
            raise trip
        return trip

    return told


@pytest.mark.parametrize("name", shipped())
def test_a_session_with_the_simulator_is_ok_and_hears_every_text_at_its_time(name: str, travelled: Travel) -> None:
    profile = load_profile(name)
    late_s = START_S if profile.transport.kind == "process" else COARSE_S
    trip = travelled(name, FINE)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.cause, record.warnings) == ("ok", "", [])
    assert (entry.outcome, entry.violations) == ("ok", [])
    (utterance,) = record.utterances
    assert entry.media_bytes > 0
    assert bool(entry.also_bytes) == (profile.media.also is not None)
    assert {channel.partition(":")[0] for channel in utterance.channels} == profile.channels.keys()
    voice = Speaker(profile).voice({})
    for channel, shown in utterance.channels.items():
        part = profile.channels[channel.partition(":")[0]]
        if part.medium is not None:
            _sees_or_hears_all(shown, utterance, entry.media[channel])
            continue
        assert shown.text.split() == reference(part, profile).split()
        assert shown.settled_text == shown.text
        assert shown.first_ns is not None
        assert utterance.media_zero_ns is not None
        # the first output counts from the first chunk, which the service cannot have before it was captured
        first_s = (shown.first_ns - utterance.media_zero_ns) / 1e9
        begins_s = length_s(profile) if profile.media.pace == "whole" else 0.0
        partial = voice.partial(channel.partition(":")[0], "x")
        # without partials the first output is the final
        ends_s = begins_s + FIRST_S if partial else length_s(profile) + FINAL_S
        assert begins_s + FIRST_S <= first_s <= ends_s + late_s
    texts = {name: channel for name, channel in utterance.channels.items() if channel.media is None}
    headline = next((texts[name] for name in texts if name.partition(":")[0] == profile.headline), None)
    spoken = headline or next(iter(texts.values()))  # beside a headline of media, the words
    assert spoken.last_final_ns is not None
    assert utterance.source_end_ns is not None
    final_s = (spoken.last_final_ns - utterance.source_end_ns) / 1e9
    silence_s = sum(step.silence_s or 0.0 for step in profile.end)  # sent behind the clip
    assert FINAL_S - 0.001 <= final_s <= FINAL_S + silence_s + late_s
    assert entry.end_ns is not None
    # a frame leaves when it was taken, a tenth of a second before the clip's end, and no mark stands behind the last
    unmarked_ns = 100_000_000 if profile.media.kind == "landmarks" else 0
    assert entry.end_ns >= utterance.source_end_ns - unmarked_ns


def _sees_or_hears_all(shown: Channel, utterance: Utterance, spoken: Spoken) -> None:
    """Every byte of the simulator's, and the first output no earlier than it was planned."""
    assert shown.media is not None
    assert (shown.media.bytes, shown.media.pieces) == (spoken.bytes, len(spoken.sent_ns))
    assert shown.media.broken == 0
    assert shown.first_ns is not None
    assert utterance.media_zero_ns is not None
    assert FIRST_S <= (shown.first_ns - utterance.media_zero_ns) / 1e9 <= FIRST_S + COARSE_S


def carriers(*wanted: str) -> list[str]:
    """The shipped profiles that go these ways."""
    return [name for name in shipped() if load_profile(name).transport.carrier in wanted]


@pytest.mark.parametrize("name", [name for name in shipped() if name not in carriers("process")])
def test_a_service_that_refuses_in_the_profile_s_own_words_is_heard_to_refuse(name: str, travelled: Travel) -> None:
    trip = travelled(name, REFUSES)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.side, entry.outcome) == ("rejected", "target", "rejected"), record.cause


@pytest.mark.parametrize("name", carriers("process"))
def test_a_program_that_will_not_do_it_has_no_words_for_that_but_its_status(name: str, travelled: Travel) -> None:
    trip = travelled(name, REFUSES)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.side, entry.outcome) == ("target_error", "target", "rejected")
    assert "the program ended with status 1" in record.cause


@pytest.mark.parametrize("name", carriers("upload"))
def test_a_connection_that_is_cut_before_the_answer_to_an_upload_is_lost(name: str, travelled: Travel) -> None:
    trip = travelled(name, HANGS_UP_AT_ONCE)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.side, entry.outcome) == ("lost", "target", "dropped"), record.cause
    assert "after the end of the media" in record.cause


@pytest.mark.parametrize("name", carriers("requests"))
def test_a_connection_of_many_requests_that_is_reset_in_the_media_is_lost(name: str, travelled: Travel) -> None:
    """To hang up between two requests is no cut; a reset always is one."""
    trip = travelled(name, RESETS)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.side, entry.outcome) == ("lost", "target", "dropped"), record.cause
    assert re.match(r"lost without close: the connection was (cut|reset) [0-2]\.\d\d s into the media", record.cause)


@pytest.mark.parametrize("name", carriers("process"))
def test_a_program_that_is_killed_in_the_media_is_lost(name: str, travelled: Travel) -> None:
    trip = travelled(name, DIES)
    (record,) = trip.records
    assert (record.outcome, record.side) == ("lost", "target")
    assert "ended by SIGKILL" in record.cause
    assert record.utterances[0].done_ns is None


@pytest.mark.parametrize("name", carriers("websocket", "http"))
def test_a_connection_that_is_cut_in_the_media_is_lost_and_keeps_what_was_heard(name: str, travelled: Travel) -> None:
    trip = travelled(name, HANGS_UP)
    (record,), (entry,) = trip.records, trip.entries
    assert (record.outcome, record.side, entry.outcome) == ("lost", "target", "dropped"), record.cause
    assert re.match(r"lost without close: the connection was (cut|reset) [0-2]\.\d\d s into the media", record.cause)
    (utterance,) = record.utterances
    assert (utterance.done_ns, utterance.eos_ns) == (None, None)
    assert any(channel.first_ns is not None for channel in utterance.channels.values())

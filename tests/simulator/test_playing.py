"""What the simulated service plays: what is in it, and when it leaves, in virtual time."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadbench.session.media import MediaBoard, is_jpeg
from loadbench.session.profile import MediaFormat
from loadbench.simulator.log import Entry, read
from loadbench.simulator.options import Options, OptionsError
from loadbench.simulator.playing import PIECE_NS, picture, piece
from loadbench.simulator.sitting import Sitting
from tests.simulator.conftest import Client, Service, now_ns

MS = 1_000_000


@pytest.mark.parametrize("form", ["s16le", "f32le", "mulaw", "alaw"])
@pytest.mark.parametrize("channels", [1, 2])
def test_sound_begins_after_the_silence_in_every_format(form: Any, channels: int) -> None:
    how = MediaFormat(format=form, rate_hz=8000, channels=channels)
    board = MediaBoard("audio", how)
    for number in range(10):
        board.take(piece(how, number, PIECE_NS, 0.2), number * PIECE_NS)
    found = board.channel().media
    assert found is not None
    assert found.first_sound_ns == 5 * PIECE_NS
    assert found.media_s == pytest.approx(0.4)
    assert found.gaps == []


def test_pieces_of_an_odd_rate_lose_no_sample() -> None:
    how = MediaFormat(format="s16le", rate_hz=11025)
    sizes = [len(piece(how, number, PIECE_NS, 0.0)) for number in range(25)]
    assert sum(sizes) == 2 * 11025
    whole = np.concatenate([np.frombuffer(piece(how, number, PIECE_NS, 0.0), "<i2") for number in range(25)])
    assert np.abs(whole[: 11025 * 4 // 10]).max() == pytest.approx(0.25 * 32767, abs=1)


def test_pictures_are_whole_and_differ_from_their_neighbours() -> None:
    assert all(is_jpeg(picture(number)) for number in range(25))
    assert all(one != other for one, other in itertools.pairwise(map(picture, range(25))))


class Mute(Client):
    """Hears sizes only."""

    async def say(self, text: str | bytes) -> None:
        self.heard.append((self._at(), len(text)))


@pytest.mark.looptime
async def test_pieces_leave_in_real_time_with_the_gaps_that_were_asked_for_and_done_comes_last(tmp_path: Path) -> None:
    options = Options(
        profile="speech-to-sign", first_s=0.1, final_s=0.1, media_first_s=0.5, media_gaps_s=(0.2, 0.3, 0.6, 0.1)
    )
    service = Service(tmp_path / "log", options)
    client = Mute(zero_ns=now_ns())
    sitting = Sitting(service.house, client, service.house.fate.course(0), Entry(session="s", opened_ns=now_ns()))
    talking = asyncio.create_task(sitting.mouth.talk())
    sitting.opened()
    sitting.heard("text", b'{"type": "start", "source_language": "en", "target_language": "csl"}', now_ns())
    zero = now_ns()
    for _ in range(10):
        sitting.heard("binary", bytes(3200), now_ns())
        await asyncio.sleep(0.1)
    sitting.heard("text", b'{"type": "end"}', now_ns())
    await asyncio.sleep(5)
    talking.cancel()
    sitting.gone(now_ns(), "client", None)
    (entry,) = read(tmp_path / "log")
    sent = [(at - zero) / MS for at in entry.media["sign"].sent_ns]
    assert len(sent) == 25, "a second of source"
    assert sent[0] == pytest.approx(500)
    gaps = [round(b - a) for a, b in itertools.pairwise(sent)]
    assert [(at, gap) for at, gap in enumerate(gaps) if gap != 40] == [(4, 340), (14, 140)]
    assert entry.outcome == "ok"
    assert client.heard[-1][0] * 1000 == pytest.approx(500 + 1000 + 400), "done after the last piece has been played"


@pytest.mark.parametrize("gaps", [(1.0,), (2.0, 0.1, 1.0, 0.1), (-1.0, 0.2)])
def test_gaps_are_pairs_in_their_order(gaps: tuple[float, ...]) -> None:
    with pytest.raises(OptionsError, match="media_gaps_s are pairs"):
        Options(media_gaps_s=gaps)

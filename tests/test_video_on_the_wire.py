"""A real clip of signing on the wire in each form, by the service's own log: bit for bit, in order, never early."""

import hashlib
import json
import os
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from loadbench.corpus import read
from loadbench.media import prepare
from loadbench.media.plan import ChunkPlan
from loadbench.session.load import load_profile, media_form
from tests.test_known_delays import joined, simulating
from tests.test_main_job import loadbench

SHARED = Path(os.environ.get("LOADBENCH_SHARED", Path(__file__).parents[2] / "shared"))
SIGN_CLIP = SHARED / "data" / "sign_clip.mp4"
SESSIONS, LATE_NS = 20, 1_000_000_000
FORMS = {
    "jpeg": ("kind: frames, width: 360, height: 480", 58),
    "h264": ("kind: frames, codec: h264, width: 360, height: 480", 58),
    "fmp4": ("kind: video, container: fmp4, slice_ms: 250, width: 360, height: 480", 8),
}

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.slow,
    pytest.mark.skipif(not SIGN_CLIP.is_file(), reason="the sign clip lies outside the repository"),
]


def speaking(folder: Path, media: str) -> Path:
    """A profile like that of signing in single pictures, of other media."""
    text = resources.files("loadbench").joinpath("data/profiles/sign-frames-binary.yaml").read_text()
    path = folder / "mine.yaml"
    path.write_text(re.sub(r"media: .*", lambda _: f"media: {{{media}}}", text))
    return path


@pytest.mark.parametrize("form", FORMS)
async def test_20_sessions_of_a_real_clip_arrive_bit_for_bit_in_order_and_at_their_times(
    tmp_path: Path, form: str
) -> None:
    media, count = FORMS[form]
    profile = speaking(tmp_path, media)
    clip = {"id": "clip", "direction": "sign2spoken", "video_filepath": str(SIGN_CLIP), "source_lang": "ase"}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(clip | {"target_lang": "en", "text": "red boat"}) + "\n")
    async with simulating(tmp_path, "--profile", str(profile)) as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", str(profile), "--corpus", ".", "--users", str(SESSIONS)),
            *("--sessions", str(SESSIONS), "--out", "bundle", "--quiet"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    asked = media_form(load_profile(str(profile)).media)
    plan = ChunkPlan.load(prepare.prepare(read.clips(tmp_path), asked, prepare.default_cache())["clip"])
    assert len(plan) == count
    sent = b"".join(plan.wire(at) for at in range(count))
    pairs = joined(tmp_path)
    assert len(pairs) == SESSIONS
    late: list[int] = []
    for record, entry in pairs:
        assert (record["outcome"], entry.violations) == ("ok", []), record["cause"]
        assert entry.chunk_bytes == plan.media.tolist()
        assert entry.media_sha256 == hashlib.sha256(sent).hexdigest()
        zero_ns = record["utterances"][0]["media_zero_ns"]
        behind = np.array(entry.chunks_ns) - zero_ns - plan.due_ns
        assert behind.min() >= 0, "a chunk before its time"
        assert entry.end_ns is not None
        assert entry.end_ns >= zero_ns + plan.duration_ns, "the end mark before the end of the media"
        late.append(int(behind.max()))
    verdict = json.loads((tmp_path / "bundle" / "summary.json").read_text())["verdict"]
    if verdict["state"] == "INVALID":
        pytest.skip(f"this machine was too busy to measure: {verdict['reasons']}")
    assert max(late) < LATE_NS

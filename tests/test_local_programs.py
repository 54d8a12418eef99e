"""Local programs from the outside: the command line, programs on pipes, and what is found in the bundle."""

import importlib.util
import json
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from loadbench.simulator.log import read
from tests.test_main_job import loadbench, sessions, tone
from tests.typed import typed

pytestmark = pytest.mark.realtime
HERE = Path(__file__).parent
DEMO = HERE.parent / "loadbench" / "data" / "demo" / "manifest.jsonl"


def python(*words: str) -> str:
    return "exec:" + shlex.join([sys.executable, *words])


def run(*words: str) -> tuple[str, ...]:
    return ("run", *words, "--out", "bundle", "--quiet", "--set", "metrics.enabled=false")


@pytest.mark.alone
async def test_the_known_delays_of_a_program_are_measured_through_its_pipes(tmp_path: Path) -> None:
    tone(tmp_path, 2.0)
    simulator = python("-m", "loadbench", "simulate", "--stdio", "--profile", "local-lines", "--log", "sim.jsonl")
    code, out, err = await loadbench(
        *run("--url", f"{simulator} --first 0.3 --final 0.5", "--profile", "local-lines", "--corpus", "."),
        *("--users", "2", "--sessions", "2"),
        cwd=tmp_path,
    )
    assert code in (0, 3), out + err  # 3: two processors, and four interpreters that start on them
    entries = {entry.session: entry for entry in read(tmp_path / "sim.jsonl")}
    found = sessions(tmp_path / "bundle")
    assert sorted(entries) == sorted(record["id"] for record in found)
    for record in found:
        entry, utterance = entries[record["id"]], record["utterances"][0]
        channel = utterance["channels"]["transcript"]
        assert (record["outcome"], utterance["done_rule"]) == ("ok", "close")
        assert entry.violations == []
        assert entry.media_bytes == utterance["media_bytes"] == 64_000
        assert entry.end_ns is not None
        assert entry.first_sent_ns is not None
        assert entry.final_sent_ns is not None
        assert entry.first_sent_ns - entry.chunks_ns[0] >= 300e6
        assert entry.final_sent_ns - entry.end_ns >= 500e6
        gaps = [channel["first_ns"] - entry.first_sent_ns, channel["last_final_ns"] - entry.final_sent_ns]
        assert all(gap > 0 for gap in gaps), "heard before it was said"
        assert statistics.median(gaps) < 50e6
    summary = json.loads((tmp_path / "bundle/summary.json").read_text())
    assert summary["readings"]["target"]["processes_max"] == 2
    assert summary["readings"]["target"]["rss_max_bytes"] > 20e6
    assert "target   memory at most" in out


async def test_frames_go_to_a_program_each_after_its_length(tmp_path: Path) -> None:
    clip = next(line for line in DEMO.read_text().splitlines() if "sign-01" in line)
    item = json.loads(clip) | {"video_filepath": str(DEMO.parent / json.loads(clip)["video_filepath"])}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(item) + "\n")
    simulator = python("-m", "loadbench", "simulate", "--stdio", "--profile", "local-frames", "--log", "sim.jsonl")
    code, out, err = await loadbench(
        *run("--url", simulator, "--profile", "local-frames", "--corpus", "."), cwd=tmp_path
    )
    assert code in (0, 1, 3), out + err  # 1: the text is not that of the reference
    (entry,), (record,) = read(tmp_path / "sim.jsonl"), sessions(tmp_path / "bundle")
    assert record["outcome"] == "ok"
    assert entry.violations == []
    assert len(entry.chunk_bytes) == record["utterances"][0]["chunks_sent"]
    assert sum(entry.chunk_bytes) == record["utterances"][0]["media_bytes"]


PROGRAMS = {
    "wrong status": ("import sys; print('no model', file=sys.stderr); sys.exit(3)", "target_error", "no model"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "lost", "ended by SIGKILL"),
    "ended early": ("pass", "closed_early", "closed by target without final"),
    "garbage": ("print('no json', flush=True); input()", "parse_error", "not JSON"),
    "no newline": ("print('x' * 3_000_000, end='', flush=True); input()", "our_limit", "over our limit of 1048576"),
    "says nothing": ("import sys; sys.stdin.buffer.read()", "no_output", "had said nothing at all"),
    "floods": (
        "import os, itertools; all(os.write(1, b'{}\\n' * 1000) for _ in itertools.count())",
        "no_final",
        "no end of output within 1 s",
    ),
    "does not read": ("import time; time.sleep(60)", "no_final", "no end of output within 1 s"),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_what_a_program_does_wrong_is_an_outcome_with_its_cause(tmp_path: Path, name: str) -> None:
    script, outcome, cause = PROGRAMS[name]
    tone(tmp_path, 4.0)  # more than a pipe holds
    profile = (HERE.parent / "loadbench/data/profiles/local-lines.yaml").read_text()
    begin, end = profile.index("open:"), profile.index("media:")
    (tmp_path / "mine.yaml").write_text(profile[:begin] + profile[end:])
    code, out, err = await loadbench(
        *run("--url", python("-c", script), "--profile", "mine.yaml", "--corpus", "."),
        *("--set", "limits.final_s=1", "--set", "limits.message_mib=1"),
        cwd=tmp_path,
    )
    (record,) = sessions(tmp_path / "bundle")
    assert (record["outcome"], record["side"] == "tester") == (outcome, False), record["cause"]
    assert cause in record["cause"]
    assert code in (1, 3), out + err
    if name == "wrong status":
        (aside,) = map(json.loads, (tmp_path / "bundle/stderr.jsonl").read_text().splitlines())
        assert aside == {"type": "aside", "session": record["id"], "text": "no model\n"}
    if name == "does not read":
        assert record["lateness"]["blocked_ns"] > 0
        assert record["lateness"]["unsent_max_bytes"] > 0
    assert not [one for one in psutil.process_iter(["cmdline"]) if script in (one.info["cmdline"] or [])]


async def test_a_secret_reaches_a_program_by_its_environment_and_no_file_by_any_way(tmp_path: Path) -> None:
    tone(tmp_path, 0.3)
    script = "import os, sys; sys.stdin.buffer.read(); token = os.environ['TOKEN']; print(len(token)); sys.exit(token)"
    plan = 'corpus.path = "."\n[target]\nprofile = "local-text"\nenv = { TOKEN = "{secret.token}" }\n'
    plan += 'secrets = { token = "file:token.txt" }\n'
    (tmp_path / "plan.toml").write_text(plan)
    (tmp_path / "token.txt").write_text("open-sesame-4711\n")
    await loadbench(*run("plan.toml", "--url", python("-c", script)), cwd=tmp_path)
    (record,) = sessions(tmp_path / "bundle")
    assert record["utterances"][0]["channels"]["transcript"]["segments"][0]["text"] == "16"
    assert "the program ended with status 1" in record["cause"]
    files = [path for path in (tmp_path / "bundle").iterdir() if path.is_file()]
    assert len(files) > 10
    assert not [path.name for path in files if b"sesame" in path.read_bytes()]


REFUSED: list[tuple[str, tuple[str, ...], str]] = [
    ('url = "exec:cat"', (), "target.url: exec: runs a command of this machine, so it must come from the command line"),
    ('url = "exec:cat"\nheaders = { a = "b" }', ("--allow-exec",), "target.headers: a local program has none"),
    ("", ("--url", "exec:no-such-program"), "target.url: there is no program no-such-program here"),
    ("", ("--url", "exec:cat {secret.key}"), "a command line can be read by everybody here"),
    ("", ("--url", "ws://127.0.0.1:1"), "profile local-text speaks exec:, not ws://"),
    ("", (), "target.url is missing (--url), for instance exec:./recognise"),
    ("", ("--url", "exec:cat", "--watch-pid", "4194303"), "readings.pid: there is no process 4194303 here"),
]


@pytest.mark.parametrize(("more", "flags", "problem"), REFUSED)
def test_a_command_that_nobody_typed_or_that_cannot_run_is_refused_before_anything_starts(
    tmp_path: Path, more: str, flags: tuple[str, ...], problem: str
) -> None:
    tone(tmp_path, 0.3)
    (tmp_path / "plan.toml").write_text(f'corpus.path = "."\n[target]\nprofile = "local-text"\n{more}\n')
    code, out, err = typed(*run("plan.toml", *flags), cwd=tmp_path)
    assert code == 2, out + err
    assert problem in err
    assert "Traceback" not in err
    assert not (tmp_path / "bundle").exists()


async def test_a_profile_of_somebody_s_that_names_a_command_needs_leave(tmp_path: Path) -> None:
    tone(tmp_path, 0.3)
    text = (HERE.parent / "loadbench/data/profiles/local-text.yaml").read_text()
    (tmp_path / "theirs.yaml").write_text(text.replace("stdin: raw", 'stdin: raw, url: "exec:wc -c"'))
    words = run("--profile", "theirs.yaml", "--corpus", ".")
    code, _, err = await loadbench(*words, cwd=tmp_path)
    assert code == 2
    assert "transport.url of profile local-text: exec: runs a command" in err
    await loadbench(*words, "--allow-exec", cwd=tmp_path)
    (record,) = sessions(tmp_path / "bundle")
    assert record["utterances"][0]["channels"]["transcript"]["segments"][0]["text"] == "9600"


async def test_a_watched_process_is_in_the_ticks(tmp_path: Path) -> None:
    tone(tmp_path, 1.5)
    watched = psutil.Popen([sys.executable, "-c", "input()"], stdin=-1)
    try:
        code, out, err = await loadbench(
            *run("--url", "exec:wc -c", "--profile", "local-text", "--corpus", ".", "--watch-pid", str(watched.pid)),
            cwd=tmp_path,
        )
    finally:
        watched.kill()
        watched.wait()
    ticks: list[dict[str, Any]] = list(map(json.loads, (tmp_path / "bundle/ticks.jsonl").read_text().splitlines()))
    seen = [tick["readings"] for tick in ticks if "target_processes" in tick["readings"]]
    assert seen, out + err
    assert {reading["target_processes"] for reading in seen} == {1.0}
    assert code in (0, 1, 3)


@pytest.mark.slow
async def test_a_real_recogniser_on_pipes_hears_the_demo_corpus(tmp_path: Path) -> None:
    if importlib.util.find_spec("moonshine_voice") is None:
        pytest.skip("the extra demo is not installed")
    clips = ["en-01", "en-02", "en-03", "en-04"]
    code, out, err = await loadbench(
        *run("--url", python(str(HERE / "moonshine_program.py")), "--profile", "local-lines", "--corpus", str(DEMO)),
        *("--set", f"corpus.ids={json.dumps(clips)}", "--sessions", "4", "--users", "1"),
        cwd=tmp_path,
    )
    assert code in (0, 3), out + err
    assert {record["outcome"] for record in sessions(tmp_path / "bundle")} == {"ok"}
    scores = json.loads((tmp_path / "bundle/scores.json").read_text())
    assert scores["channels"]["transcript"]["wer"]["value"] < 0.3
    asides = map(json.loads, (tmp_path / "bundle/stderr.jsonl").read_text().splitlines())
    assert all("model loaded" in aside["text"] for aside in asides)

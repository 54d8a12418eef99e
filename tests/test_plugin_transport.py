"""A transport from another package: installed beside loadbench, found by its entry point, by the engine as well."""

import asyncio
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.test_main_job import sessions, tone

pytestmark = pytest.mark.realtime
HERE = Path(__file__).parent
EXAMPLE = HERE / "wyoming"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was installed, from a wheel as its build backend would make it."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = f"loadbench_wyoming-{project['version']}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in project["entry-points"].items()
    )
    wheel = folder / f"loadbench_wyoming-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(EXAMPLE / "loadbench_wyoming.py", "loadbench_wyoming.py")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/entry_points.txt", points)
        file.writestr(f"{info}/RECORD", "")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder)]
    subprocess.run([*words, str(wheel)], check=True)
    return folder


async def loadbench(*words: str, cwd: Path, site: Path | None = None) -> tuple[int, str]:
    paths = [str(HERE.parent), *([str(site)] if site else [])]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadbench", *words),
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(child.communicate(), 90)
    assert child.returncode is not None
    return child.returncode, out.decode()


class Service:
    """Hears the events of one client and says a transcript 0.3 s after the last of them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.samples = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            event = json.loads(line)
            self.events.append(event)
            self.samples += len(await reader.readexactly(event.get("payload_length", 0))) // 2
            if event["type"] == "audio-stop":
                await asyncio.sleep(0.3)
                writer.write(
                    json.dumps({"type": "transcript", "data": {"text": "the red boat leaves"}}).encode() + b"\n"
                )
                await writer.drain()
        writer.close()


@pytest.fixture
def words() -> tuple[str, ...]:
    profile = str(EXAMPLE / "wyoming.yaml")
    return (
        "run",
        "--profile",
        profile,
        "--corpus",
        ".",
        "--quiet",
        "--out",
        "bundle",
        "--set",
        "metrics.enabled=false",
    )


async def test_a_service_is_spoken_to_over_an_installed_plug_in(
    tmp_path: Path, site: Path, words: tuple[str, ...]
) -> None:
    tone(tmp_path, 1.05)
    service = Service()
    server = await asyncio.start_server(service.talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        code, out = await loadbench(*words, "--url", f"tcp://127.0.0.1:{port}", cwd=tmp_path, site=site)
    assert code in (0, 3), out
    (record,) = sessions(tmp_path / "bundle")
    channel = record["utterances"][0]["channels"]["transcript"]
    assert record["outcome"] == "ok"
    assert channel["segments"][0]["text"] == "the red boat leaves"
    assert channel["last_final_ns"] - record["utterances"][0]["eos_ns"] >= 300e6
    kinds = [event["type"] for event in service.events]
    assert kinds == ["transcribe", "audio-start", *["audio-chunk"] * 11, "audio-stop"]
    assert service.samples == 16_800
    assert service.events[2]["data"] == {"rate": 16000, "width": 2, "channels": 1}  # the profile's option came through


async def test_nobody_at_the_address_is_an_outcome_and_not_an_error(
    tmp_path: Path, site: Path, words: tuple[str, ...]
) -> None:
    tone(tmp_path, 0.2)
    code, out = await loadbench(*words, "--url", "tcp://127.0.0.1:1", cwd=tmp_path, site=site)
    assert code == 4, out
    assert sessions(tmp_path / "bundle")[0]["outcome"] == "connect_failed"


async def test_a_plug_in_says_what_is_wrong_with_an_address(tmp_path: Path, site: Path, words: tuple[str, ...]) -> None:
    tone(tmp_path, 0.2)
    code, out = await loadbench(*words, "--url", "ws://127.0.0.1:1", cwd=tmp_path, site=site)
    assert (code, out) == (2, "loadbench: target.url must be tcp://HOST:PORT\n")


async def test_a_plug_in_that_is_not_installed_is_asked_for_by_name(tmp_path: Path, words: tuple[str, ...]) -> None:
    tone(tmp_path, 0.2)
    code, out = await loadbench(*words, "--url", "tcp://127.0.0.1:1", cwd=tmp_path)
    assert code == 2
    assert "transport.kind: no transport is called 'wyoming'; built in: websocket, http, requests, process" in out
    assert "plug-ins installed: none; to have another, install its package beside loadbench" in out


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_library", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_library'"),
        ("transport = object()", "is no transport: it lacks name, encoder, check, dial"),
    ],
)
async def test_a_plug_in_that_is_broken_is_told_in_one_line(
    tmp_path: Path, words: tuple[str, ...], code: str, says: str
) -> None:
    tone(tmp_path, 0.2)
    info = tmp_path / "site/broken-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[loadbench.transports]\nwyoming = broken:transport\n")
    (tmp_path / "site/broken.py").write_text(f"{code}\n")
    status, out = await loadbench(*words, "--url", "tcp://127.0.0.1:1", cwd=tmp_path, site=tmp_path / "site")
    assert status == 2
    assert f"transport.kind: the plug-in wyoming (broken:transport) {says}" in out
    assert "Traceback" not in out


def test_the_page_about_plug_ins_shows_the_example_that_is_tested() -> None:
    page = (HERE.parent / "docs" / "transports.md").read_text()
    for name in ("loadbench_wyoming.py", "pyproject.toml", "wyoming.yaml"):
        assert (EXAMPLE / name).read_text().strip() in page, name

"""How each peer is called. All get the same start: sessions begin evenly over the time that loadbench takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ours import STARTS_PER_S
from benchmarks.peers.install import HERE, node_path, node_tool, python_tool
from benchmarks.workloads import Workload


@dataclass(frozen=True)
class Work:
    """What one run of a peer has to do: `chunks` messages in each session, started over `stagger_s`."""

    url: str
    workload: Workload
    sessions: int
    chunks: int

    @property
    def stagger_s(self) -> float:
        """From the first start to the last."""
        return max(1.0, self.sessions / STARTS_PER_S)

    def settings(self, schedule: str) -> dict[str, str]:
        """For scripts that read their environment."""
        return {
            "URL": self.url,
            "SESSIONS": str(self.sessions),
            "CHUNKS": str(self.chunks),
            "BYTES": str(self.workload.payload_bytes),
            "INTERVAL_S": str(self.workload.interval_ms / 1000),
            "STAGGER_S": str(self.stagger_s),
            "SCHEDULE": schedule,
            "THINK": f"{self.workload.interval_ms}ms",
        }


@dataclass(frozen=True)
class Command:
    """Words, what is added to the environment, and the exit codes that are no failure."""

    words: Sequence[str | Path]
    env: Mapping[str, str] = field(default_factory=dict)
    allowed: Sequence[int] = (0,)


@dataclass(frozen=True)
class Peer:
    """A tool and a way to use it; `relative` where it sleeps for a while instead of to a point in time."""

    name: str
    relative: bool
    tool: Callable[[], Path | None]
    command: Callable[[Path, Work], Command]


def asyncio_script(schedule: str) -> Callable[[Path, Work], Command]:
    """asyncio and websockets."""

    def command(python: Path, work: Work) -> Command:
        words = [work.url, work.sessions, work.chunks, work.workload.payload_bytes, work.workload.interval_ms / 1000]
        said = [*map(str, words), str(work.stagger_s), schedule]
        return Command([python, HERE / "asyncio_script.py", *said])

    return command


def locust(schedule: str) -> Callable[[Path, Work], Command]:
    """One Locust process, headless; all users are spawned in the first second and stagger by themselves."""

    def command(tool: Path, work: Work) -> Command:
        users = ["-u", str(work.sessions), "-r", str(work.sessions), "--stop-timeout", "1"]
        words: list[str | Path] = [tool, "-f", HERE / "locust_user.py", "--headless", "--only-summary", *users]
        return Command(words, work.settings(schedule), allowed=(0, 1))

    return command


def k6(schedule: str) -> Callable[[Path, Work], Command]:
    """k6 on as many threads as it has cores: one."""

    def command(tool: Path, work: Work) -> Command:
        words: list[str | Path] = [tool, "run", "--quiet", "--no-usage-report", "--no-summary", HERE / "k6_script.js"]
        return Command(words, work.settings(schedule) | {"GOMAXPROCS": "1"})

    return command


def artillery(tool: Path, work: Work) -> Command:
    """One Artillery process."""
    settings = work.settings("think") | node_path() | {"ARTILLERY_DISABLE_TELEMETRY": "true"}
    settings["STAGGER_S"] = str(max(1, round(work.stagger_s)))  # whole seconds
    return Command([tool, "run", "--quiet", HERE / "artillery.yml"], settings)


def _python() -> Path | None:
    return python_tool("websockets") and python_tool("python")


PEERS = [
    Peer("asyncio + websockets, sleep", True, _python, asyncio_script("interval")),
    Peer("asyncio + websockets, absolute", False, _python, asyncio_script("absolute")),
    Peer("Locust + websocket-client, sleep", True, lambda: python_tool("locust"), locust("interval")),
    Peer("Locust + websocket-client, absolute", False, lambda: python_tool("locust"), locust("absolute")),
    Peer("k6, setInterval", True, lambda: python_tool("k6"), k6("interval")),
    Peer("k6, absolute by hand", False, lambda: python_tool("k6"), k6("absolute")),
    Peer("Artillery, think", True, lambda: node_tool("artillery"), artillery),
]

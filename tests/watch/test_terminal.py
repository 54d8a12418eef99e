"""The view: a page on a terminal, lines elsewhere, nothing when asked to be quiet."""

import io
from typing import Any

import pytest

from loadbench.results.run import Anchor, RunHeader
from loadbench.results.slo import Quantile, SloResult
from loadbench.results.tick import Tick
from loadbench.watch.terminal import View, encoding

S = 1_000_000_000


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _a_terminal_that_can_do_what_terminals_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "140")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def header(**changes: Any) -> RunHeader:
    known: dict[str, Any] = {
        "run_id": "r",
        "anchor": Anchor(monotonic_ns=0, wall_ns=0),
        "plan": {"target": {"url": "ws://127.0.0.1:1"}, "workload": {"duration_s": 60.0}},
        "headline_channel": "transcript",
        "headline_metric": "final_from_source_end",
        "slo": [],
        "seed": 7,
    }
    return RunHeader(**(known | changes))


def tick(second: int) -> Tick:
    return Tick(
        worker="w", seq=second, at_ns=100 * S + second * S, span_ns=S, active=3, users_target=4, stage="main",
        window="measure", started=1,
    )  # fmt: skip


def quantile(value_s: float | None, bound: str = "exact") -> Quantile:
    return Quantile(value_s=value_s, bound=bound, n=9, low_s=None, high_s=None, reliable=False)  # type: ignore[arg-type]


def figures(**changes: Any) -> dict[str, Any]:
    return {
        "sessions": {"started": 12, "finished": 7, "failed": 1, "cut": 1, "in_flight": 3},
        "state": "VALID",
        "reasons": [],
        "tester": {"lateness_p99_ms": 0.41, "loop_gap_max_ms": None},
        "first_metric": "first_output_from_media",
        "first": {"p50": quantile(0.3), "p95": quantile(None, "never")},
        "headline": {"p50": quantile(None), "p95": quantile(2.0, "at_least")},
        "slo": [SloResult(name="completed.min_share", met=False, limit=0.99, value=0.8, why="[1 failed]")],
    } | changes


def test_without_a_terminal_there_is_a_plain_line_every_five_seconds() -> None:
    out = io.StringIO()
    view = View(header(), stream=out)
    for second in range(1, 13):
        view.take(tick(second), figures())
    view.close()
    lines = out.getvalue().splitlines()
    assert [line.split(" |")[0] for line in lines] == ["00:01", "00:06", "00:11"]
    assert "\x1b" not in out.getvalue()
    for part in (
        "started 12 = finished 7 + failed 1 + cut 1 + in flight 3",
        "first p50 0.300 s  p95 never",
        "final p50 n/a  p95 >= 2.000 s",
        "tester VALID, lateness p99 0.4 ms, loop gap n/a",
        "00:59 left",
    ):
        assert part in lines[0]


def test_on_a_terminal_a_page_is_redrawn_each_tick_and_gone_at_the_end_with_the_cursor_there() -> None:
    out = Tty()
    view = View(header(), stream=out)
    view.take(tick(1), figures(state="INVALID", reasons=["generator late"]))
    page = out.getvalue()
    view.close()
    view.close()
    assert "(p50 0.300 s  p95 never: not usable)" in page
    for part in ("INVALID", "generator late", "started 12", "completed.min_share", "[1 failed]", "ws://127.0.0.1:1"):
        assert part in page
    assert out.getvalue().rfind("\x1b[?25h") > out.getvalue().rfind("\x1b[?25l")


def test_quiet_shows_nothing() -> None:
    for out in (io.StringIO(), Tty()):
        view = View(header(), quiet=True, stream=out)
        view.note("metrics")
        view.take(tick(1), figures())
        view.close()
        assert out.getvalue() == ""


def test_a_note_is_printed_as_it_is_even_with_brackets() -> None:
    out = io.StringIO()
    View(header(), stream=out).note("metrics  http://[::1]:9464/metrics [bold]")
    assert out.getvalue() == "metrics  http://[::1]:9464/metrics [bold]\n"


@pytest.mark.parametrize(
    ("plan", "effective", "second", "expected"),
    [
        ({"workload": {"duration_s": 60.0, "warmup_s": 5.0}}, {}, 1, "01:04 left"),
        ({"workload": {"duration_s": 2.0}}, {}, 3, "no more starts, waiting for answers"),
        ({"workload": {}}, {"sessions": 60}, 1, "9 of 60 sessions"),
        ({}, {}, 1, None),
    ],
)
def test_what_is_left_is_time_or_sessions_or_unknown(
    plan: dict[str, Any], effective: dict[str, Any], second: int, expected: str | None
) -> None:
    out = io.StringIO()
    view = View(header(plan=plan, effective=effective), stream=out)
    view.take(tick(1), figures())
    out.truncate(0)
    for number in range(2, second + 6):
        view.take(tick(number), figures())
    first = View(header(plan=plan, effective=effective), stream=(lines := io.StringIO()))
    first.take(tick(1), figures())
    shown = (out if second > 1 else lines).getvalue()
    assert (expected in shown) if expected else shown.rstrip().endswith("loop gap n/a")


class Step:
    def __init__(self, done: int, total: int, clip: str, done_s: float, total_s: float | None) -> None:
        self.done, self.total, self.clip, self.done_s, self.total_s = done, total, clip, done_s, total_s


def test_encoding_shows_a_bar_on_a_terminal_and_asks_for_no_progress_elsewhere() -> None:
    out = Tty()
    with encoding(quiet=False, stream=out) as show:
        assert show is not None
        show(Step(3, 3, "clip [red]", 754.0, 3600.0))
    assert "3/3" in out.getvalue()
    assert "12:34 of 60:00 of media  clip [red]" in out.getvalue()
    with encoding(quiet=False, stream=(unknown := Tty())) as show:
        assert show is not None
        show(Step(0, 1, "talk", 754.0, None))
    assert "12:34 of media  talk" in unknown.getvalue()
    for quiet, stream in ((True, Tty()), (False, io.StringIO())):
        with encoding(quiet=quiet, stream=stream) as show:
            assert show is None
        assert stream.getvalue() == ""

"""The run as it is seen from a terminal: a live view where there is one, a line every five seconds elsewhere."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loadbench.results.run import RunHeader
from loadbench.results.slo import Quantile, SloResult
from loadbench.results.tick import Tick

LINE_EVERY_NS: Final = 4_500_000_000  # ticks come each second, give or take: every five seconds
COLOURS: Final = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "bold red"}
Figures = Mapping[str, Any]


class Encoded(Protocol):
    """How far encoding has come."""

    @property
    def done(self) -> int:
        """Clips that are encoded."""

    @property
    def total(self) -> int:
        """Clips in all."""

    @property
    def clip(self) -> str:
        """The clip that was last at work."""

    @property
    def done_s(self) -> float:
        """Seconds of media that are encoded."""

    @property
    def total_s(self) -> float | None:
        """Of so many; None: not known."""


class View:
    """Shows a run on `stream` (stderr) while it goes on; with `quiet` nothing at all.

    `take` is fed each tick with what a judge calls its figures: `sessions`, `state`, `first`, `headline`, `tester`,
    `slo`. Ends with `close`, which leaves nothing of the live view behind.
    """

    def __init__(self, header: RunHeader, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._header = header
        self._quiet = quiet
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._live: Live | None = None
        self._zero_ns: int | None = None
        self._told_ns: int | None = None

    def note(self, text: str) -> None:
        """One line that stays."""
        if not self._quiet:
            self._console.print(Text(text), soft_wrap=True)

    def take(self, event: object, figures: Figures) -> None:
        """Show a tick; anything else is passed over."""
        if self._quiet or not isinstance(event, Tick):
            return
        if self._zero_ns is None:
            self._zero_ns = event.at_ns - event.span_ns
        if self._console.is_terminal:
            self._show(self._page(event, figures))
        elif self._told_ns is None or event.at_ns - self._told_ns >= LINE_EVERY_NS:
            self._told_ns = event.at_ns
            self.note(self._line(event, figures))

    def close(self) -> None:
        """Stop showing; may be called twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, page: Group) -> None:
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
            self._console.show_cursor(True)  # a second Ctrl-C leaves at once, and must leave a cursor
        self._live.update(page, refresh=True)

    def _page(self, tick: Tick, figures: Figures) -> Group:
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column()
        rows.add_row("run", self._title())
        rows.add_row("time", f"{self._elapsed(tick)}   {self._left(tick, figures)}")
        rows.add_row("users", f"{tick.users_target} asked for, {tick.active} active   {tick.stage}, {tick.window}")
        rows.add_row("sessions", _sessions(figures))
        rows.add_row("first", f"{_spread(figures, 'first')}   {figures['first_metric']}")
        rows.add_row("final", f"{_spread(figures, 'headline')}   {self._header.headline_metric}")
        for result in figures["slo"]:
            rows.add_row("SLO", _objective(result))
        state = Text(figures["state"], style=COLOURS.get(figures["state"], ""))
        rows.add_row("tester", state + Text("   " + _tester(figures)))
        reasons = [Text(f"  {reason}", style="yellow") for reason in figures["reasons"][:3]]
        return Group(rows, *reasons)

    def _line(self, tick: Tick, figures: Figures) -> str:
        parts = (
            self._elapsed(tick),
            f"users {tick.users_target}",
            _sessions(figures),
            f"first {_spread(figures, 'first')}",
            f"final {_spread(figures, 'headline')}",
            f"tester {figures['state']}, {_tester(figures)}",
            self._left(tick, figures),
        )
        return " | ".join(part for part in parts if part)

    def _title(self) -> str:
        asked = self._header.plan.get("target") or {}
        target = asked.get("url") or ", ".join(asked.get("urls", []))
        return "  ".join(part for part in (self._header.title, self._header.profile.get("name", ""), target) if part)

    def _elapsed(self, tick: Tick) -> str:
        return _clock((tick.at_ns - (self._zero_ns or 0)) / 1e9)

    def _left(self, tick: Tick, figures: Figures) -> str:
        """What is still to come: time where the plan has a duration, else sessions."""
        work = self._header.plan.get("workload") or {}
        duration_s, sessions = work.get("duration_s"), self._header.effective.get("sessions")
        if duration_s:
            left_s = duration_s + (work.get("warmup_s") or 0.0) - (tick.at_ns - (self._zero_ns or 0)) / 1e9
            return f"{_clock(left_s)} left" if left_s > 0 else "no more starts, waiting for answers"
        counts = figures["sessions"]
        return f"{counts['started'] - counts['in_flight']} of {sessions} sessions" if sessions else ""


@contextlib.contextmanager
def encoding(quiet: bool, stream: TextIO | None = None) -> Iterator[Callable[[Encoded], None] | None]:
    """A progress bar for encoding, on a terminal only; None where nobody would see it."""
    console = Console(file=stream or sys.stderr, highlight=False)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("encoding"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Encoded) -> None:
            text = f"{_clock(progress.done_s)}{_of(progress.total_s)} of media  {progress.clip}"
            bar.update(task, completed=progress.done, total=progress.total, description=text)

        yield show


def _of(total_s: float | None) -> str:
    return "" if total_s is None else f" of {_clock(total_s)}"


@contextlib.contextmanager
def counting(word: str, stream: TextIO | None = None) -> Iterator[Callable[[str], None] | None]:
    """How many are done and which was the last, on a terminal only; None where nobody would see it."""
    console = Console(file=stream or sys.stderr, highlight=False)
    if not console.is_terminal:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn(word),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name: bar.update(task, advance=1, description=name)


def _sessions(figures: Figures) -> str:
    counts = figures["sessions"]
    kinds = ("finished", "failed", "cut", "in_flight")
    return f"started {counts['started']} = " + " + ".join(f"{name.replace('_', ' ')} {counts[name]}" for name in kinds)


def _spread(figures: Figures, which: str) -> str:
    """In brackets where the tester is too late to know."""
    quantiles: Mapping[str, Quantile] = figures[which]
    text = "  ".join(f"{name} {_seconds(found)}" for name, found in quantiles.items())
    return f"({text}: not usable)" if figures["state"] == "INVALID" else text


def _seconds(found: Quantile) -> str:
    if found.bound == "never":
        return "never"
    if found.value_s is None:
        return "n/a"
    return f"{'>= ' if found.bound == 'at_least' else ''}{found.value_s:.3f} s"


def _objective(result: SloResult) -> Text:
    value = "n/a" if result.value is None else f"{result.value:.4g}"
    mark = Text("met      ", style="green") if result.met else Text("not met  ", style="red")
    return mark + Text(f"{result.name}  {value} (limit {result.limit:g})  {result.why}")


def _tester(figures: Figures) -> str:
    tester = figures["tester"]
    shown = (("lateness p99", "lateness_p99_ms"), ("loop gap", "loop_gap_max_ms"))
    return ", ".join(f"{name} {_ms(tester.get(key))}" for name, key in shown)


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f} ms"


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 60:02d}:{whole % 60:02d}"

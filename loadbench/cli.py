"""The command line: parse, wire, print, exit code.

Exit codes, in this precedence: 2 usage or configuration; 130 interrupted (bundle written); 4 no session reached the
target; 3 the tester's verdict is INVALID; 1 an SLO is not met; 0 pass.
"""

import contextlib
import dataclasses
import functools
import inspect
import json
import os
import re
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import loadbench
from loadbench.report.visible import visible

if TYPE_CHECKING:
    from loadbench import corpora
    from loadbench.plan import Plan

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A real-time latency load tester for live interpretation services.",
)
corpus_app = typer.Typer(
    no_args_is_help=True, help="Corpora: what is known, is it whole, convert it, encode it beforehand."
)
profile_app = typer.Typer(no_args_is_help=True, help="The profiles: how services speak.")
app.add_typer(corpus_app, name="corpus")
tables_app = typer.Typer(no_args_is_help=True, help="Score tables from one's own copy of the standard.")
app.add_typer(profile_app, name="profile")
app.add_typer(tables_app, name="tables")

TEXTS = ("target.params.", "target.headers.", "target.env.", "target.secrets.")
Text = str | None
A_CORPUS = "a manifest, or the folder of a corpus (loadbench corpus list)"
Out = Annotated[Path | None, typer.Option("--out", help="folder of the bundle; must not hold a run yet")]


class FlagError(ValueError):
    """A command cannot be done as it was typed, or not here; `problems` holds all of it, a sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def main() -> int:
    """Run a command; the user's trouble is one message with all problems, and exit code 2. The exit code."""
    try:
        _look_around()
        code = app(standalone_mode=False)
    except typer.Exit as stop:
        code = stop.exit_code
    except SystemExit as stop:
        code = stop.code
    except (typer.Abort, KeyboardInterrupt):
        print("\nloadbench: interrupted", file=sys.stderr)
        code = 130
    except Exception as error:
        code = _complain(error)
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Load what only this command needs. Ctrl-C waits for its end: raised within an import it may be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _look_around() -> None:
    try:
        Path.cwd()
    except OSError:
        raise FlagError(["the folder in which this was started is gone; change to another one"]) from None


def _complain(error: Exception) -> int:
    problems = getattr(error, "problems", None)
    usage = error.format_message() if hasattr(error, "format_message") else None
    if problems is None and usage is None:
        raise error
    if usage is not None and usage.startswith("Usage:"):
        print(usage)
        return 2
    lines = [visible(line) for line in problems or [f"{usage} (loadbench COMMAND --help shows the flags)"]]
    count = len(lines)
    head = "loadbench: " if count == 1 else f"loadbench: {count} problems:\n  "
    print(head + "\n  ".join(lines), file=sys.stderr)
    return 2


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    """A real-time latency load tester for live interpretation services."""
    if version:
        print(f"loadbench {loadbench.__version__}")
        raise typer.Exit


@app.command()
def run(
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN.toml]", help="the plan; flags override it")] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(help="the service, for instance ws://127.0.0.1:2700 or exec:COMMAND; repeated: its endpoints"),
    ] = None,
    profile: Annotated[Text, typer.Option(help="how it speaks: a shipped name or a file")] = None,
    corpus: Annotated[Text, typer.Option(help=A_CORPUS)] = None,
    users: Annotated[int | None, typer.Option(help="sessions at once (closed workload)")] = None,
    rate: Annotated[float | None, typer.Option(help="sessions a second (open workload)")] = None,
    sessions: Annotated[int | None, typer.Option(help="how many sessions in all")] = None,
    duration: Annotated[float | None, typer.Option(help="seconds in which sessions start")] = None,
    ramp: Annotated[float | None, typer.Option(help="seconds over which the users come")] = None,
    warmup: Annotated[float | None, typer.Option(help="seconds at the start that are not measured")] = None,
    seed: Annotated[int | None, typer.Option(help="everything random comes from it")] = None,
    header: Annotated[list[str] | None, typer.Option(help='"Name: value", may be repeated')] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="any other setting: limits.final_s=10")] = None,
    stop_when_broken: Annotated[
        bool | None, typer.Option("--stop-when-broken", help="end as soon as an SLO cannot be met any more")
    ] = None,
    realtime: Annotated[
        bool | None, typer.Option("--realtime", help="ask to run before ordinary processes (SCHED_FIFO)")
    ] = None,
    out: Out = None,
    port: Annotated[int | None, typer.Option(help="port of the Prometheus endpoint")] = None,
    linger: Annotated[float | None, typer.Option(help="seconds for which it stays up after the end")] = None,
    watch_pid: Annotated[
        int | None, typer.Option("--watch-pid", help="read what this process and its children use")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be done, contact nobody")] = False,
    allow_exec: Annotated[
        bool, typer.Option("--allow-exec", help="let the plan run commands (exec: targets, cmd: secrets)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no live view")] = False,
) -> None:
    """Stream a corpus to a service in real time, measure, judge, and leave a bundle."""
    with _loading():
        from loadbench import plan as plans

    flags = {
        **_endpoints(url),
        "target.profile": profile,
        "corpus.path": corpus,
        "workload.users": users,
        "workload.rate": rate,
        "workload.sessions": sessions,
        "workload.duration_s": duration,
        "workload.ramp_s": ramp,
        "workload.warmup_s": warmup,
        "workload.stop_when_broken": stop_when_broken,
        "engine.realtime": realtime,
        "seed.value": seed,
        "metrics.port": port,
        "metrics.linger_s": linger,
        "readings.pid": watch_pid,
    }
    chosen = {key: value for key, value in flags.items() if value is not None}
    if rate is not None:
        chosen.setdefault("workload.model", "constant")
    read = plans.read(plan, chosen | _headers(header or []) | _settings(set_ or []), allow_exec=allow_exec)
    sys.exit(execute(read, out, dry=dry_run, allow_exec=allow_exec, as_json=as_json, quiet=quiet))


@app.command()
def search(
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN.toml]", help="the plan; flags override it")] = None,
    of: Annotated[str, typer.Option(help="what is raised: users (at once), or rate (sessions a second)")] = "users",
    low: Annotated[float | None, typer.Option("--from", help="the lowest level: 1 user, 0.1 sessions a second")] = None,
    high: Annotated[float | None, typer.Option("--to", help="the highest level: 64 users, 6.4 a second")] = None,
    step: Annotated[float, typer.Option(help="factor of the coarse steps")] = 2.0,
    resolution: Annotated[float | None, typer.Option(help="how close: 1 user, or this share of a rate: 0.1")] = None,
    repeats: Annotated[int, typer.Option(help="how often the last level, and the one above, are run again")] = 1,
    max_utterances: Annotated[
        int | None, typer.Option("--max-utterances", help="most for a level that stays undecided; 4 times the least")
    ] = None,
    cooldown: Annotated[float, typer.Option(help="seconds at most for the service to drain after a level")] = 60.0,
    url: Annotated[
        list[str] | None,
        typer.Option(help="the service, for instance ws://127.0.0.1:2700; repeated: its endpoints"),
    ] = None,
    profile: Annotated[Text, typer.Option(help="how it speaks: a shipped name or a file")] = None,
    corpus: Annotated[Text, typer.Option(help=A_CORPUS)] = None,
    seed: Annotated[int | None, typer.Option(help="of the first level; each has its own after it")] = None,
    header: Annotated[list[str] | None, typer.Option(help='"Name: value", may be repeated')] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="any other setting: slo.wer.max=0.2")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder of all levels; must not hold a search yet")] = None,
    port: Annotated[int | None, typer.Option(help="port of the Prometheus endpoint")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be done, contact nobody")] = False,
    allow_exec: Annotated[
        bool, typer.Option("--allow-exec", help="let the plan run commands (exec: targets, cmd: secrets)")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no live view")] = False,
) -> None:
    """Find the most users, or the highest rate, at which all SLOs hold. 0: found; 1: not even the lowest level holds.

    3: the tester was too late to tell; 4: nothing was reached; 130: interrupted, and search.json has what was found.
    """
    with _loading():
        from loadbench import plan as plans
        from loadbench import search as door
        from loadbench.analysis.capacity import Span

    if of not in {"users", "rate"}:
        raise FlagError([f"--of must be users or rate, not {of!r}"])
    closed = of == "users"
    flags = {
        **_endpoints(url),
        "target.profile": profile,
        "corpus.path": corpus,
        "seed.value": seed,
        "metrics.port": port,
    }
    chosen = {key: value for key, value in flags.items() if value is not None}
    read = plans.read(plan, chosen | _headers(header or []) | _settings(set_ or []), allow_exec=allow_exec)
    least, most, near = (1, 64, 1) if closed else (0.1, 6.4, 0.1)
    span = Span(
        low=_level(least if low is None else low),
        high=_level(most if high is None else high),
        unit="users" if closed else "sessions/s",
        step=step,
        resolution=near if resolution is None else resolution,
    )
    asked = door.Asked(
        span=span,
        folder=out or Path("runs") / time.strftime("search-%Y%m%d-%H%M%S"),
        repeats=repeats,
        max_utterances=max_utterances,
        cooldown_s=cooldown,
        allow_exec=allow_exec,
        quiet=quiet,
    )
    if dry_run:
        print("\n".join(door.outline(read, asked).lines(read)))
        return
    sys.exit(door.search(read, asked))


def _level(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def execute(plan: "Plan", out: Path | None, *, dry: bool, allow_exec: bool, as_json: bool, quiet: bool) -> int:
    """A read plan to its end: prepare, perform, print. The exit code."""
    with _loading():
        import asyncio

        from loadbench import conduct, prepared
        from loadbench.report import terminal
        from loadbench.watch.terminal import View, encoding

    with encoding(quiet) as progress:
        ready = prepared.prepare(plan, allow_exec=allow_exec, progress=progress)
    try:
        if dry:
            print(json.dumps(prepared.dry_run(ready), indent=2, ensure_ascii=False))
            return 0
        folder = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
        view = View(ready.header, quiet=quiet)
        result = asyncio.run(conduct.perform(ready, folder, view))
    finally:
        ready.close()
    print(
        json.dumps(result.summary, indent=2, ensure_ascii=False)
        if as_json
        else terminal.render(result.summary, result.scores)
    )
    if not as_json:
        print(f"\nbundle   {folder}\nreport   {folder / 'report.html'}\nmetrics  {folder / 'metrics.prom'}")
    if result.exit_code == 4:
        print("loadbench: no session reached the target\n  " + "\n  ".join(result.causes), file=sys.stderr)
    _refuse_to_lose(result.unwritten)
    return result.exit_code


def _refuse_to_lose(unwritten: list[str]) -> None:
    """All was said already, and the records are whole: still, what was to be written is the user's to see to."""
    if unwritten:
        raise FlagError(unwritten)


@app.command()
def report(
    bundle: Annotated[Path, typer.Argument(help="the folder of a run, finished or not")],
    lang: Annotated[str, typer.Option(help="language of the HTML report: en or zh")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON")] = False,
    simuleval: Annotated[Path | None, typer.Option(help="a folder: write instances.log for SimulEval into it")] = None,
    omnisteval: Annotated[Path | None, typer.Option(help="a folder: write JSON lines for OmniSTEval into it")] = None,
) -> None:
    """Make the derived files of a bundle again, and print its summary; a killed run is marked incomplete."""
    from loadbench.report import derive, instances, terminal
    from loadbench.results.bundle import Bundle

    if lang not in {"en", "zh"}:
        raise FlagError([f"--lang must be en or zh, not {lang!r}"])
    derived = derive.derive(bundle, lang)
    shown = json.dumps(derived.summary, indent=2, ensure_ascii=False) if as_json else ""
    print(shown or terminal.render(derived.summary, derived.scores) + f"\n\nreport   {bundle / 'report.html'}")
    for folder, write in ((simuleval, instances.simuleval), (omnisteval, instances.omnisteval)):
        for line in write(Bundle(bundle), folder) if folder is not None else ():
            print(line, file=sys.stderr)
    _refuse_to_lose(derived.unwritten)


@app.command()
def score(
    bundle: Annotated[Path, typer.Argument(help="the folder of a run")],
    transcribe: Annotated[
        Text, typer.Option(help="a command that makes text of kept speech: paths in, JSON lines out")
    ] = None,
    tables: Annotated[
        Text, typer.Option(help="score tables from your copy of the standard, or the made-up ones: illustrative")
    ] = None,
    ratings: Annotated[Path | None, typer.Option(help="what people rated: CSV or JSON lines")] = None,
    allow_exec: Annotated[
        bool, typer.Option("--allow-exec", help="let the bundle's plan run its command (scoring.transcribe)")
    ] = False,
) -> None:
    """Score what the service said against the references, and print the scores as JSON.

    Tables and ratings are kept in the bundle, so that its scores can be made again from it alone.
    """
    from loadbench.report import derive

    _entered(bundle, tables, ratings)
    for problem in _transcribed(bundle, transcribe, allow_exec=allow_exec):
        print(f"loadbench: {problem}", file=sys.stderr)
    derived = derive.derive(bundle)
    print(json.dumps(derived.scores, indent=2, ensure_ascii=False))
    for problem in derived.summary["damage"]:
        print(f"loadbench: {problem}", file=sys.stderr)
    _refuse_to_lose(derived.unwritten)


def _entered(folder: Path, tables: str | None, ratings: Path | None) -> None:
    """Read the tables and ratings that were given, say all that is wrong with both, and keep them in the bundle."""
    from loadbench import plan as plans
    from loadbench.results.bundle import Bundle, why, write_whole
    from loadbench.scoring import ratings as rated
    from loadbench.scoring import tables_file

    bundle, problems = Bundle(folder), list[str]()
    kept: dict[str, list[bytes]] = {}
    with plans.noting(problems):
        if tables is not None:
            kept[tables_file.KEPT] = [tables_file.load(tables, plans.RESPONSE_METRICS).encode()]
    with plans.noting(problems):
        if ratings is not None:
            kept[rated.KEPT] = list(rated.encode(rated.load(ratings)))
    if ratings is not None and tables is None and not (bundle.folder / tables_file.KEPT).exists():
        problems.append("--ratings: the tables that they are for are not in this bundle; give --tables as well")
    if problems:
        raise FlagError(problems)
    for name, parts in kept.items():
        try:
            write_whole(bundle.folder / name, parts)
        except OSError as error:
            raise FlagError([f"cannot write {bundle.folder / name}: {why(error)}"]) from None


def _transcribed(folder: Path, command: str | None, *, allow_exec: bool) -> list[str]:
    """Make text of kept speech, by the command given, or by the plan's where that may run. What to tell the user."""
    from loadbench.results.bundle import Bundle, why
    from loadbench.scoring.transcribe import transcribe

    bundle = Bundle(folder)
    asked = (bundle.header.plan.get("scoring") or {}).get("transcribe")
    if command is None and asked and not allow_exec:
        return ["scoring.transcribe runs a command, and speech stays unscored; allow it with --allow-exec"]
    command = command or asked
    if not command:
        return []
    try:
        found = transcribe(bundle, command.removeprefix("exec:"))
    except OSError as error:
        raise FlagError([f"cannot write the transcripts: {why(error)}"]) from None
    failed = [each for each in found if each.text is None]
    return [f"{each.session}, channel {each.channel}: not made text: {each.error}" for each in failed]


_FILTERS: dict[str, Any] = {
    "split": Annotated[Text, typer.Option(help="only this part of the corpus, as train, dev, test")],
    "limit": Annotated[int | None, typer.Option(help="only the first clips of those chosen")],
    "ids": Annotated[Text, typer.Option(help="only these clips, with commas between")],
    "max_duration_s": Annotated[
        float | None, typer.Option("--max-duration", help="only clips of at most so many seconds")
    ],
    "layout": Annotated[Text, typer.Option(help="read it as this, instead of what is recognised")],
    "source_lang": Annotated[Text, typer.Option(help="what is spoken or signed, where the corpus names no language")],
    "target_lang": Annotated[Text, typer.Option(help="what it is interpreted into, where the corpus does not say it")],
    "fps": Annotated[Text, typer.Option(help='rate of folders of frames, where the corpus has none: 25, "30000/1001"')],
}


def _of_corpus(command: Callable[..., None]) -> Callable[..., None]:
    """A command of a corpus with the flags that all of these share; it gets them, with its path, as `question`."""

    @functools.wraps(command)
    def whole(**given: Any) -> None:
        from loadbench import corpora

        chosen = {name: given.pop(name) for name in _FILTERS}
        ids = tuple(filter(None, (name.strip() for name in (chosen.pop("ids") or "").split(","))))
        path = given.pop("path")
        command(None if path is None else corpora.Question(path, ids=ids, **chosen), **given)

    first, *own = inspect.signature(command).parameters.values()
    path: Any = Path | None if first.default is None else Path
    parameters = [
        first.replace(name="path", annotation=Annotated[path, typer.Argument(help=A_CORPUS)]),
        *own,
        *(first.replace(name=name, default=None, annotation=kind) for name, kind in _FILTERS.items()),
    ]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    whole.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    whole.__annotations__ = {each.name: each.annotation for each in parameters}
    return whole


@tables_app.command("template")
def tables_template(
    illustrative: Annotated[
        bool, typer.Option("--illustrative", help="the made-up tables, to see what a filled-in file looks like")
    ] = False,
) -> None:
    """Print an empty tables file: titles, what is known of clauses, no values."""
    from loadbench.scoring import tables_file

    print(tables_file.template("illustrative.toml" if illustrative else "template.toml"), end="")


@tables_app.command("check")
def tables_check(
    file: Annotated[Text, typer.Argument(metavar="[FILE]", help="a tables file")] = None,
    ratings: Annotated[Path | None, typer.Option(help="a file of ratings")] = None,
) -> None:
    """Read a tables file, a file of ratings, or both; say all that is wrong, or what they hold. Exit code 2: wrong."""
    from loadbench import plan as plans
    from loadbench.scoring import ratings as rated
    from loadbench.scoring import tables_file

    problems: list[str] = []
    lines: list[str] = []
    with plans.noting(problems):
        if file is not None:
            lines += tables_file.load(file, plans.RESPONSE_METRICS).outline()
    with plans.noting(problems):
        if ratings is not None:
            lines += rated.outline(rated.load(ratings))
    if problems or not lines:
        raise FlagError(problems or ["tables check takes a tables file, or --ratings FILE, or both"])
    print("\n".join(map(visible, lines)))


@tables_app.command("schema")
def tables_schema(
    ratings: Annotated[bool, typer.Option("--ratings", help="of a rating instead")] = False,
) -> None:
    """Print the JSON Schema of a tables file."""
    from loadbench.scoring import ratings as rated
    from loadbench.scoring import tables_file

    print(json.dumps(rated.schema() if ratings else tables_file.schema(), indent=2, ensure_ascii=False))


@corpus_app.command("check")
@_of_corpus
def corpus_check(
    question: "corpora.Question",
    media: Annotated[bool, typer.Option(help="decode the media and compare them with what is declared")] = True,
    activity: Annotated[
        bool, typer.Option("--activity", help="estimate when speech begins and ends where the corpus does not say it")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print all of it as JSON, nothing shortened")] = False,
) -> None:
    """Read a corpus, say all that is wrong with it, and count what it holds. Exit code 2 where there are problems."""
    from loadbench import corpora
    from loadbench.watch.terminal import counting

    with counting("checking") as progress:
        found = corpora.check(question, media=media, activity=activity, whole=as_json, seen=progress)
    print(
        json.dumps(found.plain(), indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(map(visible, found.text().splitlines()))
    )
    sys.exit(2 if found.problems else 0)


@corpus_app.command("convert")
@_of_corpus
def corpus_convert(
    question: "corpora.Question",
    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="the manifest to write")],
    estimate_activity: Annotated[
        bool, typer.Option("--estimate-activity", help="with an estimate of when speech begins and ends, marked as one")
    ] = False,
) -> None:
    """Write a corpus as a manifest of ours; its media stay where they are.

    Exit code 2 where there are problems; the clips that have none are written.
    """
    from loadbench import corpora
    from loadbench.corpus.manifest import CorpusError
    from loadbench.watch.terminal import counting

    with counting("converting") as progress:
        done = corpora.convert(question, out, estimate=estimate_activity, seen=progress)
    print(
        f"{done.clips:,} clips in {out}"
        + (f", {done.estimated:,} of them with estimated activity" if done.estimated else "")
    )
    if done.problems:
        raise CorpusError([*done.problems.lines(), "clips with problems were left out"])


@corpus_app.command("list")
@_of_corpus
def corpus_list(
    question: "corpora.Question | None" = None,
    schema: Annotated[bool, typer.Option("--schema", help="the JSON Schema of a line of our manifest")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """The corpora that are known, or the clips of one."""
    from loadbench import corpora

    if schema and question is not None:
        raise FlagError(["corpus list takes a corpus or --schema, not both"])
    if schema:
        print(corpora.schema())
        return
    rows = corpora.layouts_rows() if question is None else corpora.rows(question)
    for row in rows:
        print(json.dumps(row, ensure_ascii=False) if as_json else visible(corpora.told(row)))


@corpus_app.command("prepare")
@_of_corpus
def corpus_prepare(
    question: "corpora.Question",
    profile: Annotated[str, typer.Option(help="for which profile")],
    cache: Annotated[Path | None, typer.Option(help="where; the run then needs media.cache set to it")] = None,
    lead_in: Annotated[float, typer.Option(help="media.lead_in_s of the run", min=0, max=3600)] = 0.0,
    tail: Annotated[float, typer.Option(help="media.tail_s of the run", min=0, max=3600)] = 0.0,
) -> None:
    """Encode a corpus for a profile beforehand, so that a run, or a small device, only has to stream."""
    from loadbench import plugins
    from loadbench.corpus import read
    from loadbench.media import prepare
    from loadbench.media.form import with_silence
    from loadbench.session import load
    from loadbench.watch.terminal import encoding

    spoken = load.load_profile(profile)
    found = plugins.encoders(spoken)
    tail_s = sum(step.silence_s or 0.0 for step in spoken.end)
    clips, folder = read.clips(*question.parts()), cache or prepare.default_cache()
    with encoding(quiet=False) as progress:
        form, also = load.media_form(spoken.media, found), load.also_form(spoken, found)
        form = with_silence(form, lead_in, tail)
        done = prepare.prepare(clips, form, folder, progress, tail_s, also, load.form_encoders(spoken, found))
    print(f"{len(done)} clips are ready for {spoken.name} in {folder}")


@profile_app.command("list")
def profile_list(
    as_json: Annotated[bool, typer.Option("--json", help="print them as JSON")] = False,
) -> None:
    """The profiles that are shipped: service, transport, channels, and how each was checked."""
    from loadbench.profiles import show

    rows = show.rows()
    print(json.dumps(rows, indent=2, ensure_ascii=False) if as_json else show.table(rows))


@profile_app.command("show")
def profile_show(
    name: Annotated[Text, typer.Argument(metavar="[NAME|FILE]", help="a shipped name or a file")] = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="as it takes effect, with all defaults")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="the JSON Schema of the profile language")] = False,
) -> None:
    """Print a profile's source, to start one's own from."""
    from loadbench.profiles import show
    from loadbench.session import load

    if schema == (name is not None) or (schema and resolved):
        raise FlagError(["profile show takes the name of a profile or a file, or --schema"])
    if name is None:
        print(show.schema())
        return
    text, file = load.source(name)
    load.load_text(text, file)
    print(show.resolved(text, file) if resolved else text, end="")


@profile_app.command("check")
def profile_check(
    file: Annotated[str, typer.Argument(help="a profile file, or a shipped name")],
    messages: Annotated[
        Path | None, typer.Option(help='recorded messages: a bundle, or JSON lines {"at_ms": ..., "data": ...}')
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit code 1 where there are warnings")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Read a profile and say all that is wrong or odd, with lines. Exit code 2 for errors.

    With recorded messages, also what these say against it: finals that change, fields that never come.
    """
    from loadbench.profiles import examine

    found = examine.examine(file, messages)
    print(json.dumps(found.plain(), indent=2, ensure_ascii=False) if as_json else found.text())
    sys.exit(found.code(strict=strict))


@profile_app.command("try")
def profile_try(
    url: Annotated[str, typer.Argument(help="the service, for instance ws://127.0.0.1:2700")],
    profiles: Annotated[Text, typer.Option(help="only these, with commas between: shipped names or files")] = None,
    corpus: Annotated[Path | None, typer.Option(help="take the media from here, not from the built-in sample")] = None,
    header: Annotated[list[str] | None, typer.Option(help='"Name: value", may be repeated')] = None,
    secret: Annotated[list[str] | None, typer.Option(help="NAME=env:VARIABLE or NAME=file:PATH, repeatable")] = None,
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, for profiles that have it")] = None,
    every: Annotated[bool, typer.Option("--all", help="go on behind the first that fits for certain")] = False,
    seconds: Annotated[float, typer.Option(help="at most so long over all")] = 300.0,
    yes: Annotated[bool, typer.Option("--yes", help="contact an address beyond this machine and its network")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the verdicts as JSON")] = False,
) -> None:
    """Find out which shipped profiles fit a service: short sessions, one at a time. 0: one fits; 1: none.

    4: nobody was reached. Hosted services' own profiles are tried at their hosts, or where they are asked for.
    """
    from loadbench.profiles import attempt

    asked = attempt.Asked(
        url=url,
        profiles=tuple(filter(None, (name.strip() for name in (profiles or "").split(",")))),
        corpus=corpus,
        headers=_headers(header or []).get("target.headers", {}),
        secrets=_pairs("--secret", secret or []),
        params=_pairs("--param", param or []),
        every=every,
        overall_s=seconds,
        confirmed=yes,
    )
    sys.exit(attempt.door(asked, as_json=as_json, say=lambda line: print(line, file=sys.stderr, flush=True)))


@profile_app.command("record")
def profile_record(
    to: Annotated[str, typer.Option(help="the service, for instance ws://127.0.0.1:2700")],
    out: Annotated[Path, typer.Option(help="the recording, JSON lines; must not be there yet")],
    listen: Annotated[str, typer.Option(help="where the client is to connect to; port 0: a free one")] = "127.0.0.1:0",
    draft: Annotated[Path | None, typer.Option(help="the drafted profile; beside the recording, as .yaml")] = None,
    secret: Annotated[list[str] | None, typer.Option(help="a header, query or JSON name to hide; repeatable")] = None,
    keep_media: Annotated[bool, typer.Option("--keep-media", help="keep all media in the recording")] = False,
    connections: Annotated[int | None, typer.Option(help="end after so many connections; else at Ctrl-C")] = None,
) -> None:
    """Stand between a client and its service, write down what they say, and draft a profile from it.

    Bytes pass unchanged. 0: recorded; 1: nobody came.
    """
    from loadbench.profiles import record

    asked = record.Asked(
        listen=listen,
        to=to,
        out=out,
        draft=draft or out.with_suffix(".yaml"),
        secrets=tuple(secret or ()),
        keep_media=keep_media,
        connections=connections,
    )
    sys.exit(record.door(asked, lambda line: print(line, file=sys.stderr, flush=True)))


@app.command()
def doctor(
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN.toml]", help="the plan; flags override it")] = None,
    url: Annotated[Text, typer.Option(help="the service, for instance ws://127.0.0.1:2700")] = None,
    profile: Annotated[Text, typer.Option(help="how it speaks: a shipped name or a file")] = None,
    corpus: Annotated[Text, typer.Option(help=A_CORPUS)] = None,
    users: Annotated[int | None, typer.Option(help="sessions at once; without a plan 50")] = None,
    rate: Annotated[float | None, typer.Option(help="sessions a second (open workload)")] = None,
    header: Annotated[list[str] | None, typer.Option(help='"Name: value", may be repeated')] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="any other setting: limits.final_s=10")] = None,
    no_contact: Annotated[bool, typer.Option("--no-contact", help="leave the target alone, its name as well")] = False,
    allow_exec: Annotated[
        bool, typer.Option("--allow-exec", help="let the plan run commands (exec: targets, cmd: secrets)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Say whether this machine is fit to test so many users: exit code 0 where it is, 1 where not.

    The target, if there is a plan, is connected to and left (TCP only); all else stays on this machine.
    """
    with _loading():
        from loadbench import plan as plans
        from loadbench.doctor import door

    flags = {"target.url": url, "target.profile": profile, "corpus.path": corpus}
    chosen = {key: value for key, value in flags.items() if value is not None}
    chosen |= _headers(header or []) | _settings(set_ or [])
    read = plans.read(plan, chosen, allow_exec=allow_exec) if plan is not None or chosen else None
    asked = door.Asked(plan=read, users=users, rate=rate, contact=not no_contact, allow_exec=allow_exec)
    sys.exit(door.doctor(asked, as_json=as_json))


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="folder for the bundles")] = Path("runs/demo"),
) -> None:
    """Stream the embedded corpus to a real recogniser at 1, 4 and 8 users, all on this machine."""
    with _loading():
        from loadbench import demo as door

    sys.exit(door.demo(out))


def _simulate(**given: Any) -> None:
    """Serve a service whose delays are known, or a real recogniser, on loopback until Ctrl-C."""
    with _loading():
        from loadbench.simulator import serve, stdio
        from loadbench.simulator.options import Options

    chosen = {name: _value(name, value) for name, value in given.items() if value is not None}
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a recogniser has a thread for each stream, and no more
    with contextlib.suppress(KeyboardInterrupt):
        if chosen.get("stdio"):
            os._exit(stdio.run(Options(**chosen)))  # taking Python apart would take longer than many a delay
        serve.run(Options(**chosen), ready=lambda url: print(f"listening on {url}", flush=True))


def _value(name: str, text: Any) -> Any:
    """Spans as `0,1.5`: some options hold several numbers."""
    if name not in {"finals_s", "freeze_s", "media_gaps_s"}:
        return text
    try:
        return tuple(float(part) if part else None for part in str(text).split(","))
    except ValueError:
        raise FlagError([f"--{name.removesuffix('_s')} is numbers of seconds with commas, not {text!r}"]) from None


_FLAG_KINDS: dict[Any, Any] = {
    bool: bool | None,
    int: int | None,
    int | None: int | None,
    float: float | None,
    float | None: float | None,
    Path | None: Path | None,
}


def _simulate_command() -> None:
    """`simulate` takes each field of the simulator's options as a flag; its help is the field's line there."""
    from loadbench.simulator.options import Options

    lines = dict(re.findall(r"^    (\w+)(?:, port)?\s{2,}(\S.*)$", Options.__doc__ or "", re.MULTILINE))
    names = {field.name for field in dataclasses.fields(Options)}
    parameters = []
    for field in dataclasses.fields(Options):
        short = field.name.removesuffix("_s")
        flag = "--" + (field.name if short != field.name and short in names else short).replace("_", "-")
        text = lines.get(field.name, "")
        kind = _FLAG_KINDS.get(field.type, str | None)
        option = typer.Option(f"{flag}/--no-{flag[2:]}" if kind == bool | None else flag, help=text)
        parameters.append(
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
            )
        )
    _simulate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    _simulate.__annotations__ = {item.name: item.annotation for item in parameters}
    app.command("simulate")(_simulate)


_simulate_command()


def _headers(lines: list[str]) -> dict[str, Any]:
    wrong = [line for line in lines if ":" not in line]
    if wrong:
        raise FlagError([f'--header must be "Name: value", not {line.split("=")[0]!r}' for line in wrong])
    pairs = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {"target.headers": pairs} if pairs else {}


def _pairs(flag: str, lines: list[str]) -> dict[str, str]:
    wrong = [line for line in lines if not line.partition("=")[1]]
    if wrong:
        raise FlagError([f"{flag} must be NAME=..., not a word without =" for _ in wrong])
    return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}


def _endpoints(urls: list[str] | None) -> dict[str, Any]:
    """One --url, or several, in place of whatever the plan has."""
    if not urls:
        return {}
    return {"target.url": urls[0], "target.urls": []} if len(urls) == 1 else {"target.url": "", "target.urls": urls}


def _settings(lines: list[str]) -> dict[str, Any]:
    """`--set a.b=VALUE`: the value is read as TOML, else taken as text, as is a number where only a text can stand."""
    from loadbench.plan import from_toml

    found, wrong = {}, []
    for line in lines:
        key, equals, text = line.partition("=")
        if not equals or not key.strip():
            wrong.append(f"--set must be key=value, for instance limits.final_s=10, not {line!r}")
            continue
        try:
            value = from_toml(f"value = {text}")["value"]
            a_text = key.strip().startswith(TEXTS) and not isinstance(value, str)
            found[key.strip()] = text.strip() if a_text else value
        except tomllib.TOMLDecodeError:
            found[key.strip()] = text
        except ValueError as error:
            wrong.append(f"--set {key.strip()}: {error}")
    if wrong:
        raise FlagError(wrong)
    return found

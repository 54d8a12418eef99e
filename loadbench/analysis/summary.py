"""The summary of a bundle: every number of a run as plain data, a pure function of its raw files.

`sessions` counts all windows; everything else about the service counts sessions of the window `measure` only.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from loadbench.analysis.attribution import Attribution
from loadbench.analysis.fairness import Fairness, Group
from loadbench.analysis.judge import Judge, Quality
from loadbench.analysis.lagging import Lagging
from loadbench.analysis.levels import Levels
from loadbench.analysis.playback import Playbacks
from loadbench.analysis.population import Population, Responses
from loadbench.analysis.presets import setting, standing
from loadbench.analysis.quantile import STATS, Durations, quantiles
from loadbench.analysis.response import METRICS, asking, connecting, first_metric, readying
from loadbench.analysis.stability import erasure
from loadbench.analysis.viewing import Viewing
from loadbench.results.bundle import Bundle, BundleError
from loadbench.results.outcome import ending
from loadbench.results.record import Message, SessionRecord, Started, Utterance
from loadbench.results.run import RunHeader
from loadbench.results.slo import SCORES, SloResult, Verdict
from loadbench.results.tick import Tick

SCHEMA_VERSION: Final = 1
CLUMP_NS: Final = 2_000_000  # messages closer than this came in one piece: something on the way held them back
SHORT: Final = ("p50", "p95")
CANARY_STATS: Final = ("p50", "p95", "p99", "max")
SURVIVORS: Final = 2.0  # times the finished p95, at which the started p95 tells a different story
OTHER_STATS: Final = {"completed": ("min_share",), "erasure": ("max",), **SCORES, "score": ("min", "max")}
EXAMPLES: Final = 3  # distinct causes kept for each outcome
ANNOTATED: Final = ("onset", "activity end")
UNDONE: Final = ("engine lost", "failed")  # reasons of an end that was the tester's own trouble


def summarise(bundle: Bundle, quality: Quality | None = None) -> dict[str, Any]:
    """The summary, with keys as published. `quality` has what scoring found, for objectives on wer and score."""
    header = bundle.header
    _refuse_unknown(bundle)
    judge, facts, lagging = Judge(header), _Facts(bundle), Lagging(header, bundle.clips())
    for event in bundle.sessions():
        judge.add(event)
        facts.add_to_stage(event)
        if isinstance(event, SessionRecord):
            facts.add(event)
            lagging.add(event)
    for tick in bundle.ticks():
        judge.add(tick)
        facts.add_tick(tick)
    clumping = _clumping(bundle.messages())
    damage = bundle.damage()
    lag, lag_of = lagging.summary()
    measured, totals, verdict = judge.responses(), judge.totals(), _verdict(judge, bundle)
    found = {
        "schema_version": SCHEMA_VERSION,
        "complete": bundle.complete,
        "run": _run(bundle, facts),
        "verdict": verdict,
        "sessions": totals,
        "windows": {name: tally.totals() for name, tally in judge.windows.items()},
        "headline": _headline(header, measured, facts),
        "survivor_warning": _survivors(
            judge.tally().totals(), measured.of(header.headline_channel, header.headline_metric)
        ),
        "response": _marked(_responses(measured, tuple(STATS)), header),
        "premature": measured.premature,
        "media": facts.playbacks.summary(),
        "viewing": facts.viewing.summary()
        | {"presets": standing(measured, facts.playbacks.summary(), header.channel_media)},
        "erasure": {channel: erasure(judge.drafts(channel)) for channel in measured.channels},
        "lag": lag,
        "utterances": measured.utterances,
        "connection": {name: spans.summary() for name, spans in facts.connection.items()},
        "lateness": _lateness(verdict, facts),
        "canary": _canary(bundle),
        "readings": facts.levels.summary() if _part(header.plan, "readings").get("enabled") else None,
        "users": facts.users,
        "stages": {stage: _stage(stage, judge, facts, lag_of.get(stage, {})) for stage in judge.stages},
        "clips": {clip: _clip(responses, facts.streamed[clip]) for clip, responses in facts.clips.items()},
        "languages": {pair: _group(group, header.headline_channel) for pair, group in facts.fairness.languages.items()},
        "workers": {worker: _group(group, header.headline_channel) for worker, group in facts.fairness.workers.items()},
        "fairness": _fairness(facts),
        "attribution": facts.attribution.summary(),
        "volume": facts.volume,
        "endpoints": facts.endpoints,
        "messages": facts.messages,
        "acks": facts.messages.get("ack", 0),
        "clumping": clumping,
        "causes": facts.causes,
        "warnings": facts.warnings,
        "slo": _judged(judge.slo(quality), totals["in_flight"], bundle, damage),
        "damage": damage,
        "problems": [*damage, *bundle.problems],
    }
    plain: dict[str, Any] = msgspec.to_builtins(found, order="sorted")
    return plain


def _refuse_unknown(bundle: Bundle) -> None:
    """Raise BundleError for a header that asks for numbers nobody knows: it is damaged, or of another age."""
    header, unknown = bundle.header, []
    if header.headline_metric not in METRICS:
        unknown.append(f"there is no headline metric {header.headline_metric!r}")
    for slo in header.slo:
        if slo.stat not in (STATS if slo.metric in METRICS else OTHER_STATS.get(slo.metric, ())):
            unknown.append(f"there is no objective {slo.name!r}")
    if unknown:
        raise BundleError([f"{bundle.folder / 'run.json'} cannot be read: {text}" for text in unknown])


def _judged(results: list[SloResult], in_flight: int, bundle: Bundle, damage: list[str]) -> list[SloResult]:
    """A run that did not come to its end meets nothing: those that hung would be the ones left out.

    That is so as well where nobody is seen in flight, for the last records may not have been written, and the sessions
    that were still to come might have missed. Neither does a run meet anything whose records are not as they were
    written, or cannot be read: nobody knows what they held.
    """
    why = ""
    if damage or (bundle.complete and bundle.unread):
        why = "not judged: the bundle is damaged" if damage else "not judged: some records cannot be read"
    elif not bundle.complete:
        why = "not judged: the run is incomplete" + (f", with {in_flight} sessions in flight" if in_flight else "")
    elif _undone(bundle):
        why = "not judged: the tester did not do its work to the end"
    for result in results if why else []:
        result.met, result.why = False, why
    return results


def _verdict(judge: Judge, bundle: Bundle) -> Verdict:
    """The judge's; INVALID as well where the engine went before its work was done, whoever was in flight then."""
    verdict, undone = judge.verdict(), _undone(bundle)
    if not undone:
        return verdict
    reasons = [f"the tester did not do its work to the end: {undone}", *verdict.reasons]
    return Verdict(state="INVALID", reasons=reasons, figures=verdict.figures)


def _undone(bundle: Bundle) -> str:
    """Why the tester itself ended the run before its time; "" where it did not."""
    done = bundle.done
    return (done.why or done.reason) if done and done.reason in UNDONE else ""


def encode(summary: dict[str, Any]) -> bytes:
    """`summary.json`: the same bytes for the same summary."""
    return msgspec.json.format(msgspec.json.encode(summary, order="sorted"), indent=2) + b"\n"


class _Facts:
    """What the summary tells beside the judge: counts and spans of the measured sessions."""

    def __init__(self, bundle: Bundle) -> None:
        header = bundle.header
        self.connection = {name: Durations() for name in ("prelude", "tcp", "connect", "ready")}
        self.messages: Counter[str] = Counter()
        self.volume: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.done_rules: Counter[str] = Counter()
        self.finality: Counter[str] = Counter()
        self.causes: dict[str, dict[str, Any]] = {}
        self.clips: dict[str, Responses] = {}
        self.streamed: Counter[str] = Counter()
        self.users = {"target_max": 0, "active_max": 0}
        self.levels = Levels()
        self.blocked = {"sessions": 0, "sum_s": 0.0, "unsent_max_bytes": 0}
        self.chunk_max_ms: float | None = None
        self.span_ns: tuple[int, int] | None = None
        self.stages_ns: dict[str, tuple[int, int]] = {}
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.playbacks = Playbacks(header.channel_media)
        self.attribution = Attribution(header, bundle.chunks(), bundle.ticks())
        self.fairness = Fairness(header, bundle.clips())
        self.viewing = Viewing(header, setting(_part(header.plan, "viewing")))
        self.planned: dict[str, Any] = _part(header.effective, "stages")
        self._header = header

    def add(self, record: SessionRecord) -> None:
        """Count a session; one of the warm-up only stretches the run."""
        first, last = self.span_ns or (record.begun_ns, record.ended_ns)
        self.span_ns = min(first, record.begun_ns), max(last, record.ended_ns)
        if record.window != "measure":
            return
        self._connected(record)
        self._sent(record)
        if record.endpoint or record.endpoint_wait_ns is not None:
            self._placed(record)
        self.messages.update(record.messages)
        self.warnings.update(record.warnings)
        self.attribution.add(record)
        self.fairness.add(record)
        self.viewing.add(record)
        if record.outcome != "ok":
            self._blame(record)
        for utterance in record.utterances:
            self._answered(utterance, record)
            self.playbacks.add(utterance)

    def add_to_stage(self, event: Started | SessionRecord) -> None:
        """A stage reaches from the first start of its measured sessions to the last end, whatever its plan was."""
        if event.window == "measure":
            last_ns = event.ended_ns if isinstance(event, SessionRecord) else event.begun_ns
            first, last = self.stages_ns.get(event.stage, (event.begun_ns, last_ns))
            self.stages_ns[event.stage] = min(first, event.begun_ns), max(last, last_ns)

    def add_tick(self, tick: Tick) -> None:
        """Users are the most of any second, of all workers' seconds one by one."""
        self.users["target_max"] = max(self.users["target_max"], tick.users_target)
        self.users["active_max"] = max(self.users["active_max"], tick.active)
        self.levels.add(tick)

    def _placed(self, record: SessionRecord) -> None:
        """Sessions by endpoint; those that found none to the end stand under ""."""
        fresh: dict[str, Any] = {"sessions": 0, "ok": 0, "waited": 0, "wait_max_s": 0.0}
        there = self.endpoints.setdefault(record.endpoint, fresh)
        waited_ns = record.endpoint_wait_ns or 0
        there["sessions"] += 1
        there["ok"] += record.outcome == "ok"
        there["waited"] += waited_ns > 0
        there["wait_max_s"] = max(there["wait_max_s"], waited_ns / 1e9)

    def _connected(self, record: SessionRecord) -> None:
        for spans in connecting(record):
            self.connection["tcp"].add_ns(spans["tcp"])
            self.connection["connect"].add_ns(spans["opened"])
        self.connection["ready"].add_ns(readying(record))
        self.connection["prelude"].add_ns(asking(record))

    def _sent(self, record: SessionRecord) -> None:
        late = record.lateness
        self.volume.update(
            sessions=1,
            connections=len(record.connections),
            bytes_sent=record.bytes_sent,
            bytes_received=record.bytes_received,
            media_bytes=sum(utterance.media_bytes for utterance in record.utterances),
            chunks_planned=sum(utterance.chunks_planned for utterance in record.utterances),
            chunks_sent=sum(utterance.chunks_sent for utterance in record.utterances),
            chunks_dropped=sum(utterance.chunks_dropped for utterance in record.utterances),
        )
        self.blocked["sessions"] += late.blocked_ns > 0
        self.blocked["sum_s"] += late.blocked_ns / 1e9
        self.blocked["unsent_max_bytes"] = max(self.blocked["unsent_max_bytes"], late.unsent_max_bytes)
        if late.chunks:
            self.chunk_max_ms = max(self.chunk_max_ms or 0.0, late.max_ns / 1e6)

    def _blame(self, record: SessionRecord) -> None:
        entry = self.causes.setdefault(record.outcome, {"side": record.side, "n": 0, "examples": []})
        entry["n"] += 1
        if record.cause and record.cause not in entry["examples"] and len(entry["examples"]) < EXAMPLES:
            entry["examples"].append(record.cause)

    def _answered(self, utterance: Utterance, record: SessionRecord) -> None:
        header = self._header
        if utterance.done_rule:
            self.done_rules[utterance.done_rule] += 1
        if header.headline_channel in utterance.channels:
            self.finality[utterance.channels[header.headline_channel].finality] += 1
        self.streamed[utterance.clip] += utterance.media_zero_ns is not None
        if utterance.clip not in self.clips:
            firsts = map(first_metric, (None, "audio", "video"))
            metrics = dict.fromkeys((*firsts, "final_from_source_end", header.headline_metric))
            channels = [header.headline_channel, *header.channel_stages]
            self.clips[utterance.clip] = Responses(channels, metrics, header.channel_media)
        self.clips[utterance.clip].add_utterance(utterance, record)


def _run(bundle: Bundle, facts: _Facts) -> dict[str, Any]:
    header, done = bundle.header, bundle.done
    begun_ns, last_ns = facts.span_ns or (header.anchor.monotonic_ns, header.anchor.monotonic_ns)
    ended_ns = done.ended_ns if done else last_ns
    return {
        "run_id": header.run_id,
        "title": header.title,
        "begun_at": _calendar(header, begun_ns),
        "duration_s": (ended_ns - begun_ns) / 1e9,
        "reason": done.reason if done else None,
        "why": done.why if done else "",
        "engine": done.engine if done else None,
        "url": _part(header.plan, "target").get("url"),
        "profile": header.profile.get("name"),
        "profile_checked": header.profile.get("checked"),
        "corpus": header.corpus,
        "seed": header.seed,
        "versions": header.versions,
        "effective": header.effective,
    }


def _part(whole: dict[str, Any], key: str) -> dict[str, Any]:
    """A section of a header, which an older or damaged one may lack."""
    found = whole.get(key)
    return found if isinstance(found, dict) else {}


def _calendar(header: RunHeader, at_ns: int) -> str:
    wall_ns = header.anchor.wall_ns + at_ns - header.anchor.monotonic_ns
    return datetime.fromtimestamp(wall_ns // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")


def _headline(header: RunHeader, measured: Responses, facts: _Facts) -> dict[str, Any]:
    """The number that is printed large, with the two events that it lies between and the rules that ended it."""
    metric = METRICS[header.headline_metric]
    return {
        "channel": header.headline_channel,
        "metric": header.headline_metric,
        "from": metric.start,
        "to": metric.stop,
        "done_rules": facts.done_rules,
        "finality": facts.finality,
        **_population(measured.of(header.headline_channel, header.headline_metric), tuple(STATS)),
    }


def _responses(responses: Responses, stats: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By channel and metric; metrics that need annotations which no clip has are left out."""
    return {
        channel: {
            metric: _population(population, stats)
            for metric in responses.metrics(channel)
            if (population := responses.of(channel, metric)).applies or METRICS[metric].start not in ANNOTATED
        }
        for channel in responses.channels
    }


def _marked(response: dict[str, Any], header: RunHeader) -> dict[str, Any]:
    """What counts from an onset or end of activity says whether a detector told these, of any clip."""
    for found in response.values():
        for metric, part in found.items():
            if METRICS[metric].start in ANNOTATED:
                part["estimated"] = bool(header.corpus.get("activity_estimated"))
    return response


def _stage(stage: str, judge: Judge, facts: _Facts, lag: dict[str, Any]) -> dict[str, Any]:
    """Its level by the plan, its time from the run's first start, and what came of its sessions."""
    first_ns, last_ns = facts.stages_ns[stage]
    zero_ns = (facts.span_ns or (first_ns, last_ns))[0]
    return {
        "plan": facts.planned.get(stage),
        "from_s": (first_ns - zero_ns) / 1e9,
        "to_s": (last_ns - zero_ns) / 1e9,
        "sessions": judge.tally(stage).totals(),
        "response": _responses(judge.responses(stage), SHORT),
        "lag": lag,
    }


def _fairness(facts: _Facts) -> dict[str, Any]:
    """With the part of the worst session's response time that took most of it, where it had an answer."""
    found, worst = facts.fairness.summary(), facts.fairness.worst
    if found["worst"] and worst is not None:
        found["worst"]["largest_part"] = facts.attribution.largest(worst, found["metric"])
    return found


def _group(group: Group, channel: str) -> dict[str, Any]:
    """Those who have a language pair, or a worker, in common; times of the headline channel."""
    times = {metric: _population(found, SHORT) for metric, found in group.populations.items()}
    return {"n": group.n, "response": {channel: times}}


def _clip(responses: Responses, streamed: int) -> dict[str, Any]:
    """`n` counts how often the clip was streamed: a target that keeps what it heard answers repeats faster."""
    return {"n": streamed, "response": _responses(responses, SHORT)}


def _population(population: Population, stats: Sequence[str]) -> dict[str, Any]:
    return {
        "n": population.n,
        "mean_s": population.mean_s,
        "negative": population.negative,
        "failed": population.failed,
        "cut": population.cut,
        "left_out": population.left_out,
        "finished": population.finished(stats),
        "started": population.started(stats),
    }


def _lateness(verdict: Verdict, facts: _Facts) -> dict[str, Any]:
    """Late against the plan is the tester's; time in which the socket would take no more is the far side's."""
    return {"tester": verdict.figures | {"chunk_max_ms": facts.chunk_max_ms}, "blocked": facts.blocked}


def _canary(bundle: Bundle) -> dict[str, Any] | None:
    """No less than the tester's own share of a response time, from sessions that are in no total; None without any.

    Failed ones count as infinite, for a tester that cannot talk to its own responder knows no bound.
    """
    if not (bundle.header.effective.get("canary") or {}).get("users"):
        return None
    found = [record for record in bundle.canaries() if record.window == "measure"]
    failed = [record for record in found if ending(record.outcome) != "finished"]
    finished = [record for record in found if ending(record.outcome) == "finished"]
    spans = {
        "connect": [record.connect_span_ns for record in finished],
        "first": [record.first_span_ns for record in finished],
        "final": [record.final_span_ns for record in finished],
    }
    return {
        "n": len(found),
        "failed": len(failed),
        "causes": list(dict.fromkeys(record.cause for record in failed))[:EXAMPLES],
        **{
            name: quantiles((span for span in part if span is not None), len(failed), stats=CANARY_STATS)
            for name, part in spans.items()
        },
    }


def _survivors(totals: dict[str, Any], population: Population) -> str | None:
    """A sentence where the finished ones tell another story than all that were started; else None."""
    finished, started = population.finished(("p95",))["p95"], population.started(("p95",))["p95"]
    if finished.value_s is None or totals["completed_share"] in (None, 1.0):
        return None
    share = f"{totals['finished']} of {totals['started']} sessions finished, with a p95 of {finished.value_s:.3f} s"
    if started.bound == "never":
        return f"survivors: {share}; over all that were started the p95 is never, because it falls on one that failed"
    if started.value_s is not None and started.value_s >= SURVIVORS * abs(finished.value_s) > 0:
        least = "at least " if started.bound == "at_least" else ""
        return f"survivors: {share}; over all that were started it is {least}{started.value_s:.3f} s"
    return None


def _clumping(messages: Iterable[Message]) -> dict[str, int]:
    """Messages within 2 ms of the one before in their session, and the longest run of such, counting its first."""
    last_ns: dict[str, int] = {}
    runs: dict[str, int] = {}
    count = close = longest = 0
    for message in messages:
        before_ns = last_ns.get(message.session)
        near = before_ns is not None and message.at_ns - before_ns <= CLUMP_NS
        runs[message.session] = runs[message.session] + 1 if near else 1
        last_ns[message.session] = message.at_ns
        count, close, longest = count + 1, close + near, max(longest, runs[message.session])
    return {"sessions": len(last_ns), "messages": count, "within_2_ms": close, "longest": longest}

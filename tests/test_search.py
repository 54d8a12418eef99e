"""The capacity search as a command: its plan, its bundles, its exit codes; once against a real service."""

import asyncio
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadbench import conduct, search
from loadbench import plan as plans
from loadbench.analysis.capacity import Span
from loadbench.plan import PlanError
from loadbench.prepared import Prepared
from loadbench.report.derive import derive
from loadbench.results.bundle import BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.record import SessionRecord
from loadbench.results.run import Done
from tests.report.conftest import session, started, ticks
from tests.test_known_delays import signing, simulating
from tests.test_main_job import loadbench
from tests.typed import typed

KNEE = 5


def corpus(folder: Path, seconds: tuple[float, ...] = (1.0, 1.0, 1.0)) -> None:
    """A manifest with clips of these lengths, 8 kHz mono, each with a transcript."""
    lines = []
    for number, length in enumerate(seconds):
        samples = np.random.default_rng(number).integers(-8000, 8000, round(length * 16000)).astype("<i2")
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        clip = {"id": f"clip-{number}", "direction": "speech2text", "audio_filepath": f"{number}.wav"}
        clip |= {"source_lang": "en", "target_lang": "en", "transcript": "the cat sat on the mat"}
        lines.append(json.dumps(clip))
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n")


def plan(folder: Path, **more: Any) -> plans.Plan:
    least = {
        "target.url": "ws://127.0.0.1:9",
        "target.profile": "vosk",
        "corpus.path": str(folder),
        "media.cache": str(folder / "cache"),
        "metrics.enabled": False,
        "slo.completed.min_share": 0.95,
        "slo.final_from_source_end.p95_s": 1.0,
    }
    return plans.read(None, least | {key.replace("__", "."): value for key, value in more.items()})


def asked(folder: Path, low: float = 1, high: float = 8, **more: Any) -> search.Asked:
    return search.Asked(span=Span(low, high, **more.pop("span", {})), folder=folder / "out", quiet=True, **more)


class Service:
    """Stands in for a run: beyond five users answers are slow; what it was asked is in `plans`."""

    def __init__(self, *, late_from: float = 1e9, interrupt_at: int | None = None, quick: bool = True) -> None:
        self.plans: list[plans.Plan] = []
        self.late_from, self.interrupt_at, self.quick = late_from, interrupt_at, quick
        self.drained = 0

    async def perform(self, ready: Prepared, folder: Path, _view: object) -> conduct.Result:
        users, total = ready.plan.workload.users, ready.plan.workload.sessions or 0
        self.plans.append(ready.plan)
        if len(self.plans) == self.interrupt_at:
            return self._written(ready, folder, [], "interrupted", 130)
        slow = users > KNEE or not self.quick
        if total == 1:
            slow, self.drained = self.drained > 0, max(0, self.drained - 1)
        elif slow:
            self.drained = 2
        records = [
            session(
                number,
                final_ms=3000 if slow else 500,
                window="warmup" if number < users and total > 1 else "measure",
                text="the cat sat on a mat",
            )
            for number in range(20 + users if slow and total > 1 else total)
        ]
        reason = "broken" if slow and total > 1 else "completed"
        return self._written(ready, folder, records, reason, 1 if slow else 0)

    def _written(
        self, ready: Prepared, folder: Path, records: list[SessionRecord], reason: str, code: int
    ) -> conduct.Result:
        writer = BundleWriter(folder, ready.header, Masks([]))
        for facts in ready.facts.values():
            writer.append("clips", facts)
        for record in records:
            writer.append("sessions", started(record))
            writer.append("sessions", record)
        late = ready.plan.workload.users >= self.late_from
        for tick in ticks(8, 1500.0 if late else 1.0):
            writer.append("ticks", tick)
        writer.finish(Done(ended_ns=10**13, reason=reason, why="p95 cannot be met any more" if code == 1 else ""))
        derived = derive(folder)
        return conduct.Result(folder, code, derived.summary, derived.scores)


def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, service: Service, given: search.Asked | None = None, **more: Any
) -> tuple[int, dict[str, Any], str]:
    """A whole search: exit code, `search.json`, and what was said."""
    corpus(tmp_path)
    monkeypatch.setattr(conduct, "perform", service.perform)
    said: list[str] = []
    code = search.search(plan(tmp_path, **more), given or asked(tmp_path), said.append)
    return code, json.loads((tmp_path / "out" / "search.json").read_text()), "\n".join(said)


def test_a_knee_of_five_is_found_and_every_level_has_a_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found, said = run(monkeypatch, tmp_path, Service())
    assert code == 0
    result = found["capacity"]
    assert found["state"] == "done"
    assert (result["value"], result["low"], result["high"], result["at_least"]) == (5, 5, 6, False)
    assert (result["unit"], result["limited_by"], result["least_utterances"]) == ("users", "service", 59)
    assert result["broke"]["slo"] == "final_from_source_end.p95_s"
    assert result["broke"]["level"] == 6
    bundles = [point["facts"]["bundle"] for point in result["curve"]]
    assert bundles == [f"level-000{name}" for name in ("1-1", "2-1", "4-1", "8-1", "6-1", "5-1", "5-2", "6-2")]
    assert all((tmp_path / "out" / name / "report.html").is_file() for name in bundles)
    assert "capacity 5 users: 6 users did not hold" in said
    assert "stopped early" in said


def test_each_level_has_its_own_seed_a_shuffled_order_a_ramp_and_as_many_sessions_as_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    run(monkeypatch, tmp_path, service, corpus__order="sequential")
    levels = [made for made in service.plans if made.workload.sessions != 1]
    assert [made.seed.value for made in levels] == list(range(7, 15))
    assert {made.corpus.order for made in levels} == {"shuffle"}
    assert {made.workload.stop_when_broken for made in levels} == {True}
    assert {(made.workload.ramp_s, made.workload.warmup_s) for made in levels} == {(1.0, 1.0)}
    assert [(made.workload.users, made.workload.sessions) for made in levels[:4]] == [
        (1, 60),
        (2, 61),
        (4, 63),
        (8, 67),
    ]


def test_after_a_level_that_broke_single_sessions_wait_until_the_service_has_drained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    run(monkeypatch, tmp_path, service)
    sizes = [made.workload.users if made.workload.sessions != 1 else 0 for made in service.plans]
    assert sizes == [1, 2, 4, 8, 0, 0, 0, 6, 0, 0, 0, 5, 5, 6]
    assert (tmp_path / "out" / "cooldown-5" / "summary.json").is_file()


def test_a_service_that_does_not_drain_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    code, _, said = run(monkeypatch, tmp_path, service, asked(tmp_path, cooldown_s=1e-6))
    assert code == 0
    assert "not drained after 1e-06 s of single sessions; going on" in said


def test_a_search_that_does_not_begin_at_one_user_hears_the_unloaded_service_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    code, _, _ = run(monkeypatch, tmp_path, service, asked(tmp_path, low=4))
    assert code == 0
    assert service.plans[0].workload.sessions == 1
    assert service.plans[1].workload.users == 4


def test_levels_at_which_the_tester_is_late_give_at_least_and_never_a_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, found, said = run(monkeypatch, tmp_path, Service(late_from=4))
    assert code == 0
    result = found["capacity"]
    assert (result["value"], result["at_least"], result["limited_by"]) == (3, True, "tester")
    assert "capacity at least 3 users: limited by the tester at 4 users" in said
    assert "says nothing of the service" in said


def test_a_late_tester_at_the_lowest_level_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found, _ = run(monkeypatch, tmp_path, Service(late_from=1))
    assert code == 3
    assert found["capacity"]["value"] is None


def test_a_service_that_holds_not_even_one_user_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found, said = run(monkeypatch, tmp_path, Service(quick=False))
    assert code == 1
    assert found["capacity"]["value"] is None
    assert "capacity none found: even 1 user did not hold: final_from_source_end.p95_s: 20 of 20 took longer" in said


def test_an_interrupted_search_keeps_what_it_had_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found, said = run(monkeypatch, tmp_path, Service(interrupt_at=3))
    assert code == 130
    assert found["state"] == "interrupted"
    assert [point["step"]["level"] for point in found["capacity"]["curve"]] == [1, 2]
    assert (found["capacity"]["value"], found["capacity"]["at_least"]) == (2, True)
    assert "interrupted" in said


def test_an_interrupted_level_whose_report_cannot_be_written_ends_the_search_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Full(Service):
        async def perform(self, ready: Prepared, folder: Path, view: object) -> conduct.Result:
            (folder / "report.html").mkdir(parents=True)
            found = await super().perform(ready, folder, view)
            lost = derive(folder).unwritten
            return conduct.Result(folder, 2, found.summary, found.scores, lost)

    code, found, said = run(monkeypatch, tmp_path, Full(interrupt_at=3))
    assert (code, found["state"]) == (130, "interrupted")
    assert "level-0001-1/report.html: is a directory" in said


def test_a_search_json_that_cannot_be_written_is_the_users_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "out" / ".search.json.part").mkdir(parents=True)
    with pytest.raises(PlanError, match=r"cannot write .*search.json: is a directory; the levels that were run"):
        run(monkeypatch, tmp_path, Service())


def test_a_media_budget_ends_the_search_before_it_is_spent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    service = Service()
    code, found, said = run(monkeypatch, tmp_path, service, limits__budget_media_min=3.0)
    assert code == 0
    assert found["state"] == "budget"
    assert found["capacity"]["value"] == 2
    assert "the media budget is used up" in said


def test_word_errors_are_judged_over_clips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found, _ = run(monkeypatch, tmp_path, Service(), slo__wer__max=0.4)
    assert code == 0
    finding = found["capacity"]["curve"][0]["evidence"]["findings"][-1]
    assert finding["slo"] == "wer.max"
    assert finding["n"] == 59
    assert "59 outputs of 3 clips" in finding["why"]


def test_what_cannot_be_searched_is_said_at_once_and_nobody_is_contacted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    with pytest.raises(PlanError) as caught:
        run(monkeypatch, tmp_path, service, asked(tmp_path, 8, 2, max_utterances=58, cooldown_s=-1))
    assert len(caught.value.problems) == 3
    assert any("--max-utterances 58 can show nothing: 59 are needed" in text for text in caught.value.problems)
    assert service.plans == []


def test_an_objective_of_which_no_interval_is_known_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"slo\.bleu: a search knows no interval of it"):
        run(monkeypatch, tmp_path, Service(), slo__bleu__min=20)


def test_words_of_a_single_clip_are_no_ground_for_a_search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"slo\.wer: 1 clips have a reference for channel transcript"):
        run(monkeypatch, tmp_path, Service(), slo__wer__max=0.4, corpus__limit=1)
    with pytest.raises(PlanError, match=r"slo\.erasure: 1 clips are in the corpus, and 2 are the least"):
        run(monkeypatch, tmp_path, Service(), slo__erasure__max=0.4, corpus__limit=1)


def test_a_folder_that_holds_a_search_is_not_written_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(monkeypatch, tmp_path, Service())
    with pytest.raises(PlanError, match="already holds a search"):
        run(monkeypatch, tmp_path, Service())


def test_the_plan_of_a_search_tells_levels_utterances_and_media_before_it_starts(tmp_path: Path) -> None:
    corpus(tmp_path)
    read = plan(tmp_path, slo__completed__min_share=0.99)
    lines = "\n".join(search.outline(read, asked(tmp_path, high=64)).lines(read))
    assert "levels   at most 12, in 14 trials" in lines
    assert (
        "each     at least 299 measured utterances (completed.min_share 299, final_from_source_end.p95_s 59)" in lines
    )
    assert "while undecided up to 1196" in lines
    assert "warm-up  1 s, in which the users come one by one: about one session of each, not measured" in lines
    assert "media    5 minutes at least" in lines  # 299 and one for the warm-up, a second each


def test_the_plan_of_a_search_for_a_rate_speaks_of_arrivals_and_of_no_users(tmp_path: Path) -> None:
    corpus(tmp_path)
    read = plan(tmp_path)
    by_rate = asked(tmp_path, 0.5, 8, span={"unit": "sessions/s", "resolution": 0.1})
    lines = "\n".join(search.outline(read, by_rate).lines(read))
    assert "user" not in lines
    assert "and 3 for each that is under way at once; while undecided" in lines
    assert "warm-up  1 s, until the first may be over, not measured" in lines
    assert "until the service answers as it did unloaded; one also before the search" in lines


def test_the_completed_share_of_a_level_is_of_the_sessions_that_it_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Cold(Service):
        """Loses what comes during the warm-up."""

        def _written(
            self, ready: Prepared, folder: Path, records: list[SessionRecord], reason: str, code: int
        ) -> conduct.Result:
            lost = [session(n, "lost", window="warmup") if r.window == "warmup" else r for n, r in enumerate(records)]
            return super()._written(ready, folder, lost, reason, code)

    _, found, said = run(monkeypatch, tmp_path, Cold(), asked(tmp_path, high=2))
    assert {point["facts"]["completed_share"] for point in found["capacity"]["curve"]} == {1.0}
    assert "100.0%" in said


def test_clips_of_uneven_length_cannot_use_up_the_measured_sessions_in_the_warm_up(tmp_path: Path) -> None:
    corpus(tmp_path, (0.5, 2.5))
    found = search.outline(plan(tmp_path), asked(tmp_path))
    assert found.warmup(4) == 1.5
    # 1.5, 1.125, 0.75 and 0.375 s of warm-up are left to the four users, and a session may take half a second
    assert found.sessions(4) == 59 + 3 + 3 + 2 + 1


def test_a_rate_s_level_measures_three_times_what_is_under_way_at_once(tmp_path: Path) -> None:
    corpus(tmp_path)
    found = search.outline(plan(tmp_path), asked(tmp_path, 1, 64, span={"unit": "sessions/s", "resolution": 0.1}))
    assert found.measured(2) == 59
    assert found.measured(40) == 120
    assert found.sessions(40) == 160
    assert found.ramp(40) == 0


@pytest.mark.realtime
def test_the_command_says_all_that_is_wrong_with_exit_code_2(tmp_path: Path) -> None:
    corpus(tmp_path)
    good = ("search", "--url", "ws://127.0.0.1:9", "--profile", "vosk", "--corpus", ".")
    for words, sentence in (
        (("--of", "sessions"), "--of must be users or rate"),
        (("--from", "9", "--to", "3"), "--to must be at least --from"),
        (("--from", "1.5"), "whole users"),
        (("--to", "inf"), "--to must be at most 100000, not inf"),
        (("--from", "nan"), "--from must be at most 100000, not nan"),
        (("--step", "inf", "--resolution", "nan"), "--resolution must be at most 100000, not nan"),
        (("--cooldown", "nan"), "--repeats and --cooldown must be at least 0"),
        (("--out", "/proc/x"), "cannot make /proc/x: no such file or directory; choose another --out"),
        (("--set", "slo.final_from_end.p95_s=2"), "slo.final_from_end"),
    ):
        code, out, err = typed(*good, *words, cwd=tmp_path)
        assert code == 2, out + err
        assert sentence in err
        assert "Traceback" not in err
    code, out, _ = typed(*good, "--dry-run", cwd=tmp_path)
    assert code == 0
    assert "at least 299 measured utterances" in out
    assert not (tmp_path / "runs").exists()


@pytest.mark.alone
@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.timeout(240)  # on a busy machine each level takes seconds to start
async def test_the_capacity_of_a_service_with_five_slots_is_five_within_one_user(tmp_path: Path) -> None:
    """A slot is held from the first frame to the final, which is all of a session but its connecting."""
    signing(tmp_path, 6)
    words = ("--profile", "sign-frames", "--first", "0.02", "--final", "0.1", "--capacity", "5", "--corpus", ".")
    async with simulating(tmp_path, *words) as url:
        code, out, err = await loadbench(
            *("search", "--url", url, "--profile", "sign-frames", "--corpus", ".", "--from", "1", "--to", "16"),
            *("--set", "slo.completed.min_share=0.9", "--set", "slo.first_output_from_media.p90_s=0.08"),
            *("--max-utterances", "29", "--cooldown", "0", "--out", "found"),
            cwd=tmp_path,
            patience_s=200,
        )
    assert code in (0, 3), out + err
    result = json.loads((tmp_path / "found" / "search.json").read_text())["capacity"]
    if result["limited_by"] == "tester":
        pytest.skip(f"this machine was too busy to search: {result['why']}")
    assert abs(result["value"] - 5) <= 1, out
    assert result["broke"]["slo"] == "first_output_from_media.p90_s"
    assert sum(point["facts"]["duration_s"] for point in result["curve"]) < 60


@pytest.mark.realtime
async def test_a_run_stops_when_an_slo_cannot_be_met_any_more_and_says_which(tmp_path: Path) -> None:
    corpus(tmp_path, (0.4,))
    async with simulating(tmp_path, "--profile", "vosk", "--first", "0.05", "--final", "0.3") as url:
        begun = asyncio.get_running_loop().time()
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "10", "--duration", "60"),
            *("--set", "slo.final_from_source_end.p95_s=0.1", "--stop-when-broken", "--out", "bundle", "-q"),
            cwd=tmp_path,
        )
        assert asyncio.get_running_loop().time() - begun < 30
    done = json.loads((tmp_path / "bundle" / "done.json").read_text())
    assert code in (1, 3), out + err
    assert done["reason"] == "broken"
    assert done["why"].startswith("final_from_source_end.p95_s cannot be met any more: ")
    assert f"ended    broken: {done['why']}" in out
    assert done["why"] in (tmp_path / "bundle" / "report.html").read_text()
    counts = json.loads((tmp_path / "bundle" / "summary.json").read_text())["sessions"]
    assert counts["in_flight"] == 0

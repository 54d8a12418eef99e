"""The end of a run in a terminal."""

from typing import Any

import pytest

from loadbench.report.derive import derive
from loadbench.report.terminal import render
from loadbench.scoring import tables_file
from tests.report.conftest import MS, SIGNED, SIGNED_CLIP, SPEAKING, ZERO, Write, header, session, signed, spoken


def text_of(write: Write, records: list, **how: object) -> str:  # type: ignore[type-arg]
    found = derive(write(records, **how))
    return render(found.summary, found.scores)


def row(text: str, name: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(name)).split()


def test_the_verdict_comes_first_and_the_totals_add_up(write: Write) -> None:
    text = text_of(write, [session(number) for number in range(60)])
    assert text.startswith("tester   VALID")
    assert "started 60 = finished 60 + failed 0 + cut 0   completed 100.0 %" in text
    assert "  measured" not in text


def test_sessions_that_were_not_measured_are_told_apart_from_those_that_were(write: Write) -> None:
    records = [session(number, window="warmup" if number < 2 else "measure") for number in range(5)]
    text = text_of(write, records)
    assert "started 5 = finished 5 + failed 0 + cut 0" in text
    assert "  measured 3: causes, times and SLO are of these; not measured 2 in warmup\n" in text


def test_each_percentile_stands_with_its_n_and_the_share_that_was_answered(write: Write) -> None:
    text = text_of(write, [session(number, final_ms=500) for number in range(100)])
    assert row(text, "final_from_source_end") == [
        "final_from_source_end", "100", "100.0", "%", "0.500", "0.500", "0.500~", "0.500",
    ]  # fmt: skip


def test_failed_sessions_are_never_in_the_row_of_all_that_were_started(write: Write) -> None:
    records = [session(number) for number in range(6)] + [session(6 + number, "no_final") for number in range(4)]
    text = text_of(write, records)
    assert "60.0 %" in text
    assert "of all started" in text
    assert row(text, "of all started")[-1] == "never"
    assert "4 no_final (target)   no_final happened" in text


def test_an_slo_whose_percentile_falls_on_one_that_failed_is_never_met(write: Write) -> None:
    text = text_of(write, [session(0), session(1, "no_final")])
    assert "NOT MET  final_from_source_end.p95_s  never  (limit 2)" in text


def test_latency_of_a_late_tester_stands_in_brackets_and_its_slo_is_unknown(write: Write) -> None:
    records = [session(number, final_ms=517) for number in range(20)]
    records += [session(20 + number, "no_final") for number in range(3)]
    text = text_of(write, records, gap_ms=1500.0)
    assert text.startswith("tester   INVALID")
    assert "NOT USABLE" in text
    assert "0.517" not in text.replace("(0.517)", "").replace("(0.517~)", "")
    assert "unknown  final_from_source_end.p95_s  n/a" in text


def test_accuracy_has_its_signature_its_counts_and_its_clause(write: Write) -> None:
    text = text_of(write, [session(1)])
    assert "wer 0.0 % | unit:word | norm:loadbench-basic-1 | n:1 |" in text
    assert "S 0  D 0  I 0  of N 8" in text
    assert "100.00 points by T/CADHOH 0004-2023, Table 1, spoken2sign, pooled" in text


def test_what_a_service_says_cannot_steer_the_terminal(write: Write) -> None:
    text = text_of(write, [session(0, "target_error", cause="\x1b[2Jgone\u202e\nstarted 1 = finished 1")])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "‹U+001B›[2Jgone‹U+202E›‹U+000A›" in text


def test_stages_stand_in_a_table_of_their_own_where_there_are_several(write: Write) -> None:
    records = [session(number, stage="low") for number in range(4)] + [session(4, "no_final", stage="high")]
    text = text_of(write, records)
    assert row(text, "low") == ["low", "-", "0.0", "3.8", "4", "100.0", "%", "0.500~", "0.500~"]
    assert row(text, "high") == ["high", "-", "0.4", "8.4", "1", "0.0", "%", "never", "never"]


def test_a_run_of_one_stage_has_no_table_of_stages(write: Write) -> None:
    assert "stage" not in text_of(write, [session(number) for number in range(4)])


def birds(n: int, *, value_s: float | None = 0.0012, bound: str = "exact", failed: int = 0) -> dict[str, Any]:
    quantile = {"value_s": value_s, "bound": bound, "n": n, "low_s": None, "high_s": None, "reliable": True}
    spans = {name: dict.fromkeys(("p50", "p95", "p99", "max"), quantile) for name in ("first", "final", "connect")}
    return {"n": n, "failed": failed, "causes": ["nobody listens"] if failed else [], **spans}


@pytest.mark.parametrize(
    ("canary", "line"),
    [
        (birds(14), "own share at most: first p95 1.2 ms, final p95 1.2 ms (n = 14 canary sessions)"),
        (
            birds(4, value_s=None, bound="never", failed=2),
            "own share at most: first p95 no bound, final p95 no bound (n = 4 canary sessions, 2 failed)",
        ),
        (birds(0, value_s=None), "own share not known: no canary session came to its end"),
        (None, None),
    ],
)
def test_what_the_canary_bounds_stands_with_its_n_beside_the_verdict(
    write: Write, canary: dict[str, Any] | None, line: str | None
) -> None:
    found = derive(write([session(1)], gap_ms=1500.0))
    text = render(found.summary | {"canary": canary}, found.scores)
    assert [item.strip() for item in text.splitlines() if "own share" in item] == ([line] if line else [])


WATCHED = {"workload": {"model": "closed", "users": 4}, "readings": {"enabled": True, "pid": 7}}
TARGET = {"target_processes": 2.0, "target_rss_bytes": 312e6, "target_cpu_share": 1.93, "target_threads": 14.0}


def test_what_the_target_took_and_how_the_machine_fared_stand_in_two_lines(write: Write) -> None:
    readings = TARGET | {"temperature_cpu_thermal_c": 71.0, "core0_mhz": 600.0, "throttled": 1.0}
    text = text_of(write, [session(0)], run=header(plan=WATCHED), readings=readings)
    target, machine = text.splitlines()[-2:]
    assert target == (
        "target   memory at most 312 MB, CPU (1 is one core) mean 1.93, most 1.93, threads 14,"
        " open files not shown by this system"
    )
    assert machine == (
        "machine  hottest 71.0 °C (cpu_thermal), lowest frequency 600 MHz, throttled 8.0 s,"
        " battery not shown by this system"
    )


def test_without_a_process_to_watch_there_is_no_line_of_it_and_without_readings_none_at_all(write: Write) -> None:
    watched = text_of(write, [session(0)], run=header(plan=WATCHED), name="watched")
    assert "machine  hottest not shown by this system" in watched
    assert "target   memory" not in watched
    assert "machine  hottest" not in text_of(write, [session(0)], name="unwatched")


def test_spoken_output_has_rows_of_its_own_and_its_gaps(write: Write) -> None:
    records = [spoken(number, gaps=[(ZERO, 300 * MS)] if number < 2 else []) for number in range(60)]
    text = text_of(write, records, run=header(**SPEAKING))
    assert row(text, "first_sound_from_media")[1:5] == ["60", "100.0", "%", "0.900"]
    assert row(text, "playback_end_from_source_end")[4] == "0.400"
    assert "headline playback_end_from_source_end: source end to playback end" in text
    assert "media    speech: 60 utterances, 120.0 s of media, 5760000 bytes" in text
    assert "gaps in 2 of 60: 2, the longest 0.300 s; nothing to hear or see in 0; broken pieces 0" in text
    assert "NOT MET  first_sound_from_media.p95_s  0.9  (limit 0.8)" in text
    assert "first_frame_from_media" not in text


def test_a_run_without_output_media_says_nothing_of_it(write: Write) -> None:
    assert "media    " not in text_of(write, [session(1)])


def test_a_target_that_was_not_verified_and_a_proxy_are_said_with_the_verdict(write: Write) -> None:
    marked = {"tls_verify": False, "proxy": "http://10.0.0.1:3128"}
    text = text_of(write, [session(1)], run=header(effective=marked))
    assert "target   NOT VERIFIED: certificates were not checked" in text
    assert "target   through the proxy http://10.0.0.1:3128, whose time is in every number" in text


@pytest.mark.parametrize("usual", [{"tls_verify": True, "proxy": "off"}, {}])
def test_of_a_target_as_usual_nothing_is_said(write: Write, usual: dict[str, Any]) -> None:
    assert "target   " not in text_of(write, [session(1)], run=header(effective=usual))


def test_the_lag_of_a_text_that_came_bit_by_bit_has_a_line_and_one_that_came_at_the_end_has_none(write: Write) -> None:
    streamed = derive(write([session(number, first_ms=800) for number in range(3)], name="streamed"))
    (line,) = [text for text in render(streamed.summary, streamed.scores).splitlines() if text.startswith("lag ")]
    assert line.startswith("lag      transcript: LAAL ")
    assert line.endswith("of units came at the end (n = 3)")
    burst = derive(write([session(0, first_ms=2600)], name="burst"))
    assert not [text for text in render(burst.summary, burst.scores).splitlines() if text.startswith("lag ")]


def test_a_translation_has_its_figures_with_signatures_and_over_completed_ones(write: Write) -> None:
    records = [signed(number, "ok" if number else "no_final") for number in range(2)]
    text = text_of(write, records, run=header(**SIGNED), clips=[SIGNED_CLIP])
    bleu = next(line for line in text.splitlines() if line.strip().startswith("bleu-4"))
    assert "| unit:char | n:2 | nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:" in bleu
    assert bleu.endswith("over completed 38.31")
    assert next(line for line in text.splitlines() if "bleu by order" in line).count(": ") == 4
    assert "  rouge-l 0.429 | beta:1 | mean of sentence F | unit:char" in text
    assert "composite" not in text, "nobody has entered tables"


def test_every_line_with_a_score_by_made_up_tables_says_so(write: Write) -> None:
    folder = write([signed(number) for number in range(2)], run=header(**SIGNED), clips=[SIGNED_CLIP])
    (folder / tables_file.KEPT).write_bytes(tables_file.illustrative().encode())
    found = derive(folder)
    block = render(found.summary, found.scores).partition("composite, sign2spoken: none")[2].split("\n\n")[0]
    head, *lines = block.splitlines()
    assert head == "   [illustrative, not T/CADHOH 0004-2023]"
    assert lines[0] == (
        "  86.67 × 0.31   Table 1 recognition accuracy score: 80 + (0.4 − w) × 100, for 0.2 ≤ w < 0.4;"
        " transcript: S 0 + D 2 + I 2, N 12   [illustrative, not T/CADHOH 0004-2023]"
    )
    assert lines[-1] == "  missing: Table 4 (spoken-language readability): no ratings"
    assert all(line.endswith("[illustrative, not T/CADHOH 0004-2023]") for line in lines[:-1])

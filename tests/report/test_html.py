"""The page: nothing from outside, nothing that runs, everything escaped, and no latency of a late tester as fact."""

import base64
import hashlib
import re
import string
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from loadbench.analysis.response import METRICS
from loadbench.report import terminal
from loadbench.report.derive import derive
from loadbench.report.html import LATENESS_FIGURES
from loadbench.report.words import LANGUAGES, words
from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import CanaryRecord, Channel, Update
from loadbench.results.slo import Slo, State
from loadbench.scoring import tables_file
from tests.report.conftest import (
    MS,
    SIGNED,
    SIGNED_CLIP,
    SPEAKING,
    ZERO,
    S,
    Write,
    clip,
    header,
    session,
    signed,
    spoken,
)

VOID = {"meta", "br", "hr", "img", "link", "input"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202eevil\u202c\u0000\u2066 {{ 7*7 }} ]]>"


class Page(HTMLParser):
    """Tags, attributes and texts of a page; complains where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[tuple[frozenset[str], str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.texts.append((frozenset(self.open), data))


def page_of(folder: Path, lang: str = "en") -> str:
    derive(folder, lang)
    return (folder / "report.html").read_text("utf-8")


def hostile(write: Write) -> Path:
    records = [session(number, text=HOSTILE, clip=HOSTILE) for number in range(3)]
    failed = session(3, "target_error", clip=HOSTILE, cause=HOSTILE, warnings=[HOSTILE])
    other = session(4)
    other.utterances[0].channels[HOSTILE] = Channel(first_ns=1, updates=[Update(at_ns=1, keep=0, add="x", settled=1)])
    run = header(
        title=HOSTILE,
        plan={"target": {"url": f"ws://{HOSTILE}"}, HOSTILE: HOSTILE},
        profile={"name": HOSTILE},
        effective={HOSTILE: HOSTILE},
    )
    return write([*records, failed, other], run=run, clips=[clip(0, id=HOSTILE, transcript=HOSTILE)])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_hostile_text_in_any_place_is_text_and_nothing_else(write: Write, lang: str) -> None:
    text = page_of(hostile(write), lang)
    page = Page(text)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert any("<script>alert(1)</script>" in data for _, data in page.texts), "shown as it is"
    for character in "\u202e\u202c\u2066\u0000":
        assert character not in text
    assert "‹U+202E›" in text
    assert "49" not in {word for _, data in page.texts if "alert" in data for word in data.split()}


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(write: Write) -> None:
    text = page_of(write([session(0)]))
    (policy,) = (value for tag, name, value in Page(text).attributes if tag == "meta" and "default-src" in value)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "http" not in re.sub(r'http-equiv="Content', "", text)


def test_latency_of_a_late_tester_is_struck_with_the_reason_and_never_stands_as_fact(write: Write) -> None:
    records = [session(number, final_ms=517, first_ms=823) for number in range(20)]
    records += [session(20 + number, "no_final") for number in range(3)]
    late = Page(page_of(write(records, name="late", gap_ms=1500.0)))
    fine = Page(page_of(write(records, name="fine")))
    for number in ("0.517", "0.823"):
        assert [data for open_, data in fine.texts if number in data and "s" not in open_]
        places = [open_ for open_, data in late.texts if number in data]
        assert places
        assert all("s" in open_ for open_ in places), f"{number} stands as fact"
    everything = " ".join(data for _, data in late.texts)
    assert "the event loop stood still for 1500 ms" in everything
    assert "not usable" in everything
    assert "not judged" in everything


def test_completion_stands_beside_the_percentiles_of_both_populations(write: Write) -> None:
    records = [session(number, final_ms=500) for number in range(9)] + [session(9, "no_final")]
    text = " ".join(data for _, data in Page(page_of(write(records))).texts)
    assert "90.0 %" in text
    assert "all started" in text
    assert "never" in text, "the maximum of all that were started"
    assert "10 started = " in text
    assert "9 finished" in text


def test_stages_have_their_time_their_books_and_their_percentiles(write: Write) -> None:
    records = [session(number, stage="low") for number in range(4)] + [session(4, "no_final", stage="high")]
    text = " ".join(" ".join(data for _, data in Page(page_of(write(records))).texts).split())
    assert "low - 0.0 3.8 4 4 0 0 100.0 %" in text
    assert "high - 0.4 8.4 1 0 1 0 0.0 % never never" in text


def test_a_page_of_60_sessions_with_40_partials_each_is_below_300_kb(write: Write) -> None:
    records = []
    for number in range(60):
        record = session(number)
        channel = record.utterances[0].channels["transcript"]
        zero = record.utterances[0].media_zero_ns or 0
        channel.updates = [Update(zero + step * 70 * MS, 0, "word " * step, 0) for step in range(1, 41)]
        channel.updates.append(Update(zero + 3500 * MS, 0, "word " * 40, 200))
        records.append(record)
    folder = write(records)
    assert len(page_of(folder).encode()) < 300_000


def test_each_figure_is_there_and_named_for_those_who_cannot_see_it(write: Write) -> None:
    page = Page(page_of(write([session(number) for number in range(5)])))
    names = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    spoken = words("en")
    for name in ("sessions", "distribution.first", "over_time.title", "users.title", "lateness.title"):
        assert spoken[name] in names
    assert "w1-3 clip-0" in names


def test_the_slo_is_drawn_where_its_limit_lies(write: Write) -> None:
    run = header(slo=[Slo(metric="final_from_source_end", stat="p95", limit=1.25)])
    text = page_of(write([session(number) for number in range(5)], run=run))
    assert "SLO p95 1.25 s" in text


def test_two_channels_have_their_own_tables_and_lanes(write: Write) -> None:
    records = []
    for number in range(4):
        record = session(number)
        record.utterances[0].channels["translation"] = record.utterances[0].channels["transcript"]
        records.append(record)
    run = header(channel_stages={"transcript": "recognition", "translation": "translation"})
    text = " ".join(data for _, data in Page(page_of(write(records, run=run))).texts)
    assert text.count("translation") > 4


def test_a_session_that_was_reading_when_the_bundle_began_to_be_written_is_not_needed(write: Write) -> None:
    record = session(0)
    record.utterances[0].media_zero_ns = None
    record.utterances[0].source_end_ns = None
    assert "w1-0" in page_of(write([record]))


def test_the_time_at_the_top_is_the_runs_and_not_the_reports(write: Write) -> None:
    assert "2025-10-09 08:53:20 UTC" in page_of(write([session(0)]))
    assert S == 1_000 * MS


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_language_has_the_same_words_with_the_same_places_to_fill() -> None:
    english = words("en")
    for lang in LANGUAGES:
        spoken = words(lang)
        assert spoken.keys() == english.keys()
        assert all(spoken.values())
        assert {key: _fields(text) for key, text in spoken.items()} == {
            key: _fields(text) for key, text in english.items()
        }


def test_every_event_metric_and_outcome_class_that_can_be_shown_has_its_words() -> None:
    english = words("en")
    wanted = {f"event.{event}" for metric in METRICS.values() for event in metric} | {f"def.{name}" for name in METRICS}
    wanted |= {f"side.{side}" for _, side in OUTCOMES.values()} | {kind for kind, _ in OUTCOMES.values()}
    wanted |= {f"verdict.{state}" for state in get_args(State)} | {f"lateness.{name}" for name in LATENESS_FIGURES}
    assert wanted <= english.keys()


def test_no_word_is_left_over() -> None:
    root = resources.files("loadbench")
    source = root.joinpath("data/report/page.html.j2").read_text() + root.joinpath("report/html.py").read_text()
    prefixes = (
        "verdict.",
        "side.",
        "lateness.",
        "def.",
        "wer.",
        "connection.",
        "points.",
        "distribution.",
        "event.",
        "canary.",
        "readings.",
        "media.",
        "part.",
        "fairness.",
        "viewing.",
        "presets.",
    )
    kinds = {"finished", "failed", "cut", "in_flight", "effective", "versions", "machine", "engine", "corpus", "seed"}
    kinds |= {"lag.cu", "lag.ca", "lag.shown", "lag.final"}
    used = {key for key in words("en") if f"w.{key}" in source or f'w["{key}"]' in source}
    assert {key for key in words("en") if not key.startswith(prefixes)} - kinds - used == set()


@pytest.mark.parametrize(("lang", "sentence"), [("en", "3 canary sessions (1 failed)"), ("zh", "3 个金丝雀会话")])
def test_the_tester_s_own_share_stands_with_its_n_and_an_infinite_one_has_no_bound(
    write: Write, lang: str, sentence: str
) -> None:
    folder = write([session(1)], run=header(effective={"canary": {"users": 1}}))
    known = {"worker": "w1", "clip": "clip-0", "window": "measure", "begun_ns": S}
    birds = [
        CanaryRecord(id="canary-0", outcome="ok", side="none", first_span_ns=400_000, final_span_ns=1_200_000, **known),
        CanaryRecord(id="canary-1", outcome="ok", side="none", first_span_ns=500_000, final_span_ns=1_300_000, **known),
        CanaryRecord(id="canary-2", outcome="lost", side="target", cause="it <went>", **known),
    ]
    (folder / "canary.jsonl").write_bytes(b"".join(msgspec.json.encode(bird) + b"\n" for bird in birds))
    derive(folder, lang)
    page = (folder / "report.html").read_text()
    assert sentence in page
    assert words(lang)["canary.none"] in page
    assert ">1.3" in page
    assert "it &lt;went&gt;" in page
    Page(page)


@pytest.mark.parametrize(
    ("lang", "name", "absent"),
    [("en", "hottest temperature", "not shown by this system"), ("zh", "最高温度", "本系统未提供")],
)
def test_readings_are_told_in_both_languages_and_what_is_absent_is_said(
    write: Write, lang: str, name: str, absent: str
) -> None:
    run = header(plan={"workload": {}, "readings": {"enabled": True}})
    readings = {"target_processes": 1.0, "target_rss_bytes": 312e6, "temperature_soc_c": 71.0}
    folder = write([session(0)], run=run, readings=readings)
    derive(folder, lang)
    page = (folder / "report.html").read_text("utf-8")
    assert f"<dt>{name}</dt><dd>71.0 °C (soc)</dd>" in page
    assert "312 MB" in page
    assert absent in page


@pytest.mark.parametrize(("lang", "words_of_it"), [("en", "Output media"), ("zh", "输出媒体")])
def test_output_media_has_a_table_and_a_lane_and_a_run_without_it_has_none(
    write: Write, lang: str, words_of_it: str
) -> None:
    folder = write([spoken(number, gaps=[(ZERO, S)]) for number in range(3)], run=header(**SPEAKING))
    derive(folder, lang)
    page = (folder / "report.html").read_text()
    Page(page)
    assert f"<h3>{words_of_it}</h3>" in page
    assert "<bdi>speech</bdi>" in page
    assert "first_sound_from_media" in page
    derive(write([session(1)], name="texts"), lang)
    assert f"<h3>{words_of_it}</h3>" not in (folder.parent / "texts" / "report.html").read_text()


@pytest.mark.parametrize(
    ("lang", "sentence", "way"),
    [
        ("en", "not verified: certificates were not checked", "through the proxy"),
        ("zh", "未验证：没有检查证书", "经由代理"),
    ],
)
def test_a_target_that_was_not_verified_and_a_proxy_are_said_at_the_top(
    write: Write, lang: str, sentence: str, way: str
) -> None:
    marked = write([session(1)], run=header(effective={"tls_verify": False, "proxy": "http://10.0.0.1:3128"}))
    page = page_of(marked, lang)
    assert sentence in page
    assert f"{way} http://10.0.0.1:3128" in page


def test_of_a_target_as_usual_the_page_says_nothing(write: Write) -> None:
    usual = page_of(write([session(1)], run=header(effective={"tls_verify": True, "proxy": "off"})))
    assert "not verified" not in usual
    assert "through the proxy" not in usual


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_lag_of_a_text_stands_with_its_definitions_and_is_struck_where_the_tester_was_late(
    write: Write, lang: str
) -> None:
    records = [session(number, first_ms=823, stage="low" if number < 5 else "high") for number in range(10)]
    fine, late = (
        Page(page_of(write(records, name=name, gap_ms=gap), lang)) for name, gap in (("fine", 1.0), ("late", 1500.0))
    )
    said = " ".join(data for _, data in fine.texts)
    spoken = words(lang)
    for name in ("lag", "lag.about", "lag.stages", "def.lag.yaal", "def.lag.degeneracy"):
        assert spoken[name] in said, name
    assert "0.823" in said
    assert all("s" in open_ for open_, data in late.texts if "0.823" in data)


def test_a_service_that_falls_behind_is_said_to(write: Write) -> None:
    """Each word comes half as long again after the one before as it was spoken."""
    record = session(0)
    (part,) = record.utterances
    zero, said = part.media_zero_ns or 0, ["the", "cat", "sat", "on", "the", "mat"]
    part.channels["transcript"].updates = [
        Update(zero + 750 * MS * at, len(" ".join(said[: at - 1])), f" {said[at - 1]}"[at == 1 :], 0)
        for at in range(1, 7)
    ]
    spans: list[dict[str, str | float]] = [
        {"w": word, "start": (at - 1) / 2, "end": at / 2} for at, word in enumerate(said, 1)
    ]
    folder = write([record], clips=[clip(0, words=spans)])
    assert words("en")["lag.behind"] in page_of(folder)
    derived = derive(folder)
    assert derived.summary["lag"]["transcript"]["slope"]["value"] == pytest.approx(0.5)
    assert "FALLING BEHIND by 0.500 s a second (0.500 to 0.500)" in terminal.render(derived.summary, derived.scores)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_translations_worst_outputs_and_the_composite_have_their_tables(write: Write, lang: str) -> None:
    folder = write([signed(number) for number in range(3)], run=header(**SIGNED), clips=[SIGNED_CLIP])
    w = words(lang)
    assert w["composite.none"] in " ".join(data for _, data in Page(page_of(folder, lang)).texts)
    plain = tables_file.illustrative().model_dump(by_alias=True) | {"source": HOSTILE}
    (folder / tables_file.KEPT).write_bytes(tables_file.Tables.model_validate(plain).encode())
    page = Page(page_of(folder, lang))
    text = " ".join(data for _, data in page.texts)
    assert "img" not in page.tags
    for name in ("overlap", "overlap.about", "worst", "worst.about", "composite.missing", "composite.rule"):
        assert w[name] in text
    assert "bleu-4 38.31 | unit:char | n:3" in text
    assert "80 + (0.4 − w) × 100, for 0.2 ≤ w < 0.4" in text
    assert "Table 4 (spoken-language readability): no ratings" in text
    assert text.count("illustrative, not T/CADHOH 0004-2023") == 5, "heading, composite and each of three steps"
    assert w["composite.none"] not in text

"""What a viewer got, fairness and the parts of response times, on the page and in the terminal."""

from html import unescape
from pathlib import Path
from typing import Any, get_args

import pytest

from loadbench.analysis.attribution import PARTS
from loadbench.analysis.presets import table
from loadbench.report import terminal
from loadbench.report.derive import Derived, derive
from loadbench.report.words import LANGUAGES, words
from loadbench.results.media import Medium
from loadbench.results.record import Channel, SessionRecord
from tests.report.conftest import SPEAKING, Write, header, session, spoken

VIEWING = {"viewing": {"characters": 8, "rows": 1, "characters_per_s": 12.0, "gap_s": 1.0}}


def report(folder: Path, lang: str = "en") -> tuple[Derived, str]:
    derived = derive(folder, lang)
    return derived, unescape((folder / "report.html").read_text("utf-8"))


def four(**changes: Any) -> list[SessionRecord]:
    """Three that answered, of two languages and two workers, and one that was lost."""
    records = [session(number, final_ms=200 + 100 * number, **changes) for number in range(4)]
    records[1].worker = "w2"
    records[3] = session(3, "lost", cause="the connection went away")
    return records


@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_three_are_told_in_each_language(write: Write, lang: str) -> None:
    w = words(lang)
    _, page = report(write(four(), run=header(plan=VIEWING)), lang)
    for key in ("part.title", "part.tester", "part.rest", "fairness.title", "fairness.languages", "fairness.workers"):
        assert w[key] in page, key
    for key in ("viewing.title", "viewing.readable", "viewing.too_fast", "viewing.through", "viewing.long_gaps"):
        assert w[key] in page, key
    for key in ("presets.title", "presets.guideline", "presets.unmeasured", "presets.no_data"):
        assert w[key] in page, key
    assert "part-tester" in page
    assert "the connection went away" in page


def test_the_terminal_names_the_worst_session_the_parts_and_the_lines(write: Write) -> None:
    derived, _ = report(write(four(), run=header(plan=VIEWING)))
    text = terminal.render(derived.summary, derived.scores)
    assert "worst w1-3: never answered (lost: the connection went away)" in text
    assert "spread   sessions' medians p10 0.200~, p90 never" in text
    assert "where    final_from_source_end: rest" in text
    assert "viewer   transcript: lines readable p10" in text
    assert "changes a media minute" in text


def test_without_a_speed_the_page_says_that_there_is_no_limit(write: Write) -> None:
    _, page = report(write(four()))
    assert words("en")["viewing.no_limit"] in page
    assert words("en")["viewing.through"] not in page


def test_a_late_tester_s_figures_are_struck_and_its_parts_are_not_told_in_the_terminal(write: Write) -> None:
    derived, page = report(write(four(), gap_ms=2000))
    assert derived.summary["verdict"]["state"] == "INVALID"
    text = terminal.render(derived.summary, derived.scores)
    assert "where    " not in text
    assert "p10 (0.200~)" in text
    viewing = page[page.index(words("en")["viewing.title"]) :]
    row = viewing[viewing.index(words("en")["viewing.readable"]) :]
    assert "<s " in row[: row.index("</tr>")]


def test_speech_that_runs_over_has_a_row(write: Write) -> None:
    # The first utterance is played 0.4 s beyond its end, the second one's media begins there: 0.4 s over.
    first = spoken(0)
    (one,) = first.utterances
    second = session(0).utterances[0]
    second.index, second.media_zero_ns, second.source_end_ns = 1, one.source_end_ns, None
    second.channels = {"speech": Channel()}
    first.utterances.append(second)
    derived, page = report(write([first], run=header(**SPEAKING)))
    assert derived.summary["viewing"]["spoken"]["speech"]["over"]["max"]["value_s"] == pytest.approx(0.4)
    assert words("en")["viewing.over"] in page


def test_stages_have_a_bar_each_where_there_are_several(write: Write) -> None:
    records = four()
    records[0].stage = "low"
    _, page = report(write(records))
    assert 'aria-label="low"' in page
    assert 'aria-label="main"' in page


def test_a_run_without_a_session_says_nothing_of_them(write: Write) -> None:
    derived, page = report(write([]))
    assert derived.summary["fairness"]["worst"] is None
    for key in ("part.title", "fairness.title", "viewing.title"):
        assert words("en")[key] not in page


def test_every_part_kind_and_standing_has_its_words() -> None:
    kinds = {row["kind"] for preset in table()["presets"].values() for row in preset["rows"]}
    wanted = {f"part.{part}" for part in PARTS} | {f"presets.{kind}" for kind in kinds}
    wanted |= {f"presets.{word}" for word in ("within", "beyond", "open", "no_data", "unmeasured")}
    assert wanted <= words("en").keys()
    assert {row["medium"] for preset in table()["presets"].values() for row in preset["rows"]} <= {
        "text",
        *get_args(Medium),
    }

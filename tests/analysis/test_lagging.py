"""The lag of a run, from its records."""

from typing import Any

import pytest

from loadbench.analysis import lag
from loadbench.analysis.lagging import Emitted, Lagging, by_sentence, emitted
from loadbench.analysis.words import Units
from loadbench.results.record import Channel, ClipFacts, MediaClock, Sentence, SessionRecord, Update
from tests.analysis.records import ZERO_S, at, header, record, unanswered, utterance
from tests.analysis.timelines import MAT, MS, T1, shows

RUN = header(channel_stages={"transcript": "recognition", "speech": "media"})
# Worked example LF: the steps of a simulstream log (ms of audio, computed in ms, text then)
STEPS = [
    (2000, 300, "the cat"), (3000, 300, "the cat sit on"), (4000, 400, "the cat sat on the mat"),
    (5000, 300, "the cat sat on the mat it"), (6000, 350, "the cat sat on the mat it was very"),
    (6500, 250, "the cat sat on the mat it was very happy"),
]  # fmt: skip
LF = ClipFacts(
    id="lf", direction="speech2text", duration_s=6.5, source_lang="en", target_lang="en",
    segments=[
        Sentence(offset=0.5, duration=3.0, transcript="the cat sat on the mat"),
        Sentence(offset=4.0, duration=2.5, transcript="it was very happy"),
    ],
)  # fmt: skip


def said(channel: Channel, later_ms: float = 0.0, **changes: Any) -> Channel:
    """The channel on the records' clock."""
    updates = [
        Update(round(ZERO_S * 1e9 + each.at_ns + later_ms * MS), each.keep, each.add, each.settled)
        for each in channel.updates
    ]
    return Channel(updates=updates, **changes)


def spoke(
    name: str, channel: Channel = T1, later_ms: float = 0.0, *, clip: str = "mat", media_s: float = 4.0, **changes: Any
) -> SessionRecord:
    part = utterance(media_s=media_s, clip=clip, channels={"transcript": said(channel, later_ms)}, outcome="ok")
    part.clock = changes.pop("clock", [])
    return record(name, "ok", part, **changes)


def lagging(*records: SessionRecord, clips: tuple[ClipFacts, ...] = (MAT, LF)) -> Lagging:
    found = Lagging(RUN, {facts.id: facts for facts in clips})
    for each in records:
        found.add(each)
    return found


def test_fixture_t1_has_the_figures_of_its_table_in_seconds() -> None:
    whole, _ = lagging(spoke("s")).summary()
    assert whole.keys() == {"transcript"}, "speech is no text"
    found = whole["transcript"]
    assert (found["n"], found["units"], found["excluded"]) == (1, {"word": 1}, {})
    both = {name: [found["metrics"][name][which]["mean_s"] for which in ("cu", "ca")]
            for name in ("al", "laal", "dal", "atd", "yaal", "start_offset", "end_offset")}  # fmt: skip
    assert both["al"] == both["laal"] == pytest.approx([1.1306667, 1.1926667], abs=1e-6)
    assert both["dal"] == pytest.approx([1.2111111, 1.3144444], abs=1e-6)
    assert both["atd"] == pytest.approx([1.7, 1.8033333], abs=1e-6)
    assert both["yaal"] == pytest.approx([1.08, 1.08], abs=1e-6)
    assert both["start_offset"] == pytest.approx([1.14, 1.14], abs=1e-6)
    assert both["end_offset"] == pytest.approx([0.0, 0.31], abs=1e-6)
    assert found["metrics"]["ap"]["ca"]["mean"] == pytest.approx(0.7058333, abs=1e-6)
    assert found["metrics"]["ap"]["ca"]["p50"]["value"] == pytest.approx(0.7058333, abs=1e-6)
    assert found["metrics"]["al"]["ca"]["p50"].value_s == pytest.approx(1.1926667, abs=1e-6)
    assert found["words"]["stable"]["mean_s"] == pytest.approx(0.906667, abs=1e-6)
    assert (found["words"]["matched"], found["words"]["spare"], found["words"]["missed"]) == (6, 0, 0)
    assert found["burst"] == {"within_s": 0.5, "units": 6, "late": 2, "share": 2 / 6, "utterances": 0}
    assert found["slope"]["by_words"] == 1


def long_form() -> Emitted:
    """The units of LF with the times that the reader of simulstream gives them."""
    texts = STEPS[-1][2].split()
    cu = (2000, 2000, 4000, 4000, 4000, 4000, 5000, 6000, 6000, 6500)
    ca = (2300, 2300, 4400, 4400, 4400, 4400, 5300, 6350, 6350, 6750)
    stable = [round(at * MS) for at in ca]
    assert all(low <= high for low, high in zip(cu, ca, strict=True))
    return Emitted("transcript", "word", Units(texts, stable, stable, list(stable)), 0, 6500 * MS, tuple(texts))


def test_example_lf_has_the_figures_of_simulstream_and_of_omnisteval() -> None:
    """Ideal times are those of the audio; elapsed ones have the time to compute on top, also before the end."""
    found = long_form()
    ideal = (2000.0, 2000.0, 4000.0, 4000.0, 4000.0, 4000.0, 5000.0, 6000.0, 6000.0, 6500.0)
    parts = by_sentence(found, LF)
    assert parts is not None
    mean: dict[tuple[str, str], float] = {}
    for name, part in zip(("error", "likeness"), parts, strict=True):
        assert part.empty == 0
        zeros = iter((500.0, 4000.0))
        ideals = iter(ideal)
        outputs = [each._replace(delays=[next(ideals) - zero for _ in each.delays])
                   for each, zero in zip(part.outputs, zeros, strict=True)]  # fmt: skip
        batch = lag.Batch.of(outputs)
        for metric in lag.LONG:
            for which, times in (("cu", batch.delays), ("ca", batch.elapsed)):
                mean[f"{name} {metric}", which] = float(lag.METRICS[metric](batch, times).mean())
    assert mean["error laal", "cu"] / 1000 == pytest.approx(1.3020833333333335, abs=1e-6)
    assert mean["error laal", "ca"] / 1000 == pytest.approx(1.625, abs=1e-6)
    said = {"yaal": (1312.5, 1662.5), "al": (1302.0833333, 1625.0), "laal": (1302.0833333, 1625.0)}
    said |= {"dal": (1723.9583333, 2076.0416667)}
    for metric, values in said.items():
        assert (mean[f"likeness {metric}", "cu"], mean[f"likeness {metric}", "ca"]) == pytest.approx(values, abs=1e-6)
    assert mean["likeness ap", "cu"] == pytest.approx(0.8472, abs=5e-5)
    assert mean["likeness ap", "ca"] == pytest.approx(0.9708, abs=5e-5)


def test_a_recording_with_sentences_is_told_by_sentence_and_held_against_all_of_them() -> None:
    steps = " ".join(f"{at + more}:{text.replace(' ', '_')}" for at, more, text in STEPS)
    gone = shows("2300:the_cat 6750:the_cat_sat")
    whole, _ = lagging(
        spoke("s", shows(steps), clip="lf", media_s=6.5), spoke("t", gone, clip="lf", media_s=6.5), spoke("u")
    ).summary()
    found = whole["transcript"]
    assert found["without_reference"] == 0
    assert found["long"]["recordings"] == 2
    assert found["long"]["empty"] == {"error": 1, "likeness": 1}, "nothing was said of the second sentence"
    metrics = found["long"]["metrics"]
    assert metrics.keys() == {"stream_laal", "long_yaal", "long_al", "long_laal", "long_ap", "long_dal"}
    assert metrics["stream_laal"]["ca"]["n"] == 3
    gone_s = (1.8 + 1.3 + 5.25) / 3
    assert metrics["stream_laal"]["ca"]["mean_s"] == pytest.approx((2.0 + 1.25 + gone_s) / 3, abs=1e-6)
    assert metrics["long_laal"]["ca"]["max"].value_s == pytest.approx(gone_s, abs=1e-6)
    assert metrics["long_yaal"]["ca"]["undefined"] == 0
    lone, _ = lagging(spoke("u")).summary()
    assert lone["transcript"]["long"] == {"recordings": 0, "empty": {"error": 0, "likeness": 0}, "metrics": {}}


def test_nobody_is_dropped_in_silence() -> None:
    late = spoke("late", shows("4000:the_cat_sat_on_the_mat"))
    silent = spoke("silent", shows("1000:_"))
    dumb = record("dumb", "ok", utterance(media_s=4.0, clip="mat", outcome="ok"))
    unknown = spoke("unknown", clip="nobody's")
    unborn = record("unborn", "ok", utterance(media_s=4.0, clip="mat", born=False, outcome="ok"))
    failed, cut = unanswered("failed", "lost", ended=1.0), unanswered("cut", "time_up", ended=1.0)
    never = record("never", "connect_failed")
    warm = spoke("warm", window="warmup")
    whole, _ = lagging(spoke("s"), late, silent, dumb, unknown, unborn, failed, cut, never, warm).summary()
    found = whole["transcript"]
    assert found["n"] == 2
    assert found["excluded"] == {"no_output": 2, "no_clip": 1, "no_media": 1, "failed": 2, "cut": 1}
    assert found["metrics"]["yaal"]["cu"]["undefined"] == 1, "all of it came at the source end"
    assert found["metrics"]["yaal"]["cu"]["n"] == 1
    assert found["metrics"]["laal"]["cu"]["n"] == 2
    assert found["burst"]["utterances"] == 1


def test_without_a_reference_an_output_is_held_against_itself_and_counted() -> None:
    bare = ClipFacts(id="mat", direction="speech2text", duration_s=4.0, source_lang="en", target_lang="en")
    whole, _ = lagging(spoke("s"), clips=(bare,)).summary()
    found = whole["transcript"]
    assert (found["n"], found["without_reference"], found["words"]["without_times"]) == (1, 1, 1)
    assert found["metrics"]["al"]["ca"]["mean_s"] == pytest.approx(1.1926667, abs=1e-6)
    assert found["words"]["stable"]["mean_s"] is None
    assert found["slope"]["by_nothing"] == 1
    assert found["slope"]["value"] is None


def test_the_lag_of_each_stage_stands_beside_the_others() -> None:
    records = [spoke(f"s{k}", later_ms=250.0 * (k // 3), stage=f"users-{k // 3}") for k in range(9)]
    whole, stages = lagging(*records).summary()
    assert whole["transcript"]["n"] == 9
    for number in range(3):
        found = stages[f"users-{number}"]["transcript"]
        assert found["n"] == 3
        assert found["words"]["stable"]["p50"].value_s == pytest.approx(0.72 + 0.25 * number)
        assert found["metrics"]["dal"]["ca"]["mean_s"] == pytest.approx(1.3144444 + 0.25 * number, abs=1e-6)
        assert found["slope"]["utterances"] == 3


def test_the_services_own_clock_is_asked_before_the_words_are() -> None:
    """It says that it keeps up, though its words come late and later."""
    clock = [MediaClock(at(k + 0.4) or 0, 1000 * k, None) for k in range(1, 5)]
    whole, _ = lagging(spoke("s", clock=clock)).summary()
    found = whole["transcript"]["slope"]
    assert (found["by_clock"], found["by_words"], found["points"]) == (1, 0, 4)
    assert found["value"] == pytest.approx(0.0)


def test_glosses_count_as_units_of_a_signed_clip_and_chinese_by_character() -> None:
    facts = ClipFacts(
        id="sign", direction="sign2spoken", duration_s=4.0, source_lang="csl", target_lang="zh", gloss=["明天", "学校"],
        gloss_spans=[{"gloss": "明天", "start": 0.2, "end": 0.9}, {"gloss": "学校", "start": 1.0, "end": 1.5}],
        text="明天学校放假。",
    )  # fmt: skip
    run = header(headline_channel="gloss", channel_stages={"gloss": "recognition", "text": "translation"})
    channels = {"gloss": said(shows("1400:明天 2000:明天_学校")), "text": said(shows("3000:明天_放假"))}
    part = utterance(media_s=4.0, clip="sign", outcome="ok", channels=channels)
    found = Lagging(run, {"sign": facts})
    found.add(record("s", "ok", part))
    whole, _ = found.summary()
    assert whole["gloss"]["units"] == {"gloss": 1}
    assert whole["gloss"]["words"]["stable"]["mean_s"] == pytest.approx(0.5)
    assert whole["text"]["units"] == {"char": 1}
    assert whole["text"]["words"]["without_times"] == 1
    told = emitted(record("s", "ok", part), part, "text", "translation", {"sign": facts})
    assert isinstance(told, Emitted)
    assert told.reference == tuple("明天学校放假。")

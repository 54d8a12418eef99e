"""Who was served how: by pair of languages, by worker, and across sessions."""

from typing import Any

from loadbench.analysis.fairness import Fairness, middle
from loadbench.analysis.response import Observation
from loadbench.results.record import ClipFacts, SessionRecord
from tests.analysis.records import answered, channel, header, record, unanswered, utterance

S = 1_000_000_000
FINAL = "final_from_source_end"


def clip(name: str, source: str, target: str) -> ClipFacts:
    return ClipFacts(id=name, direction="speech2text", duration_s=1.0, source_lang=source, target_lang=target)


def fairness(*records: SessionRecord, clips: tuple[ClipFacts, ...] = ()) -> Fairness:
    found = Fairness(header(), {facts.id: facts for facts in clips})
    for one in records:
        found.add(one)
    return found


def summary(*records: SessionRecord) -> dict[str, Any]:
    return fairness(*records).summary()


def test_the_spread_is_p90_to_p10_of_the_sessions_medians() -> None:
    # 0.1 to 1.0 s in steps of 0.1: rank 1 of 10 is 0.1, rank 9 is 0.9.
    found = summary(*(answered(f"s{k}", k / 10) for k in range(1, 11)))
    assert (found["sessions"]["p10"].value_s, found["sessions"]["p90"].value_s) == (0.1, 0.9)
    assert round(found["ratio"], 9) == 9.0
    assert round(found["difference_s"], 9) == 0.8
    assert found["worst"] == {
        "id": "s10", "worker": "w1", "stage": "main", "clips": ["a"], "outcome": "ok", "side": "none", "cause": "",
        "tainted": False, "value_s": 1.0, "bound": "exact",
    }  # fmt: skip


def test_one_that_never_answered_is_the_worst_with_its_cause_and_two_of_ten_leave_no_ratio() -> None:
    lost = [unanswered(f"bad{k}", "lost", ended=5.0) for k in range(2)]
    for one in lost:
        one.cause = "the connection went away"
    found = summary(*(answered(f"s{k}", 0.3) for k in range(8)), *lost)
    worst = found["worst"]
    assert (worst["id"], worst["bound"], worst["value_s"]) == ("bad1", "never", None)
    assert (worst["outcome"], worst["cause"]) == ("lost", "the connection went away")
    assert (found["sessions"]["p90"].bound, found["ratio"], found["difference_s"]) == ("never", None, None)


def test_a_final_before_the_source_end_has_a_difference_and_no_ratio() -> None:
    found = summary(*(answered(f"s{k}", final) for k, final in enumerate((-0.2, 0.3))))
    assert (found["ratio"], round(found["difference_s"], 9)) == (None, 0.5)


def test_a_session_counts_by_the_median_of_its_utterances() -> None:
    exact = [Observation("exact", span) for span in (9 * S, 1 * S, 2 * S)]
    assert middle(exact) == Observation("exact", 2 * S)
    assert middle([*exact, Observation("never")]) == Observation("exact", 2 * S)  # rank 2 of 4
    assert middle([exact[0], Observation("never"), Observation("never")]) == Observation("never")
    assert middle([Observation("at_least", 1 * S), *exact[:1], *exact[2:]]) == Observation("at_least", 2 * S)
    assert middle([Observation("left_out")]) == Observation("left_out")


def test_nobody_at_risk_has_no_spread_and_no_worst() -> None:
    for found in (summary(), summary(record("s", "interrupted"))):
        assert (found["sessions"]["p50"].n, found["ratio"], found["difference_s"], found["worst"]) == (
            0,
            None,
            None,
            None,
        )


def test_pairs_of_languages_and_workers_have_their_own_times_and_an_unknown_clip_is_not_lost() -> None:
    def said(name: str, clip_id: str, final: float, worker: str = "w1") -> SessionRecord:
        text = {"transcript": channel(0.5, final, final)}
        return record(name, "ok", utterance(channels=text, clip=clip_id, outcome="ok"), worker=worker)

    found = fairness(
        said("a", "one", 1.2), said("b", "two", 1.9, "w2"), said("c", "gone", 1.5), unanswered("d", "lost", ended=3.0),
        record("e", "connect_failed"),
        clips=(clip("one", "en", "de"), clip("two", "csl", "zh"), clip("a", "en", "de")),
    )  # fmt: skip
    assert found.languages.keys() == {"en -> de", "csl -> zh", "unknown"}
    assert round(found.languages["csl -> zh"].populations[FINAL].finished()["p50"].value_s or 0, 9) == 0.9
    pair = found.languages["en -> de"].populations[FINAL]
    assert (pair.n, pair.failed, pair.started()["max"].bound) == (1, 1, "never")
    assert [found.workers[name].n for name in ("w1", "w2")] == [4, 1]
    assert (found.languages["unknown"].n, found.languages["unknown"].populations[FINAL].failed) == (2, 1)

"""Who is counted: finished and started, side by side."""

from loadbench.analysis.population import Population, Responses
from loadbench.analysis.response import Observation
from tests.analysis.records import answered, channel, record, unanswered, utterance

FINAL = "final_from_source_end"


def of(*records) -> Responses:
    responses = Responses(["transcript"])
    for one in records:
        responses.add(one)
    return responses


def test_no_value_is_neither_zero_nor_in_the_mean() -> None:
    responses = of(
        *(answered(f"ok{k}", 0.2) for k in range(6)),
        *(unanswered(f"bad{k}", "lost", ended=0.4) for k in range(4)),
    )
    first = responses.of("transcript", "first_output_from_media")
    assert first.n == 6
    assert first.mean_s == 0.5
    assert first.failed == 4
    assert first.finished()["p50"].n == 6
    assert first.started()["p50"].n == 10
    assert first.started()["p95"].bound == "never"


def test_sixteen_of_twenty_that_died_do_not_make_the_four_survivors_look_fast() -> None:
    found = of(
        *(answered(f"ok{k}", 0.2) for k in range(4)),
        *(unanswered(f"bad{k}", "target_error", ended=4) for k in range(16)),
    ).of("transcript", FINAL)
    assert found.finished()["p95"].value_s == 0.2
    assert found.started()["p95"].bound == "never"
    assert (found.started()["p50"].bound, found.started()["p50"].n) == ("never", 20)


def test_cut_sessions_count_as_their_age_once_their_media_has_ended() -> None:
    found = of(
        *(answered(f"ok{k}", 0.2) for k in range(7)),
        *(unanswered(f"cut{k}", "time_up", ended=5.0) for k in range(3)),
        unanswered("young", "time_up", ended=0.6),
    ).of("transcript", FINAL)
    p95 = found.started()["p95"]
    assert (p95.bound, p95.value_s, p95.n) == ("at_least", 4.0, 10)
    assert (found.n, found.cut, found.left_out) == (7, 3, 1)


def test_finals_that_never_came_leave_nothing_to_take_a_percentile_of() -> None:
    found = of(*(unanswered(f"s{k}", "no_final", ended=5.0, first=0.4) for k in range(5))).of("transcript", FINAL)
    assert (found.n, found.mean_s, found.finished()["p95"].value_s) == (0, None, None)
    assert found.started()["p50"].bound == "never"
    assert not found.applies


def test_a_session_that_ended_before_its_first_utterance_counts_once() -> None:
    responses = of(record("s1", "connect_failed"), record("s2", "interrupted"))
    found = responses.of("transcript", FINAL)
    assert (found.failed, found.left_out, responses.utterances) == (1, 1, 2)


def test_a_channel_that_stayed_empty_counts_as_never_answered() -> None:
    one = utterance(channels={"transcript": channel(0.5, 1.2, 1.2)}, outcome="ok")
    responses = Responses(["transcript", "translation"])
    responses.add(record("s", "ok", one))
    assert responses.of("transcript", FINAL).n == 1
    assert responses.of("translation", FINAL).failed == 1
    assert responses.of("no such channel", FINAL).n == 0


def test_premature_and_negative_values_are_counted_and_kept() -> None:
    early = utterance(onset=0.5, channels={"transcript": channel(0.2, 0.9, 0.9)}, outcome="ok")
    responses = of(record("s", "ok", early))
    assert responses.premature == {"transcript": 1}
    assert responses.of("transcript", FINAL).negative == 1
    assert responses.of("transcript", FINAL).finished()["p50"].value_s == -0.1


def test_what_was_asked_before_is_asked_anew_after_another_observation() -> None:
    population = Population()
    population.add(Observation("exact", 1_000_000_000), finished=True)
    assert population.started()["max"].value_s == 1.0
    population.add(Observation("exact", 3_000_000_000), finished=False)
    assert population.started()["max"].value_s == 3.0
    assert population.finished()["max"].value_s == 1.0

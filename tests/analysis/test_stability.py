import pytest

from loadbench.analysis.judge import Judge
from loadbench.analysis.stability import Draft, draft, erasure
from loadbench.results.record import Channel, Update
from loadbench.results.slo import Slo
from tests.analysis.records import header, record, utterance


def shown(*texts: str) -> Channel:
    """A channel that showed these texts one after the other."""
    updates, before = [], ""
    for at, text in enumerate(texts):
        keep = next(
            (i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(len(before), len(text))
        )
        updates.append(Update(at, keep, text[keep:], 0))
        before = text
    return Channel(updates=updates)


@pytest.mark.parametrize(
    ("texts", "erased", "final"),
    [
        (("the", "the cat", "the cat sat"), 0, 3),
        (("the cat sit on a", "the cat sat on the mat"), 3, 6),  # from the first changed word on
        (("red", "red boat"), 0, 2),
        (("re", "red"), 1, 1),  # a word that changes is another word
        (("今天下午", "今天上午三点"), 2, 6),  # a character is a token where nobody writes spaces
        (("gone", ""), 1, 0),
        ((), 0, 0),
    ],
)
def test_what_was_shown_and_taken_back_is_counted_in_tokens(texts: tuple[str, ...], erased: int, final: int) -> None:
    assert draft("a", shown(*texts)) == Draft("a", erased, final)


def test_erasure_is_pooled_and_unknown_where_no_text_stood() -> None:
    assert erasure([Draft("a", 2, 6), Draft("b", 0, 2)]) == 0.25
    assert erasure([Draft("a", 3, 0)]) is None
    assert erasure([]) is None


def test_an_objective_on_erasure_is_judged_over_the_sessions_that_finished() -> None:
    judge = Judge(header(Slo(metric="erasure", stat="max", limit=0.3)))
    assert (judge.slo()[0].met, judge.slo()[0].value) == (False, None)
    steady = {"transcript": shown("red", "red boat leaves now")}
    hasty = {"transcript": shown("rad boat", "red boat")}
    judge.add(record("s1", "ok", utterance(channels=steady, outcome="ok")))
    assert judge.slo()[0].met
    judge.add(record("s2", "ok", utterance(channels=hasty, outcome="ok")))
    judge.add(record("s3", "lost", utterance(channels=hasty, outcome="lost")))  # not finished, not counted
    (found,) = judge.slo()
    assert (found.name, found.met) == ("erasure.max", False)
    assert found.value == pytest.approx(2 / 6)

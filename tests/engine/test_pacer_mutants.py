"""Whether the pacer's tests would notice a pacer that is wrong in the ways in which pacers are wrong.

Each mutant is the real source with one passage changed; the tests of `test_pacer` run against it, and some must fail.
"""

import inspect
import types
from collections.abc import Callable

import pytest

from loadbench.engine import pacer
from tests.engine import test_pacer

NAMES = ("ChunkLog", "Stream", "Wheel", "media_zero")
NEXT = "        due_ns = self.zero_ns + self.due_ns[index]\n"
SENT = "        sent_ns, short = list[int](), dict[int, int]()\n"
MUTANTS = {
    "paces one chunk early": (NEXT, NEXT.replace("index", "index - 1")),
    "paces to the slot before, up to a millisecond early": (
        "slot = -(-stream.next_ns // SLOT_NS)",
        "slot = stream.next_ns // SLOT_NS",
    ),
    "paces relatively: next due = sent + interval": (NEXT, "        self.zero_ns += clock() - self.next_ns\n" + NEXT),
    "forgives a debt of more than an interval by moving the schedule": (
        NEXT,
        "        if clock() - self.next_ns > self.due_ns[1] - self.due_ns[0]:\n"
        "            self.zero_ns += clock() - self.next_ns\n" + NEXT,
    ),
    "forgives a debt by dropping what was due in a stall": (
        "        wire = None if self._drop_ns is not None and",
        "        self._drop_ns = self._drop_ns or 20 * MS\n        wire = None if",
    ),
    "counts lateness from the deed and not from the plan": ("[at_ns - due_ns for at_ns,", "[at_ns - at_ns for at_ns,"),
    "stamps all that leave together with the moment of the first": (
        SENT,
        SENT + "        began_ns = clock()\n        clock = lambda: began_ns\n",
    ),
    "tells of the end with the last chunk, before the media is over": (
        NEXT,
        NEXT.replace("[index]", "[min(index, self._last)]"),
    ),
    "lets one session's chunks wait behind another's": ("later[1][:0] = streams", "later[1].extend(streams)"),
    "forgets what had no time to leave": ("later[0][:0] = cohorts", "later[0].extend(cohorts[1:])"),
    "takes a stream along that is due a round later": ("return slot == self.slot", "return True"),
    "keeps a stream in step behind its even times": ("(left - 1) * self.interval", "left * self.interval"),
    "begins a round anew where it was cut": (
        "        self._done, self._stale = 0, False\n",
        "        self._stale = False\n",
    ),
    "counts a chunk that could not be made": ("self._at - failed", "self._at"),
    "goes on with a stream that was stopped": ("self._steps.__setstate__(self._even.chunks)", "_ = 0"),
    "hands over for as long as there is something overdue": ("<= now < limit:", "<= now:"),
}


def plain_tests() -> list[Callable[[], None]]:
    """The tests of the pacer that need no loop and no table."""
    found = [test for name, test in vars(test_pacer).items() if name.startswith("test_")]
    return [test for test in found if not inspect.iscoroutinefunction(test) and not inspect.signature(test).parameters]


def failing(source: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first of the pacer's tests whose assertion fails with a pacer of this source; no other error will do."""
    mutant = types.ModuleType(pacer.__name__)
    exec(compile(source, str(pacer.__file__), "exec"), mutant.__dict__)
    for name in NAMES:
        monkeypatch.setattr(test_pacer, name, getattr(mutant, name))
    failed = []
    for test in plain_tests():
        try:
            test()
        except (AssertionError, ExceptionGroup):  # hypothesis groups what it finds
            failed.append(test.__name__)
            break
    return failed


def test_the_pacer_as_it_is_fails_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(plain_tests()) >= 12
    assert failing(inspect.getsource(pacer), monkeypatch) == []


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_pacer_with_a_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = MUTANTS[fault]
    source = inspect.getsource(pacer)
    assert source.count(before) == 1, "the passage has changed: change the mutant with it"
    assert failing(source.replace(before, after), monkeypatch), f"nobody notices a pacer that {fault}"

"""A service with a planted knee, as a queue in virtual time: `slots` sessions at once, and a line.

A slot is held for the length of the media and the service time. Closed users come over the length of one session, and
each comes again as soon as it has its answer; the first session of each is not measured.
"""

import heapq
from collections import deque
from random import Random
from typing import Literal

from loadbench.analysis.capacity import Run, Search, Step
from loadbench.analysis.evidence import Counts, Observed, Spoken
from loadbench.results.slo import Slo

MEDIA_S = 3.0
SERVICE_S = (0.45, 0.55)
SLOW_SHARE = 0.01  # of answers, at any load
LATE_S = 0.56
PAUSE_S = 1.0  # of a user who was refused
CLIPS = {f"clip-{number}": 6 + number for number in range(12)}  # and their words

QUICK = Slo(metric="final_from_source_end", stat="p95", limit=LATE_S)
COMPLETE = Slo(metric="completed", stat="min_share", limit=0.99)
RIGHT = Slo(metric="wer", stat="max", limit=0.15)
Breaks = Literal["waits", "refuses", "errs"]


def responses(users: int, slots: int, sessions: int, random: Random, *, refuses: bool = False) -> list[float | None]:
    """Response times of `sessions` measured ones in the order of their starts, seconds; None where one was refused."""
    comes = [(user * MEDIA_S / users, user) for user in range(users)]
    heapq.heapify(comes)
    ends: list[tuple[float, int]] = []
    line: deque[tuple[float, int]] = deque()
    free, found = slots, list[float | None]()

    def serve(now: float, since: float, user: int) -> None:
        service = random.uniform(*SERVICE_S) + (random.random() < SLOW_SHARE)
        found.append(now - since + service)
        heapq.heappush(ends, (now + MEDIA_S + service, user))

    while len(found) < users + sessions:
        if ends and (not comes or ends[0][0] <= comes[0][0]):
            now, user = heapq.heappop(ends)
            free += 1
            heapq.heappush(comes, (now, user))
            if line:
                free -= 1
                serve(now, *line.popleft())
            continue
        now, user = heapq.heappop(comes)
        if free:
            free -= 1
            serve(now, now, user)
        elif refuses:
            found.append(None)
            heapq.heappush(comes, (now + PAUSE_S, user))
        else:
            line.append((now, user))
    return found[users:]


def observe(users: int, slots: int, least: int, breaks: Breaks, seed: str) -> Observed:
    """One level of a service whose knee is at `slots`, where it `breaks` in one way only."""
    random, sessions = Random(seed), max(least, 3 * users)
    roomy = users if breaks == "errs" else slots
    times = responses(users, roomy, sessions, random, refuses=breaks == "refuses")
    failed = sum(time is None for time in times)
    late = sum(time is not None and time > LATE_S for time in times)
    counts = {QUICK: Counts(late + failed, sessions), COMPLETE: Counts(failed, sessions)}
    rate = 0.3 if breaks == "errs" and users > slots else 0.05
    clips = [random.choice(list(CLIPS)) for _ in range(sessions)]
    spoken = [Spoken(clip, sum(random.random() < rate for _ in range(CLIPS[clip])), CLIPS[clip]) for clip in clips]
    return Observed(sessions, counts, {"text": {"speech": spoken}})


def drive(search: Search, slots: int, least: int, breaks: Breaks, seed: int, tester: float = 1e9) -> None:
    """Answer all steps; from `tester` users on, the tester is late."""
    while (step := search.ask()) is not None:
        search.tell(answered(step, slots, least, breaks, seed, tester))


def answered(step: Step, slots: int, least: int, breaks: Breaks, seed: int, tester: float = 1e9) -> Run:
    saw = observe(int(step.level), slots, least, breaks, f"{seed}:{step.number}")
    return Run(step, saw, step.level < tester, [] if step.level < tester else ["chunks left late"])

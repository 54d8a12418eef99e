"""Timelines of texts in few letters; times count from a run clock that begins at 0."""

from typing import TypeVar

from loadbench.results.record import Channel, ClipFacts, Update

MS = 1_000_000
T = TypeVar("T", int, int | None)


def ms(times: list[T]) -> list[T]:
    return [at if at is None else at * MS for at in times]


def shows(timeline: str) -> Channel:
    """`1:a_cat| 2:a_cat|_sat`: at 1 ms "a cat", all of it final, and so on; what is behind the bar may still change."""
    updates, before = [], ""
    for part in timeline.split():
        at, _, said = part.partition(":")
        text, settled = said.replace("|", "").replace("_", " "), said.index("|") if "|" in said else 0
        keep = next(
            (k for k, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(len(before), len(text))
        )
        updates.append(Update(int(at) * MS, keep, text[keep:], settled))
        before = text
    return Channel(updates=updates)


WORDS = ("the", "cat", "sat", "on", "the", "mat")
T1 = shows(
    "1140:the 1820:the_cat_sit 2350:the_cat_sat| 3010:the_cat_sat|_on 3400:the_cat_sat|_on_a"
    " 4310:the_cat_sat_on_the_mat|"
)
MAT = ClipFacts(
    id="mat", direction="speech2text", duration_s=4.0, source_lang="en", target_lang="en",
    transcript=" ".join(WORDS),
    words=[
        {"w": word, "start": end - 0.2, "end": end}
        for word, end in zip(WORDS, (0.75, 1.10, 1.60, 2.30, 2.55, 3.20), strict=True)
    ],
)  # fmt: skip

"""Error rates: substitutions, deletions and insertions by Levenshtein distance with unit costs, on a stated unit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Final, NamedTuple

from rapidfuzz.distance import Levenshtein

KINDS: Final = {"equal": "same", "replace": "sub", "delete": "del", "insert": "ins"}


class Pair(NamedTuple):
    """A unit of an alignment: `kind` is same, sub, del or ins; what is not there is ""."""

    kind: str
    reference: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Errors:
    """Edit operations against a reference of `n` units. They add up to those of a corpus."""

    n: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(
            self.n + other.n,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )

    @property
    def total(self) -> int:
        """S + D + I."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> Fraction | None:
        """(S + D + I) / N, exact; may be above 1. None for an empty reference, which has errors but no rate."""
        return Fraction(self.total, self.n) if self.n else None


def errors(reference: Sequence[str], hypothesis: Sequence[str]) -> Errors:
    """Errors of one pair of token lists. An empty reference counts the hypothesis as insertions."""
    counts = {"replace": 0, "delete": 0, "insert": 0}
    for operation in Levenshtein.editops(reference, hypothesis):
        counts[operation.tag] += 1
    return Errors(len(reference), counts["replace"], counts["delete"], counts["insert"])


def best(references: Iterable[Sequence[str]], hypothesis: Sequence[str]) -> Errors:
    """Errors against the reference that fits best (lowest rate, the earlier one on a tie). At least one is needed."""
    return nearest(references, hypothesis)[1]


def nearest(references: Iterable[Sequence[str]], hypothesis: Sequence[str]) -> tuple[Sequence[str], Errors]:
    """The reference that `best` means, and the errors against it."""
    found = [(reference, errors(reference, hypothesis)) for reference in references]
    return min(found, key=lambda item: (item[1].rate is None, item[1].rate or Fraction(item[1].total)))


def aligned(reference: Sequence[str], hypothesis: Sequence[str]) -> Iterator[Pair]:
    """Both, unit by unit, in their order; its S, D and I are those of `errors`."""
    for step in Levenshtein.opcodes(reference, hypothesis):
        left, right = reference[step.src_start : step.src_end], hypothesis[step.dest_start : step.dest_end]
        for one, other in zip_longest(left, right, fillvalue=""):
            yield Pair(KINDS[step.tag], one, other)


def pooled(items: Iterable[Errors]) -> Errors:
    """The errors of a corpus: the sum, so that a long sentence weighs more than a short one."""
    return sum(items, Errors())

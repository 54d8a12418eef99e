"""Error rates: substitutions, deletions and insertions by Levenshtein distance with unit costs, on a stated unit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rapidfuzz.distance import Levenshtein


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
    found = [errors(reference, hypothesis) for reference in references]
    return min(found, key=lambda item: (item.rate is None, item.rate or Fraction(item.total)))


def pooled(items: Iterable[Errors]) -> Errors:
    """The errors of a corpus: the sum, so that a long sentence weighs more than a short one."""
    return sum(items, Errors())

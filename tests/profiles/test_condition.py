import pytest

from loadbench.profiles.condition import atoms, contradiction, implies
from loadbench.session.profile import Condition


def of(text: str) -> Condition:
    """`has a.b` or a JMESPath condition."""
    return Condition(has=text[4:].split()) if text.startswith("has ") else Condition(match=text)


@pytest.mark.parametrize(
    ("strong", "weak", "expected"),
    [
        ("type == 'a'", "type == 'a'", True),
        ("type == 'a' && final", "type == 'a'", True),
        ("type == 'a'", "type == 'a' && final", False),
        ("type == 'a'", "type == 'b'", False),
        ("has a.b", "has a", True),
        ("has a", "has a.b", False),
        ("has ab", "has a", False),  # a name is no prefix of another
        ("a == 'x'", "has a", True),
        ("a == `null`", "has a", False),  # a key that is missing is null as well
        ("a == 'x'", "a", True),
        ("a == ''", "a", False),  # an empty text is false
        ("a.b", "has a", True),
        ("'x' == a", "a == 'x'", True),  # either way round
        ("type == 'a'", "type == 'a' || type == 'b'", True),
        ("type == 'a' || type == 'b'", "has type", True),
        ("type == 'a' || type == 'b'", "type == 'a'", False),
        ("length(a) > `1`", "length(a) > `1`", True),  # not understood, but the same
        ("length(a) > `2`", "length(a) > `1`", False),  # true, and not claimed
    ],
)
def test_a_condition_implies_another_only_where_that_is_sure(strong: str, weak: str, expected: bool) -> None:
    assert implies(atoms(of(strong)), atoms(of(weak))) is expected


def test_no_condition_is_implied_by_everything_and_implies_nothing() -> None:
    everything = atoms(Condition())
    assert implies(atoms(of("has a")), everything)
    assert not implies(everything, atoms(of("has a")))


def test_two_values_at_one_path_contradict_each_other() -> None:
    assert contradiction(atoms(of("a.b == 'x' && c && a.b == 'y'"))) == ("a", "b")
    assert contradiction(atoms(of("a.b == 'x' && a.b == 'x'"))) is None

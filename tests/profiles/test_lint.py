import pytest

from loadbench.profiles import condition, lint
from loadbench.profiles.finding import Finding
from loadbench.session import load
from tests.profiles.sketch import HEAD, text

PARTIAL = "{has: partial, text: {model: unkeyed, text: partial}}"
ANY = "{event: ignore}"


def found(profile: str) -> list[Finding]:
    return list(lint.structure(load.load_text(profile, "sketch.yaml"), load.lines(profile)))


def test_a_rule_behind_one_that_takes_everything_can_never_fire_and_its_line_is_told() -> None:
    profile = text(ANY, PARTIAL)
    (finding,) = found(profile)
    assert (finding.rule, finding.weight) == (2, "warning")
    assert "rule 1 comes first" in finding.what
    assert profile.splitlines()[finding.line - 1].strip() == f"- {PARTIAL}"
    assert finding.text("sketch.yaml").startswith(f"sketch.yaml:{finding.line}: warning: rule 2 can never fire")


def test_a_long_profile_is_looked_through_without_holding_each_rule_against_all_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    implies = condition.implies
    monkeypatch.setattr(condition, "implies", lambda strong, weak: looks.append(1) or implies(strong, weak))
    rules = [
        f"{{match: \"type == 'k{number}' && text\", text: {{model: unkeyed, text: text}}}}" for number in range(300)
    ]
    dead = found(text(*rules, rules[7], rules[7]))
    assert [finding.rule for finding in dead] == [301, 302]
    assert {finding.what for finding in dead} == {"can never fire: rule 8 comes first and takes all that it would fit"}
    assert len(looks) < 10


def test_a_rule_behind_one_that_asks_for_more_can_fire() -> None:
    assert found(text('{has: text, like: {text: "^no"}, event: ignore}', PARTIAL.replace("partial", "text"))) == []


def test_it_can_where_all_rules_fire_or_where_the_order_is_the_other() -> None:
    assert found(text(ANY, PARTIAL, fire="all")) == []
    assert found(text(PARTIAL, ANY)) == []


def test_a_rule_that_contradicts_itself_can_never_fire() -> None:
    (finding,) = found(text("{match: \"type == 'a' && type == 'b'\", event: ack}", PARTIAL))
    assert "type would have to have two values" in finding.what


def test_a_channel_that_no_rule_feeds_is_told_and_a_branch_feeds_its_stem() -> None:
    head = HEAD + "channels: {said: {}, translation: {stage: translation}, spare: {}}\n"
    rules = (
        "{has: a, channel: said, text: {model: unkeyed, text: a}}",
        '{has: b, channel: "translation:{lang}", text: {model: unkeyed, text: b}}',
    )
    (finding,) = found(text(*rules, head=head))
    assert finding.what.startswith("channel spare: no rule")
    assert finding.line == 5


def test_media_messages_of_a_session_s_own_are_a_fact_and_no_warning() -> None:
    media = "media: {kind: audio, chunk_ms: 100, frame: text, message: {id: '{session.id}', data: '{media.base64}'}}\n"
    head = HEAD.replace("media: {kind: audio, chunk_ms: 100}\n", media)
    (finding,) = found(text(PARTIAL, head=head))
    assert (finding.weight, finding.line) == ("fact", 3)
    assert "{session.id}" in finding.what

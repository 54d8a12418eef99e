"""The seven text models, each with the shapes of services that speak so, and what must hold for all of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.results.record import Channel, Finality
from loadbench.session.profile import ChannelPart, TextRule
from loadbench.session.text import Board, CompiledText, RuleError, automatic_joint, compile_rule, seconds
from tests.examples import examples

Rules = dict[str, dict[str, Any]]
Item = tuple[str, Any]


def heard(
    rules: Rules, items: list[Item], finality: Finality = "explicit", promote: bool = False, **part: Any
) -> tuple[list[str], Channel, list[str]]:
    """Effects, record, and what was shown after each item; item n arrives at (n + 1) * 10 ns."""
    compiled = {name: compile_rule(TextRule.model_validate(rule)) for name, rule in rules.items()}
    board = Board("transcript", ChannelPart.model_validate(part), finality)
    effects, shown = list[str](), list[str]()
    for number, (name, item) in enumerate(items):
        effects.append(board.apply(compiled[name], item, (number + 1) * 10))
        shown.append(board.channel().text)
    if promote:
        board.promote()
    return effects, board.channel(), shown


VOSK: Rules = {
    "p": {"model": "unkeyed", "text": "partial"},
    "f": {"model": "unkeyed", "text": "text", "final": True, "start": "result[0].start", "end": "result[-1].end"},
}
DEEPGRAM: Rules = {"r": {"model": "unkeyed", "text": "channel.alternatives[0].transcript", "final": "is_final"}}
SHERPA: Rules = {"r": {"model": "keyed", "text": "text", "key": "segment", "seals_lower": True, "order": "number"}}
WHISPER: Rules = {
    "s": {"model": "keyed", "key": "start", "text": "text", "final": "completed", "order": "number", "start": "start"}
}
TURNS: Rules = {"t": {"model": "keyed", "key": "turn_order", "text": "transcript", "final": "end_of_turn"}}
FUNASR: Rules = {
    "online": {"model": "delta", "text": "text"},
    "offline": {"model": "unkeyed", "text": "text", "final": True},
}
REALTIME: Rules = {
    "delta": {"model": "delta", "text": "delta"},
    "done": {"model": "delta", "replace": "text", "final": True},
}
ITEMS: Rules = {
    "delta": {"model": "delta", "text": "delta", "key": "item_id"},
    "completed": {"model": "keyed", "text": "transcript", "key": "item_id", "final": True},
}
LIVEKIT: Rules = {
    "s": {"model": "snapshot", "committed": "lines[?speaker != `-2`]", "text": "text", "tail": "buffer", "end": "end",
          "unit": "hms"}
}  # fmt: skip
SIGNSPEAK: Rules = {
    "s": {
        "model": "snapshot",
        "committed": "prediction[?finished].prediction",
        "tail": "prediction[?!finished].prediction",
    }
}
SONIOX: Rules = {
    "t": {"model": "tokens", "items": "tokens", "text": "text", "final": "is_final", "join": "", "end": "end_ms",
          "unit": "ms", "ignore": ["<end>", "<fin>"]}
}  # fmt: skip
DEEPL: Rules = {"t": {"model": "tokens", "committed": "concluded", "tail": "tentative", "text": "t"}}
SIMULSTREAM: Rules = {"e": {"model": "edit", "text": "new", "delete": "deleted"}}
IAT: Rules = {
    "e": {"model": "edit", "text": "ws[].cw[0].w | join('', @)", "key": "sn", "order": "number", "from_key": "rg[0]",
          "to_key": "rg[1]"}
}  # fmt: skip
SIGNS: Rules = {
    "l": {"model": "labels", "text": "sign", "confidence": "conf", "min_confidence": 0.7, "accept_after": 2,
          "ignore": ["none"], "end": "ts", "unit": "ms"}
}  # fmt: skip


def segment(number: int, text: str) -> Item:
    return "r", {"segment": number, "text": text}


def spoken(start: str, text: str, completed: bool) -> Item:
    return "s", {"start": start, "text": text, "completed": completed}


def lines(*texts: str, buffer: str = "") -> Item:
    return "s", {"lines": [{"speaker": 1, "text": text, "end": "0:00:01.50"} for text in texts], "buffer": buffer}


def predicted(*pairs: tuple[str, bool]) -> Item:
    return "s", {"prediction": [{"prediction": text, "finished": finished} for text, finished in pairs]}


def tokens(final: str = "", tentative: str = "") -> Item:
    made = [{"text": text, "is_final": True, "end_ms": 900} for text in final.split("|") if text]
    return "t", {"tokens": made + [{"text": text, "is_final": False} for text in tentative.split("|") if text]}


def concluded(final: list[str], tentative: list[str]) -> Item:
    return "t", {"concluded": [{"t": text} for text in final], "tentative": [{"t": text} for text in tentative]}


def edit(sn: int, text: str, rg: list[int] | None = None) -> Item:
    return "e", {"sn": sn, "ws": [{"cw": [{"w": w}]} for w in text.split("|")], **({"rg": rg} if rg else {})}


def signs(text: str) -> list[Item]:
    """`a` is a sure frame, `a?` a doubtful one, `-` no sign."""
    frames = [(frame.rstrip("?").replace("-", "none"), 0.3 if "?" in frame else 0.9) for frame in text.split()]
    return [("l", {"sign": sign, "conf": conf, "ts": 40 * n}) for n, (sign, conf) in enumerate(frames)]


@pytest.mark.parametrize(
    ("rules", "items", "shown", "effects"),
    [
        pytest.param(
            VOSK,
            [("p", {"partial": ""}), ("p", {"partial": "turn left"}), ("f", {"text": "turn left here"}),
             ("p", {"partial": ""}), ("p", {"partial": "then"}), ("f", {"text": "then stop"}), ("f", {"text": ""})],
            ["", "turn left", "turn left here", "turn left here", "turn left here then", "turn left here then stop",
             "turn left here then stop"],
            ["empty", "partial", "final", "empty", "partial", "final", "empty"],
            id="vosk: empty partials, several finals, an empty last one",
        ),
        pytest.param(
            VOSK,
            [("f", {"text": "the train"}), ("f", {"text": "leaves at nine"}), ("f", {"text": "from platform two"}),
             ("f", {"text": ""})],
            ["the train", "the train leaves at nine", "the train leaves at nine from platform two",
             "the train leaves at nine from platform two"],
            ["final", "final", "final", "empty"],
            id="three finals and an empty one that erases nothing",
        ),
        pytest.param(
            VOSK,
            [("f", {"text": "今天下午"}), ("f", {"text": "三点开会"})],
            ["今天下午", "今天下午三点开会"],
            ["final", "final"],
            id="Chinese has no space between its segments",
        ),
        pytest.param(
            VOSK,
            [("p", {"partial": "uh"}), ("p", {"partial": "uh"}), ("p", {"partial": "  "})],
            ["uh", "uh", ""],
            ["partial", "unchanged", "empty"],
            id="a repeat changes nothing, a blank takes the tentative text back",
        ),
        pytest.param(
            DEEPGRAM,
            [("r", {"is_final": final, "channel": {"alternatives": [{"transcript": text}]}})
             for text, final in [("where is", False), ("Where is", True), ("gate four?", True), ("", True)]],
            ["where is", "Where is", "Where is gate four?", "Where is gate four?"],
            ["partial", "final", "final", "empty"],
            id="deepgram: several finals make one utterance",
        ),
        pytest.param(
            SHERPA,
            [segment(0, "good"), segment(0, "good morning"), segment(1, ""), segment(1, "thank"),
             segment(1, "thank you")],
            ["good", "good morning", "good morning", "good morning thank", "good morning thank you"],
            ["partial", "partial", "final", "partial", "partial"],
            id="sherpa: a higher number makes the lower ones final",
        ),
        pytest.param(
            SHERPA,
            [segment(0, "a"), segment(2, "c"), segment(1, "b"), segment(0, "A")],
            ["a", "a c", "a b c", "A b c"],
            ["partial", "final", "partial", "final"],
            id="sherpa, two passes: the second pass replaces what was final",
        ),
        pytest.param(
            WHISPER,
            [spoken("0.000", " Where is", False), spoken("0.000", " Where is gate four?", True),
             spoken("2.100", " It", False), spoken("0.000", " Where is gate four?", True),
             spoken("10.500", " end", False), spoken("9.000", " mid", False)],
            [" Where is", " Where is gate four?", " Where is gate four? It", " Where is gate four? It",
             " Where is gate four? It end", " Where is gate four? It mid end"],
            ["partial", "final", "partial", "unchanged", "partial", "partial"],
            id="whisperlive: keyed by a start that is a text and counts as a number",
        ),
        pytest.param(
            {"k": {"model": "keyed", "key": "id", "text": "text", "final": True}},
            [("k", {"id": 1, "text": "the train"}), ("k", {"id": 2, "text": "leaves at nine"}),
             ("k", {"id": 2, "text": "leaves at five"}), ("k", {"id": 2, "text": ""})],
            ["the train", "the train leaves at nine", "the train leaves at five", "the train leaves at five"],
            ["final", "final", "final", "empty"],
            id="a revised segment appears once",
        ),
        pytest.param(
            FUNASR,
            [("online", {"text": "see you"}), ("online", {"text": " tomorow"}),
             ("offline", {"text": "See you tomorrow."}), ("online", {"text": "bye"})],
            ["see you", "see you tomorow", "See you tomorrow.", "See you tomorrow. bye"],
            ["partial", "partial", "final", "partial"],
            id="funasr: increments, then the corrected sentence in their place",
        ),
        pytest.param(
            REALTIME,
            [("delta", {"delta": "the"}), ("delta", {"delta": " next"}), ("delta", {"delta": ""}),
             ("done", {"text": "The next."}), ("delta", {"delta": "Go"})],
            ["the", "the next", "the next", "The next.", "The next. Go"],
            ["partial", "partial", "empty", "final", "partial"],
            id="realtime deltas: the whole text at the end replaces them",
        ),
        pytest.param(
            ITEMS,
            [("delta", {"item_id": "x", "delta": "he"}), ("delta", {"item_id": "y", "delta": "you"}),
             ("delta", {"item_id": "x", "delta": "llo"}), ("completed", {"item_id": "y", "transcript": "You."}),
             ("completed", {"item_id": "x", "transcript": "Hello."})],
            ["he", "he you", "hello you", "hello You.", "Hello. You."],
            ["partial", "partial", "partial", "final", "final"],
            id="items that complete out of order",
        ),
        pytest.param(
            LIVEKIT,
            [lines(buffer="the next"), lines("The next train", buffer="leaves"),
             lines("The next train", buffer="leaves"), lines("The next train leaves at ten."),
             ("s", {"lines": [{"speaker": -2}], "buffer": ""})],
            ["the next", "The next train leaves", "The next train leaves", "The next train leaves at ten.", ""],
            ["partial", "final", "unchanged", "final", "empty"],
            id="whisperlivekit: everything in each message, silence lines skipped",
        ),
        pytest.param(
            SIGNSPEAK,
            [predicted(("HELLO", False)), predicted(("HELLO", True), ("HOW", False), ("YOU", False)),
             predicted(("HELLO", True))],
            ["HELLO", "HELLO HOW YOU", "HELLO"],
            ["partial", "final", "partial"],
            id="sign-speak: finished and unfinished predictions",
        ),
        pytest.param(
            SONIOX,
            [tokens(tentative="Where"), tokens(tentative="Wh|ere| is"), tokens("Where| is", " ga"), tokens("", ""),
             tokens(" "), tokens("gate|<end>"), tokens("", "<fin>")],
            ["Where", "Where is", "Where is ga", "Where is", "Where is", "Where is gate", "Where is gate"],
            ["partial", "partial", "final", "empty", "empty", "final", "empty"],
            id="soniox: final tokens once, tentative ones replaced, markers dropped, a lone space kept",
        ),
        pytest.param(
            DEEPL,
            [concluded([], ["Where"]), concluded(["Where is gate four?"], ["It"]), concluded([], ["It is", "here"])],
            ["Where", "Where is gate four? It", "Where is gate four? It is here"],
            ["partial", "final", "partial"],
            id="deepl: final and tentative tokens in lists of their own",
        ),
        pytest.param(
            SIMULSTREAM,
            [("e", {"new": "Il prossimo", "deleted": ""}), ("e", {"new": "treno parte", "deleted": ""}),
             ("e", {"new": "partirà alle dieci", "deleted": "parte"}), ("e", {"new": ".", "deleted": ""}),
             ("e", {"new": "", "deleted": " alle dieci."})],
            ["Il prossimo", "Il prossimo treno parte", "Il prossimo treno partirà alle dieci",
             "Il prossimo treno partirà alle dieci.", "Il prossimo treno partirà"],
            ["partial", "partial", "partial", "partial", "empty"],
            id="simulstream: deletes a suffix and adds",
        ),
        pytest.param(
            {"e": {"model": "edit", "text": "t", "delete": "n", "unit_of_delete": "words"}},
            [("e", {"t": "one two three", "n": 0}), ("e", {"t": "four", "n": 2}), ("e", {"t": "x", "n": 9})],
            ["one two three", "one four", "x"],
            ["partial", "partial", "partial"],
            id="an edit by a number of words",
        ),
        pytest.param(
            {"e": {"model": "edit", "text": "t", "delete": "n", "unit_of_delete": "characters", "join": ""}},
            [("e", {"t": "今天", "n": 0}), ("e", {"t": "晚上", "n": 1})],
            ["今天", "今晚上"],
            ["partial", "partial"],
            id="an edit by a number of characters",
        ),
        pytest.param(
            IAT,
            [edit(1, "今"), edit(2, "天|下"), edit(3, "今天下午", [1, 2]), edit(4, "开会")],
            ["今", "今天下", "今天下午", "今天下午开会"],
            ["partial", "partial", "partial", "partial"],
            id="iflytek: a range of keys is replaced",
        ),
        pytest.param(
            SIGNS,
            signs("a a a b? a - a a b b"),
            ["", "a", "a", "a", "a", "a", "a", "a a", "a a", "a a b"],
            ["unchanged", "partial", "unchanged", "empty", "unchanged", "empty", "unchanged", "partial", "unchanged",
             "partial"],
            id="signs: two in a row count once, doubtful frames are not seen, no sign parts two equal signs",
        ),
        pytest.param(
            {"l": {"model": "labels", "text": "sign", "collapse": False, "final": True}},
            signs("a a b"),
            ["a", "a a", "a a b"],
            ["final", "final", "final"],
            id="signs that are not collapsed",
        ),
    ],
)  # fmt: skip
def test_a_service_is_shown_as_it_means(rules: Rules, items: list[Item], shown: list[str], effects: list[str]) -> None:
    got_effects, channel, got_shown = heard(rules, items)
    assert got_shown == shown
    assert got_effects == effects
    assert channel.empty == effects.count("empty")


def times(channel: Channel) -> tuple[int | None, ...]:
    return channel.first_ns, channel.first_final_ns, channel.last_final_ns


@pytest.mark.parametrize(
    ("rules", "items", "expected"),
    [
        (VOSK, [("p", {"partial": ""}), ("p", {"partial": " "}), ("p", {"partial": "red"}), ("f", {"text": "red boat"}),
                ("f", {"text": ""})], (30, 40, 40)),  # neither empty partials nor an empty final move a time
        (VOSK, [("f", {"text": "a"}), ("p", {"partial": "b"}), ("f", {"text": "b"})], (10, 10, 30)),
        (VOSK, [("p", {"partial": "a"})], (10, None, None)),
        (VOSK, [("f", {"text": ""})], (None, None, None)),
        (WHISPER, [spoken("0", "a", True), spoken("0", "a", True)], (10, 10, 10)),  # a repeated final is no new one
        (WHISPER, [spoken("0", "a", True), spoken("0", "b", True)], (10, 10, 20)),  # the text that is scored came later
        (SHERPA, [segment(0, "a"), segment(0, "a b"), segment(1, "")], (10, 30, 30)),
        (SONIOX, [tokens(tentative="a"), tokens("a"), tokens(" b"), tokens("", "c")], (10, 20, 30)),
        (LIVEKIT, [lines(buffer="a"), lines("a"), lines("a"), lines("a b")], (10, 20, 40)),
    ],
)  # fmt: skip
def test_first_and_last_final_are_those_of_text(
    rules: Rules, items: list[Item], expected: tuple[int | None, ...]
) -> None:
    assert times(heard(rules, items)[1]) == expected


def test_a_final_before_an_open_text_is_settled_and_one_after_it_is_not() -> None:
    _, channel, _ = heard(TURNS, [
        ("t", {"turn_order": 0, "transcript": "one", "end_of_turn": False}),
        ("t", {"turn_order": 1, "transcript": "two", "end_of_turn": True}),
        ("t", {"turn_order": 0, "transcript": "One.", "end_of_turn": True}),
    ])  # fmt: skip
    assert [update.settled for update in channel.updates] == [0, 0, len("One. two")]
    assert channel.settled_text == "One. two"


def test_a_final_that_is_only_written_better_keeps_its_time() -> None:
    rules: Rules = {
        "t": {"model": "keyed", "text": "text", "key": "turn", "final": "end", "reworded": "better", "order": "number"}
    }
    items: list[Item] = [
        ("t", {"turn": 0, "text": "yes", "end": False}),  # at 10
        ("t", {"turn": 0, "text": "yes please", "end": True}),
        ("t", {"turn": 0, "text": "Yes, please.", "end": True, "better": True}),
        ("t", {"turn": 1, "text": "Now.", "end": True, "better": True}),  # nothing was said before: its own time
        ("t", {"turn": 1, "text": "No.", "end": True}),  # said anew, and not only better
        ("t", {"turn": 1, "text": "", "end": True, "better": True}),
    ]
    effects, channel, _ = heard(rules, items)
    assert [(part.text, part.changed_ns, part.final_ns) for part in channel.segments] == [
        ("Yes, please.", 30, 20),
        ("No.", 50, 50),
    ]
    assert effects == ["partial", "final", "final", "final", "final", "empty"]
    assert (channel.first_final_ns, channel.last_final_ns) == (20, 50)
    assert channel.updates[2].at_ns == 30, "what was shown, and when, is kept"


def test_the_service_s_own_clock_is_kept_with_each_segment() -> None:
    _, channel, _ = heard(
        VOSK, [("f", {"text": "a b", "result": [{"start": 0.3}, {"end": 0.9}]}), ("f", {"text": "c"})]
    )
    assert [(part.start_s, part.end_s) for part in channel.segments] == [(0.3, 0.9), (None, None)]
    assert heard(LIVEKIT, [lines("a")])[1].segments[0].end_s == 1.5
    assert heard(SIGNS, signs("- a a"))[1].segments[0].end_s == pytest.approx(0.08)


@pytest.mark.parametrize("finality", ["promote_on_done", "promote_on_quiet"])
def test_a_promoted_final_bears_the_time_of_its_last_change(finality: Finality) -> None:
    items = [segment(0, "good"), segment(1, "thank"), segment(1, "thank you"), segment(1, "thank you")]
    _, channel, _ = heard(SHERPA, items, finality, promote=True)
    assert times(channel) == (10, 20, 30)
    assert [(part.final_ns, part.promoted) for part in channel.segments] == [(20, False), (30, True)]
    assert channel.settled_text == channel.text == "good thank you"
    assert [update.at_ns for update in channel.updates] == [10, 20, 30, 30]


def test_nothing_is_promoted_where_only_the_service_makes_finals() -> None:
    _, channel, _ = heard(SHERPA, [segment(0, "good")], "explicit", promote=True)
    assert (times(channel), channel.settled_text) == ((10, None, None), "")


def test_a_promoted_text_that_changes_after_all_is_open_again_and_appears_once() -> None:
    partial, final = (compile_rule(TextRule.model_validate(VOSK[name])) for name in "pf")
    board = Board("transcript", ChannelPart(), "promote_on_quiet")
    board.apply(partial, {"partial": "turn"}, 10)
    board.promote()
    assert board.channel().settled_text == "turn"
    board.apply(partial, {"partial": "turn left"}, 20)
    assert (board.channel().text, board.channel().settled_text) == ("turn left", "")
    assert times(board.channel()) == (10, None, None)
    assert board.apply(final, {"text": "turn left"}, 30) == "final"
    assert times(board.channel()) == (10, 30, 30)


def test_a_promoted_text_that_the_service_then_confirms_is_final_when_it_says_so() -> None:
    partial, final = (compile_rule(TextRule.model_validate(VOSK[name])) for name in "pf")
    board = Board("transcript", ChannelPart(), "promote_on_quiet")
    board.apply(partial, {"partial": "turn"}, 10)
    board.promote()
    assert board.apply(final, {"text": "turn"}, 50) == "final"
    assert board.channel().segments[0].final_ns == 50
    assert not board.channel().segments[0].promoted


@pytest.mark.parametrize(
    ("rule", "item", "says"),
    [
        ({"model": "unkeyed", "text": "text"}, {"text": None}, "gives nothing, not a text"),
        ({"model": "unkeyed", "text": "text"}, {"text": 3}, "gives a number, not a text"),
        ({"model": "unkeyed", "text": "join('', a)"}, {"a": 3}, "cannot be read"),
        ({"model": "keyed", "text": "t", "key": "k"}, {"t": "x"}, "gives nothing, not a key"),
        ({"model": "keyed", "text": "t", "key": "k", "order": "number"}, {"t": "x", "k": "y"}, "order is number"),
        ({"model": "delta", "replace": "t"}, {"t": None}, "not a text"),
        ({"model": "snapshot", "committed": "c"}, {"c": "x"}, "not a list"),
        ({"model": "snapshot", "committed": "c"}, {"c": [{"t": "x"}]}, "name its `text`"),
        ({"model": "snapshot", "tail": "t"}, {"t": [3]}, "not a text"),
        ({"model": "tokens", "items": "i", "text": "t"}, {"i": None}, "not a list"),
        ({"model": "tokens", "committed": "c", "tail": "i", "text": "t"}, {"c": [], "i": {}}, "not a list"),
        ({"model": "tokens", "items": "i", "text": "t"}, {"i": [{"t": 3}]}, "not a text"),
        ({"model": "edit", "text": "t", "delete": "d"}, {"t": "x", "d": "never said"}, "the service deletes"),
        (
            {"model": "edit", "text": "t", "delete": "d", "unit_of_delete": "words"},
            {"t": "x", "d": -1},
            "number of words",
        ),
        ({"model": "labels", "text": "t"}, {"t": None}, "not a text"),
    ],
)
def test_an_item_that_a_rule_cannot_read_is_said_and_changes_nothing(
    rule: dict[str, Any], item: Any, says: str
) -> None:
    board = Board("transcript", ChannelPart())
    board.apply(compile_rule(TextRule.model_validate(VOSK["f"])), {"text": "before"}, 10)
    before = board.channel()
    with pytest.raises(RuleError, match=says):
        board.apply(compile_rule(TextRule.model_validate(rule)), item, 20)
    assert board.channel() == before


@pytest.mark.parametrize(
    ("left", "right", "joint"),
    [
        ("the train", "leaves", " "),
        ("今天下午", "三点开会", ""),
        ("今天", "GPS", ""),
        ("GPS", "今天", ""),
        ("そう", "です", ""),
        ("안녕", "하세요", " "),  # Hangul is spaced
        ("the ", "train", ""),
        ("the", " train", ""),
        ("train", ".", ""),
        ("(", "train", ""),
        ("你好", "，", ""),
        ("año", "¿qué", " "),
        ("\U00020000", "a", ""),  # Han beyond the basic plane
    ],
)
def test_a_space_goes_where_writing_wants_one(left: str, right: str, joint: str) -> None:
    assert automatic_joint(left, right) == joint


@pytest.mark.parametrize(
    ("rule_join", "channel_join", "text"),
    [(None, None, "a b"), (None, "/", "a/b"), ("-", "/", "a-b"), ("", None, "ab")],
)
def test_the_rule_s_join_goes_before_the_channel_s(rule_join: str | None, channel_join: str | None, text: str) -> None:
    rules: Rules = {"f": {"model": "unkeyed", "text": "t", "final": True, "join": rule_join}}
    assert heard(rules, [("f", {"t": "a"}), ("f", {"t": "b"})], join=channel_join)[1].text == text


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1.2, "s", 1.2), ("1.200", "s", 1.2), (1200, "ms", 1.2), (120, "10ms", 1.2), ("0:00:03.40", "hms", 3.4),
        ("1:02:03", "hms", 3723.0), ("3.5", "hms", 3.5), ("1:1:1:1", "hms", None),
        ("1970-01-01T00:00:01.5Z", "iso", 1.5), ("1970-01-01T00:00:02", "iso", 2.0),
        (None, "s", None), ("", "s", None), ("x", "ms", None), (True, "s", None), ([1], "s", None), (3, "hms", None),
        ("nan", "s", None), ("x", "iso", None), (None, "iso", None),
    ],
)  # fmt: skip
def test_a_time_field_is_read_in_its_unit_or_is_unknown(value: Any, unit: Any, expected: float | None) -> None:
    assert seconds(value, unit) == (None if expected is None else pytest.approx(expected))


WORDS = st.sampled_from(["", " ", "a", "bc", " d", "a b", "今天", "开会", "."])
FLAG = st.booleans()
KEY = st.integers(0, 4)
SOUP: dict[str, tuple[CompiledText, st.SearchStrategy[Any]]] = {
    name: (compile_rule(TextRule.model_validate(rule)), items)
    for name, rule, items in [
        ("unkeyed", {"model": "unkeyed", "text": "t", "final": "f"}, st.fixed_dictionaries({"t": WORDS, "f": FLAG})),
        (
            "keyed",
            {"model": "keyed", "text": "t", "key": "k", "final": "f", "order": "number"},
            st.fixed_dictionaries({"t": WORDS, "k": KEY, "f": FLAG}),
        ),
        (
            "lower",
            {"model": "keyed", "text": "t", "key": "k", "seals_lower": True},
            st.fixed_dictionaries({"t": WORDS, "k": KEY}),
        ),
        ("delta", {"model": "delta", "text": "t", "final": "f"}, st.fixed_dictionaries({"t": WORDS, "f": FLAG})),
        (
            "snapshot",
            {"model": "snapshot", "committed": "c", "tail": "t"},
            st.fixed_dictionaries({"c": st.lists(WORDS, max_size=3), "t": WORDS}),
        ),
        (
            "tokens",
            {"model": "tokens", "items": "i", "text": "t", "final": "f"},
            st.fixed_dictionaries({"i": st.lists(st.fixed_dictionaries({"t": WORDS, "f": FLAG}), max_size=3)}),
        ),
        (
            "edit",
            {"model": "edit", "text": "t", "delete": "n", "unit_of_delete": "characters"},
            st.fixed_dictionaries({"t": WORDS, "n": KEY}),
        ),
        (
            "range",
            {"model": "edit", "text": "t", "key": "k", "from_key": "a", "to_key": "b"},
            st.fixed_dictionaries({"t": WORDS, "k": KEY, "a": KEY | st.none(), "b": KEY}),
        ),
        ("labels", {"model": "labels", "text": "t", "accept_after": 2}, st.fixed_dictionaries({"t": WORDS})),
    ]
}
STEPS = st.lists(
    st.sampled_from(sorted(SOUP)).flatmap(lambda name: st.tuples(st.just(name), SOUP[name][1])) | st.none(), max_size=25
)
ONE_MODEL = st.sampled_from(sorted(SOUP)).flatmap(
    lambda name: st.lists(st.tuples(st.just(name), SOUP[name][1]) | st.none(), max_size=25)
)


@given(STEPS | ONE_MODEL, st.sampled_from(["explicit", "promote_on_done", "promote_on_quiet"]))
@settings(max_examples=examples(250), deadline=None)
def test_what_was_shown_can_be_replayed_and_the_times_are_in_order(
    steps: list[tuple[str, Any] | None], finality: Finality
) -> None:
    """None is a promotion."""
    board, moments = Board("transcript", ChannelPart(), finality), list[tuple[int, str]]()
    for number, step in enumerate(steps):
        before = board.channel()
        if step is None:
            board.promote()
            assert board.channel().text == before.text
            assert finality == "explicit" or board.channel().settled_text == board.channel().text
        else:
            effect = board.apply(SOUP[step[0]][0], step[1], number * 10)
            if effect == "unchanged":
                assert board.channel().updates == before.updates
            if effect == "partial":
                assert board.channel().updates != before.updates
        moments.append((number * 10, board.channel().text))
    channel = board.channel()
    shown, at_ns = "", 0
    replayed = dict.fromkeys((at for at, _ in moments), "")
    for update in channel.updates:
        assert update.at_ns >= at_ns
        assert 0 <= update.keep <= len(shown)
        assert not update.add or shown[update.keep : update.keep + 1] != update.add[0]  # nothing is said twice
        shown, at_ns = shown[: update.keep] + update.add, update.at_ns
        assert 0 <= update.settled <= len(shown)
        replayed.update({at: shown for at in replayed if at >= at_ns})
    assert list(replayed.items()) == moments
    joined = "".join(part.text for part in channel.segments)
    assert "".join(joined.split()) == "".join(shown.split())
    ordered = [at for at in times(channel) if at is not None]
    assert ordered == sorted(ordered)
    for part in channel.segments:
        assert part.text.strip()
        assert part.final_ns is not None or not part.promoted
        assert part.first_ns <= part.changed_ns <= (part.final_ns or part.changed_ns)


@given(STEPS)
@settings(max_examples=examples(150), deadline=None)
def test_settled_text_changes_only_where_the_service_replaces_it(steps: list[tuple[str, Any] | None]) -> None:
    replacing = {"keyed", "lower", "snapshot", "range"}  # they name a final segment again; the others cannot
    board = Board("transcript", ChannelPart())
    for number, step in enumerate(step for step in steps if step):
        before = board.channel().settled_text
        board.apply(SOUP[step[0]][0], step[1], number)
        if step[0] not in replacing:
            assert board.channel().settled_text.startswith(before)

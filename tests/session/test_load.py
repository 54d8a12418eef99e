"""Reading profiles: lines, suggestions, and all problems at once."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.media.form import AudioForm, FileForm, FrameForm, H264Form, MediaForm, SliceForm
from loadbench.session import load
from loadbench.session.load import ProfileError
from loadbench.session.profile import MediaPart, Profile

GOOD = """\
schema_version: 1
name: mine
transport: {kind: websocket}
media: {kind: audio, chunk_ms: 100}
receive:
  rules:
    - {has: text, text: {model: unkeyed, text: text, final: true}}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        load.load_text(text, "mine.yaml")
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("name", sorted(load.shipped()))
def test_every_shipped_profile_is_read_and_survives_the_way_to_the_engine(name: str) -> None:
    profile = load.load_profile(name)
    assert profile.name == name
    assert sum(step.done is not None for step in profile.end) == 1
    again = Profile.model_validate(profile.model_dump(mode="json", exclude_unset=True))
    assert again == profile
    assert load.media_form(again.media) == load.media_form(profile.media)


def test_a_profile_of_your_own_is_read_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("\ufeff" + GOOD)
    assert load.load_profile(str(file)).name == "mine"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vosc", "no profile is called vosc; did you mean vosk?; shipped: "),
        ("nothing-like-it", "no profile is called nothing-like-it; shipped: "),
        ("absent/mine.yaml", "absent/mine.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_profile_that_is_not_there_is_named_with_what_is(name: str, says: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load.load_profile(name)
    assert caught.value.problems[0].startswith(says)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ProfileError, match="is not UTF-8"):
        load.load_profile(str(tmp_path / "mine.yaml"))


def test_an_end_script_without_a_done_step_gets_the_usual_one_before_its_grace() -> None:
    (step,) = load.load_text(GOOD, "mine.yaml").end
    assert step.done
    assert step.done.on == ["close", "message"]
    steps = load.load_text(GOOD + "end: [{send_text: Done}, {grace_s: 1}]\n", "mine.yaml").end
    assert [next(iter(step.model_fields_set)) for step in steps] == ["send_text", "done", "grace_s"]
    http = (
        GOOD.replace("websocket", "http").replace("receive:", "receive:\n  framing: lines")
        + "end: [{end_body: true}]\n"
    )
    done = load.load_text(http, "mine.yaml").end[-1].done
    assert done
    assert done.on == ["end_of_response", "message"]


BOMB = "a0: &a0 [1, 1], " + ", ".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("name: mine", "name: mine\nabuot: x"),
         "mine.yaml:3: abuot: no such key; did you mean about?; allowed here: about, "),
        (("name: mine\n", ""), "mine.yaml:1: name: is missing"),
        (("name: mine", "name: 3"), "mine.yaml:2: name: must be a text, not 3"),
        (("kind: websocket", "kind: plugin, stdin: line"),
         "mine.yaml:3: transport.stdin: 'line' is not known; did you mean "
         "lines?; allowed here: raw, length, lines"),
        (("kind: websocket", "kind: websocket, header: {}"), "mine.yaml:3: transport.header: no such key; did you mean "
         "headers?; allowed here: codec, compression, content_type, form, headers, kind, "),
        (("chunk_ms: 100", "chunk_ms: fast"), "mine.yaml:4: media.chunk_ms: must be a number, not 'fast'"),
        (("chunk_ms: 100", "chunk_ms: 0"), "mine.yaml:4: media.chunk_ms: must be above 0"),
        (("chunk_ms: 100", "chunk_ms: 100, rate_hz: 3999"), "mine.yaml:4: media.rate_hz: must be at least 4000, not"),
        (("chunk_ms: 100", "chunk_ms: 100, rate_hz: 16000.5"), "mine.yaml:4: media.rate_hz: must be a whole number"),
        (("model: unkeyed", "model: keyd"),
         "mine.yaml:7: receive.rules[0].text.model: 'keyd' is not known; did you mean "
         "keyed?; allowed here: unkeyed, keyed, "),
        (("final: true", "finale: true"),
         "mine.yaml:7: receive.rules[0].text.finale: no such key; did you mean final?"),
        (("has: text", "has: [text, 3]"), "mine.yaml:7: receive.rules[0].has: must be a text"),
        (("media: {kind: audio, chunk_ms: 100}", "media: audio"), "mine.yaml:4: media: must be a mapping of keys"),
        (("name: mine", "name: mine\nname: other"), "mine.yaml:3: name: is given twice, in lines 2 and 3"),
        (("final: true", "final: true, final: false"), "mine.yaml:7: receive.rules[0].text.final: is given twice"),
        (("name: mine", "name: mine\nend: [{send_text: x, grace_s: 1}]"),
         "mine.yaml:3: end[0]: a step is exactly one of "),
        (("name: mine", "name: mine\nopen: [{}]"), "mine.yaml:3: open[0]: a step is exactly one of "),
        (("name: mine", "name: mine\nopen:\n  - send_json: {day: 2024-01-01}"),
         "mine.yaml:4: open[0].send_json: JSON has no "
         "way to write datetime.date(2024, 1, 1): put it in quotes"),
        (("name: mine", "name: ''"), "mine.yaml:2: name: must be a word or some on one line"),
        (("name: mine", 'name: "\\e[31mmine"'), "mine.yaml:2: name: must be a word or some on one line"),
        (("name: mine", "name: mine\n7: seven"), "mine.yaml:3: 7: the key 7 is no text: put it in quotes"),
        (("chunk_ms: 100", "chunk_ms: .inf"), "mine.yaml:4: media.chunk_ms: must be a number, not inf"),
        (("chunk_ms: 100", "chunk_ms: 1e300"), "mine.yaml:4: media.chunk_ms: must be at most 1e+10, not 1e+300"),
        (("name: mine", "name: mine\nend: [{silence_s: 3601}]"), "mine.yaml:3: end[0].silence_s: must be at most 3600"),
        (("name: mine", "name: mine\nkeepalive: {every_s: 1e-300, send_text: x}"),
         "mine.yaml:3: keepalive.every_s: must be at least 0.01"),
        (("name: mine", "name: mine\nopen: [{send_json: &me {me: *me}}]"),
         "mine.yaml:3: an alias stands within its own anchor"),
        (("name: mine", f"name: mine\nopen: [{{send_json: {{{BOMB}}}}}]"),
         "mine.yaml:3: with all aliases written out there are more than 100000 values"),
        (("name: mine", "name: " + "[" * 70 + "]" * 70), "mine.yaml:2: nested more than 64 levels deep"),
        (("name: mine", 'name: mine\nopen: [{send_json: {a: "\\ud800"}}]'),
         "mine.yaml:3: half of a surrogate pair is no letter"),
    ],
)  # fmt: skip
def test_a_slip_is_told_with_its_line_and_what_is_allowed(change: tuple[str, str], says: str) -> None:
    assert change[0] in GOOD
    told = problems(GOOD.replace(*change))
    assert len(told) == 1, told
    assert told[0].startswith(says)


def test_a_line_is_that_of_the_key_even_deep_in_a_list() -> None:
    text = GOOD + "    - has: error\n      outcome: fatal\n      detail: error\n      colour: red\n"
    (told,) = problems(text)
    assert told.startswith("mine.yaml:11: receive.rules[1].colour: no such key")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "mine.yaml:1: the profile is empty"),
        ("# only a comment\n", "mine.yaml:1: the profile is empty"),
        ("- a\n- b\n", "mine.yaml:1: a profile is a mapping of keys to values"),
        ("name: [a\nb: }\n", "mine.yaml:2: is no YAML: "),
        ("name: 'a\n", "mine.yaml:2: is no YAML: "),
        ("a: *nowhere\n", "mine.yaml:1: is no YAML: found undefined alias"),
        ("a: !!python/object:os.system x\n", "mine.yaml:1: is no YAML: could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "mine.yaml:2: is no YAML: "),
        ("a: \x00\n", "mine.yaml:1: is no YAML: "),
    ],
)
def test_what_is_no_profile_at_all_is_said_in_one_sentence(text: str, says: str) -> None:
    (told,) = problems(text)
    assert told.startswith(says)
    assert "\n" not in told


def test_problems_of_all_kinds_come_out_at_once_in_the_order_of_their_lines() -> None:
    told = problems("""\
schema_version: 1
name: mine
nmae: twice
name: other
transport: {kind: websocket, url: "ws://{hst}/", method: PUT}
open:
  - wait: {match: "a ==", timeout_s: -1}
media: {kind: audio, chunk_ms: fast}
receive:
  rules:
    - {has: a, channel: nope, text: {model: keyed, text: t}}
    - {has: b, outcome: fatl}
""")
    heads = [sentence.split(": ")[:2] for sentence in told]
    assert heads == [
        ["mine.yaml:3", "nmae"],
        ["mine.yaml:4", "name"],
        ["mine.yaml:5", "transport.method"],
        ["mine.yaml:5", "transport.url"],
        ["mine.yaml:7", "open[0].wait.match"],
        ["mine.yaml:7", "open[0].wait.timeout_s"],
        ["mine.yaml:8", "media.chunk_ms"],
        ["mine.yaml:11", "receive.rules[0].channel"],
        ["mine.yaml:11", "receive.rules[0].text"],
        ["mine.yaml:12", "receive.rules[1].outcome"],
    ]


def test_yaml_is_1_2_where_on_and_off_are_words() -> None:
    text = GOOD + "end:\n  - send_json: {on: off, yes: no, n: 010}\n  - done: {on: [close]}\n"
    assert load.load_text(text, "mine.yaml").end[0].send_json == {"on": "off", "yes": "no", "n": 10}


def test_anchors_and_merges_are_read() -> None:
    text = GOOD.replace("{kind: audio, chunk_ms: 100}", "&m {kind: audio, chunk_ms: 100}")
    text = text.replace("name: mine", "name: mine\nabout: &a text") + "pace: {}\nchecked: *a\n"
    assert load.load_text(text, "mine.yaml").checked == "text"


@pytest.mark.parametrize(
    ("part", "form"),
    [
        ({"kind": "audio", "chunk_ms": 200}, AudioForm("s16le", 16000, 3200)),
        ({"kind": "audio", "chunk_bytes": 640}, AudioForm("s16le", 16000, 320)),
        ({"kind": "audio", "chunk_bytes": 640, "format": "f32le"}, AudioForm("f32le", 16000, 160)),
        ({"kind": "audio", "chunk_ms": 20, "format": "mulaw", "rate_hz": 8000}, AudioForm("mulaw", 8000, 160)),
        ({"kind": "audio", "chunk_ms": 23.2, "rate_hz": 22050}, AudioForm("s16le", 22050, 512)),
        ({"kind": "audio", "chunk_ms": 0.01, "rate_hz": 8000}, AudioForm("s16le", 8000, 1)),
        ({"kind": "frames"}, FrameForm()),
        ({"kind": "frames", "fps": 29.97, "width": 640}, FrameForm(width=640, fps=Fraction(2997, 100))),
        (
            {"kind": "frames", "codec": "i420", "width": 8, "height": 6, "fit": "pad"},
            FrameForm(codec="i420", width=8, height=6, fit="pad"),
        ),
        (
            {"kind": "frames", "codec": "h264", "crf": 23, "keyframe_s": 0.5, "bframes": 2},
            H264Form(crf=23, keyframe_s=Fraction(1, 2), bframes=2),
        ),
        ({"kind": "video", "container": "webm", "slice_ms": 500}, SliceForm(container="webm", slice_s=Fraction(1, 2))),
        (
            {"kind": "video", "container": "fmp4", "pace": "whole", "bitrate_kbps": 500},
            SliceForm(container="fmp4", slice_s=None, bitrate_kbps=500),
        ),
        ({"kind": "video", "container": "file", "pace": "whole"}, FileForm()),
    ],
)
def test_the_media_form_is_what_the_profile_wants(part: dict[str, Any], form: MediaForm) -> None:
    assert load.media_form(MediaPart.model_validate(part)) == form


def test_the_secrets_that_a_profile_asks_for_are_known_before_a_run() -> None:
    text = GOOD.replace("{kind: websocket}", '{kind: websocket, headers: {Authorization: "Bearer {secret.TOKEN}"}, '
                        'query: [[key, "{secret.key-2}"], [x, "{{secret.not}}"]]}')  # fmt: skip
    text += 'open: [{send_json: {a: {b: ["{secret.inner}"]}}}]\n'
    assert load.secret_names(load.load_text(text, "mine.yaml")) == {"TOKEN", "key-2", "inner"}


def test_keys_that_are_words_of_python_survive_the_way_to_the_engine_too() -> None:
    more = (
        'signed: {mac: {hmac: sha1, key: "{secret.key}", message: m, as: hex}}\n'
        'prelude: [{request: "POST https://h/{secret.path}", json: {token: "{secret.token}"}}]\n'
    )
    profile = load.load_text(GOOD + more, "mine.yaml")
    data = profile.model_dump(mode="json", exclude_unset=True)
    assert data["signed"]["mac"]["as"] == "hex"
    assert data["prelude"][0]["json"] == {"token": "{secret.token}"}
    assert Profile.model_validate(data) == profile
    assert load.secret_names(profile) == {"key", "path", "token"}


def test_a_profile_without_end_is_refused() -> None:
    with pytest.raises(ProfileError, match="far too long for a profile"):
        load.load_profile("/dev/zero")

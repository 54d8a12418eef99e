"""The sense of a profile, beyond its schema: what a name in a template means, whether a selector parses, what a text
model needs, what a transport can do.

Works on the raw tree as YAML gave it, walked along the schema's types. What has the wrong type is passed over here, for
the schema complains about it; so all problems of a profile come out at once.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from loadbench.session import profile as schema
from loadbench.session.message import FLOATS, HELD, OWN_FIELDS, middle_of, payload_of
from loadbench.session.select import SelectorError, compile_selector
from loadbench.session.template import LANDMARKS, Hole, TemplateError, compile_json, compile_text, is_landmarks

Place: TypeAlias = tuple[str | int, ...]
Raw = Mapping[str, Any]


class Problem(NamedTuple):
    """What is wrong, and where."""

    place: Place
    what: str


class _At(NamedTuple):
    """A part of the profile, where it stands, and the whole tree. Called with keys, it gives a place inside."""

    part: Raw
    place: Place
    tree: Raw

    def __call__(self, *keys: str) -> Place:
        return (*self.place, *keys)


class _Found(NamedTuple):
    """A value of the tree with what the schema says it is: a part, or one of the strings "selector", "template"."""

    kind: Any
    value: Any
    place: Place


_DESCRIBED: Final = {
    get_args(schema.Selector)[1].description: "selector",
    get_args(schema.Template)[1].description: "template",
}
LONGEST_S: Final = 1e7  # as in a plan
_SPANS: Final = {"_s": 1.0, "_ms": 1e-3}  # the end of a key, and its unit in seconds
_JSON_TEMPLATES: Final = frozenset({"send_json", "message", "first", "last", "json"})


def problems(tree: Any) -> Iterator[Problem]:
    """All that makes no sense in a profile, in the order of the tree's types."""
    if not isinstance(tree, dict):
        return
    for kind, value, place in _walk(schema.Profile, tree, ()):
        if kind == "selector":
            yield from _selector(value, place)
        elif kind in ("template", "json"):
            if place[0] not in ("receive", "simulate"):  # there names have rules of their own
                yield from _template(kind, value, place, tree)
        else:
            at = _At(value, place, tree)
            yield from _spans(at)
            if issubclass(kind, schema.Condition):
                yield from _like(at)
            if check := _CHECKS.get(kind):
                yield from check(at)


def template_names(tree: Any) -> set[str]:
    """Every field that a template of the profile asks for; templates that cannot be read are passed over."""
    names: set[str] = set()
    for kind, value, _ in _walk(schema.Profile, tree, ()):
        if kind in ("template", "json"):
            try:
                names |= _names(kind, value)
            except TemplateError:
                continue  # `problems` tells
    return names


def number_names(tree: Any) -> set[str]:
    """Every field that the profile sends as a JSON number; templates that cannot be read are passed over."""
    names: set[str] = set()
    for kind, value, _ in _walk(schema.Profile, tree, ()):
        if kind == "json":
            try:
                parts = compile_json(value).parts
            except TemplateError:
                continue  # `problems` tells
            names |= {part.name for part in parts if isinstance(part, Hole) and part.number}
    return names


def _spans(at: _At) -> Iterator[Problem]:
    """No span of time is longer than the longest that a plan may have."""
    for key, value in at.part.items():
        unit_s = next((unit_s for end, unit_s in _SPANS.items() if str(key).endswith(end)), None)
        if unit_s and isinstance(value, int | float) and LONGEST_S < value * unit_s < math.inf:
            yield Problem(at(key), f"must be at most {LONGEST_S / unit_s:g}, not {value!r}")


def part_at(place: Place) -> type[BaseModel] | None:
    """The part of the schema at a place: a model class where that is what stands there, else None."""
    kinds: list[Any] = [schema.Profile]
    for step in place:
        kinds = [inner for kind in kinds for inner in _inside(kind, step)]
    return next((kind for kind in kinds if _is_part(kind)), None)


# ---- walking


def _walk(kind: Any, value: Any, place: Place) -> Iterator[_Found]:
    origin, inner = get_origin(kind), get_args(kind)
    if _is_part(kind):
        if isinstance(value, dict):
            yield _Found(kind, value, place)
            for name, field in schema.keys(kind).items():
                if name in value:
                    yield from _walk_field(name, field, value[name], (*place, name))
    elif origin is Annotated:
        named = next((_DESCRIBED[m.description] for m in inner[1:] if getattr(m, "description", 0) in _DESCRIBED), None)
        if named and isinstance(value, str):
            yield _Found(named, value, place)
    elif origin in (list, tuple, dict):
        for step, each, item in _members(origin, inner, value):
            yield from _walk(each, item, (*place, step))
    else:
        for each in inner:
            yield from _walk(each, value, place)


def _members(origin: Any, inner: tuple[Any, ...], value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """The members of a container with their keys and kinds; none where the value is something else."""
    if origin is dict and isinstance(value, dict):
        yield from ((key, inner[1], item) for key, item in value.items())
    elif origin is not dict and isinstance(value, list):
        kinds = inner * len(value) if origin is list else inner
        yield from ((number, each, item) for number, (each, item) in enumerate(zip(kinds, value, strict=False)))


def _walk_field(name: str, field: FieldInfo, value: Any, place: Place) -> Iterator[_Found]:
    named = _DESCRIBED.get(field.description)  # pydantic unwraps what is a selector or template and nothing else
    if field.annotation is Any and name in _JSON_TEMPLATES and value is not None:
        yield _Found("json", value, place)
    elif named and isinstance(value, str):
        yield _Found(named, value, place)
    else:
        yield from _walk(field.annotation, value, place)


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if _is_part(kind):
        if field := schema.keys(kind).get(str(step)):
            yield from _alternatives(field.annotation)
    elif origin in (list, tuple) and isinstance(step, int):
        yield from _alternatives(inner[0])
    elif origin is dict:
        yield from _alternatives(inner[1])


def _alternatives(kind: Any) -> Iterator[Any]:
    if _is_part(kind) or get_origin(kind) in (list, tuple, dict):
        yield kind
    else:
        for inner in get_args(kind):
            yield from _alternatives(inner)


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


# ---- selectors and templates


def _selector(expression: str, place: Place) -> Iterator[Problem]:
    try:
        compile_selector(expression)
    except SelectorError as error:
        yield Problem(place, str(error))


def _names(kind: str, value: Any) -> frozenset[str]:
    return compile_text(value).names if kind == "template" else compile_json(value).names


def _template(kind: str, value: Any, place: Place, tree: Raw) -> Iterator[Problem]:
    try:
        names = _names(kind, value)
    except TemplateError as error:
        yield Problem(place, str(error))
        return
    if place[0] == "media":
        try:
            payload = payload_of(value)
        except TemplateError as error:
            yield Problem(place, str(error))
        else:
            media = _part(tree, "media")
            yield from _payload(payload, value, place, _part(media, "also") if place[1] == "also" else media)
    for name in sorted(names):
        if what := _unknown(name, place, tree):
            yield Problem(place, f"{{{name}}}: {what}")


def _payload(name: str, value: Any, place: Place, media: Raw) -> Iterator[Problem]:
    """What a message holds its media as must be what the media is, and the same in all its messages."""
    samples = media.get("container") is None and media.get("format", "s16le") in ("s16le", "f32le")
    if name == FLOATS and media.get("encoder") is not None:
        yield Problem(place, f"{{{FLOATS}}} is for samples, which an encoder does not give")
    elif name == FLOATS and not (media.get("kind") == "audio" and samples):
        yield Problem(place, f"{{{FLOATS}}} is for audio of format s16le or f32le")
    if (name == LANDMARKS) != (media.get("kind") == "landmarks"):
        yield Problem(place, f"kind: landmarks and {{{LANDMARKS}}}, or {{{LANDMARKS}.NAME}}, need each other")
    try:
        message = media.get("message")
        same = place[-1] == "message" or (name == payload_of(message) and middle_of(value) == middle_of(message))
    except TemplateError:
        return  # told where it stands
    if not same:
        yield Problem(place, f"must hold the media as `message` does, not as {{{name}}}")


def _unknown(name: str, place: Place, tree: Raw) -> str | None:
    """What is wrong with a field's name at this place; None where it is known."""
    group, _, rest = name.partition(".")
    fixed = _FIELDS_EVERYWHERE | _FIELDS_OF.get(str(place[0]), frozenset())
    if name in ("host", "port") and place[0] in ("signed", "prelude") and _dialled_later(tree):
        return "is not known before the prelude has captured the address"
    if name in fixed or (group in ("clip", "secret") and rest):
        return None
    if place[0] == "media" and is_landmarks(name):
        return None if name.count(".") == 2 else "a frame of landmarks has members, and they have no fields here"
    if group == "param":
        params = _part(tree, "params")
        return None if rest in params else f"params has no {rest or 'such name'}; it has {_listed(params)}"
    if group == "signed":
        signed = _signed_before(place, tree)
        return None if rest in signed else f"nothing is signed as {rest} before; known here: {_listed(signed)}"
    if group == "captured" and place[0] != "signed":
        captured = _captured_before(place, tree)
        return None if rest in captured else f"nothing before it captures {rest}; captured here: {_listed(captured)}"
    if group == "env":
        return f"the environment is not read by profiles; write {{secret.{rest or 'NAME'}}} and give it in the plan"
    allowed = ", ".join([*sorted(fixed), "clip.NAME", "param.NAME", "secret.NAME"])
    return f"no such field; allowed here: {allowed} ({{{{{name}}}}} stands for the text itself)"


def _signed_before(place: Place, tree: Raw) -> list[str]:
    names = list(map(str, _part(tree, "signed")))
    own = place[0] == "signed" and len(place) > 1 and place[1] in names
    return names[: names.index(str(place[1]))] if own else names


def _captured_before(place: Place, tree: Raw) -> list[str]:
    """What has been captured when a place's turn comes: by requests first, then by what is awaited."""
    captured: list[str] = []
    for section in ("prelude", "transport", "auth", "open", "begin", "end"):
        steps = _list(tree, section)
        if place[0] == section and len(place) > 1 and isinstance(place[1], int):
            steps = steps[: place[1]]
        for step in steps:
            captured += map(str, _part(step if section == "prelude" else _part(step, "wait"), "capture"))
        if place[0] == section:
            break
    return captured


def _dialled_later(tree: Raw) -> bool:
    return "{captured." in str(_part(tree, "transport").get("url", ""))


# ---- parts


def _profile(at: _At) -> Iterator[Problem]:
    name = at.part.get("name")
    if isinstance(name, str) and not (name.strip() and name.isprintable()):
        yield Problem(("name",), f"must be a word or some on one line, not {name!r}")
    channels = _channels(at.tree)
    if not channels:
        yield Problem(("channels",), "a profile needs at least one channel")
    primary = at.part.get("primary")
    if isinstance(primary, str) and primary not in channels:
        yield Problem(("primary",), f"no such channel; declared: {_listed(channels)}")
    if at.part.get("auth") is not None and _kind(at.tree) == "process":
        yield Problem(("auth",), "a local program has no headers and no query; give it target.env of the plan")
    yield from _end_script(_list(at.part, "end"), at.tree)
    yield from _awaited(_list(at.part, "end"), at.tree)
    if at.part.get("keepalive") is not None and _kind(at.tree) in _HTTP:
        yield Problem(("keepalive",), "an HTTP request has no keep-alive messages")
    if _kind(at.tree) == "requests":
        yield from _carried(at)


def _transport(at: _At) -> Iterator[Problem]:
    kind = at.part.get("kind")
    if kind in _INSIDE:
        yield Problem(
            at("kind"), f"{kind} is loadbench's own; allowed here: {', '.join(OWN_KINDS)}, or a plug-in's name"
        )
    for keys, whose, kinds in _WHOSE:
        for key in keys:
            if kind in OWN_KINDS and kind not in kinds and at.part.get(key):
                yield Problem(at(key), f"only {whose} has it, and this transport is {kind}")
    url = at.part.get("url")
    if kind == "process" and isinstance(url, str) and "{secret." in url:
        yield Problem(at("url"), "a command line can be read by everybody here: give secrets by target.env of the plan")
    if (kind == "requests") != (at.part.get("requests") is not None):
        yield Problem(at("requests"), "kind: requests and the requests that it makes need each other")
    if kind == "requests" and "method" in at.part:
        yield Problem(at("method"), "each of the requests names its own")
    if at.part.get("form") is not None:
        yield from _form(at)


def _form(at: _At) -> Iterator[Problem]:
    media = _part(at.tree, "media")
    if at.part.get("kind") != "http":
        yield Problem(at("form"), "only kind: http has it")
    if "content_type" in at.part:
        yield Problem(at("content_type"), "a form has its own")
    if media.get("kind") != "audio" or media.get("pace") != "whole":
        yield Problem(at("form"), "uploads a whole file: it needs media.kind: audio and media.pace: whole")
    for script in ("open", "begin", "end"):
        for number, step in enumerate(_list(at.tree, script)):
            if isinstance(step, dict) and not _SENDS.isdisjoint(step):
                yield Problem((script, number), "an upload is one message, and there is no room for another")


def _requests(at: _At) -> Iterator[Problem]:
    lines = {key: at.part.get(key) for key in ("open", "media", "end")}
    for key, line in lines.items():
        if isinstance(line, str) and not _REQUEST.fullmatch(line):
            yield Problem(at(key), f"must be a method and a path, for instance PUT /input, not {line!r}")


def _poll(at: _At) -> Iterator[Problem]:
    line = at.part.get("request")
    if isinstance(line, str) and not _REQUEST.fullmatch(line):
        yield Problem(at("request"), f"must be a method and a path, for instance GET /output, not {line!r}")


def _poll_step(at: _At) -> Iterator[Problem]:
    line = at.part.get("request")
    if isinstance(line, str) and not re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) /[^\s#]*", line):
        yield Problem(at("request"), f"must be a method and a path, as GET /jobs/{{captured.id}}, not {line!r}")


def _carried(at: _At) -> Iterator[Problem]:
    """Each script that sends something has a request to send it with."""
    requests = _part(_part(at.tree, "transport"), "requests")
    for script, key in (("open", "open"), ("begin", "open"), ("end", "end")):
        sends = any(isinstance(step, dict) and not _SENDS.isdisjoint(step) for step in _list(at.tree, script))
        if sends and requests.get(key) is None:
            yield Problem(("transport", "requests", key), f"is missing: the script `{script}` sends a message")


def _ping(at: _At) -> Iterator[Problem]:
    if at.part.get("close") is True and at.part.get("timeout_s") is None:
        yield Problem(at("close"), "needs timeout_s, the time in which a pong must come")
    if at.part.get("timeout_s") is not None and at.part.get("every_s") is None:
        yield Problem(at("timeout_s"), "needs every_s, for without it no ping is sent")


def _channel(at: _At) -> Iterator[Problem]:
    media, medium = at.part.get("stage") == "media", at.part.get("medium")
    if media != (medium is not None):
        yield Problem(at("medium"), "belongs to stage: media, which needs it; allowed here: audio, video")
    if "audible_dbfs" in at.part and medium != "audio":
        yield Problem(at("audible_dbfs"), "only a channel of audio is heard")


def _media_format(at: _At) -> Iterator[Problem]:
    form = at.part.get("format")
    samples = form in ("s16le", "f32le", "mulaw", "alaw")
    if samples and at.part.get("rate_hz") is None:
        yield Problem(at(), f"{form} needs rate_hz")
    for key, wanted in (("rate_hz", samples), ("channels", samples), ("fps", form == "jpeg")):
        if key in at.part and not wanted and form is not None:
            yield Problem(at(key), f"has no meaning for {form}")
    if at.place[-1] == "media" and (at.part.get("base64") is None) == (at.part.get("hex") is None):
        yield Problem(at(), "needs either base64 or hex, a selector of the coded media")
    if "channel" in at.part:
        yield from _media_channel(at.part, str(at.part["channel"]), at("channel"), at.tree)


def _binary(at: _At) -> Iterator[Problem]:
    yield from _media_format(at)
    if _kind(at.tree) == "http":
        yield Problem(at(), "an HTTP body has no binary messages; media comes in the messages that rules read")


def _media_channel(part: Raw, channel: str, place: Place, tree: Raw) -> Iterator[Problem]:
    """The channel of media must be declared as one, of a medium that the format can be."""
    declared = _part(_part(tree, "channels"), channel.partition(":")[0])
    if declared.get("stage") != "media":
        yield Problem(place, f"{channel} is no declared channel of stage: media")
        return
    medium = {"container": declared.get("medium"), "jpeg": "video"}.get(str(part.get("format")), "audio")
    if declared.get("medium") in ("audio", "video") and declared["medium"] != medium:
        yield Problem(place, f"{part.get('format')} is {medium}, and channel {channel} is {declared['medium']}")


def _send(at: _At) -> Iterator[Problem]:
    coded = at.part.get("send_base64")
    if isinstance(coded, str):
        try:
            base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            yield Problem(at("send_base64"), "is not base64")


def _keepalive(at: _At) -> Iterator[Problem]:
    yield from _send(at)
    kinds = [key for key in schema.SendPart.model_fields if key in at.part]
    if len(kinds) != 1:
        yield Problem(at(), f"sends exactly one of {', '.join(schema.SendPart.model_fields)}, not {_listed(kinds)}")


def _quiet(at: _At) -> Iterator[Problem]:
    if _above(at.part.get("for_s"), at.part.get("max_s")):
        yield Problem(at("for_s"), "is longer than max_s, so that the quiet could never be found")


def _end_script(steps: list[Any], tree: Raw) -> Iterator[Problem]:
    keys = [next((key for key in step if key != "when"), "") if isinstance(step, dict) else "" for step in steps]
    sure = [not isinstance(step, dict) or step.get("when") is None for step in steps]
    if _kind(tree) == "http" and "end_body" not in keys:
        yield Problem(("end",), "an HTTP request needs the step end_body: true, or it never ends")
    for number, key in enumerate(keys):
        if key == "end_body" and _kind(tree) in ("websocket", "requests"):
            yield Problem(("end", number, key), "only an HTTP stream has a body to end, and a program an input")
        if key == "silence_s" and not sure[number]:
            yield Problem(("end", number, "when"), "silence is added to the media beforehand, for all sessions alike")
        if key == "silence_s" and any(earlier != "silence_s" for earlier in keys[:number]):
            yield Problem(("end", number, key), "silence is added to the media, so it stands before all other steps")
        if key == "silence_s" and _part(tree, "media").get("encoder") is not None:
            yield Problem(("end", number, key), "nobody but the plug-in could encode it; wait with quiet instead")
        if key == "silence_s" and _part(tree, "media").get("kind") in ("frames", "video", "landmarks"):
            yield Problem(("end", number, key), "pictures have no silence; wait with quiet instead")
        if key == "silence_s" and _part(tree, "media").get("pace") == "whole":
            yield Problem(("end", number, key), "a whole clip is one chunk, and no silence follows it")
        if key == "grace_s" and "done" in keys[number:]:
            yield Problem(("end", number, key), "the grace comes after the done step")
        if key == "done" and any(at == "done" and (sure[number] or sure[n]) for n, at in enumerate(keys[:number])):
            yield Problem(("end", number, key), "there is a done step before it; name all events in one `on`")


def _awaited(steps: list[Any], tree: Raw) -> Iterator[Problem]:
    """What an end script asks and waits for, before it waits for the end."""
    done = next((number for number, step in enumerate(steps) if isinstance(step, dict) and "done" in step), len(steps))
    for number, step in enumerate(steps):
        for key in ("wait", "poll") if isinstance(step, dict) else ():
            if key in step and number > done:
                yield Problem(("end", number, key), "comes before the done step, after which nothing is awaited")
            if key in step and key == "poll" and _kind(tree) != "requests":
                yield Problem(("end", number, key), "only kind: requests can make one")


def _done(at: _At) -> Iterator[Problem]:
    events = at.part.get("on")
    if ("quiet" in _list(at.part, "on")) != (at.part.get("quiet_s") is not None):
        yield Problem(at("quiet_s"), "belongs to quiet in `on`, which needs it")
    if not isinstance(events, list):
        return
    if not events:
        yield Problem(at("on"), "names no event, so that the output could never be done")
    if "end_of_response" in events and _kind(at.tree) in ("websocket", "requests", "process"):
        yield Problem(at("on"), "only an HTTP response ends, kind: http")
    says = {rule.get("event") for rule in _rules(at.tree) if isinstance(rule, dict)}
    if "settled" in events and "settled" not in says:
        yield Problem(at("on"), "no message settles anything: give a rule with event: settled and its key")
    asks = any(at.part.get(key) is not None for key in ("has", "match", "like"))
    if events == ["message"] and "done" not in says and not asks:
        yield Problem(at("on"), "no message means done: give has or match here, or a rule with event: done")


def _media(at: _At) -> Iterator[Problem]:
    yield from _medium(at)
    also = at.part.get("also")
    if not isinstance(also, dict):
        return
    if (also.get("kind") == "audio") == (at.part.get("kind") == "audio"):
        yield Problem(at("also", "kind"), "is that of the first medium; a second one is of the other kind")
    if {at.part.get("frame", "binary"), also.get("frame", "binary")} == {"binary"}:
        yield Problem(at("also", "frame"), "nobody could tell two binary media apart; allowed here: text")
    if at.part.get("late") == "drop_late":
        yield Problem(at("late"), "is for frames alone; with a second medium every chunk is sent")


def _medium(at: _At) -> Iterator[Problem]:
    kind, frame = at.part.get("kind"), at.part.get("frame", "binary")
    if kind == "landmarks" and frame != "text":
        yield Problem(at("frame"), "landmarks are JSON; allowed here: text")
    if kind == "audio" and at.part.get("container") is not None:
        yield from _recording(at)
    yield from _encoded(at) if at.part.get("encoder") is not None else _meaningless(at, kind)
    if at.part.get("pace") == "whole":
        yield from _whole(at)
    elif kind == "audio" and at.part.get("encoder") is None:
        yield from _chunks(at)
    if kind in ("frames", "video") and at.part.get("encoder") is None:
        yield from _pictures(at)
    fps = at.part.get("fps")
    if isinstance(fps, int | float) and fps <= 0:
        yield Problem(at("fps"), "must be above 0, or clip for the clip's own rate")
    if frame == "text" and at.part.get("message") is None:
        yield Problem(at(), f"text frames need a message that holds {HELD}")
    if frame == "text" and _kind(at.tree) == "http":
        yield Problem(at("frame"), "an HTTP body has no text frames; allowed here: binary")
    if _kind(at.tree) == "process":
        yield from _piped(at, frame)
    for key in ("message", "first", "last", "base64_prefix"):
        if frame == "binary" and at.part.get(key):
            yield Problem(at(key), "only text frames have it; say frame: text")


def _encoded(at: _At) -> Iterator[Problem]:
    """A plug-in says itself how it encodes and cuts."""
    own = {key for keys in _MEDIA_ONLY.values() for key in keys if key != "late"} | {"pace"}
    for key in at.part:
        if key in own:
            yield Problem(at(key), "has no meaning beside an encoder; a plug-in has its options")
    if _part(at.tree, "transport").get("form") is not None:
        yield Problem(at("encoder"), "an upload sends a WAV file, which loadbench makes")


def _piped(at: _At, frame: Any) -> Iterator[Problem]:
    """Media on a pipe must be told apart again; bare samples need not."""
    stdin = _part(at.tree, "transport").get("stdin", "raw")
    if stdin == "lines" and frame == "binary":
        yield Problem(at("frame"), "bytes are no lines; with transport.stdin: lines allowed here: text")
    pictures = at.part.get("kind") == "frames" and at.part.get("codec", "jpeg") == "jpeg"
    if stdin == "raw" and (frame == "text" or pictures):
        wanted = "lines" if frame == "text" else "length"
        yield Problem(at(), f"a program could not tell where one message ends: say transport.stdin: {wanted}")


def _meaningless(at: _At, kind: Any) -> Iterator[Problem]:
    """What is given of another kind of media than this."""
    if kind in _MEDIA_ONLY:
        others = {key for keys in _MEDIA_ONLY.values() for key in keys}.difference(_MEDIA_ONLY[kind])
        yield from (Problem(at(key), f"has no meaning for {kind}") for key in at.part if key in others)


def _recording(at: _At) -> Iterator[Problem]:
    """What a recorder's file can be."""
    container, rate_hz, chunk_ms = at.part.get("container"), at.part.get("rate_hz", 16_000), at.part.get("chunk_ms")
    if container in _CONTAINERS["video"] and container not in _CONTAINERS["audio"]:
        yield Problem(at("container"), f"{container} is for video; allowed here: {', '.join(_CONTAINERS['audio'])}")
    if _part(at.tree, "transport").get("form") is not None:
        yield Problem(at("container"), "a form uploads a WAV file")
    if container not in ("webm", "ogg"):
        return
    if rate_hz not in _OPUS_HZ:
        yield Problem(at("rate_hz"), f"Opus takes {', '.join(map(str, _OPUS_HZ))}, not {rate_hz!r}")
    if isinstance(chunk_ms, int | float) and chunk_ms % 10:
        yield Problem(at("chunk_ms"), f"Opus is cut at multiples of 10 ms, not at {chunk_ms:g}")
    for key in ("format", "chunk_bytes"):
        if key in at.part:
            yield Problem(at(key), f"has no meaning for {container}, which holds Opus")


def _whole(at: _At) -> Iterator[Problem]:
    if at.part.get("kind") in ("frames", "landmarks"):
        yield Problem(at("pace"), "only audio and video can be sent whole; allowed here: live")
    for key in ("chunk_ms", "chunk_bytes", "slice_ms"):
        if at.part.get(key) is not None:
            yield Problem(at(key), "a whole clip is one chunk, of its own length")
    if at.part.get("header") == "apart":
        yield Problem(at("header"), "a whole clip is one chunk, with its head; allowed here: first")


def _pictures(at: _At) -> Iterator[Problem]:
    """What is said of pictures must go together with how they are coded: by `codec`, or by `container`."""
    video = at.part.get("kind") == "video"
    coded = str(at.part.get("container") if video else at.part.get("codec", "jpeg"))
    if video and coded not in _CONTAINERS["video"]:
        yield from _unheld(at, coded)
        return
    for key, whose in _CODED_ONLY.items():
        if key in at.part and key in _MEDIA_ONLY["video" if video else "frames"] and coded not in whose:
            yield Problem(at(key), f"has no meaning for {coded}")
    sized = all(isinstance(at.part.get(key), int) for key in ("width", "height"))
    if at.part.get("fit") == "pad" and coded != "file" and not sized:
        yield Problem(at("fit"), "pad needs width and height, to which pictures are padded")
    if coded in _BARE and at.part.get("fit") != "pad":
        yield Problem(at("codec"), f"{coded} does not say how large a picture is: give width, height and fit: pad")
    for key in ("width", "height") if coded in _HALVED else ():
        if isinstance(at.part.get(key), int) and at.part[key] % 2:
            yield Problem(at(key), f"must be even, for in {coded} two pixels share a colour")
    if at.part.get("crf") is not None and at.part.get("bitrate_kbps") is not None:
        yield Problem(at("crf"), "is a quality, and bitrate_kbps a rate: give one of the two")
    if coded in _DEPENDENT and at.part.get("late") == "drop_late":
        yield Problem(at("late"), f"pictures of {coded} build on those before them; allowed here: burst")
    if video and at.part.get("pace") != "whole":
        yield from _slices(at, coded)


def _unheld(at: _At, container: str) -> Iterator[Problem]:
    """Why a container holds no video; where nothing is called so, the model has said it."""
    allowed = ", ".join(_CONTAINERS["video"])
    if at.part.get("container") is None:
        yield Problem(at(), f"video needs a container; allowed here: {allowed}")
    elif container in _CONTAINERS["audio"]:
        yield Problem(at("container"), f"{container} is for sound; allowed here: {allowed}")


def _slices(at: _At, container: str) -> Iterator[Problem]:
    slice_ms = at.part.get("slice_ms")
    if container == "file":
        yield Problem(at("pace"), "a file is sent as it is; allowed here: whole")
    elif slice_ms is None:
        yield Problem(at(), "video needs slice_ms, the length of a slice, or pace: whole")
    elif isinstance(slice_ms, int | float):
        yield from _paced(at, "slice_ms", slice_ms)


def _chunks(at: _At) -> Iterator[Problem]:
    chunk_ms, chunk_bytes = at.part.get("chunk_ms"), at.part.get("chunk_bytes")
    if (chunk_ms is None) == (chunk_bytes is None):
        yield Problem(at(), "audio needs either chunk_ms or chunk_bytes")
    size = {"s16le": 2, "f32le": 4}.get(str(at.part.get("format", "s16le")), 1)
    rate_hz = at.part.get("rate_hz", 16_000)
    if isinstance(chunk_bytes, int):
        if chunk_bytes % size:
            yield Problem(at("chunk_bytes"), f"must be a multiple of {size}, the bytes of a sample")
        if isinstance(rate_hz, int) and rate_hz > 0:
            chunk_ms = chunk_bytes / size / rate_hz * 1000
    if isinstance(chunk_ms, int | float) and isinstance(rate_hz, int) and 0 < chunk_ms * rate_hz < 500:
        yield Problem(at("chunk_ms"), f"is less than one sample at {rate_hz} Hz")
    yield from _paced(at, "chunk_ms" if chunk_bytes is None else "chunk_bytes", chunk_ms)


def _paced(at: _At, key: str, chunk_ms: Any) -> Iterator[Problem]:
    """What the service takes, against the length of a chunk."""
    pace, given = _part(at.tree, "pace"), at(key)
    gap_s = pace.get("gap_s_max")
    least, most = pace.get("chunk_ms_min"), pace.get("chunk_ms_max")
    if _above(least, chunk_ms):
        yield Problem(given, f"a chunk of {chunk_ms:g} ms is shorter than pace.chunk_ms_min, {least:g} ms")
    if _above(chunk_ms, most):
        yield Problem(given, f"a chunk of {chunk_ms:g} ms is longer than pace.chunk_ms_max, {most:g} ms")
    if isinstance(gap_s, int | float) and _above(chunk_ms, gap_s * 1000):
        yield Problem(given, f"a chunk of {chunk_ms:g} ms leaves gaps of more than pace.gap_s_max, {gap_s:g} s")


def _pace(at: _At) -> Iterator[Problem]:
    for key, wrong in (("realtime_factor_min", 1), ("realtime_factor_max", -1)):
        factor = at.part.get(key)
        if isinstance(factor, int | float) and (factor - 1) * wrong > 0:
            yield Problem(at(key), "media is sent in real time, a factor of 1, which this does not allow")


def _receive(at: _At) -> Iterator[Problem]:
    framing, nested = at.part.get("framing", "message"), at.part.get("nested")
    if framing == "message" and _kind(at.tree) == "http":
        yield Problem(at("framing"), "an HTTP body must be cut into messages; allowed here: lines, sse, auto, body")
    if framing != "lines" and _kind(at.tree) == "process":
        yield Problem(at("framing"), "a program says one message a line; allowed here: lines")
    if framing != "message" and _kind(at.tree) in _WHOLE_ALREADY:
        yield Problem(at("framing"), f"{_WHOLE_ALREADY[_kind(at.tree)]} are whole already; allowed here: message")
    if _kind(at.tree) == "requests" and at.part.get("decode") == "text":
        yield Problem(at("decode"), "an answer without a body is the message null; allowed here: json, nested, array")
    if (at.part.get("decode") == "nested") != (nested is not None):
        yield Problem(at("nested"), "decode: nested and the name of the nested field need each other")
    if isinstance(nested, str) and not re.fullmatch(r"[\w-]+(\.[\w-]+)*", nested):
        yield Problem(at("nested"), "must be a field's name, or several with dots between")


def _clock(at: _At) -> Iterator[Problem]:
    if all(at.part.get(key) is None for key in ("processed", "final", "lag")):
        yield Problem(at(), "names neither processed nor final nor lag, so that there is nothing to record")


def _when(at: _At) -> Iterator[Problem]:
    if (at.part.get("equals") is None) == (at.part.get("differs") is None):
        yield Problem(at(), "compares with exactly one of equals, differs")
    field = at.part.get("field")
    if isinstance(field, str) and (what := _unknown(field, at.place, at.tree)):
        yield Problem(at("field"), f"{field}: {what}")


def _signing(at: _At) -> Iterator[Problem]:
    given = [key for key in _SIGNING if at.part.get(key) is not None]
    if "quote" in given and "sorted_query" in given:
        given.remove("quote")  # there it is a switch
        if not isinstance(at.part["quote"], bool):
            yield Problem(at("quote"), "beside sorted_query it is true or false")
    elif isinstance(at.part.get("quote"), bool):
        yield Problem(at("quote"), "must be a text, except beside sorted_query")
    if len(given) != 1:
        yield Problem(at(), f"is exactly one of {', '.join(_SIGNING)}, not {_listed(given)}")
    for key in ("key", "message"):
        if (at.part.get(key) is None) == ("hmac" in given):
            yield Problem(at(key), "hmac needs it, and nothing else has it")
    if "as" in at.part and "hmac" not in given:
        yield Problem(at("as"), "only hmac has it")


def _captures(at: _At) -> Iterator[Problem]:
    for number, name in enumerate(_list(at.part, "may_be_empty")):
        if name not in _part(at.part, "capture"):
            known = _listed(_part(at.part, "capture"))
            yield Problem((*at("may_be_empty"), number), f"{name} is not captured here; captured: {known}")


def _prelude(at: _At) -> Iterator[Problem]:
    yield from _captures(at)
    request = at.part.get("request")
    if isinstance(request, str) and not re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) (https?://|\{)\S*", request):
        yield Problem(
            at("request"), "must be a method (GET, POST, PUT, PATCH, DELETE) and an http:// or https:// address"
        )
    if at.part.get("json") is not None and at.part.get("form") is not None:
        yield Problem(at("form"), "a request has one body: give json or form")


def _rule(at: _At) -> Iterator[Problem]:
    channels, channel = _channels(at.tree), at.part.get("channel")
    if not {"text", "media", "event", "outcome"} & at.part.keys():
        yield Problem(at(), "says nothing about the messages that fit: give text, media, event or outcome")
    if "where" in at.part and "each" not in at.part:
        yield Problem(at("where"), "chooses among the elements of a list: give each (or a filter in `items`)")
    if "detail" in at.part and "outcome" not in at.part:
        yield Problem(at("detail"), "belongs to an outcome")
    if (at.part.get("key") is not None) != (at.part.get("event") in ("pending", "settled")):
        yield Problem(at("key"), "event: pending and event: settled need it, and no other rule has it")
    if {"text", "media"} <= at.part.keys():
        yield Problem(at("media"), "one rule gives text or media; for both give two rules and fire: all")
    elif isinstance(at.part.get("media"), dict):
        named = str(channel or next(iter(channels), ""))
        yield from _media_channel(at.part["media"], named, at("channel" if channel else "media"), at.tree)
    elif "text" in at.part and isinstance(channel, str) and _stage(at.tree, channel) == "media":
        yield Problem(at("channel"), f"{channel} is a channel of media, which bears no text")
    if "text" not in at.part and "media" not in at.part:
        if "channel" in at.part:
            yield Problem(at("channel"), "belongs to a rule with text or media; this rule has neither")
    elif channel is None and len(channels) > 1:
        yield Problem(at(), f"must name its channel; declared: {_listed(channels)}")
    elif isinstance(channel, str):
        yield from _channel_name(channel, at("channel"), at.tree)


def _channel_name(channel: str, place: Place, tree: Raw) -> Iterator[Problem]:
    """A channel is declared by its name, or `translation:{target_language}` by what is before the colon."""
    channels, base = _channels(tree), channel.partition(":")[0]
    if channel not in channels and ("{" not in channel or base not in channels):
        yield Problem(place, f"{channel!r} is no declared channel; declared: {_listed(channels)}")
    for name in re.findall(r"\{([^{}]+)\}", channel):
        if name.startswith(("session.", "clip.", "param.", "captured.")):
            what = _unknown(name, place, tree)
            yield from [Problem(place, f"{{{name}}}: {what}")] if what else []
        else:
            yield from _selector(name, place)


def _text(at: _At) -> Iterator[Problem]:
    model = at.part.get("model")
    if not isinstance(model, str) or model not in _MODELS:
        return
    needs, takes = _MODELS[model]
    for one_of in needs:
        if not any(at.part.get(key) is not None for key in one_of):
            yield Problem(at(), f"model {model} needs {' or '.join(one_of)}")
    allowed = {*sum(needs, ()), *takes, *_EVERY_MODEL}
    if (at.part.get("plugin") is not None) != (model == "plugin"):
        yield Problem(at("plugin"), "belongs to model: plugin, which needs it")
    for key in at.part:
        if key in schema.TextRule.model_fields and key not in allowed:
            yield Problem(at(key), f"model {model} does not take it; allowed here: {', '.join(sorted(allowed))}")
    if at.part.get("min_confidence") is not None and at.part.get("confidence") is None:
        yield Problem(at("min_confidence"), "needs confidence, a selector")
    if model == "edit":
        yield from _edit(at)
    if model == "tokens":
        yield from _tokens(at)


def _edit(at: _At) -> Iterator[Problem]:
    ranged = [key for key in ("key", "from_key", "to_key") if at.part.get(key) is not None]
    if ranged and (len(ranged) < 3 or at.part.get("delete") is not None):
        yield Problem(at(), "model edit takes either delete, or key, from_key and to_key together")


def _tokens(at: _At) -> Iterator[Problem]:
    apart = [key for key in ("committed", "tail") if at.part.get(key) is not None]
    if apart and (at.part.get("items") is not None or at.part.get("final") not in (None, False)):
        yield Problem(
            at(), "model tokens takes either items with final, or committed and tail, which say it themselves"
        )


def _never_final(at: _At) -> Iterator[Problem]:
    if (at.part.get("rule") == "promote_on_quiet") != (at.part.get("quiet_s") is not None):
        yield Problem(at("quiet_s"), "belongs to rule: promote_on_quiet, which needs it")


def _like(at: _At) -> Iterator[Problem]:
    given = at.part.get("like")
    for selector, pattern in given.items() if isinstance(given, dict) else ():
        yield from _selector(str(selector), at("like", str(selector)))
        yield from _pattern(pattern, at("like", str(selector)))


def _pattern(pattern: Any, place: Place) -> Iterator[Problem]:
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except re.error as error:
        yield Problem(place, f"is no regular expression: {error}")


def _status(at: _At) -> Iterator[Problem]:
    if not at.part.get("status") and not at.part.get("close_code"):
        yield Problem(at(), "names no status and no close_code, so that it could never fit")
    if at.part.get("before_output") and not at.part.get("close_code"):
        yield Problem(at("before_output"), "belongs to a close_code")
    yield from _pattern(at.part.get("reason"), at("reason"))


_HTTP: Final = ("http", "requests")
_WHOLE_ALREADY: Final = {"websocket": "WebSocket messages", "requests": "answers to requests"}
_REQUEST: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE) /[^\s{}#]*")
_SENDS: Final = frozenset(schema.SendPart.model_fields)
_FIELDS_EVERYWHERE: Final = frozenset(
    {
        *("session.id", "session.uuid", "random.hex", "host", "port"),
        *("time.unix", "time.unix_ms", "time.rfc1123", "time.iso"),
    }
)
_UTTERANCE: Final = frozenset({"utterance.index", "utterance.uuid"})
_COUNTS: Final = frozenset({"count.chunks_sent", "count.acked", "count.media_ms", "count.bytes_sent"})
_FIELDS_OF: Final = {
    "begin": _UTTERANCE,
    "media": OWN_FIELDS | _UTTERANCE,
    "end": _COUNTS | _UTTERANCE,
    "keepalive": _COUNTS | _UTTERANCE,
}
_SIGNING: Final = ("hmac", "md5", "base64", "quote", "text", "sorted_query", "unix_after_s")
_SIZE: Final = ("width", "height", "fit", "fps")
_RATE: Final = ("bitrate_kbps", "crf", "keyframe_s")
_MEDIA_ONLY: Final = {
    "audio": ("format", "rate_hz", "chunk_ms", "chunk_bytes", "container"),
    "frames": ("codec", "quality", *_SIZE, *_RATE, "bframes", "late"),
    "video": ("container", "slice_ms", "header", *_SIZE, *_RATE, "late"),
    "landmarks": ("fps", "late", "batch"),
}
_CONTAINERS: Final = {"audio": ("webm", "ogg", "wav"), "video": ("fmp4", "webm", "file")}
_OPUS_HZ: Final = (8_000, 12_000, 16_000, 24_000, 48_000)  # RFC 6716, 2
# Which codec or container a key is for, where it is not for all of its kind.
_CODED_ONLY: Final = {
    "quality": ("jpeg",),
    "bframes": ("h264",),
    "crf": ("h264", "fmp4"),
    **dict.fromkeys(("bitrate_kbps", "keyframe_s"), ("h264", "fmp4", "webm")),
    **dict.fromkeys(("slice_ms", "header"), ("fmp4", "webm")),
    **dict.fromkeys(_SIZE, ("jpeg", "rgb24", "i420", "h264", "fmp4", "webm")),
}
_BARE: Final = ("rgb24", "i420")
_HALVED: Final = ("i420", "h264", "fmp4", "webm")
_DEPENDENT: Final = ("h264", "fmp4", "webm", "file")
OWN_KINDS: Final = ("websocket", "http", "requests", "process")  # what a plug-in takes is its own affair
_INSIDE: Final = ("upload", "memory")  # an upload is kind http with a form; the other is for tests
_WHOSE: Final = (
    (("ping", "subprotocols", "compression"), "WebSocket", ("websocket",)),
    (("method",), "HTTP", ("http", "requests")),
    (("content_type",), "HTTP", ("http", "requests")),
    (("headers", "query"), "WebSocket and HTTP", ("websocket", "http", "requests")),
    (("stdin",), "a local program", ("process",)),
    (("options",), "a plug-in", ()),
    (("codec",), "WebSocket, requests and plug-ins", ("websocket", "requests")),
)
_EVERY_MODEL: Final = ("model", "plugin", "start", "end", "unit", "join", "ignore")
# model: what it needs (one of each group), and what it takes beside.
_MODELS: Final[dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]]] = {
    "unkeyed": ((("text",),), ("final",)),
    "keyed": ((("text",), ("key",)), ("final", "order", "seals_lower", "reworded")),
    "delta": ((("text", "replace"),), ("final", "key", "order")),
    "snapshot": ((("committed", "tail"),), ("text",)),
    "tokens": ((("items", "committed", "tail"), ("text",)), ("final",)),
    "edit": ((("text",),), ("delete", "unit_of_delete", "key", "from_key", "to_key", "order")),
    "labels": ((("text",),), ("final", "confidence", "min_confidence", "accept_after", "collapse")),
    "plugin": ((), tuple(schema.TextRule.model_fields)),
}
_CHECKS: Final[dict[Any, Callable[[_At], Iterator[Problem]]]] = {
    schema.Profile: _profile,
    schema.TransportPart: _transport,
    schema.RequestsPart: _requests,
    schema.Poll: _poll,
    schema.PollStep: _poll_step,
    schema.Ping: _ping,
    schema.ChannelPart: _channel,
    schema.OpenStep: _send,
    schema.WaitPart: _captures,
    schema.EndStep: _send,
    schema.KeepAlive: _keepalive,
    schema.Quiet: _quiet,
    schema.DoneRule: _done,
    schema.MediaPart: _media,
    schema.AlsoPart: _medium,
    schema.Pace: _pace,
    schema.Receive: _receive,
    schema.BinaryOutput: _binary,
    schema.MediaRule: _media_format,
    schema.Rule: _rule,
    schema.TextRule: _text,
    schema.NeverFinal: _never_final,
    schema.MediaClock: _clock,
    schema.When: _when,
    schema.Signed: _signing,
    schema.PreludeStep: _prelude,
    schema.StatusRule: _status,
}


# ---- reading a raw tree


def _part(tree: Any, key: str) -> Raw:
    value = tree.get(key) if isinstance(tree, dict) else None
    return value if isinstance(value, dict) else {}


def _list(tree: Raw, key: str) -> list[Any]:
    value = tree.get(key)
    return value if isinstance(value, list) else []


def _rules(tree: Raw) -> list[Any]:
    return _list(_part(tree, "receive"), "rules")


def _kind(tree: Raw) -> Any:
    return _part(tree, "transport").get("kind")


def _channels(tree: Raw) -> list[str]:
    return list(map(str, _part(tree, "channels"))) if "channels" in tree else ["transcript"]


def _stage(tree: Raw, channel: str) -> Any:
    return _part(_part(tree, "channels"), channel.partition(":")[0]).get("stage")


def _above(low: Any, high: Any) -> bool:
    return isinstance(low, int | float) and isinstance(high, int | float) and low > high


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names)) or "none"

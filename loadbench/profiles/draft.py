"""A profile drafted from one recorded conversation: what was seen, and, in comments, what was guessed."""

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from ruamel.yaml import YAML

from loadbench.profiles import media_guess, shape, speech_guess
from loadbench.profiles.media_guess import RATES, Media, Piece
from loadbench.profiles.overhear import SWITCHING, Said
from loadbench.profiles.recorded import Conversation
from loadbench.profiles.speech_guess import Speech
from loadbench.session.decode import Framer

ORDINARY: Final = (
    *("host", "connection", "upgrade", "user-agent", "accept", "accept-encoding", "accept-language", "cache-control"),
    *("pragma", "origin", "content-length", "transfer-encoding", "content-type", "expect", "x-loadbench-session"),
)
HEAD: Final = """\
# Drafted from one recorded conversation. What was guessed is said above it: look at it once. The text models unkeyed,
# delta and labels are recognised; a service that numbers its segments may need keyed, snapshot, tokens or edit.
"""
RATE_NAME: Final = re.compile(r"rate|hz|sampl", re.IGNORECASE)


class DraftError(ValueError):
    """A conversation of which no profile can be made; `problems` says why."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass
class Scene:
    """One connection, sorted: its head, what either side said, and how it ended."""

    request: Said
    response: Said | None
    client: list[Piece] = field(default_factory=list)
    service: list[tuple[float, str | bytes]] = field(default_factory=list)
    closed_by: str = ""
    close_code: int | None = None

    @property
    def is_websocket(self) -> bool:
        """Else it is a plain HTTP request."""
        return self.response is not None and self.response.status == SWITCHING

    def header(self, name: str) -> str:
        """A header of the request."""
        return next((value for key, value in self.request.headers if key.lower() == name), "")


@dataclass
class Section:
    """A top-level key of the profile with the comments above it."""

    key: str
    value: Any
    notes: list[str] = field(default_factory=list)


def scene(said: Sequence[Said]) -> Scene:
    """One connection's conversation. Raises DraftError where there was none."""
    request = next((each for each in said if each.kind == "request"), None)
    if request is None:
        raise DraftError(["the client asked for nothing that could be read"])
    found = Scene(request, next((each for each in said if each.kind == "response"), None))
    zero_ns = said[0].at_ns
    for each in said:
        at_ms = (each.at_ns - zero_ns) / 1e6
        if each.kind in ("text", "binary", "body") and each.who == "client":
            found.client.append(Piece(at_ms, each.kind == "text", each.data))
        elif each.kind in ("text", "binary", "body"):
            found.service.append((at_ms, each.data.decode("utf-8", "replace") if each.kind == "text" else each.data))
        elif each.kind in ("close", "gone") and not found.closed_by:
            found.closed_by, found.close_code = each.who, each.code
    return found


def conversation(found: Scene) -> Conversation:
    """What the service said, for a check."""
    return Conversation([(round(at_ms * 1e6), data) for at_ms, data in found.service])


def draft(found: Scene, name: str, url: str, secrets: Mapping[str, str]) -> str:
    """The profile's YAML. `url` is the service's address; each of `secrets`, a value with its name, becomes a field.

    Raises DraftError where there was too little to go by.
    """
    fields = {secret: f"{{secret.{secrets[secret]}}}" for secret in sorted(secrets, key=len, reverse=True)}
    sections = [
        Section(each.key, _with_fields(each.value, fields), _with_fields(each.notes, fields))
        for each in _sections(found, name, url)
    ]
    return HEAD + "".join(map(_written, sections))


def _sections(found: Scene, name: str, url: str) -> Iterator[Section]:
    media = media_guess.find(found.client, _rates(found))
    if media is None:
        raise DraftError(["no stream of media was seen in what the client said"])
    heard = _heard(found)
    first_ms, last_ms = (found.client[media.indexes[at]].at_ms for at in (0, -1))
    messages = [message for _, message in heard]
    speech = speech_guess.understand(messages, len(media.indexes))
    opening = _opening(found, media, heard, speech, first_ms)
    done, done_notes, done_match = _done(found, heard, speech, last_ms)
    yield Section("schema_version", 1)
    yield Section("name", name)
    yield Section("about", f"a service at {urlsplit(url).hostname}, drafted from a recording")
    yield Section("checked", "drafted from a recording, and not checked yet")
    yield Section("transport", _transport(found, url))
    yield Section("channels", {"transcript": {"stage": "recognition"}}, ["stage: recognition or translation"])
    if opening:
        yield Section("open", opening, ["a wait stands where the client may have waited for an answer"])
    kept = _between(found, media)
    media.notes += [f"said between the media, and not in this profile (a keep-alive?): {text!r}" for text in kept[:3]]
    yield Section("media", media.part, media.notes)
    yield Section("end", [*_end(found, media), {"done": done}], done_notes)
    yield from _receive(found, messages, speech, opening, done_match)
    if speech.never_final != "explicit":
        yield Section("never_final", {"rule": speech.never_final})
    if found.is_websocket:
        yield Section(
            "close", {"expect": sorted({1000, 1001, 1005} | ({found.close_code} if found.close_code else set()))}
        )


def _transport(found: Scene, url: str) -> dict[str, Any]:
    part: dict[str, Any] = {"kind": "websocket" if found.is_websocket else "http", "url": url}
    parts = urlsplit(found.request.target)
    if parts.path not in ("", "/"):
        part["url"] = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}{parts.path}"
    query = [[name, media_guess.literal(value)] for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    if query:
        part |= {"query": query, "url": part["url"].partition("?")[0]}
    headers = {
        name: media_guess.literal(value)
        for name, value in found.request.headers
        if name.lower() not in ORDINARY and not name.lower().startswith("sec-websocket-")
    }
    if headers:
        part["headers"] = headers
    offered = found.header("sec-websocket-protocol")
    if offered:
        part["subprotocols"] = [word.strip() for word in offered.split(",")]
    if found.is_websocket and found.response and "permessage-deflate" in str(found.response.headers):
        part["compression"] = True
    if not found.is_websocket:
        part["method"] = found.request.reason
        part["content_type"] = found.header("content-type") or None
    return {key: value for key, value in part.items() if value is not None}


def _rates(found: Scene) -> list[int]:
    """Sample rates that the client names: in its JSON, its query, its content type."""
    named: list[tuple[str, Any]] = list(parse_qsl(urlsplit(found.request.target).query))
    named += re.findall(r"(rate)=(\d+)", found.header("content-type"))
    for piece in found.client:
        if piece.is_text and len(piece.data) < 10_000:
            named += [(str(path[-1]) if path else "", value) for path, value in shape.leaves(_json(piece.data))]
    rates = [int(value) for name, value in named if RATE_NAME.search(name) and str(value).isdigit()]
    return [rate for rate in rates if rate in RATES]


def _heard(found: Scene) -> list[tuple[float, Any]]:
    """The service's messages, decoded as far as they are JSON, with their times."""
    pieces: list[tuple[float, str | bytes]] = found.service
    if not found.is_websocket:
        framer = Framer("auto")
        kind = next((value for name, value in _head(found) if name.lower() == "content-type"), "")
        framer.set_content_type(kind)
        pieces = [(at_ms, raw) for at_ms, data in found.service for raw, _ in framer.feed(data, round(at_ms * 1e6))] + [
            (at_ns / 1e6, raw) for raw, at_ns in framer.flush(0)
        ]
    decoded = ((at_ms, _json(data if isinstance(data, bytes) else data.encode())) for at_ms, data in pieces)
    return [(at_ms, message) for at_ms, message in decoded if message is not None]


def _head(found: Scene) -> list[tuple[str, str]]:
    return [] if found.response is None else found.response.headers


# ---- scripts


def _opening(
    found: Scene, media: Media, heard: list[tuple[float, Any]], speech: Speech, first_ms: float
) -> list[dict[str, Any]]:
    """What was said before the media, with a wait where the service answered in between."""
    steps: list[dict[str, Any]] = []
    before = [piece for number, piece in enumerate(found.client) if number < media.indexes[0]]
    waited_ms = 0.0
    for piece in [*before, None]:
        now_ms = first_ms if piece is None else piece.at_ms
        answers = [message for at_ms, message in heard if waited_ms <= at_ms < now_ms]
        if answers:
            others = [message for _, message in heard if message is not answers[-1]]
            match = shape.telling([answers[-1]], others, speech.kind)
            steps.append({"wait": {"match": match, "timeout_s": 10.0} if match else {"timeout_s": 10.0}})
            waited_ms = now_ms
        if piece is not None:
            steps.append(_say(piece))
    return steps


def _end(found: Scene, media: Media) -> list[dict[str, Any]]:
    if not found.is_websocket:
        return [{"end_body": True}]
    return [_say(piece) for piece in found.client[media.indexes[-1] + 1 :]]


def _between(found: Scene, media: Media) -> list[str]:
    inside = range(media.indexes[0], media.indexes[-1])
    strange = sorted(set(inside) - set(media.indexes))
    return list(dict.fromkeys(found.client[number].data[:200].decode("utf-8", "replace") for number in strange))


def _say(piece: Piece) -> dict[str, Any]:
    """A message as a step: JSON where that gives the same bytes again, else the exact text."""
    if not piece.is_text:
        return {"send_binary": ""} if not piece.data else {"send_base64": base64.b64encode(piece.data).decode("ascii")}
    text = piece.data.decode()
    value = _json(piece.data)
    if isinstance(value, dict | list) and text == json.dumps(value, ensure_ascii=False, separators=(",", ":")):
        for path, leaf in list(shape.leaves(value)):
            if isinstance(leaf, str):
                value = shape.replaced(value, path, media_guess.literal(leaf))
        return {"send_json": value}
    return {"send_text": media_guess.literal(text)}


def _done(
    found: Scene, heard: list[tuple[float, Any]], speech: Speech, last_ms: float
) -> tuple[dict[str, Any], list[str], str | None]:
    """The event after which nothing more came: a message that no other one is like, or the service's close."""
    if not found.is_websocket:
        return {"on": ["end_of_response"]}, [], None
    messages = [message for _, message in heard]
    match = None
    if heard and heard[-1][0] >= last_ms and len(messages) - 1 not in speech.texts:
        match = shape.telling([messages[-1]], messages[:-1], speech.kind)
    if match:
        done: dict[str, Any] = {"on": ["message", "close"], "match": match}
        return done, ["done: the last message, which no other one was like"], match
    if found.closed_by == "service":
        return {"on": ["close"], "closes": "target"}, ["done: the service closed by itself"], None
    if speech.has_final:
        return {"on": ["first_final", "close"]}, ["done: nothing said so; the first final behind the end mark"], None
    return {"on": ["close"]}, ["done: nothing said so, and the client closed; a quiet step may be what is needed"], None


def _receive(
    found: Scene, messages: list[Any], speech: Speech, opening: list[dict[str, Any]], done: str | None
) -> Iterator[Section]:
    waits = [step["wait"]["match"] for step in opening if "match" in step.get("wait", {})]
    rules: list[dict[str, Any]] = [
        {"match": match, "event": "ready"} for match in dict.fromkeys(waits) if match != done
    ]
    rules += [{"match": done, "event": "done"}] if done else []
    rules += speech.rules
    receive: dict[str, Any] = {"decode": "json", "rules": rules or [{"has": "text", "event": "ignore"}]}
    if not found.is_websocket:
        receive = {"framing": "auto"} | receive
    if not messages:
        speech.notes.append("the service said nothing that could be read")
    yield Section("receive", receive, speech.notes)


# ---- writing


def _with_fields(value: Any, fields: Mapping[str, str]) -> Any:
    """`value` with a field in place of each secret: before it is written, since YAML has a braced text in quotes."""
    if isinstance(value, str):
        for secret, name in fields.items():
            value = value.replace(secret, name)
    elif isinstance(value, dict):
        return {key: _with_fields(inner, fields) for key, inner in value.items()}
    elif isinstance(value, list | tuple):
        return [_with_fields(inner, fields) for inner in value]
    return value


def _written(section: Section) -> str:
    yaml = YAML(typ="rt")
    yaml.width = 120
    stream = io.StringIO()
    yaml.dump({section.key: section.value}, stream)
    return "".join(f"# {note}\n" for note in section.notes) + stream.getvalue()


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None

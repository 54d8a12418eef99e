"""What is asked over HTTP before the connection: each request made ready, and its answer judged. Pure.

What an answer gives is kept as {captured.NAME}; one that does not let us go on is an outcome and a sentence.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from loadbench.results.masks import shorten
from loadbench.session.profile import PreludeStep
from loadbench.session.select import SELECT_ERRORS, compile_selector
from loadbench.session.template import Text, compile_json, compile_text
from loadbench.session.wire import Answer, Ask

Fields = Mapping[str, str]

REFUSALS: Final = (401, 402, 403, 429, 503)  # where the profile says nothing of a status
_json: Final = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the prelude. `body` is None where it has none."""

    address: Text
    headers: tuple[tuple[str, Text], ...]
    body: Callable[[Fields], bytes] | None
    content_type: str | None
    expect: frozenset[int]
    captures: tuple[tuple[str, Callable[[Any], Any]], ...]
    may_be_empty: frozenset[str]
    timeout_ns: int

    def ask(self, fields: Fields) -> Ask:
        """The request for a session with these fields. KeyError names a field that has no value."""
        method, _, url = self.address.render(fields).partition(" ")
        headers = tuple((name, value.render(fields)) for name, value in self.headers)
        given = {name.lower() for name, _ in headers}
        if self.content_type is not None and "content-type" not in given:
            headers = (*headers, ("Content-Type", self.content_type))
        return Ask(method, url, headers, None if self.body is None else self.body(fields), self.timeout_ns)

    def goes_on(self, status: int) -> bool:
        """Whether an answer with this status is one to go on with."""
        return status in self.expect if self.expect else 200 <= status < 300


def compile_prelude(step: PreludeStep) -> Request:
    """Make a request ready, once for all sessions."""
    body: Callable[[Fields], bytes] | None = None
    kind: str | None = None
    if "json_" in step.model_fields_set:
        body, kind = compile_json(step.json_).render, "application/json"
    elif step.form is not None:
        body, kind = _form(step.form), "application/x-www-form-urlencoded"
    return Request(
        address=compile_text(step.request),
        headers=tuple((name, compile_text(value)) for name, value in step.headers.items()),
        body=body,
        content_type=kind,
        expect=frozenset(step.expect),
        captures=tuple((name, compile_selector(expression)) for name, expression in step.capture.items()),
        may_be_empty=frozenset(step.may_be_empty),
        timeout_ns=round(step.timeout_s * 1e9),
    )


def captured(request: Request, answer: Answer) -> dict[str, str] | tuple[str, str]:
    """What a good answer gives, by name; or an outcome and a sentence where it lacks something."""
    if not request.captures:
        return {}
    try:
        message = _json.decode(answer.body)
    except msgspec.DecodeError as error:
        return "parse_error", f"the answer is no JSON: {error}"
    found: dict[str, str] = {}
    for name, select in request.captures:
        try:
            value = select(message)
        except SELECT_ERRORS:
            value = None
        if value is None:
            return "profile_error", f"{{captured.{name}}} found nothing in the answer"
        if value == "" and name not in request.may_be_empty:
            return "profile_error", f"{{captured.{name}}} found an empty text in the answer"
        found[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return found


def refusal(answer: Answer, outcome: str | None) -> tuple[str, str]:
    """Outcome and sentence of an answer with the wrong status; `outcome` is the profile's word for it, if any."""
    usual = "rejected" if answer.status in REFUSALS else "target_error"
    later = "" if answer.retry_after_s is None else f", retry after {answer.retry_after_s:g} s"
    moved = f", a redirect to {answer.location}, which is not followed" if answer.location else ""
    body = answer.body.decode("utf-8", "backslashreplace").strip()
    said = f": {shorten(body, 300)}" if body else ""
    return outcome or usual, f"answered with HTTP status {answer.status}{later}{moved}{said}"


def shown_address(ask: Ask) -> str:
    """Method and address as they may be written down: without user, query and fragment."""
    try:
        parts = urlsplit(ask.url)
        return f"{ask.method} {urlunsplit((parts.scheme, parts.netloc.rpartition('@')[2], parts.path, '', ''))}"
    except ValueError:
        return ask.method


def _form(values: Mapping[str, str]) -> Callable[[Fields], bytes]:
    texts = [(name, compile_text(value)) for name, value in values.items()]
    return lambda fields: urlencode([(name, text.render(fields)) for name, text in texts]).encode("ascii")

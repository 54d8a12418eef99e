"""Whether a profile fits a service, by what came of one short session."""

from typing import Any, Final, Literal

import msgspec

from loadbench.profiles.replay import Replay
from loadbench.report.visible import visible
from loadbench.results.record import SessionRecord

Fit = Literal["fits", "may fit", "no", "not tried"]

RANK: Final[dict[str, int]] = {"fits": 0, "may fit": 1, "no": 2, "not tried": 3}
UNREACHED: Final = ("connect_failed", "dns", "tls", "no_resource")  # no profile would change it
BUSY: Final = (429, 503)  # a service that says this is left alone


class Verdict(msgspec.Struct, kw_only=True):
    """One profile and one service. Texts are sentences for people, without secrets; counts are of messages.

    `texts` were text, `read` those that a text rule took, `unread` those that no rule fits.
    """

    profile: str
    fit: Fit
    why: str
    url: str = ""
    handshake: str = ""
    opening: str = ""
    texts: int = 0
    read: int = 0
    unread: int = 0
    error: str = ""
    outcome: str = ""

    def text(self, width: int) -> str:
        """For people."""
        head = visible(f"{self.profile:{width}}  {self.fit:7}  {self.why}")
        counts = f"{self.texts} texts; {self.read} messages read, {self.unread} not" if self.opening else ""
        facts = [self.handshake, self.opening, counts, self.error]
        return f"{head}\n{'':{width}}           {visible('; '.join(filter(None, facts)))}"


def judge(name: str, url: str, record: SessionRecord, heard: Replay, *, waits: bool) -> Verdict:
    """The verdict on a session and on what was heard in it.

    `waits`: the opening script waits for a message of a certain kind.
    """
    counts = record.messages
    link = record.connections[0] if record.connections else None
    opened = link is not None and link.opened_ns is not None
    read = sum(counts.get(kind, 0) for kind in ("partial", "final", "empty", "unchanged"))
    found = Verdict(
        profile=name,
        fit="no",
        why=record.cause or record.outcome,
        url=url,
        handshake="handshake good" if opened else f"no handshake: {record.cause}",
        opening=_opening(record, waits=waits) if opened else "",
        texts=counts.get("partial", 0) + counts.get("final", 0),
        read=read,
        unread=max(0, counts.get("unmatched", 0) - heard.scripted),
        error=_error(record),
        outcome=record.outcome,
    )
    if opened and record.outcome not in ("parse_error", "profile_error") and record.ready_ns is not None:
        found.fit, found.why = _of_messages(found, record, waits=waits)
    return found


def reading(found: Replay) -> tuple[int, int, int]:
    """How well a profile reads what came back; to be compared with another that sends the same."""
    selected = sum(sum(tally.found.values()) for tally in found.rules)
    return -found.unread - len(found.troubles) * 1000, found.kinds["final"], selected


def plain(verdict: Verdict) -> dict[str, Any]:
    """For programs."""
    found: dict[str, Any] = msgspec.to_builtins(verdict)
    return found


def _of_messages(found: Verdict, record: SessionRecord, *, waits: bool) -> tuple[Fit, str]:
    counts = record.messages
    if not found.read:
        if found.error or found.unread:
            return "no", found.error or f"{found.unread} messages came, and no rule fits them"
        if waits or counts.get("ready", 0) + counts.get("done", 0) + counts.get("event", 0):
            return "may fit", "its opening was answered as it should be, and no text came"
        return "no", f"nothing came back: {record.cause or record.outcome}"
    if found.unread > found.read:
        return "no", f"{found.unread} messages fit no rule, and only {found.read} are text"
    if record.outcome == "ok" and not found.unread and not found.error:
        return "fits", "said text, said that it was all, and nothing that no rule fits"
    doubt = record.cause or (f"{found.unread} messages fit no rule" if found.unread else found.error)
    return "may fit", f"said text; {doubt}" if found.texts else f"answered, without text; {doubt}"


def _opening(record: SessionRecord, *, waits: bool) -> str:
    if record.ready_ns is None:
        return "opening not answered as it should be"
    return "opening answered" if waits else "opening waits for nothing"


def _error(record: SessionRecord) -> str:
    if not record.messages.get("error"):
        return ""
    said = record.raw or record.warnings
    return f"an error was said: {said[0]}" if said else "an error was said"

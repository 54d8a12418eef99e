"""How a session can end: a closed list, each outcome in one class and blamed on one side."""

from typing import Final, Literal

Ending = Literal["finished", "failed", "cut"]
Side = Literal["tester", "target", "network", "policy", "none"]

# outcome -> (class, side). Started = finished + failed + cut + in flight, always.
OUTCOMES: Final[dict[str, tuple[Ending, Side]]] = {
    "ok": ("finished", "none"),
    # the service's doing
    "rejected": ("failed", "target"),  # refused by status, message or close, for capacity or authorisation
    "auth_expired": ("failed", "target"),
    "pace_refused": ("failed", "target"),  # the service complained about the pace of the media
    "target_error": ("failed", "target"),
    "closed_early": ("failed", "target"),  # a clean close before the final
    "no_final": ("failed", "target"),
    "no_output": ("failed", "target"),  # ended normally, and said nothing at all
    "silent": ("failed", "target"),  # nothing arrived within the silence limit, and we gave up
    "lost": ("failed", "target"),  # the connection went away without a close
    "parse_error": ("failed", "target"),
    # the way there
    "dns": ("failed", "network"),
    "connect_failed": ("failed", "network"),
    "tls": ("failed", "network"),
    # what we were told
    "profile_error": ("failed", "policy"),
    "our_limit": ("failed", "policy"),
    "interrupted": ("cut", "policy"),
    "time_up": ("cut", "policy"),
    # our own doing
    "no_resource": ("failed", "tester"),
    "internal": ("failed", "tester"),
    "worker_lost": ("failed", "tester"),
}


def ending(outcome: str) -> Ending:
    """The class of an outcome."""
    return OUTCOMES[outcome][0]


def side(outcome: str) -> Side:
    """Who is to blame; `none` for a session that finished."""
    return OUTCOMES[outcome][1]

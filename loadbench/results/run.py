"""The first and the last word of a bundle: `run.json` and `done.json`."""

from typing import Any, Final

import msgspec

from loadbench.results.slo import Slo, Thresholds

SCHEMA_VERSION: Final = 1


class Anchor(msgspec.Struct, kw_only=True, frozen=True):
    """The one place where the run clock meets the calendar."""

    monotonic_ns: int
    wall_ns: int


class RunHeader(msgspec.Struct, kw_only=True):
    """All that a reader needs to repeat a run and to judge it, secrets masked. Written before the first session.

    `channel_media` holds the medium, audio or video, of each channel that bears no text.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    title: str = ""
    anchor: Anchor
    plan: dict[str, Any]
    effective: dict[str, Any] = {}
    profile: dict[str, Any] = {}
    headline_channel: str
    channel_stages: dict[str, str] = {}
    channel_media: dict[str, str] = {}
    headline_metric: str
    slo: list[Slo]
    thresholds: Thresholds = msgspec.field(default_factory=Thresholds)
    seed: int
    versions: dict[str, str] = {}
    machine: dict[str, Any] = {}
    corpus: dict[str, Any] = {}


class Done(msgspec.Struct, kw_only=True):
    """Written last: its absence marks a bundle incomplete. `heads` maps a raw file to its last seal.

    `why` is a sentence for people, where the reason alone does not say it. `engine` is what its process said of itself:
    its loop, its alarm, its file handles, and the scheduling that it was given.
    """

    ended_ns: int
    reason: str
    why: str = ""
    engine: dict[str, Any] = {}
    heads: dict[str, str] = {}

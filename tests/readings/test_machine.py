import math
import resource
from pathlib import Path

import pytest

from loadbench.readings import machine


def test_the_facts_name_the_machine_and_how_well_it_wakes() -> None:
    facts = machine.facts()
    assert facts["cores"] >= 1
    assert 1 <= facts["cores_usable"] <= facts["cores"]
    assert facts["memory_bytes"] > 100 * 1024 * 1024
    assert facts["kernel"]
    assert facts["cpu"] is None or facts["cpu"].strip()
    overshoot = facts["sleep_overshoot_ms"]
    assert 0 <= overshoot["p50"] <= overshoot["max"]
    assert facts["timers"] == ("coarse" if overshoot["p50"] >= machine.COARSE_MS else "fine")


def test_timers_of_15_6_ms_are_called_coarse_in_every_run_s_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "sleep_overshoot_ms", lambda: {"p50": 14.6, "max": 15.6})
    assert machine.facts()["timers"] == "coarse"
    monkeypatch.setattr(machine, "sleep_overshoot_ms", lambda: {"p50": 0.06, "max": 15.6})
    assert machine.facts()["timers"] == "fine"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"max": "150000 100000"}, 1.5),
        ({"max": "max 100000"}, None),
        ({"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}, 0.5),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_what_a_control_group_grants_is_read_from_either_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], quota: float | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(machine, "_QUOTA", tmp_path / "max")
    monkeypatch.setattr(machine, "_QUOTA_V1", tmp_path / "cpu.cfs_quota_us")
    assert machine.cpu_quota() == quota


def test_local_ports_are_counted_from_the_first_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "range").write_text("32768\t60999\n")
    monkeypatch.setattr(machine, "_PORTS", tmp_path / "range")
    assert machine.ephemeral_ports() == 28_232
    monkeypatch.setattr(machine, "_PORTS", tmp_path / "none")
    assert machine.ephemeral_ports() is None


def test_versions_name_python_and_the_libraries_that_are_here() -> None:
    versions = machine.versions()
    assert versions["python"].startswith("3.")
    assert versions["websockets"][0].isdigit()
    assert None not in versions.values()


def test_readings_are_finite_numbers_and_processor_shares_are_marked_as_sampled() -> None:
    readings = machine.Readings()
    taken = readings.take()
    assert all(math.isfinite(value) for value in taken.values())
    shares = [value for name, value in taken.items() if name.endswith("_share_sampled")]
    assert len(shares) == machine.facts()["cores"]
    assert all(0 <= share <= 1 for share in shares)
    assert taken["memory_available_bytes"] > 0


def test_the_process_is_charged_for_what_it_uses() -> None:
    own = machine.OwnProcess()
    before = own.cpu_ns()
    sum(range(1_000_000))
    assert own.cpu_ns() > before
    assert own.rss_bytes() > 1024 * 1024
    with open("/dev/null"):  # noqa: PTH123 - a handle, any handle
        held = own.fds()
    assert held == own.fds() + 1


def test_handles_are_counted_where_the_kernel_does_not_say_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    own = machine.OwnProcess()
    told = own.fds()
    monkeypatch.setattr(machine, "_HANDLES", Path("/proc/self/status"))  # of size 0, as the folder was before Linux 6.2
    assert own.fds() == told


def test_a_process_without_a_file_handle_left_still_says_what_it_knows() -> None:
    own, readings = machine.OwnProcess(), machine.Readings()
    known = own.rss_bytes(), own.fds()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert readings.take() == {}
        assert (own.rss_bytes(), own.fds()) == known
        assert own.run_delay_ns() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert readings.take()

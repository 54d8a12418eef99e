import math
import resource

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


def test_without_a_file_handle_to_ask_with_the_last_answer_stands_and_nothing_breaks() -> None:
    own, readings = machine.OwnProcess(), machine.Readings()
    rss_bytes, fds = own.rss_bytes(), own.fds()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        asked = own.rss_bytes(), own.fds(), own.run_delay_ns(), readings.take()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert asked == (rss_bytes, fds, None, {})
    assert readings.take()

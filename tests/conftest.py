"""Fixtures for all rooms."""

import os
import signal

import pytest
from hypothesis import settings

from tests.examples import THOROUGH

# No test may inherit a proxy or a cache of the person who runs it.
for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
    os.environ.pop(name, None)

# A job in the background is born deaf to Ctrl-C, and so would be all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is. The same examples each time, unless new ones are wanted.
settings.register_profile("suite", deadline=None, derandomize=not THOROUGH)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoded media of tests stays among the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))

"""What every profile that comes with the program must be."""

import re

import pytest

from loadbench.session.load import load_profile, shipped
from loadbench.simulator.speak import Speaker


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_profile_bears_its_file_s_name_says_what_it_is_and_how_it_was_checked(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert len(profile.about) > 20
    assert re.match(r"against (a real|the simulator)|from documents only \(\d{4}-\d\d-\d\d\)", profile.checked)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_profile_can_be_spoken_on_all_of_its_channels(name: str) -> None:
    profile = load_profile(name)
    spoken = [name for name, part in profile.channels.items() if part.medium is None]
    assert Speaker(profile).channels == spoken

"""The same conversation gives the same record on every transport that can carry it."""

import ssl

import pytest

from loadbench.results.outcome import side
from loadbench.results.record import SessionRecord
from tests.conformance.play import WAYS, in_memory, likeness, misplaced, on_way, sentence, talks
from tests.transports.conftest import Certificates

Records = dict[str, SessionRecord]
PAIRS = [(way, name) for way in WAYS[1:] for name, talk in talks().items() if way in talk.ways]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """In memory, in virtual time."""
    return {name: in_memory(talk, tmp_path_factory.mktemp("memory")) for name, talk in talks().items()}


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> dict[str, Records]:
    """By the way they went, as they are asked for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.localhost_pem, certificates.localhost_key)
    made: dict[str, Records] = {}

    class Lazily(dict[str, Records]):
        def __missing__(self, way: str) -> Records:
            made[way] = self[way] = on_way(way, tmp_path_factory.mktemp(way), context, certificates.ca_pem)
            return made[way]

    return Lazily()


@pytest.mark.parametrize("name", talks())
def test_a_conversation_means_what_its_data_says(name: str, played: Records) -> None:
    record, expect = played[name], talks()[name].expect
    assert (record.outcome, record.side) == (expect.outcome, side(expect.outcome)), record.cause
    assert record.side == expect.side
    assert expect.cause in record.cause
    assert len(record.warnings) == len(expect.warnings), record.warnings
    assert all(part in warning for part, warning in zip(expect.warnings, record.warnings, strict=True))
    if expect.messages is not None:
        assert record.messages == expect.messages
    texts = [each.channels for each in record.utterances]
    shown = [channels["transcript"].text if "transcript" in channels else "" for channels in texts]
    assert shown == [expect.text or "", *expect.then]
    if expect.done_rule is not None:
        assert record.utterances[0].done_rule == expect.done_rule
    if "transcript" in texts[0]:
        assert texts[0]["transcript"].finality == expect.finality
        assert expect.settled in (None, texts[0]["transcript"].settled_text)
    assert expect.gloss in (None, *(channel.text for name, channel in texts[0].items() if name == "gloss"))
    assert misplaced(record) == []


@pytest.mark.realtime
@pytest.mark.parametrize(("way", "name"), PAIRS)
def test_its_record_is_the_same_on_every_way(way: str, name: str, played: Records, carried: dict[str, Records]) -> None:
    record = carried[way][name]
    assert likeness(record) == likeness(played[name]), record.cause
    assert misplaced(record) == []


def test_what_differs_in_meaning_is_no_likeness(played: Records) -> None:
    """Else the comparison above would prove nothing."""
    found = [likeness(record) for record in played.values()]
    same = [name for name, one in zip(played, found, strict=True) if found.count(one) > 1]
    assert same == []


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (
            "closed by target 1000 without final, 0.10 s into the media",
            "closed by target without final, so many s into",
        ),
        ("lost without close: the connection was reset 0.11 s into the media: [Errno 104]", "was gone so many s into"),
        ("no end of output within 0.5 s of the end of the media", "no end of output within so many s of the end"),
    ],
)
def test_a_sentence_keeps_what_it_says(told: str, kept: str) -> None:
    assert kept in sentence(told)
    assert "Errno" not in sentence(told)

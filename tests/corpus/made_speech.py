"""Made-up corpora of speech in the layouts of known ones: three clips each, of a second at most, with their media.

Each builder fills a folder and gives the path that a user would name. Rows are invented.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import aishell as aishell_reader
from loadbench.corpus.layouts import commonvoice as commonvoice_reader
from loadbench.corpus.layouts import coval as coval_reader
from loadbench.corpus.layouts import folder as folder_reader
from loadbench.corpus.layouts import kaldi as kaldi_reader
from loadbench.corpus.layouts import librispeech as librispeech_reader
from loadbench.corpus.layouts import lists as lists_reader
from loadbench.corpus.layouts import mustc as mustc_reader
from loadbench.corpus.layouts import nemo as nemo_reader
from tests.media import making

READERS: Final = (
    librispeech_reader, commonvoice_reader, mustc_reader, aishell_reader, nemo_reader, kaldi_reader, lists_reader,
    folder_reader, coval_reader,
)  # fmt: skip
LAYOUTS: Final[tuple[Layout, ...]] = tuple(layout for reader in READERS for layout in reader.LAYOUTS)


def layout(name: str) -> Layout:
    (found,) = (layout for layout in LAYOUTS if layout.name == name)
    return found


def read(name: str, path: Path, **asked: Any) -> list[Entry]:
    return list(layout(name).entries(path, Asked(**asked)))


def text(path: Path, *lines: str, end: str = "\n") -> Path:
    """A file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def rows(path: Path, *objects: dict[str, Any]) -> Path:
    """A file of JSON lines."""
    return text(path, *(json.dumps(each, ensure_ascii=False) for each in objects))


def sound(path: Path, seconds: float = 0.4) -> Path:
    """A tone, in the form that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".wav":
        return making.wav(path, making.tone(seconds).tobytes())
    return making.encoded(path, making.tone(seconds), {".flac": "flac", ".mp3": "mp3"}[path.suffix])


def librispeech(folder: Path) -> Path:
    """Two splits; 12-34 comes before 112-5 by number, not by name."""
    for split, speaker, chapter, said in (
        ("dev-clean", "12", "34", ("GOOD MORNING", "IT IS MRS BROWN'S TURN")),
        ("test-other", "112", "5", ("THE RIVER ROSE",)),
    ):
        home = folder / "LibriSpeech" / split / speaker / chapter
        names = [f"{speaker}-{chapter}-{n:04}" for n in range(len(said))]
        for name in names:
            sound(home / f"{name}.flac")
        text(home / f"{speaker}-{chapter}.trans.txt", *map(" ".join, zip(names, said, strict=True)))
    return folder / "LibriSpeech"


CV_HEADER: Final = "client_id\tpath\tsentence\tup_votes\tage\tgender\taccents\tlocale"


def commonvoice(folder: Path, language: str = "en") -> Path:
    """train and test; validated.tsv repeats their rows. One sentence has a quotation mark without its other half."""
    table = [
        f'c01\tcommon_voice_{language}_1.mp3\tHe said "stop and left.\t2\ttwenties\tfemale\t\t{language}',
        f"c02\tcommon_voice_{language}_2.mp3\tA second sentence.\t2\t\t\tScottish\t{language}",
        f"c03\tcommon_voice_{language}_3.mp3\tThe third one.\t2\t\t\t\t{language}",
    ]
    home = folder / "cv-corpus" / language
    for n in (1, 2, 3):
        sound(home / "clips" / f"common_voice_{language}_{n}.mp3")
    text(home / "test.tsv", CV_HEADER, table[2])
    text(home / "train.tsv", CV_HEADER, *table[:2])
    text(home / "validated.tsv", CV_HEADER, *table)
    return home


SEGMENTS: Final = (
    "- {duration: 0.350000, offset: 0.100000, rW: 2, uW: 0, speaker_id: spk.7, wav: ted_7.wav}",
    "- {duration: 0.400000, offset: 0.500000, rW: 3, uW: 1, speaker_id: spk.7, wav: ted_7.wav}",
    "- {duration: 0.300000, offset: 0.000000, rW: 1, uW: 0, speaker_id: spk.8, wav: ted_8.wav}",
)


def mustc(folder: Path, target: str = "de") -> Path:
    """dev with segments of one talk, tst-COMMON with one of another."""
    data = folder / f"en-{target}" / "data"
    for split, talk, some, english, other in (
        ("dev", "ted_7", SEGMENTS[:2], ("Thank you.", "We begin here."), ("Danke.", "Wir fangen hier an.")),
        ("tst-COMMON", "ted_8", SEGMENTS[2:], ("Water.",), ("Wasser.",)),
    ):
        text(data / split / "txt" / f"{split}.yaml", *some)
        text(data / split / "txt" / f"{split}.en", *english)
        text(data / split / "txt" / f"{split}.{target}", *other)
        sound(data / split / "wav" / f"{talk}.wav", 1.0)
    return folder / f"en-{target}"


def aishell(folder: Path) -> Path:
    """Three clips with words apart, and a recording without a transcript."""
    home = folder / "data_aishell"
    for split, name in (
        ("train", "BAC009S0002W0122"),
        ("train", "BAC009S0002W0123"),
        ("train", "BAC009S0002W0199"),
        ("test", "BAC009S0764W0121"),
    ):
        sound(home / "wav" / split / name[6:11] / f"{name}.wav")
    text(
        home / "transcript" / "aishell_transcript_v0.8.txt",
        "BAC009S0002W0122 明天 学校 休息",
        "BAC009S0002W0123 我们 坐 车",
        "BAC009S0764W0121 今天 有 雨 ",
    )
    return home


def nemo(folder: Path) -> Path:
    """A recognition row, a segment, and a translation as Canary writes it."""
    for name in ("a", "b"):
        sound(folder / "audio" / f"{name}.wav", 1.0)
    both = {"source_lang": "en", "target_lang": "en"}
    return rows(
        folder / "train_manifest.json",
        {"audio_filepath": "audio/a.wav", "duration": 1.0, "text": "good morning"} | both,
        {"audio_filepath": "audio/b.wav", "offset": 0.1, "duration": 0.45, "text": "come in"} | both | {"speaker": 31},
        {"audio_filepath": "audio/b.wav", "offset": 0.6, "duration": 0.4, "text": "Wasser"}
        | both | {"target_lang": "de", "taskname": "ast", "pnc": "yes"},
    )  # fmt: skip


def kaldi(folder: Path) -> Path:
    """Segments of two recordings; the last ends with its file."""
    home = folder / "data" / "test"
    for name in ("rec1", "rec2"):
        sound(home / "wav" / f"{name}.wav", 1.0)
    text(home / "wav.scp", "rec1 wav/rec1.wav", "rec2 wav/rec2.wav")
    text(home / "segments", "s1-u1 rec1 0.10 0.45", "s1-u2 rec1 0.5 0.9", "s2-u1 rec2 0.25 -1")
    text(home / "text", "s1-u1 good morning", "s1-u2 come in", "s2-u1")
    text(home / "utt2spk", "s1-u1 s1", "s1-u2 s1", "s2-u1 s2")
    text(home / "spk2gender", "s1 f", "s2 m")
    text(home / "utt2lang", "s1-u1 en", "s1-u2 en", "s2-u1 en")
    text(home / "reco2dur", "rec1 1.0", "rec2 1.0")
    return home


def wenet(folder: Path) -> Path:
    """The last row is a segment."""
    for n in (1, 2):
        sound(folder / f"{n}.wav", 1.0)
    return rows(
        folder / "data.list",
        {"key": "u1", "wav": "1.wav", "txt": "明天学校休息"},
        {"key": "u2", "wav": "2.wav", "txt": "我们坐车", "speaker": "p1"},
        {"key": "u3", "wav": "2.wav", "txt": "今天有雨", "start": 0.25, "end": 0.75, "task": "asr"},
    )


def funasr(folder: Path) -> Path:
    for n in (1, 2, 3):
        sound(folder / f"{n}.wav")
    return rows(
        folder / "train.jsonl",
        {"key": "ID1", "source": "1.wav", "source_len": 40, "target": "明天学校休息", "target_len": 6},
        {"key": "ID2", "source": "2.wav", "target": "做 data science 也好"},
        {"key": "ID3", "source": "3.wav", "target": "he tried", "text_language": "<|en|>"},
    )


def funasr_scp(folder: Path) -> Path:
    """Two splits by name; text.txt in another order than wav.scp."""
    for n in (1, 2, 3):
        sound(folder / f"{n}.wav")
    text(folder / "train_wav.scp", "ID1 1.wav", "ID2 2.wav")
    text(folder / "train_text.txt", "ID2 做 data science 也好", "ID1 明天学校休息")
    text(folder / "val_wav.scp", "ID3 3.wav")
    text(folder / "val_text.txt", "ID3 今天有雨")
    return folder


def simuleval(folder: Path) -> Path:
    """No line feed at the end of either file."""
    for n in (1, 2, 3):
        sound(folder / "wav" / f"{n}.wav")
    (folder / "source.txt").write_bytes(b"wav/1.wav\nwav/2.wav\nwav/3.wav")
    (folder / "target.txt").write_bytes("Danke.\nWir fangen hier an.\nWasser für alle.".encode())
    return folder


def audiofolder(folder: Path) -> Path:
    """A table with quoting in each split; a sentence of two lines."""
    for name in ("train/a.wav", "train/more/b.wav", "test/a.wav"):
        sound(folder / name)
    (folder / "train" / "metadata.csv").write_bytes(
        b'file_name,transcription,speaker_id\r\na.wav,"Stop, she said ""now"".",s1\r\nmore/b.wav,"one\r\ntwo",\r\n'
    )
    text(folder / "test" / "metadata.csv", "file_name,transcription,speaker_id", "a.wav,Good evening.,s2")
    return folder


def videofolder(folder: Path) -> Path:
    """Two clips of signing, one with glosses."""
    for name in ("a", "b", "c"):
        making.video(folder / f"{name}.mp4", range(0, 400, 40))
    return rows(
        folder / "metadata.jsonl",
        {"file_name": "a.mp4", "text": "明天学校放假。", "gloss": "明天 学校 休息", "signer": "P03", "take": 2},
        {"file_name": "b.mp4", "text": "今天有雨。"},
        {"file_name": "c.mp4", "text": "你好。", "translation": None},
    ).parent


def coval(folder: Path) -> Path:
    """The end of speech is known of the first item, null in the second, absent in the third."""
    items: list[dict[str, Any]] = []
    for n, extra in enumerate(
        ({"speech_end_offset_ms": 350.5}, {"speech_end_offset_ms": None}, {"chapter_id": "5"}), 1
    ):
        digest = hashlib.sha256(sound(folder / "audio" / f"000{n}.wav").read_bytes()).hexdigest()
        item = {
            "path": f"audio/000{n}.wav",
            "sha256": digest.upper(),
            "transcript": f"sentence {n}",
            "duration_sec": 0.4,
        }
        items.append(item | {"speaker_id": "spk0"} | extra)
    about = {"_license": "CC0-1.0", "id": "made-v1", "version": "1.0.0", "license": "CC0-1.0", "source": "made up"}
    (folder / "made-v1.json").write_text(json.dumps(about | {"items": items}, indent=2))
    return folder / "made-v1.json"


# By the name of the layout: the builder, and what a user must say beside the path.
MADE: Final[dict[str, tuple[Callable[[Path], Path], Asked]]] = {
    "librispeech": (librispeech, Asked()),
    "common-voice": (commonvoice, Asked()),
    "must-c": (mustc, Asked()),
    "aishell": (aishell, Asked()),
    "nemo": (nemo, Asked()),
    "kaldi": (kaldi, Asked()),
    "wenet": (wenet, Asked(source_lang="zh")),
    "funasr": (funasr, Asked(source_lang="zh")),
    "funasr-scp": (funasr_scp, Asked(source_lang="zh")),
    "simuleval": (simuleval, Asked(source_lang="en", target_lang="de")),
    "audiofolder": (audiofolder, Asked(source_lang="en")),
    "videofolder": (videofolder, Asked(source_lang="csl", target_lang="zh")),
    "coval": (coval, Asked(source_lang="en")),
}


def brief(entries: Sequence[Entry]) -> list[tuple[Any, ...]]:
    """Of each clip its id, offset, duration, transcript and text."""
    return [
        (clip.id, clip.tracks[0].offset_s, clip.tracks[0].duration_s, clip.transcript, clip.text)
        for clip in (entry.clip for entry in entries)
        if clip is not None
    ]


NONE: Final = Fraction(0), None  # of a clip that is a whole file

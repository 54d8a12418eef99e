"""Small made-up corpora of signs, each lying on disk as the real one does, with the traps that do no harm.

Every function writes one into a folder and returns the path to give to a reader. All words are invented.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from PIL import Image

from tests.media.making import quarters, video

BOM = "\ufeff"
PHOENIX = "name|video|start|end|speaker|orth|translation"
PHOENIX_2014 = "id|folder|signer|annotation"
HOW2SIGN = "VIDEO_ID\tVIDEO_NAME\tSENTENCE_ID\tSENTENCE_NAME\tSTART_REALIGNED\tEND_REALIGNED\tSENTENCE"


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    """A text file as it is, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def frames(folder: Path, names: Iterable[str]) -> Path:
    """Pictures of 64x48."""
    folder.mkdir(parents=True, exist_ok=True)
    first: Path | None = None
    for name in names:
        if first is None:
            first = folder / name
            Image.fromarray(quarters()).save(first)
        else:
            shutil.copyfile(first, folder / name)
    return folder


def film(path: Path, frames: int = 10, fps: int = 25, codec: str = "libx264") -> Path:
    """A video of so many frames, 64x48."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return video(path, [round(n * 1000 / fps) for n in range(frames)], codec=codec)


def phoenix(folder: Path) -> Path:
    """PHOENIX-2014-T: a quote that never closes, CRLF, and a stray file among the frames; no level 1 on disk."""
    manual, features = folder / "annotations" / "manual", folder / "features" / "fullFrame-210x260px"
    rows = {
        "train": [
            "10May_2030_Friday_wetter-3|10May_2030_Friday_wetter-3/1/*.png|-1|-1|Signer01|MORGEN SONNE NORD"
            "|morgen scheint im norden die sonne",
            '11May_2030_Saturday_wetter-10|11May_2030_Saturday_wetter-10/1/*.png|-1|-1|Signer02|SU\u0308D "REGEN'
            '|im su\u0308den fa\u0308llt "regen',
        ],
        "test": ["12May_2030_Sunday_wetter-1|12May_2030_Sunday_wetter-1/1/*.png|-1|-1|Signer01|WOLKE|es gibt wolken"],
    }
    for split, lines in rows.items():
        written(manual / f"PHOENIX-2014-T.{split}.corpus.csv", BOM + "\r\n".join([PHOENIX, *lines]) + "\r\n")
        for line in lines:
            frames(features / split / line.split("|")[0], [f"images{n:04}.png" for n in (10, 9, 11, 8, 12)])
    # the real release holds this one too, which is no part
    written(manual / "PHOENIX-2014-T.train-complex-annotation.corpus.csv", PHOENIX + "\n")
    written(features / "train" / "10May_2030_Friday_wetter-3" / "createDnnTrainingLabels-profile.py.lprof", "x")
    return folder


def phoenix2014(folder: Path) -> Path:
    """PHOENIX-2014: frames named after the broadcast, in a level 1 that one clip lacks; the broken row of train."""
    manual, features = folder / "annotations" / "manual", folder / "features" / "fullFrame-210x260px"
    broken = "13April_2011_Wednesday_tagesschau_default-14"
    rows = {
        "train": [
            ("10May_2030_Friday_heute_default-0", "Signer04", "__ON__ loc-NORD WIND-PLUSPLUS WIND S W R __OFF__"),
            (broken, "Signer04", "WIND"),
        ],
        "dev": [
            ("11May_2030_Saturday_heute_default-2", "Signer05", "KALT HEUTE"),
            ("11May_2030_Saturday_heute_default-3", "Signer05", "REGEN ABEND"),
        ],
    }
    for split, found in rows.items():
        lines = [f"{name}|{name}/1/*.png|{signer}|{signs}" for name, signer, signs in found]
        written(manual / f"{split}.corpus.csv", "\n".join([PHOENIX_2014, *lines]) + "\n")
        for name, _, _ in found:
            stem = name.rsplit("_default", 1)[0]
            inner = features / split / name / "1" if split == "train" else features / split / name
            frames(inner, [f"{stem}.avi_pid0_fn{n:06}-0.png" for n in range(54, 59)])
    return folder


def csl_daily(folder: Path) -> Path:
    """CSL-Daily with its pickle converted to JSON beside it, and the name that was listed wrongly."""
    labels = folder / "sentence_label"
    listed = [("S000001_P0001_T00", "train"), ("S000005_P0004_T00", "train"), ("S000002_P0003_T01", "test")]
    written(labels / "split_1.txt", "name|split\r\n" + "".join(f"{name}|{part}\r\n" for name, part in listed))
    records = [
        {
            "name": "S000001_P0001_T00",
            "label_gloss": ["明天", "船", "来"],
            "label_char": list("明天船会来。"),
            "signer": 1,
        },
        {"name": "S000007_P0003_T00", "label_gloss": ["灯", "亮"], "label_char": list("灯亮了。"), "signer": 3},
        {"name": "S000002_P0003_T01", "label_gloss": ["茶", "热"], "label_char": list("茶很热。"), "signer": 3},
    ]
    for record in records:
        record["label_word"] = record["label_char"]
        frames(folder / "sentence" / "frames_512x512" / str(record["name"]), [f"{n:06}.jpg" for n in range(6)])
    written(labels / "csl2020ct_v2.json", json.dumps(records, ensure_ascii=False, indent=1))
    written(labels / "csl2020ct_v2.pkl", "not to be opened")
    return folder


def csl_ustc(folder: Path, encoding: str = "utf-8") -> Path:
    """CSL of USTC: one sentence as words, one whole, both spellings of a video's name, a stray file."""
    written(folder / "corpus.txt", "000000 他 的 船 是 新 的\r\n000001 灯亮了\r\n", encoding)
    color = folder / "color"
    first = film(make(color / "000000") / "P01_s1_00_10_color.avi", codec="mpeg4")
    for name in ("000000/P01_s1_00_2._color.avi", "000001/P02_s1_01_0_color.avi"):
        make((color / name).parent)
        shutil.copyfile(first, color / name)
    written(color / "000001" / "Thumbs.db", "x")
    return folder


def make(folder: Path) -> Path:
    """A folder, with those above it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def ce_csl(folder: Path, encoding: str = "utf-8") -> Path:
    """CE-CSL: a table a part, one sentence with a comma in quotes, videos by translator."""
    head = "Number,Translator,Chinese Sentences,Gloss,Note\n"
    written(
        folder / "label" / "train.csv",
        head + 'train-00001,A,"船来了,快走。",船/来/快/走/。,\ntrain-00002,B,茶很热。,茶/热,\n',
        encoding,
    )
    written(folder / "label" / "test.csv", head + "test-00001,A,灯亮了。,灯/亮,note\n", encoding)
    for name in ("train/A/train-00001", "train/B/train-00002", "test/A/test-00001"):
        film(folder / "video" / f"{name}.mp4")
    return folder


def how2sign(folder: Path) -> Path:
    """How2Sign as its script downloads it: a realigned table for train, whose second video is there only as a clip."""
    level = folder / "sentence_level"
    table = level / "train" / "text" / "en" / "raw_text" / "re_aligned" / "how2sign_realigned_train.csv"
    rows = [
        "--vid01\t--vid01-5-rgb_front\t--vid01_0\t--vid01_0-5-rgb_front\t0.12\t0.52\tFirst we fold the paper.",
        '--vid01\t--vid01-5-rgb_front\t--vid01_1\t--vid01_1-5-rgb_front\t0.4\t1.0\tThen "turn it over.',
        "vid02\tvid02-8-rgb_front\tvid02_0\tvid02_0-8-rgb_front\t7.5\t8.3\tIt's a boat, really.",
    ]
    written(table, "\n".join([HOW2SIGN, *rows]) + "\n")
    older = HOW2SIGN.replace("_REALIGNED", "") + "\tfps"
    row = "vid03\tvid03-1-rgb_front\tvid03_0\tvid03_0-1-rgb_front\t2.0\t2.4\tNow it floats.\t29.97"
    written(level / "val" / "text" / "en" / "raw_text" / "how2sign_val.csv", f"{older}\n{row}\n")
    film(folder / "video_level" / "train" / "rgb_front" / "raw_videos" / "--vid01-5-rgb_front.mp4", 25)
    film(level / "train" / "rgb_front" / "raw_videos" / "vid02_0-8-rgb_front.mp4")
    film(level / "val" / "rgb_front" / "raw_videos" / "vid03_0-1-rgb_front.mp4", 12, 30)
    return folder


def wlasl(folder: Path) -> Path:
    """WLASL: a sign as it was downloaded from YouTube, one to the end of its video, one cut by the corpus' script."""

    def instance(name: str, first: int, last: int, split: str, signer: int, url: str) -> dict[str, Any]:
        said = {"bbox": [0, 0, 64, 48], "fps": 25, "frame_start": first, "frame_end": last, "instance_id": 0}
        more = {"signer_id": signer, "source": "made", "split": split, "url": url, "variation_id": 0}
        return said | more | {"video_id": name}

    found = [
        {
            "gloss": "boat",
            "instances": [
                instance("00001", 6, 20, "train", 12, "https://www.youtube.com/watch?v=abcdefghijk"),
                instance("00002", 1, -1, "val", 3, "https://videos.example/boat.mp4"),
            ],
        },
        {"gloss": "tea", "instances": [instance("00003", 31, 40, "train", -1, "https://youtu.be/bcdefghijkl")]},
    ]
    written(folder / "WLASL_v0.3.json", json.dumps(found, indent=4))
    film(folder / "raw_videos_mp4" / "abcdefghijk.mp4", 25)
    film(folder / "raw_videos" / "00002.mp4")
    film(folder / "videos" / "00003.mp4")
    return folder


def eaf(tiers: dict[str, Sequence[tuple[Any, ...]]], *, doctype: str = "") -> str:
    """An ELAN file. An annotation is (start ms, end ms, value), or (id of another, value) for one that refers to it;
    ids are a1, a2, ... in order. A time of None is a slot without a time.
    """
    slots, body, count = [], [], 0
    for tier, found in tiers.items():
        body.append(f'<TIER TIER_ID={quoteattr(tier)} PARTICIPANT="" LINGUISTIC_TYPE_REF="t">')
        for item in found:
            count += 1
            value = f"<ANNOTATION_VALUE>{escape(item[-1])}</ANNOTATION_VALUE>"
            if len(item) == 2:
                said, kind = f'ANNOTATION_REF="{item[0]}"', "REF_ANNOTATION"
            else:
                names = [f"ts{len(slots) + n}" for n in (1, 2)]
                times = ["" if time is None else f' TIME_VALUE="{time}"' for time in item[:2]]
                slots += [f'<TIME_SLOT TIME_SLOT_ID="{name}"{time}/>' for name, time in zip(names, times, strict=True)]
                said, kind = f'TIME_SLOT_REF1="{names[0]}" TIME_SLOT_REF2="{names[1]}"', "ALIGNABLE_ANNOTATION"
            body.append(f'<ANNOTATION><{kind} ANNOTATION_ID="a{count}" {said}>{value}</{kind}></ANNOTATION>')
        body.append("</TIER>")
    order = ["<TIME_ORDER>", *slots, "</TIME_ORDER>"]
    top = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        *([doctype] if doctype else []),
        '<ANNOTATION_DOCUMENT FORMAT="2.8">',
    ]
    return "\n".join([*top, *order, *body, "</ANNOTATION_DOCUMENT>"]) + "\n"


def dgs(folder: Path) -> Path:
    """A conversation of two people of the Public DGS Corpus; the names of tiers have their umlauts in two parts."""
    tiers: dict[str, Sequence[tuple[Any, ...]]] = {
        "Deutsche_U\u0308bersetzung_A": [(200, 800, "Das Boot fa\u0308hrt."), (800, 1000, "Ja & nein.")],
        "Translation_into_English_A": [(200, 1000, "The boat leaves, yes and no.")],
        "Lexem_Geba\u0308rde_r_A": [(240, 400, "BOOT1A^"), (440, 700, "FAHREN2"), (840, 960, "JA1")],
        "Lexem_Geba\u0308rde_l_A": [(240, 400, "BOOT1A^"), (500, 640, "$INDEX1")],
        "Lexeme_Sign_r_A": [("a4", "BOAT1A^"), ("a5", "TO-DRIVE2"), ("a6", "YES1")],
        "Mundbild_Mundgestik_A": [(240, 380, "boot")],
        "Deutsche_U\u0308bersetzung_B": [(100, 600, "Gut.")],
        "Translation_into_English_B": [(100, 600, "Good.")],
        "Lexem_Geba\u0308rde_r_B": [(120, 580, "GUT1")],
    }
    written(folder / "1000001.eaf", eaf(tiers))
    for camera in ("1a1", "1b1"):
        film(folder / f"1000001_{camera}.mp4", 50, 50)
    return folder


SIGNED = {
    "phoenix-2014-t": phoenix,
    "phoenix-2014": phoenix2014,
    "csl-daily": csl_daily,
    "csl-ustc": csl_ustc,
    "ce-csl": ce_csl,
    "how2sign": how2sign,
    "wlasl": wlasl,
    "dgs": dgs,
}

"""How2Sign: tabs in a .csv, times that count in the full video, rates where they stand."""

from fractions import Fraction
from pathlib import Path

from loadbench.corpus.clip import Clip, Track
from tests.corpus import made
from tests.corpus.layouts.reads import clips, refused, troubles, under
from tests.corpus.made import HOW2SIGN, written

TABLE = "how2sign_realigned_{}.csv"
CUT = "realigned times count in the full video, which is not there: the clip is taken as it was cut"


def test_a_row_is_a_stretch_of_the_full_video_where_that_is_there(tmp_path: Path) -> None:
    path = made.how2sign(tmp_path)
    table = "sentence_level/train/text/en/raw_text/re_aligned/how2sign_realigned_train.csv"
    first, second, third, fourth = clips("how2sign", path)
    full = path / "video_level/train/rgb_front/raw_videos/--vid01-5-rgb_front.mp4"
    assert first == Clip(
        id="--vid01_0-5-rgb_front",
        direction="sign2spoken",
        tracks=(Track("video", full, offset_s=Fraction("0.12"), duration_s=Fraction("0.40")),),
        source_lang="ase",
        target_lang="en",
        text="First we fold the paper.",
        tags=("train",),
        extra={"video": "--vid01-5-rgb_front"},
        source=str(path / table),
        line=2,
    )
    assert second.text == 'Then "turn it over.'
    assert second.tracks == (Track("video", full, offset_s=Fraction("0.4"), duration_s=Fraction("0.6")),)
    clip = path / "sentence_level/train/rgb_front/raw_videos/vid02_0-8-rgb_front.mp4"
    assert third.tracks == (Track("video", clip),)
    older = path / "sentence_level/val/rgb_front/raw_videos/vid03_0-1-rgb_front.mp4"
    assert fourth.tracks == (Track("video", older, fps=Fraction("29.97")),)
    assert troubles("how2sign", path) == [f"{table}:4: warning: {CUT}"]


def test_unpacked_by_hand_the_tables_lie_above_and_a_realigned_one_counts_before_an_older_one(tmp_path: Path) -> None:
    row = "v\tv-1-rgb_front\tv_0\tv_0-1-rgb_front\t{}\t2.5\tA boat."
    written(tmp_path / TABLE.format("test"), f"{HOW2SIGN}\n{row.format('1.5')}\n")
    written(tmp_path / "how2sign_test.csv", f"{HOW2SIGN.replace('_REALIGNED', '')}\n{row.format('0.5')}\n")
    written(tmp_path / "test_rgb_front_clips/raw_videos/v_0-1-rgb_front.mp4", "")
    (clip,) = clips("how2sign", tmp_path)
    assert under(tmp_path, clip) == "test_rgb_front_clips/raw_videos/v_0-1-rgb_front.mp4"
    assert (clip.tracks[0].offset_s, clip.tracks[0].duration_s) == (0, None)
    written(tmp_path / "test_raw_videos/v-1-rgb_front.mp4", "")
    (clip,) = clips("how2sign", tmp_path)
    assert under(tmp_path, clip) == "test_raw_videos/v-1-rgb_front.mp4"
    assert (clip.tracks[0].offset_s, clip.tracks[0].duration_s) == (Fraction("1.5"), 1)


def test_a_copy_with_commas_is_read_with_its_quotes_and_its_rate(tmp_path: Path) -> None:
    header = f"{HOW2SIGN},fps".replace("\t", ",")
    written(tmp_path / TABLE.format("val"), f'{header}\nv,v-1,v_0,v_0-1,1,2,"A boat, a ""new"" one.",23.976\n')
    (clip,) = clips("how2sign", tmp_path)
    assert (clip.text, clip.tracks[0].fps) == ('A boat, a "new" one.', Fraction("23.976"))


def test_times_and_rates_that_do_not_fit_are_told(tmp_path: Path) -> None:
    file = TABLE.format("train")
    times = ["1\t1", "2\t1", "-1\t1", "\t1", "nan\t1", "1/0\t1", "0\tinf", "1", "1\t2\t24", "1\t2\t0", "1\t2\tfast"]
    rows = [f"v\tv-1\tv_{n}\tv_{n}-1\t{said}\tA boat." for n, said in enumerate(times[:8])]
    written(tmp_path / file, "\n".join([HOW2SIGN, *rows]))
    assert troubles("how2sign", tmp_path) == [
        f"{file}:2: its time is empty: 1 to 1 s",
        f"{file}:3: its time is empty: 2 to 1 s",
        f"{file}:4: its time is empty: -1 to 1 s",
        f"{file}:5: START_REALIGNED '' and END_REALIGNED '1' are not seconds",
        f"{file}:6: START_REALIGNED 'nan' and END_REALIGNED '1' are not seconds",
        f"{file}:7: START_REALIGNED '1/0' and END_REALIGNED '1' are not seconds",
        f"{file}:8: START_REALIGNED '0' and END_REALIGNED 'inf' are not seconds",
        f"{file}:9: has 6 columns, the header has 7",
    ]
    header = (
        HOW2SIGN.replace("\tSENTENCE", "\tFPS\tSENTENCE").replace("FPS\tSENTENCE_", "SENTENCE_").replace("FPS\t", "", 0)
    )
    header = "\t".join([*HOW2SIGN.split("\t")[:-1], "FPS", "SENTENCE"])
    rows = [f"v\tv-1\tv_{n}\tv_{n}-1\t{said}\tA boat." for n, said in enumerate(times[8:])]
    written(tmp_path / file, "\n".join([header, *rows]))
    assert troubles("how2sign", tmp_path) == [f"{file}:3: fps is no rate: '0'", f"{file}:4: fps is no rate: 'fast'"]


def test_headers_of_all_splits_are_judged_at_once(tmp_path: Path) -> None:
    for split in ("train", "test"):
        written(tmp_path / TABLE.format(split), "VIDEO_ID\tSTART_REALIGNED\n")
    said = "the header reads 'VIDEO_ID\\tSTART_REALIGNED'; missing: VIDEO_NAME, SENTENCE_ID, SENTENCE_NAME, SENTENCE,"
    assert refused("how2sign", tmp_path) == [
        f"{TABLE.format(split)}:1: {said} END_REALIGNED" for split in ("train", "test")
    ]
    assert refused("how2sign", tmp_path / "gone") == [
        ".: holds no how2sign_realigned_train.csv, nor one of another split"
    ]

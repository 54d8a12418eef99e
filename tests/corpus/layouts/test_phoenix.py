"""PHOENIX-2014-T and PHOENIX-2014: what a row means, and what its traps come to."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layouts.phoenix import BROKEN, CLEANED, cleaned
from loadbench.media.frames import numbered
from tests.corpus import made
from tests.corpus.layouts.reads import clips, refused, troubles, under
from tests.corpus.made import PHOENIX, PHOENIX_2014, written

T, PLAIN = "phoenix-2014-t", "phoenix-2014"


def test_a_row_of_2014_t_is_a_clip(tmp_path: Path) -> None:
    path = made.phoenix(tmp_path)
    file, frames = path / "annotations/manual/PHOENIX-2014-T.train.corpus.csv", path / "features/fullFrame-210x260px"
    first, second, third = clips(T, path)
    assert first == Clip(
        id="10May_2030_Friday_wetter-3",
        direction="sign2spoken",
        tracks=(Track("video", frames / "train/10May_2030_Friday_wetter-3", "images%04d.png", Fraction(25)),),
        source_lang="gsg",
        target_lang="de",
        gloss=("MORGEN", "SONNE", "NORD"),
        text="morgen scheint im norden die sonne",
        speaker="Signer01",
        tags=("train",),
        source=str(file),
        line=2,
    )
    assert (second.gloss, second.text, second.line) == (("SÜD", '"REGEN'), 'im süden fällt "regen', 3)
    assert (third.id, third.source) == ("12May_2030_Sunday_wetter-1", str(file).replace(".train.", ".test."))


def test_frames_come_by_number_and_a_stray_file_among_them_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    (track,) = clips(T, made.phoenix(tmp_path))[0].tracks
    assert [number for number, _ in numbered(track, notes)] == [8, 9, 10, 11, 12]
    assert notes == [f"{track.path}: ignored, not named like images%04d.png: createDnnTrainingLabels-profile.py.lprof"]


def test_the_level_1_counts_where_it_is_on_disk_and_the_column_names_the_folder(tmp_path: Path) -> None:
    made.phoenix(tmp_path)
    train = tmp_path / "features/fullFrame-210x260px/train"
    rows = [
        "a|other/1/*.png|-1|-1|S|X|x",
        "b|b/1/*.png|-1|-1|S|X|x",
        "c||-1|-1|S|X|x",
        "d|d|-1|-1|S|X|x",
        f"e|{'e' * 300}/1/*.png|-1|-1|S|X|x",
    ]
    written(tmp_path / "annotations/manual/PHOENIX-2014-T.train.corpus.csv", "\n".join([PHOENIX, *rows]))
    (train / "b" / "1").mkdir(parents=True)
    assert [under(train, clip) for clip in clips(T, tmp_path, split="train")] == ["other", "b/1", "c", "d", "e" * 300]


def test_a_release_is_found_in_its_inner_folder_and_frames_in_another_size(tmp_path: Path) -> None:
    for name, build, inner in (
        (T, made.phoenix, "PHOENIX-2014-T"),
        (PLAIN, made.phoenix2014, "phoenix-2014-multisigner"),
    ):
        features = build(tmp_path / name / inner) / "features"
        (features / "fullFrame-210x260px").rename(features / "fullFrame-256x256px")
        found = clips(name, tmp_path / name, split="train", fps=Fraction(50))[0]
        assert under(features, found).startswith("fullFrame-256x256px/train/10May_2030_Friday_")
        assert found.tracks[0].path.is_dir()
        assert found.tracks[0].fps == 50


def test_rows_that_do_not_fit_are_told_and_the_others_read(tmp_path: Path) -> None:
    made.phoenix(tmp_path)
    file = "annotations/manual/PHOENIX-2014-T.test.corpus.csv"
    rows = ["a|a/1/*.png|-1|-1|S|X", "b|../b/1/*.png|-1|-1|S|X|x", "c|/c/*.png|-1|-1|S|X|x", "d|d/1/*.png|3|9||X|x"]
    written(tmp_path / file, "\n".join([PHOENIX, *rows]))
    assert troubles(T, tmp_path, split="test") == [
        f"{file}:2: has 6 columns, the header has 7",
        f"{file}:3: video leads out of the corpus: ../b/1/*.png",
        f"{file}:4: video leads out of the corpus: /c/*.png",
        f"{file}:5: warning: start 3 and end 9 are not -1; all frames are taken",
    ]


def test_headers_of_all_splits_are_judged_at_once_and_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    manual = "annotations/manual/PHOENIX-2014-T.{}.corpus.csv"
    for split in ("train", "dev"):
        written(tmp_path / manual.format(split), "name|video|text\n")
    said = ": the header reads 'name|video|text'; missing: start, end, speaker, orth, translation"
    assert refused(T, tmp_path) == [manual.format(split) + ":1" + said for split in ("train", "dev")]
    assert refused(T, tmp_path / "gone") == [".: holds no annotations/manual/PHOENIX-2014-T.train.corpus.csv"]


def test_a_row_of_2014_has_its_glosses_cleaned_and_keeps_what_was_written(tmp_path: Path) -> None:
    path = made.phoenix2014(tmp_path)
    first, second, _ = clips(PLAIN, path)
    assert (first.id, first.gloss, first.text, first.speaker, first.line, first.extra) == (
        "10May_2030_Friday_heute_default-0",
        ("NORD", "WIND", "S+W+R"),
        None,
        "Signer04",
        2,
        {"annotation": "__ON__ loc-NORD WIND-PLUSPLUS WIND S W R __OFF__"},
    )
    folder = path / "features/fullFrame-210x260px"
    assert first.tracks == (
        Track(
            "video",
            folder / "train/10May_2030_Friday_heute_default-0/1",
            "10May_2030_Friday_heute.avi_pid0_fn%06d-0.png",
            Fraction(25),
        ),
    )
    assert [number for number, _ in numbered(first.tracks[0], [])] == [54, 55, 56, 57, 58]
    assert (second.gloss, under(folder, second)) == (("KALT", "HEUTE"), "dev/11May_2030_Saturday_heute_default-2")
    train = "annotations/manual/train.corpus.csv"
    assert troubles(PLAIN, path) == [
        f"{train}:2: warning: {CLEANED}",
        f"{train}:3: warning: {BROKEN} is known to be broken: left out",
    ]


@pytest.mark.parametrize(
    ("written", "scored"),
    [
        ("__ON__ KALT __OFF__ __EMOTION__ __PU__ __LEFTHAND__ __EPENTHESIS__", "KALT"),
        ("loc-NORD cl-KOMMEN qu-WIND poss-MEIN lh-ZWEI loc-cl-MEER", "NORD KOMMEN WIND MEIN ZWEI MEER"),
        ("REGEN-PLUSPLUS STARK", "REGEN STARK"),
        ("A B KALT S+W R KALT Z", "A+B KALT S+W+R KALT Z"),
        ("KALT KALT-PLUSPLUS loc-KALT WARM KALT", "KALT WARM KALT"),
        ("KALT __PU__ KALT", "KALT"),
        ("loc- IX ÜBER-cl-X", "loc- IX ÜBER-cl-X"),  # a prefix of nothing, and one inside a name
        ("", ""),
    ],
)
def test_glosses_of_2014_are_cleaned(written: str, scored: str) -> None:
    assert cleaned(written) == tuple(scored.split())


def test_a_row_of_markers_alone_cannot_be_used_and_a_missing_folder_has_its_usual_pattern(tmp_path: Path) -> None:
    rows = ["a_default-3|a_default-3/1/*.png|S|__ON__ __OFF__", "b_default-1|b_default-1/1/*.png|S|KALT"]
    file = written(tmp_path / "annotations/manual/dev.corpus.csv", "\n".join([PHOENIX_2014, *rows]))
    assert troubles(PLAIN, tmp_path) == [
        "annotations/manual/dev.corpus.csv:2: a_default-3 has markers and no sign: __ON__ __OFF__"
    ]
    written(file, "\n".join([PHOENIX_2014, rows[1]]))
    (clip,) = clips(PLAIN, tmp_path)
    assert clip.tracks[0].pattern == "b.avi_pid0_fn%06d-0.png"

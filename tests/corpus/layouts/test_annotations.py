"""Annotation files are read row by row, and what does not fit is said with its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.layouts import annotations
from loadbench.corpus.layouts.annotations import encoding, first_line, lines, objects, table
from loadbench.corpus.manifest import CorpusError
from tests.corpus.made import BOM, written


def trouble(read: Any) -> list[str]:
    with pytest.raises(CorpusError) as caught:
        list(read)
    return caught.value.problems


def test_quotes_bom_crlf_and_line_separators_are_no_traps_in_a_table(tmp_path: Path) -> None:
    text = f'{BOM}id|text\r\n\r\n1|say "hi\r\n2|a\u2028b\r\n3|x|y\r\n4\n5|last'
    path = written(tmp_path / "a.csv", text)
    assert [(row.line, row.cells, row.problem) for row in table(path, "|", ("text", "id"))] == [
        (3, {"id": "1", "text": 'say "hi'}, None),
        (4, {"id": "2", "text": "a\u2028b"}, None),
        (5, {}, "has 3 columns, the header has 2"),
        (6, {}, "has 1 columns, the header has 2"),
        (7, {"id": "5", "text": "last"}, None),
    ]
    assert first_line(path) == "id|text"


def test_a_line_in_another_encoding_is_one_bad_row_and_a_header_in_it_is_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id|text\n1|für\n".encode() + "2|für\n".encode("latin-1"))
    assert [(row.line, row.problem) for row in table(path, "|", ("id",))] == [(2, None), (3, "is not UTF-8")]
    path.write_bytes("id|textfür\n".encode("utf-16"))
    assert trouble(table(path, "|", ("id",))) == [f"{path}:1: the header is not UTF-8; missing: id"]


def test_a_header_that_does_not_fit_names_what_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id;text\n1;a\n")
    assert trouble(table(path, "|", ("id", "text"))) == [f"{path}:1: the header reads 'id;text'; missing: id, text"]
    assert trouble(table(written(path, ""), "|", ("id",))) == [f"{path}:1: the header reads ''; missing: id"]
    gone = tmp_path / "gone.csv"
    assert trouble(table(gone, "|", ("id",))) == [f"{gone}: No such file or directory"]


def test_a_quoted_table_keeps_separators_and_ends_of_lines_inside_quotes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'id,text\n1,"a, ""b"""\n\n2,"c\nd"\n3,e,f\n')
    assert [(row.line, row.cells.get("text"), row.problem) for row in table(path, ",", ("id",), quoted=True)] == [
        (2, 'a, "b"', None),
        (5, "c\nd", None),
        (6, None, "has 3 columns, the header has 2"),
    ]
    path.write_bytes("id,text\n1,ü\n".encode("latin-1"))
    assert trouble(table(path, ",", ("id",), quoted=True)) == [f"{path}:2: is not utf-8: convert the file to UTF-8"]
    written(path, "id,text\n1," + "x" * 200_000 + "\n")
    assert trouble(table(path, ",", ("id",), quoted=True)) == [f"{path}:2: field larger than field limit (131072)"]


def test_an_encoding_is_the_first_in_which_the_whole_file_reads(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "1 abc\n2 船\n", "gb18030")
    assert encoding(path, "gb18030") == "gb18030"
    assert [text for _, text in lines(path, "gb18030")] == ["1 abc", "2 船"]
    assert encoding(written(path, "2 船\n"), "gb18030") == "utf-8"
    path.write_bytes(b"2 \xff\xff\n")
    with pytest.raises(CorpusError) as caught:
        encoding(path, "gb18030")
    assert caught.value.problems == [f"{path}: is in none of utf-8, gb18030: convert it to UTF-8"]


ITEMS = [{"a": [1, {"b": "]"}]}, {"c": "船" * 30}, {"d": None}]


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize(
    ("text", "places"),
    [
        (json.dumps(ITEMS), [1, 1, 1]),
        (BOM + json.dumps(ITEMS, indent=2, ensure_ascii=False) + "\n", [2, 10, 13]),
        ("\n".join(json.dumps(item) for item in ITEMS), [1, 2, 3]),
        ("\r\n[\r\n" + ",\r\n".join(json.dumps(item) for item in ITEMS) + "\r\n]", [3, 4, 5]),
    ],
)
def test_a_list_and_json_lines_give_one_object_at_a_time_with_its_line(
    text: str, places: list[int], piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotations, "PIECE", piece)
    assert list(objects(written(tmp_path / "a.json", text))) == list(zip(places, ITEMS, strict=True))


def test_an_empty_list_holds_nothing(tmp_path: Path) -> None:
    assert list(objects(written(tmp_path / "a.json", " [ ]\n"))) == []


def test_a_list_that_was_cut_or_is_no_json_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    said = {
        '[{"a": 1},\n{"b": 2},\n': f"{path}:3: the list has no end: the file was cut",
        '[{"a": 1},\n{"b": ': f"{path}:2: not JSON: Expecting value",
        '[{"a": 1},\n{b: 2}]': f"{path}:2: not JSON: Expecting property name enclosed in double quotes",
        '[{"a": ' + "[" * 100_000: f"{path}:1: not JSON: is nested too deeply",
    }
    assert {text: trouble(objects(written(path, text))) for text in said} == {
        text: [problem] for text, problem in said.items()
    }
    path.write_bytes(b'[{"a": "\xff"}]')
    assert trouble(objects(path)) == [f"{path}: is not UTF-8"]

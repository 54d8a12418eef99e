"""The registry holds what is in its folder."""

from importlib import import_module
from pathlib import Path

from loadbench.corpus import layouts

FOLDER = Path(layouts.__file__).parent


def test_every_module_with_layouts_is_registered_once_and_named_once() -> None:
    there = sorted(path.stem for path in FOLDER.glob("*.py") if "\nLAYOUTS" in path.read_text(encoding="utf-8"))
    names = [layout.name for layout in layouts.known()]
    assert len(names) == 1 + sum(len(import_module(f"{layouts.__name__}.{name}").LAYOUTS) for name in there)
    assert len(set(names)) == len(names)
    assert names[0] == "native"


def test_no_layout_takes_what_is_none_of_any(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "gone"):
        assert [layout.name for layout in layouts.known() if layout.marks(path)] == []

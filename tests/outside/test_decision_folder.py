"""A folder of decision records: numbers that stay, and files that nobody loses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.decision_folder import SLUG, DecisionFile, slug, write_decisions


def page(key: str, title: str = "Which library?", text: str = "Text") -> DecisionFile:
    def told(number: int, names: Mapping[str, str]) -> str:
        return f"# {number}. {title}\n\n{text}\n\n{' '.join(sorted(names.values()))}"

    return DecisionFile(key, title, told)


def fates(folder: Path, *pages: DecisionFile) -> list[tuple[str, str]]:
    return [(one.file.name, one.fate) for one in write_decisions(folder, pages)]


def test_files_are_numbered_and_named_after_the_question(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "adr"
    assert fates(folder, page("cp_1"), page("cp_2", "Où mettre l'état ?")) == [
        ("0001-which-library.md", "written"),
        ("0002-ou-mettre-l-etat.md", "written"),
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["0001-which-library.md", "0002-ou-mettre-l-etat.md"]
    assert "0002-ou-mettre-l-etat.md" in (folder / "0001-which-library.md").read_text(encoding="utf-8")


def test_a_decision_keeps_its_file_and_a_new_one_comes_after_every_other(tmp_path: Path) -> None:
    fates(tmp_path, page("cp_1"), page("cp_2"))
    (tmp_path / "0041-ours.md").write_text("our own", encoding="utf-8")
    assert fates(tmp_path, page("cp_3", "Third"), page("cp_1", "Renamed"), page("cp_2")) == [
        ("0042-third.md", "written"),
        ("0001-which-library.md", "updated"),
        ("0002-which-library.md", "updated"),
    ]
    assert (tmp_path / "0041-ours.md").read_text(encoding="utf-8") == "our own"


def test_the_same_export_twice_changes_nothing(tmp_path: Path) -> None:
    fates(tmp_path, page("cp_1"))
    before = (tmp_path / "0001-which-library.md").stat()
    assert fates(tmp_path, page("cp_1")) == [("0001-which-library.md", "unchanged")]
    assert (tmp_path / "0001-which-library.md").stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_somebody_changed_is_left_alone(tmp_path: Path) -> None:
    fates(tmp_path, page("cp_1"))
    file = tmp_path / "0001-which-library.md"
    changed = file.read_text(encoding="utf-8").replace("Text", "Our own words")
    file.write_text(changed, encoding="utf-8")
    assert fates(tmp_path, page("cp_1", text="New text")) == [("0001-which-library.md", "left alone")]
    assert file.read_text(encoding="utf-8") == changed


def test_line_endings_of_another_system_are_no_change(tmp_path: Path) -> None:
    fates(tmp_path, page("cp_1"))
    file = tmp_path / "0001-which-library.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert fates(tmp_path, page("cp_1")) == [("0001-which-library.md", "unchanged")]
    assert fates(tmp_path, page("cp_1", text="New")) == [("0001-which-library.md", "updated")]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    fates(tmp_path / "real", page("cp_1"))
    target = tmp_path / "real" / "0001-which-library.md"
    before = target.read_bytes()
    folder = tmp_path / "adr"
    folder.mkdir()
    (folder / "0001-which-library.md").symlink_to(target)
    assert fates(folder, page("cp_1", text="Other")) == [("0002-which-library.md", "written")]
    assert target.read_bytes() == before


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(PlaceUnusable, match="file"):
        write_decisions(tmp_path / "file", [page("cp_1")])
    with pytest.raises(PlaceUnusable, match="cannot be written"):
        write_decisions(tmp_path / "file" / "below", [page("cp_1")])


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    fates(tmp_path, page("cp_1"))
    fates(tmp_path, page("cp_1", text="New"))
    assert [path.name for path in tmp_path.iterdir()] == ["0001-which-library.md"]


@given(st.text())
def test_a_name_is_short_plain_and_never_empty(title: str) -> None:
    name = slug(title)
    assert 0 < len(name) <= SLUG
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")

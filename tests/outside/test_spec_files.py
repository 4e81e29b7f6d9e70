"""The documents of runs: what lies in a workspace is read whole or counts for nothing, and no link leads out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.outside import spec_files
from handrail.outside.spec_files import FILE_BYTES, SpecFiles
from handrail.regular_files import read_regular

RUN = ".specs/run"


@pytest.fixture
def specs(tmp_path: Path) -> SpecFiles:
    found = SpecFiles(tmp_path)
    found.write(RUN, "design.md", "# Design\n")
    return found


def test_documents_are_told_by_name(specs: SpecFiles, tmp_path: Path) -> None:
    (tmp_path / RUN / "notes.txt").write_text("no document")
    (tmp_path / RUN / "link.md").symlink_to(tmp_path / RUN / "design.md")
    (tmp_path / RUN / "folder.md").mkdir()
    assert specs.texts(RUN) == {"design.md": "# Design\n"}
    assert specs.texts(".specs/other") == {}


def test_a_document_that_cannot_be_read_whole_counts_as_empty(
    specs: SpecFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RUN / "long.md").write_bytes(b"x" * (FILE_BYTES + 1))
    (tmp_path / RUN / "locked.md").write_text("hidden")
    real = read_regular

    def read(path: Path, most_bytes: int, **how: Any) -> bytes:
        if path.name == "locked.md":
            raise PermissionError(13, "Permission denied")
        return real(path, most_bytes, **how)

    monkeypatch.setattr(spec_files, "read_regular", read)
    assert specs.texts(RUN) == {"design.md": "# Design\n", "locked.md": "", "long.md": ""}


def test_a_workspace_that_cannot_be_listed_is_refused(specs: SpecFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", unreadable)
    with pytest.raises(PlaceUnusable, match="cannot be read"):
        specs.texts(RUN)


@pytest.mark.parametrize("workspace", ["", "run", ".specs", ".specs/..", ".specs/a/b", "../.specs/a", ".specs/a\0b"])
def test_what_is_no_workspace_is_refused(specs: SpecFiles, workspace: str) -> None:
    with pytest.raises(InvalidParams, match="is no workspace"):
        specs.texts(workspace)


def test_a_link_is_no_workspace(specs: SpecFiles, tmp_path: Path) -> None:
    (tmp_path / ".specs" / "linked").symlink_to(tmp_path)
    with pytest.raises(InvalidParams, match="is no workspace"):
        specs.write(".specs/linked", "a.md", "x")
    assert not (tmp_path / "a.md").exists()

"""Files of plans: what a shell hands over is waited for, what lies in the project is not."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.outside.plan_files import read_text


def test_a_pipe_that_a_shell_handed_over_is_read_to_its_end() -> None:
    reading, writing = os.pipe()

    def say() -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(b"- [ ] one")

    saying = threading.Thread(target=say)
    saying.start()
    assert read_text(Path(f"/dev/fd/{reading}")) == "- [ ] one"
    saying.join()
    os.close(reading)


def test_a_named_file_may_be_a_link_but_none_that_leads_out_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "plan.md").write_text("mine", encoding="utf-8")
    (tmp_path / "link.md").symlink_to("plan.md")
    (project / "link.md").symlink_to("../plan.md")
    assert read_text(tmp_path / "link.md", project) == "mine"
    assert read_text(project / ".." / "plan.md", project) == "mine"
    with pytest.raises(PlaceUnusable, match="leads out of the project"):
        read_text(project / "link.md", project)


def test_a_pipe_in_the_project_is_refused_and_nothing_is_told_of(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.md")
    with pytest.raises(PlaceUnusable, match="a pipe, not a regular file"):
        read_text(tmp_path / "plan.md", tmp_path)
    with pytest.raises(InvalidParams, match="is not there"):
        read_text(tmp_path / "no.md", tmp_path)

"""Every story in `tests/golden/transcripts`, over real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.story import STORIES, walk


@pytest.mark.parametrize("name", sorted(path.stem for path in STORIES.glob("*.yaml")))
def test_a_story_goes_as_it_is_told(name: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    walk(name, project)

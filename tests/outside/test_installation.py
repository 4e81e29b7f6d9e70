"""What init writes as the command, by how this Handrail was installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from handrail import __version__
from handrail.kernel.errors import PlaceUnusable
from handrail.outside import installation
from handrail.outside.installation import launch, package


@pytest.fixture
def installed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda prefix: monkeypatch.setattr(sys, "prefix", prefix)


@pytest.mark.parametrize("prefix", ["/h/.local/share/pipx/venvs/handrail", "/h/.local/share/uv/tools/handrail", "/v"])
def test_an_environment_that_stays_is_started_by_its_interpreter(
    prefix: str, installed_at: Callable[[str], None]
) -> None:
    installed_at(prefix)
    assert launch({}) == (sys.executable, "-P", "-m", "handrail")


@pytest.mark.parametrize("folder", ["archive-v0", "environments-v2"])
def test_what_uvx_made_is_started_by_uv(folder: str, installed_at: Callable[[str], None]) -> None:
    installed_at(f"/h/.cache/uv/{folder}/abc")
    words = launch({"UV": "/bin/uv"})
    assert words[:4] == ("/bin/uv", "tool", "run", "--from")
    assert words[5:] == ("python", "-P", "-m", "handrail")
    with pytest.raises(PlaceUnusable) as refused:
        launch({"PATH": ""})
    assert "uv tool install handrail" in refused.value.hint


@pytest.mark.parametrize("prefix", ["/h/.local/share/pipx/.cache/1a2b", "/h/.cache/pipx/1a2b"])
def test_what_pipx_run_made_is_not_written_anywhere(prefix: str, installed_at: Callable[[str], None]) -> None:
    installed_at(prefix)
    with pytest.raises(PlaceUnusable, match="for one call"):
        launch({})


@pytest.mark.parametrize(
    ("source", "spec"),
    [
        (None, f"handrail=={__version__}"),
        ("not json", f"handrail=={__version__}"),
        ('{"url": "file:///d/handrail.whl", "archive_info": {}}', "file:///d/handrail.whl"),
        ('{"url": "https://x/h", "vcs_info": {"vcs": "git", "commit_id": "c"}}', "git+https://x/h"),
    ],
)
def test_it_is_the_same_package_again(source: str | None, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Known(metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return source if filename == "direct_url.json" else None

        def locate_file(self, path: Any) -> Any:
            return Path(path)

    monkeypatch.setattr(installation, "distribution", lambda name: Known())
    assert package() == spec

"""What a person agreed to is kept for them alone, by project, and forged by nobody else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from handrail.outside.trusted_settings import FILE, agree, agreed_for, all_agreed, forget, key_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_values_that_run_are_kept_as_hashes_and_limits_as_they_are(tmp_path: Path, home: Path) -> None:
    agree(tmp_path, home, {"checks": {"x": ["secret"]}, "approvals": "human"}, now_ms=7)
    agreed = agreed_for(tmp_path, home)
    assert agreed.trusts("checks", {"x": ["secret"]})
    assert not agreed.trusts("checks", {"x": ["other"]})
    assert agreed.limits == {"approvals": "human"}
    kept = (home / FILE).read_text(encoding="utf-8")
    assert "secret" not in kept
    assert len(agreed.marks["checks"]) == 64
    assert (home / FILE).stat().st_mode & 0o777 == 0o600
    assert (home / FILE).parent.stat().st_mode & 0o077 == 0


def test_a_later_agreement_adds_to_earlier_ones_and_is_taken_back_by_name(tmp_path: Path, home: Path) -> None:
    agree(tmp_path, home, {"http": "x:1"}, now_ms=1)
    agree(tmp_path, home, {"http": "x:2", "identity": "strict"}, now_ms=2)
    agreed = agreed_for(tmp_path, home)
    assert (agreed.trusts("http", "x:1"), agreed.trusts("http", "x:2")) == (False, True)
    assert forget(tmp_path, home, ["identity"])
    assert agreed_for(tmp_path, home).limits == {}
    assert agreed_for(tmp_path, home).trusts("http", "x:2")
    assert forget(tmp_path, home)
    assert not forget(tmp_path, home)
    assert not (home / FILE).parent.exists()


def test_a_project_is_its_real_path(tmp_path: Path, home: Path) -> None:
    project, link = tmp_path / "project", tmp_path / "link"
    project.mkdir()
    link.symlink_to(project)
    agree(link, home, {"http": "x:1"}, now_ms=1)
    assert agreed_for(project, home).trusts("http", "x:1")
    assert not agreed_for(tmp_path, home).trusts("http", "x:1")
    odd = Path(os.fsdecode(b"/tmp/\xff"))
    agree(odd, home, {"http": "x:1"}, now_ms=1)
    assert agreed_for(odd, home).trusts("http", "x:1")
    assert key_of(odd).isascii()


@pytest.mark.parametrize("spoil", ["rights", "link", "folder", "fifo", "nonsense"])
def test_what_others_could_have_written_or_nobody_understands_agrees_to_nothing(
    tmp_path: Path, home: Path, spoil: str
) -> None:
    agree(tmp_path, home, {"http": "x:1"}, now_ms=1)
    file = home / FILE
    if spoil == "rights":
        file.chmod(0o620)
    elif spoil == "nonsense":
        file.write_bytes(b'{"a": [')
    else:
        moved = file.rename(tmp_path / "moved")
        if spoil == "link":
            file.symlink_to(moved)
        elif spoil == "folder":
            file.mkdir()
        else:
            os.mkfifo(file, 0o600)
    assert all_agreed(home) == {}
    assert not agreed_for(tmp_path, home).trusts("http", "x:1")


def test_agreements_at_the_same_time_are_all_kept(tmp_path: Path, home: Path) -> None:
    projects = [tmp_path / str(number) for number in range(8)]
    threads = [
        threading.Thread(target=agree, args=(one, home, {"http": "x:1"}), kwargs={"now_ms": 1}) for one in projects
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(all_agreed(home)) == 8

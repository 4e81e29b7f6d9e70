"""The machine's key: made once, the same for everybody who asks, and never one that others could have written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.hooks.provenance import own_key
from handrail.kernel.errors import PlaceUnusable
from handrail.outside.machine_key import KEY_FILE, known_key, machine_key


def test_it_is_made_once_and_private(tmp_path: Path) -> None:
    assert known_key(tmp_path) is None
    assert own_key(str(tmp_path)) is None
    before = os.umask(0)
    try:
        made = machine_key(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / KEY_FILE).parent.stat().st_mode & 0o777 == 0o700
    hooks = own_key(str(tmp_path))
    assert hooks is not None
    assert {machine_key(tmp_path).mark_name, hooks.mark_name} == {made.mark_name}


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from handrail.outside.machine_key import machine_key; "
        "sys.stdin.read(1); print(machine_key(Path(sys.argv[1])).mark_name)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({process.communicate("x")[0] for process in started}) == 1


def test_one_that_others_could_only_read_is_closed_to_them(tmp_path: Path) -> None:
    made = machine_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)
    assert machine_key(tmp_path).mark_name == made.mark_name
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wrong", ["link", "folder", "writable", "short", "no home"])
def test_what_may_be_somebody_elses_is_refused(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / KEY_FILE
    machine_key(tmp_path)
    if wrong == "link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    elif wrong == "folder":
        file.unlink()
        file.mkdir()
    elif wrong == "writable":
        file.parent.chmod(0o755)
        file.chmod(0o666)
    elif wrong == "short":
        file.write_text("00\n", encoding="ascii")
    else:
        file.unlink()
        file.parent.rmdir()
        file.parent.write_text("no folder", encoding="ascii")
    with pytest.raises(PlaceUnusable) as refused:
        machine_key(tmp_path)
    assert refused.value.hint
    assert own_key(str(tmp_path)) is None


def test_a_folder_that_others_could_write_to_is_closed(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail").chmod(0o777)
    machine_key(tmp_path)
    assert (tmp_path / ".handrail").stat().st_mode & 0o777 == 0o755

"""`handrail demo`: the same lines every time, a gate that you answer, and nothing left behind however it ends.

`python -m tests.demo.test_demo` writes the golden file anew.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import click.testing
import pytest

from handrail.surfaces.cli.main import cli

GOLDEN = Path(__file__).parent.parent / "golden" / "demo.txt"
MOST_CPU_S = 20
PATIENCE_S = 60
PRESS_AGAIN_S, PRESSES = 5, 5
GATE = "Your answer (approve, reject, abandon)"


def normalised(text: str) -> str:
    """Without what differs from play to play: the folder, the gate's id, the day."""
    text = re.sub(r"\S*/handrail-demo-\w+", "FOLDER", text)
    text = re.sub(r"\bgate_[0-9a-z]{26}\b", "gate_ID", text)
    return re.sub(r"\.specs/\d{8}-", ".specs/DAY-", text)


def environment(temporary: Path) -> dict[str, str]:
    """A person's own home and settings, none of which may matter or be touched."""
    home = temporary / "own-home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[core]\n\thooksPath = nowhere\n[init]\n\tdefaultBranch = other\n")
    folder = temporary / "temporary"
    folder.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL_", "GIT_"))}
    return {**kept, "HOME": str(home), "TMPDIR": str(folder), "COLUMNS": "80", "HANDRAIL_PROFILE": "workflowlookup"}


def played(temporary: Path, *options: str) -> subprocess.CompletedProcess[str]:
    project = temporary / "own-project"
    project.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "handrail", "demo", *options]
    env = environment(temporary)
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=project, timeout=120)


def everything(temporary: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(temporary)): path.read_bytes() if path.is_file() else None for path in temporary.rglob("*")
    }


def test_a_headless_play_is_the_golden_one_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = played(tmp_path, "--headless")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert normalised(done.stdout) == GOLDEN.read_text(encoding="utf-8")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < MOST_CPU_S
    assert sorted(everything(tmp_path)) == ["own-home", "own-home/.gitconfig", "own-project", "temporary"]


def test_what_is_kept_is_a_real_project(tmp_path: Path) -> None:
    done = played(tmp_path, "--headless", "--keep")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "temporary").iterdir()
    assert f"The folder is kept: {folder.resolve()}" in done.stdout
    project = folder / "words"
    for command in ("up", "watch"):
        assert f"`handrail {command} --root {project.resolve()}`" in done.stdout
    runner = click.testing.CliRunner(env={"HOME": str(tmp_path / "own-home"), "COLUMNS": "120"})
    verified = runner.invoke(cli, ["db", "verify", "--root", str(project)])
    assert (verified.exit_code, verified.output) == (0, "ledger and tables agree\n")
    with contextlib.closing(apsw.Connection(str(project / ".handrail" / "handrail.db"))) as connection:
        ((events,),) = connection.execute("SELECT count(*) FROM event")
    assert f"Ledger  {events} events, verified" in done.stdout
    (tmp_path / "text").write_text("b a b\n")
    words = [sys.executable, "-m", "words", str(tmp_path / "text")]
    counted = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True)
    assert counted.stdout == "2 b\n1 a\n", "what the agents merged works"


# -- the gate ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> click.testing.CliRunner:
    env = environment(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", env["TMPDIR"])
    return click.testing.CliRunner(env={name: env[name] for name in ("HOME", "COLUMNS")})


def test_what_is_rejected_is_designed_again_with_what_you_said(runner: click.testing.CliRunner, tmp_path: Path) -> None:
    home = os.environ.get("HOME")
    done = runner.invoke(cli, ["demo", "--speed", "0"], input="perhaps\nreject\nKeep the plain output\napprove\n")
    assert done.exit_code == 0, done.output
    text = done.output
    assert "'perhaps' is not one of" in text
    assert 'You     answer checkpoint-a: reject, "Keep the plain output"' in text
    assert "1. Keep the plain output" in text.partition("answer checkpoint-a: reject")[2]
    assert text.partition("What comes next")[0].count("Design Review: APPROVE") == 2
    assert "You     answer checkpoint-a: approve\n" in text
    assert text.count("tries to approve it herself") == 1
    assert list((tmp_path / "temporary").iterdir()) == []
    assert os.environ.get("HOME") == home


def test_a_run_may_be_given_up_at_the_gate(runner: click.testing.CliRunner) -> None:
    done = runner.invoke(cli, ["demo", "--speed", "0"], input="abandon\n")
    assert done.exit_code == 0, done.output
    assert "You     answer checkpoint-a: abandon" in done.output
    assert "verified" in done.output


def test_where_nobody_can_answer_it_stops_and_clears_up(runner: click.testing.CliRunner, tmp_path: Path) -> None:
    done = runner.invoke(cli, ["demo", "--speed", "0"], input="")
    assert done.exit_code == 1
    assert "Stopped." in done.output
    assert "The folder is removed: " in done.output
    assert list((tmp_path / "temporary").iterdir()) == []


# -- a terminal -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def on_a_terminal(temporary: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "handrail", "demo", *options]
    env = environment(temporary)
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=temporary) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal: int, text: str = "") -> str:
    """What is shown until this is; without it, all there is."""
    found = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while not text or text.encode() not in found:
            assert select.select([terminal], [], [], PATIENCE_S)[0], f"nothing more came after {found.decode()}"
            found += os.read(terminal, 65536)
    return found.decode()


def press_ctrl_c(process: subprocess.Popen[bytes], terminal: int) -> None:
    """Again where nothing is said to it: a signal in the instant before Python begins to read a line is not seen
    until the next one."""
    for _ in range(PRESSES):
        process.send_signal(signal.SIGINT)
        if select.select([terminal], [], [], PRESS_AGAIN_S)[0]:
            return


@pytest.mark.parametrize(("moment", "speed"), [(GATE, "0"), ("claims", "1")])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, moment: str, speed: str) -> None:
    """At the gate, and in the middle of a pause."""
    with on_a_terminal(tmp_path, "--speed", speed) as (process, terminal):
        shown = read_until(terminal, moment)
        assert moment in shown
        press_ctrl_c(process, terminal)
        rest = read_until(terminal)
        assert process.wait(60) == 1, rest
    assert "Stopped." in rest
    assert "Traceback" not in rest
    assert "The folder is removed: " in rest
    assert list((tmp_path / "temporary").iterdir()) == []


def test_ctrl_c_with_keep_says_where_the_folder_lies(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path, "--speed", "0", "--keep") as (process, terminal):
        read_until(terminal, GATE)
        press_ctrl_c(process, terminal)
        rest = read_until(terminal).replace("\r\n", "")
        assert process.wait(60) == 1, rest
    (folder,) = (tmp_path / "temporary").iterdir()
    assert f"The folder is kept: {folder.resolve()}" in rest
    assert (folder / "words" / ".git").is_dir()


def test_without_git_it_says_so_in_one_line(runner: click.testing.CliRunner, tmp_path: Path) -> None:
    done = runner.invoke(cli, ["demo"], env={"PATH": str(tmp_path)})
    assert done.exit_code == 1
    assert done.output == "The demo needs git, and there is none on the PATH.\n"
    assert list((tmp_path / "temporary").iterdir()) == []


def main() -> None:
    """Writes the golden file."""
    with tempfile.TemporaryDirectory() as folder:
        done = played(Path(folder), "--headless")
        done.check_returncode()
        GOLDEN.write_text(normalised(done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main()

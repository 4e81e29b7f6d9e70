"""How a command ends whose reader has left: quietly. (Ctrl-C is in tests/surfaces/cli/test_message.py.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HANDRAIL = [sys.executable, "-m", "handrail"]


@pytest.mark.parametrize("words", [("tools", "--profile", "all"), ("guide", "show", "bug-hunt"), ("settings",)])
def test_a_reader_that_leaves_early_is_no_trouble(tmp_path: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # whoever reads has left before anything is written
    asked = [*HANDRAIL, *words, "--root", str(tmp_path)]
    environment = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run(asked, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")

"""The official TypeScript clients, 1.x and 2.x, start `handrail serve` and finish a guide.

Their packages are installed from `typescript/package.json` into `.cache/`, once per change of that file.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.clients.walk import CONTEXT, GUIDE, OUTPUTS, REJECTED

pytestmark = pytest.mark.node

SOURCES = Path(__file__).parent / "typescript"
CACHE = Path(__file__).parent.parent.parent / ".cache"
INSTALL = ["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
INSTALL_DEADLINE_S = 300.0
DEADLINE_S = 60.0

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
CLIENTS = [("sdk-1", "legacy"), ("client-2", "legacy"), ("client-2", "auto"), ("client-2", STATELESS)]
GUIDE_TOOLS = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]

Seen = dict[str, Any]


@pytest.fixture(scope="session")
def client_folder() -> Path:
    """Where client.mjs finds its packages. Session scope: npm runs in the user's own home, before a test hides it."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("no Node: the TypeScript clients need node and npm on the PATH")
    folder = CACHE / "typescript-clients"
    folder.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the test workers share the folder
        install(npm, folder)
    return folder


def install(npm: str, folder: Path) -> None:
    wanted = (SOURCES / "package.json").read_text()
    stamp = folder / "installed.json"
    script, copied = (SOURCES / "client.mjs").read_text(), folder / "client.mjs"
    if not copied.exists() or copied.read_text() != script:  # another worker may be running it
        copied.write_text(script)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    (folder / "package.json").write_text(wanted)
    try:
        done = subprocess.run(
            [npm, *INSTALL], cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_DEADLINE_S
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm install took longer than {INSTALL_DEADLINE_S:.0f} s")
    if done.returncode != 0:
        pytest.skip(f"npm install failed: {(done.stderr.strip() or 'no reason given').splitlines()[0]}")
    stamp.write_text(wanted)


def walk(client_folder: Path, cwd: Path, client: str, mode: str, *options: str) -> Seen:
    """What the client saw, from listing the tools to the end of the guide."""
    task = {
        "command": sys.executable,
        "args": ["-m", "handrail", "serve", *options],
        "cwd": str(cwd),
        "env": {},
        "guide": GUIDE,
        "context": CONTEXT,
        "outputs": OUTPUTS,
        "rejected": REJECTED,
    }
    done = subprocess.run(
        ["node", "client.mjs", client, mode],
        cwd=client_folder,
        input=msgspec.json.encode(task),
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return msgspec.json.decode(done.stdout, type=Seen)


@pytest.mark.parametrize(("client", "mode"), CLIENTS)
@pytest.mark.parametrize("profile", ["solo", "workflowlookup"])
def test_a_guide_is_finished(client_folder: Path, tmp_path: Path, client: str, mode: str, profile: str) -> None:
    seen = walk(client_folder, tmp_path, client, mode, "--profile", profile)
    if profile == "workflowlookup":
        assert seen["tools"] == GUIDE_TOOLS
    else:
        assert set(seen["tools"]) >= set(GUIDE_TOOLS)
    assert seen["server"] == ("handrail" if profile == "solo" else profile)
    assert seen["guide"] == GUIDE
    assert seen["walk"]["completed"] == list(OUTPUTS)
    assert seen["walk"]["last"]["isComplete"] is True
    assert seen["walk"]["verdicts"] == [{"valid": True, "issues": [], "suggestions": []}] * len(OUTPUTS)
    assert seen["rejected"]["valid"] is False
    assert len(seen["rejected"]["issues"]) == 3
    assert seen["transportErrors"] == []


@pytest.mark.parametrize(("client", "mode"), CLIENTS)
def test_an_unknown_guide_is_refused_in_the_way_of_the_era(
    client_folder: Path, tmp_path: Path, client: str, mode: str
) -> None:
    seen = walk(client_folder, tmp_path, client, mode)
    if client != "sdk-1":  # 1.x keeps the version to itself
        assert seen["protocolVersion"] == (HANDSHAKE if mode == "legacy" else STATELESS)
    if mode == "legacy":
        assert seen["refusal"]["error"]["code"] == -32001
        assert seen["refusal"]["error"]["data"]["workflowId"] == "no-such-guide"
    else:
        assert seen["refusal"]["result"]["isError"] is True
        assert seen["refusal"]["result"]["structuredContent"]["error"]["code"] == "WORKFLOW_NOT_FOUND"


def test_every_published_pattern_is_one_that_javascript_reads(client_folder: Path, tmp_path: Path) -> None:
    seen = walk(client_folder, tmp_path, "sdk-1", "legacy", "--profile", "all", "--output-schemas")
    assert seen["foreignPatterns"] == []

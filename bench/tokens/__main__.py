"""`python -m bench.tokens`: what a client that loads every schema pays before its first word, in o200k tokens.

Counted is the JSON of the `tools` array as the server sends it, without the annotations, which clients keep to
themselves, and the text of its instructions. Public servers are installed anew into a temporary folder, so that the
table is of one run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec
from rs_bpe.bpe import openai

from bench.environments import NotInstalled
from bench.started import Stuck
from bench.tokens.listing import Told, told_by
from bench.tokens.peers import PEERS, environ_of, installed, started_with
from handrail.catalog import PROFILES

HEAD = ("| server | tools | `tools/list` | per tool | instructions |", "|---|--:|--:|--:|--:|")


def o200k(text: str) -> int:
    return len(openai.o200k_base().encode(text))


def row(name: str, told: Told) -> str:
    """A line of the table."""
    read = [{name: tool[name] for name in tool if name != "annotations"} for tool in told.tools]
    listed = o200k(msgspec.json.encode(read).decode())
    each = listed / max(1, len(told.tools))
    return f"| {name} | {len(told.tools)} | {listed:,} | {each:.0f} | {o200k(told.instructions)} |"


def ours(home: Path) -> list[str]:
    rows = []
    for profile in PROFILES:
        place = home / f"handrail-{profile}"
        place.mkdir()
        command = [sys.executable, "-m", "handrail", "serve", "--profile", profile]
        rows.append(row(f"handrail, profile {profile}", told_by(command, place, {"HOME": str(place)})))
    return rows


def peers(home: Path) -> tuple[list[str], list[str]]:
    """The rows of those that could be installed and asked, and a line for each that could not."""
    rows, missing = [], []
    for number, peer in enumerate(PEERS):
        place = home / f"peer-{number}"
        place.mkdir()
        try:
            print(f"installing {peer.version} …", file=sys.stderr)
            command = started_with(peer, installed(peer, home), place)
            rows.append(row(peer.name, told_by(command, place, environ_of(peer, place))))
        except (NotInstalled, Stuck) as why:
            missing.append(f"{peer.name}: {why}")
    return rows, missing


def main() -> int:
    options = argparse.ArgumentParser(prog="bench.tokens", description=__doc__)
    options.add_argument("--quick", action="store_true", help="ours only: nothing is installed")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-tokens-") as folder:
        home = Path(folder)
        rows = ours(home)
        others, missing = ([], []) if given.quick else peers(home)
    print("\n".join([*HEAD, *rows, *others, "", *missing]))
    if not given.quick:
        print("pinned:", ", ".join(dict.fromkeys(peer.version for peer in PEERS)))
    return 0 if given.quick or len(others) >= 3 else 1


if __name__ == "__main__":
    sys.exit(main())

"""`bench/tokens` counts what a server sends: over all pages, whatever else it says, and refuses one that ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rs_bpe.bpe import openai

from bench.started import Stuck
from bench.tokens.__main__ import row
from bench.tokens.listing import Told, told_by

TWO_PAGES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    params = asked.get("params", {})
    if asked["method"] == "initialize":
        result = {"instructions": "Hold on."}
    elif "cursor" in params:
        result = {"tools": [{"name": "b"}]}
    else:
        result = {"tools": [{"name": "a"}], "nextCursor": "2"}
    print("listening")
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "method": "roots/list"}))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_all_pages_are_counted_and_other_words_are_not(tmp_path: Path) -> None:
    told = told_by([sys.executable, "-c", TWO_PAGES], tmp_path, {})
    assert told == Told([{"name": "a"}, {"name": "b"}], "Hold on.")


def test_a_server_that_ends_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(Stuck):
        told_by([sys.executable, "-c", "import sys; sys.stdin.readline()"], tmp_path, {})


def test_a_row_says_tools_tokens_and_instructions() -> None:
    tools = [{"name": "hello"}, {"name": "world"}]
    listed = len(openai.o200k_base().encode('[{"name":"hello"},{"name":"world"}]'))
    assert row("x", Told(tools, "Hold on.")) == f"| x | 2 | {listed} | {listed / 2:.0f} | 3 |"

"""What the server says of itself is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import __version__
from handrail.catalog import ENABLE_FLAGS, TOOLSETS
from handrail.toolsets.registry.introspection import FEATURES
from tests.process.peer import handrail_serve
from tests.world import SURFACES, World


def info(tmp_path: Path, **given: Any) -> dict[str, Any]:
    outcome, value = SURFACES["handler"](World(tmp_path, **given), "mcp_info", {})
    assert outcome == "ok"
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return result


def test_every_feature_of_the_document_is_there_and_only_what_runs_is_on(tmp_path: Path) -> None:
    features = info(tmp_path)["features"]
    assert len(features) == 24
    assert [name for name, on in features.items() if on] == [
        "enableBlackboard",
        "enableKnowledge",
        "enableCausalMemory",
        "enableValueGuard",
        "enableMcpIntrospection",
        "enableResources",
        "enableEventsBus",
        "enableCancellation",
        "enableTx",
        "enableBulk",
        "enableIdempotency",
        "enableLocks",
        "enableDiffPatch",
        "enablePlanLifecycle",
        "enableChildOpsFine",
        "enableValuesExplain",
        "enableAssist",
    ]


@pytest.mark.parametrize("flag", ENABLE_FLAGS)
def test_each_flag_turns_on_its_module_and_no_other(tmp_path: Path, flag: str) -> None:
    features = info(tmp_path, toolsets="introspection", enable=[flag])["features"]
    there = {toolset.name for toolset in TOOLSETS} & {"introspection", ENABLE_FLAGS[flag]}
    assert {name for name, on in features.items() if on} == {name for name, made in FEATURES.items() if made in there}


def test_each_flag_of_the_document_has_its_toggle() -> None:
    toggles = {toolset for toolset in FEATURES.values() if toolset}
    assert set(ENABLE_FLAGS.values()) <= toggles


def test_the_limits_are_the_ones_kept(tmp_path: Path) -> None:
    """The message limit in force is the one reported: a message one byte larger is refused, and says so."""
    with handrail_serve(tmp_path, "--set", "max_message_bytes=2048") as server:
        server.initialize()
        limit = server.ask("mcp_info")["result"]["limits"]["maxInputBytes"]
        assert limit == 2048
        start = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
        for size, refused in ((limit, False), (limit + 1, True)):
            server.send(start + b"a" * (size - len(start) - 3) + b'"}}')
            assert ("error" in server.reply()) is refused


def test_the_identity_is_the_one_in_the_handshake(tmp_path: Path) -> None:
    with handrail_serve(tmp_path) as server:
        identity = server.initialize()["result"]["serverInfo"]
        told = server.ask("mcp_info")["result"]["server"]
    assert (told["name"], told["version"]) == (identity["name"], identity["version"]) == ("handrail", __version__)
    assert told["mcpVersion"] == "2026-07-28"


@pytest.mark.parametrize("profile", ["solo", "all"])
def test_capabilities_name_exactly_the_tools_that_are_listed(tmp_path: Path, profile: str) -> None:
    with handrail_serve(tmp_path, "--profile", profile) as server:
        server.initialize()
        listed = [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]
        told = server.ask("mcp_capabilities")["result"]
    assert list(told["schemas"]) == listed
    with_tools = {space["name"] for space in told["namespaces"]} - {"idempotency"}  # which is an argument, not a tool
    assert {entry["namespace"] for entry in told["schemas"].values()} == with_tools


def test_what_is_told_is_what_is_configured(tmp_path: Path) -> None:
    world = World(tmp_path, event_history=500, max_wait_ms=3000, max_children=4)
    _, info = SURFACES["tools/call"](world, "mcp_info", {})
    assert info["limits"]["maxEventHistory"] == 500
    assert info["limits"]["defaultTimeoutMs"] == info["timings"]["defaultTimeoutMs"] == 3000
    assert info["safety"] == {"maxChildren": 4, "memoryLimitMb": 0, "cpuPercent": 0}
    _, capabilities = SURFACES["tools/call"](world, "mcp_capabilities", {})
    assert capabilities["limits"] == {"maxEventHistory": 500}

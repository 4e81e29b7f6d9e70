"""Every exchange of guide.md, played against a real `handrail serve --profile workflowlookup`.

The transcripts hold the document's own text. A reply must have every key the document shows, in the same types, with
equal values where the document determines them; more keys are welcome (RULINGS, first paragraph). Where a reply
differs on purpose, DEVIATIONS names the place, what stands there instead, and which ruling asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.examples import shows
from tests.process.peer import ServerProcess, handrail_serve

FOLDER = Path(__file__).parent / "golden" / "guide_md"
TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl"))

DEVIATIONS: dict[tuple[str, str], tuple[Any, str]] = {
    ("unsupported_version", "error.data.supportedVersions"): (
        ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"],
        "RULING 7: all four revisions that have a handshake are supported",
    ),
    ("errors", "error.data.details"): (..., "the wording of a parse error is the parser's own; the key and type hold"),
    ("tool_discovery", "result.tools[1].outputSchema.$ref"): (
        None,
        "RULING 10: published inline with `type: object` and `$id`, since a bare $ref is not a valid MCP schema",
    ),
    ("tool_discovery", "result.tools[1].examples.response.description"): (
        "Guides through task understanding → planning → implementation → verification",
        "the document gives one guide two descriptions; the list entry's is the one the issue asks for",
    ),
    ("tool_discovery", "result.tools[2].examples.response.step.title"): (
        "Deep understanding of task and codebase",
        "the document gives one step two titles; workflow_get's stands",
    ),
    ("tool_discovery", "result.tools[2].examples.response.step.prompt"): (
        "Analyze the task description...",
        "the document gives one step two prompts; workflow_get's stands",
    ),
    ("tool_examples", "result.description"): (
        "Guides through task understanding → planning → implementation → verification",
        "as in tool_discovery",
    ),
    ("tool_examples", "result.step.title"): ("Deep understanding of task and codebase", "as in tool_discovery"),
    ("tool_examples", "result.step.prompt"): ("Analyze the task description...", "as in tool_discovery"),
}


def lines_of(transcript: Path) -> Iterator[tuple[str, Any]]:
    for line in transcript.read_text(encoding="utf-8").splitlines():
        ((direction, message),) = msgspec.json.decode(line).items()
        yield direction, message


def differences(story: str, shown: Any, real: Any, path: str = "") -> Iterator[str]:
    if (story, path) in DEVIATIONS:
        instead, _ = DEVIATIONS[story, path]
        if instead is ...:
            if type(real) is not type(shown):
                yield f"{path}: {real!r} has another type than {shown!r}"
        elif instead is not None and not shows(instead, real):
            yield f"{path}: {real!r} is not the recorded deviation {instead!r}"
    elif isinstance(shown, dict):
        if not isinstance(real, dict):
            yield f"{path}: {real!r} is no object"
            return
        for key, value in shown.items():
            inner = f"{path}.{key}" if path else key
            if key not in real and DEVIATIONS.get((story, inner), (0,))[0] is not None:
                yield f"{inner} is missing"
            else:
                yield from differences(story, value, real.get(key), inner)
    elif isinstance(shown, list) and shown and isinstance(shown[0], dict) and path.endswith("tools"):
        if [tool["name"] for tool in shown] != [tool["name"] for tool in real]:
            yield f"{path}: other tools or another order"
        for number, (one, other) in enumerate(zip(shown, real, strict=False)):
            yield from differences(story, one, other, f"{path}[{number}]")
    elif not shows(shown, real):
        yield f"{path}: {real!r} instead of {shown!r}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with handrail_serve(tmp_path, "--profile", "workflowlookup") as process:
        yield process


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_an_exchange_of_the_document_comes_out_as_written(transcript: Path, server: ServerProcess) -> None:
    found: list[str] = []
    for direction, message in lines_of(transcript):
        if direction == "→":
            server.send(message)
        elif direction == "→ raw":
            server.send(message.encode())
        else:
            found += differences(transcript.stem, message, server.reply())
    assert found == []


def test_every_recorded_deviation_is_real(tmp_path: Path) -> None:
    """A deviation nobody needs any more must not stay on the list: without it, its transcript has to differ."""
    unused = set(DEVIATIONS)
    for story, path in list(unused):
        shown = [message for direction, message in lines_of(FOLDER / f"{story}.jsonl") if direction == "←"]
        if any(_has(message, path) for message in shown):
            unused.discard((story, path))
    assert unused == set()


def _has(message: Any, path: str) -> bool:
    for part in path.replace("]", "").replace("[", ".").split("."):
        if isinstance(message, list):
            message = message[int(part)] if int(part) < len(message) else None
        elif isinstance(message, dict) and part in message:
            message = message[part]
        else:
            return False
    return True


def test_the_four_tools_are_exactly_the_documents(server: ServerProcess) -> None:
    server.initialize()
    tools = server.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]
    published = tools[1]["outputSchema"]
    assert (published["type"], published["$id"]) == ("object", "workflow.schema.json")


def test_the_input_schemas_equal_the_documents_to_the_letter(server: ServerProcess) -> None:
    server.initialize()
    real = server.ask("tools/list")["result"]["tools"]
    ((_, listed),) = [
        line for line in lines_of(FOLDER / "tool_discovery.jsonl") if "tools" in line[1].get("result", {})
    ]
    for shown, tool in zip(listed["result"]["tools"], real, strict=True):
        schema = tool["inputSchema"]
        if tool["name"] == "workflow_validate":  # issue: an optional context, so that rules' conditions can see it
            assert schema["properties"].pop("context")["type"] == "object"
        assert schema == shown["inputSchema"]
        if tool["name"] not in ("workflow_get", "workflow_list"):
            assert tool["outputSchema"] == shown["outputSchema"]


def test_before_initialize_nothing_is_served_and_initialize_still_works(server: ServerProcess) -> None:
    refused = server.ask("workflow_list")
    assert (refused["error"]["code"], refused["error"]["data"]["details"]) == (-32600, "server not initialized")
    assert server.initialize()["result"]["serverInfo"]["name"] == "workflowlookup"


def test_both_call_styles_give_the_same_result(server: ServerProcess) -> None:
    server.initialize()
    bare = server.ask("workflow_list")["result"]
    called = server.ask("tools/call", {"name": "workflow_list", "arguments": {}})["result"]
    assert called["structuredContent"] == bare
    assert msgspec.json.decode(called["content"][0]["text"]) == bare

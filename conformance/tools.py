"""The plain tools the runner calls: contents, errors, progress, log lines, schemas, headers, changing lists.

Tools that ask the client are in `asking_tools.py`, those that run on as tasks in `task_tools.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.samples import picture, sound
from conformance.toolbox import Tool, answer, failure, pause, text_block
from handrail.protocol.exchange import Exchange

DIALECT_2020_12: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Keywords that a server with a schema model of its own tends to lose on the way to `tools/list`."""

MIRRORED_IN_HEADERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "description": "Where to look", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "description": "How soon", "x-mcp-header": "Priority"},
        "dry_run": {"type": "boolean", "description": "Only look", "x-mcp-header": "DryRun"},
        "query": {"type": "string", "description": "What to look for"},
    },
    "required": ["region"],
}
"""Arguments that travel in `Mcp-Param-*` headers too and must agree with them."""


def plain_tools() -> list[Tool]:
    """The first one takes no arguments and always succeeds: the runner calls whichever tool it finds first."""
    return [
        Tool("test_simple_text", "Says one sentence", _simple_text),
        Tool("test_image_content", "Shows a picture", _image),
        Tool("test_audio_content", "Plays a sound", _audio),
        Tool("test_embedded_resource", "Hands over a resource", _embedded_resource),
        Tool("test_multiple_content_types", "Says, shows and hands over", _mixed),
        Tool("test_error_handling", "Runs and fails", _error),
        Tool("test_tool_with_progress", "Reports its progress", _progress, waits=True),
        Tool("test_tool_with_logging", "Sends three log lines over a while", _slow_log, waits=True),
        Tool("test_logging_tool", "Sends a log line", _log),
        Tool("test_reconnection", "Drops its stream and answers on the next", _reconnection, waits=True),
        Tool("json_schema_2020_12_tool", "Takes what JSON Schema 2020-12 can say", _taken, DIALECT_2020_12),
        Tool("test_header_arguments", "Takes arguments that headers repeat", _taken, MIRRORED_IN_HEADERS),
    ]


def trigger(name: str, description: str, change: Callable[[], None]) -> Tool:
    """A tool that changes one of the server's own lists."""

    def handle(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
        change()
        return answer("The list has changed.")

    return Tool(name, description, handle)


def changing_tool() -> Tool:
    return Tool("test_changing_tool", "Comes and goes", _simple_text)


# -- contents --------------------------------------------------------------------------------------------------------


def _simple_text(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return answer("This is a simple text response for testing.")


def _image(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": [picture()]}


def _audio(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": [sound()]}


def _embedded_resource(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    resource = {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }
    return {"content": [{"type": "resource", "resource": resource}]}


def _mixed(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    resource = {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    }
    blocks = [text_block("Multiple content types test:"), picture(), {"type": "resource", "resource": resource}]
    return {"content": blocks}


def _error(_exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return failure("This tool intentionally returns an error for testing")


def _taken(_exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return answer(f"Took {', '.join(arguments) or 'nothing'}.")


# -- what is said before the reply -----------------------------------------------------------------------------------


def _progress(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.progress(0, 100)
    for percent in (50, 100):
        pause(exchange, 0.05)
        exchange.progress(percent, 100)
    return answer("Finished, with progress.")


def _slow_log(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.log("info", "Tool execution started")
    pause(exchange, 0.05)
    exchange.log("info", "Tool processing data")
    pause(exchange, 0.05)
    exchange.log("info", "Tool execution completed")
    return answer("Finished, with log lines.")


def _log(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.log("info", "A line for those who asked for it", logger="conformance")
    return answer("Logged.")


def _reconnection(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.close_stream()
    pause(exchange, 0.1)
    return answer("Answered after the stream was closed.")

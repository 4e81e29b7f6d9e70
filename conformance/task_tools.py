"""Tools that run on after their reply, as the tasks extension has them, and one that never does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.asking_tools import NAME_FORM, field
from conformance.toolbox import Tool, answer, failure, pause
from handrail.protocol.client_requests import elicitation
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.wire import INTERNAL_ERROR, RpcError

WHO = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
HOW_LONG = {
    "type": "object",
    "properties": {"seconds": {"type": "number", "minimum": 0}, "label": {"type": "string"}},
    "required": ["seconds"],
}
WHICH_FILE = {"type": "object", "properties": {"filename": {"type": "string"}}, "required": ["filename"]}
CONFIRM_FORM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


def task_tools() -> list[Tool]:
    may, must = TaskUse.MAY, TaskUse.MUST
    return [
        Tool("greet", "Greets at once, never as a task", _greet, WHO),
        Tool("slow_compute", "Takes as long as it is told", _slow_compute, HOW_LONG, may, waits=True),
        Tool("failing_job", "Runs a while and fails", _failing_job, task_use=must, waits=True),
        Tool("protocol_error_job", "Breaks the server's own rules", _protocol_error_job, task_use=may, waits=True),
        Tool("confirm_delete", "Asks before it would delete", _confirm_delete, WHICH_FILE, may, waits=True),
        Tool("multi_input", "Asks two things at once", _multi_input, task_use=may, waits=True),
        Tool("test_tool_with_task", "Asks first, then runs on", _ask_then_run_on, task_use=must, waits=True),
    ]


def _greet(_exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return answer(f"Hello, {arguments.get('name')}!")


def _slow_compute(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    seconds = float(arguments.get("seconds", 0))
    if seconds > 0:
        exchange.detach()
    pause(exchange, seconds)
    return answer(f"Computed {arguments.get('label', 'something')} in {seconds:g} s.")


def _failing_job(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.detach()
    pause(exchange, 1.0)
    return failure("The job failed, as it always does.")


def _protocol_error_job(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.detach()
    raise RpcError(INTERNAL_ERROR, "Internal error", {"details": "the job broke, as it always does"})


def _confirm_delete(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.detach()
    filename = arguments.get("filename")
    confirmed = field(exchange.elicit(f"Delete {filename}?", CONFIRM_FORM, key="confirm"), "confirm")
    return answer(f"{filename}: {'would be deleted' if confirmed == 'True' else 'kept'}.")


def _multi_input(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.detach()
    replies = exchange.ask(
        {
            "name": elicitation("What is your name?", NAME_FORM),
            "confirm": elicitation("Go on?", CONFIRM_FORM),
        }
    )
    return answer(f"{field(replies['name'], 'name')}: {field(replies['confirm'], 'confirm')}.")


def _ask_then_run_on(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    name = field(exchange.elicit("What is your name?", NAME_FORM, key="user_name"), "name")
    exchange.detach()
    pause(exchange, 0.1)
    return answer(f"Done for {name}.")

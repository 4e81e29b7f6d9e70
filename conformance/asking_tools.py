"""Tools that cannot answer before the client has: forms, model calls, roots. Each is written once for both eras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.toolbox import Tool, answer, as_json
from handrail.protocol.client_requests import ClientRequest, elicitation
from handrail.protocol.exchange import Exchange

NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR_FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
CONSENT_FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

CONTACT_FORM = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}

FORM_WITH_DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}
"""SEP-1034: every primitive type with a default."""

OPTIONS = ["option1", "option2", "option3"]
FORM_WITH_CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ]
            },
        },
    },
    "required": [],
}
"""SEP-1330: one of several and several of many, with and without titles, and the older spelling of titles."""

ROOTS = ClientRequest("roots/list", {})


def asking_tools() -> list[Tool]:
    prompt = _one_text("prompt", "The prompt to send to the model")
    message = _one_text("message", "The message to show the person")
    asked = "test_input_required_result_"
    return [
        Tool("test_sampling", "Asks the client's model", _sampling, prompt, waits=True),
        Tool("test_elicitation", "Asks the person for name and address", _elicitation, message, waits=True),
        Tool("test_elicitation_sep1034_defaults", "A form with defaults", _defaults, waits=True),
        Tool("test_elicitation_sep1330_enums", "A form with choices", _choices, waits=True),
        Tool("test_missing_capability", "Needs a model at the client", _needs_a_model, waits=True),
        Tool("test_streaming_elicitation", "Reports, then asks", _report_then_ask, waits=True),
        Tool(asked + "elicitation", "Asks for a name", _greet_by_name, waits=True),
        Tool(asked + "sampling", "Asks the model for a capital", _capital, waits=True),
        Tool(asked + "list_roots", "Asks for the roots", _roots, waits=True),
        Tool(asked + "request_state", "Asks for consent", _consent, waits=True),
        Tool(asked + "multiple_inputs", "Asks for three things at once", _three_at_once, waits=True),
        Tool(asked + "multi_round", "Asks twice, one after the other", _two_rounds, waits=True),
        Tool(asked + "tampered_state", "Asks for consent, and trusts only its own state", _consent, waits=True),
        Tool(asked + "capabilities", "Asks only what the client can answer", _what_can_be_answered, waits=True),
    ]


def model_call(text: str, max_tokens: int = 100) -> ClientRequest:
    """A question to the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return ClientRequest("sampling/createMessage", {"messages": [message], "maxTokens": max_tokens})


def field(reply: Mapping[str, Any], key: str) -> str:
    """One field of a filled-in form; what was not filled in is said so."""
    content = reply.get("content")
    return str(content.get(key, "nothing")) if isinstance(content, dict) else "nothing"


def _one_text(name: str, description: str) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    }


def _outcome(reply: Mapping[str, Any]) -> str:
    return f"action={reply.get('action')}, content={as_json(reply.get('content', {}))}"


def _said(reply: Mapping[str, Any]) -> str:
    return field(reply, "text")


# -- one question ----------------------------------------------------------------------------------------------------


def _sampling(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.ask({"model": model_call(str(arguments.get("prompt", "")))})["model"]
    return answer(f"LLM response: {_said(reply)}")


def _elicitation(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.elicit(str(arguments.get("message", "")), CONTACT_FORM)
    return answer(f"User response: {_outcome(reply)}")


def _defaults(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.elicit("Please review what is filled in", FORM_WITH_DEFAULTS)
    return answer(f"Elicitation completed: {_outcome(reply)}")


def _choices(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.elicit("Please choose", FORM_WITH_CHOICES)
    return answer(f"Elicitation completed: {_outcome(reply)}")


def _needs_a_model(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return answer(_said(exchange.ask({"model": model_call("Are you there?")})["model"]))


def _report_then_ask(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    exchange.progress(1, 2, "about to ask")
    return answer(f"Elicitation completed: {_outcome(exchange.elicit('What is your name?', NAME_FORM))}")


def _greet_by_name(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.elicit("What is your name?", NAME_FORM, key="user_name")
    return answer(f"Hello, {field(reply, 'name')}!")


def _capital(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    question = {"capital_question": model_call("What is the capital of France?")}
    return answer(_said(exchange.ask(question)["capital_question"]))


def _roots(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    roots = exchange.ask({"client_roots": ROOTS})["client_roots"].get("roots")
    return answer(f"Roots: {as_json(roots)}")


def _consent(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    reply = exchange.elicit("Please confirm", CONSENT_FORM, key="confirm")
    return answer(f"state-ok, confirmed: {field(reply, 'ok')}")


# -- several questions -----------------------------------------------------------------------------------------------


def _three_at_once(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    replies = exchange.ask(
        {
            "user_name": elicitation("What is your name?", NAME_FORM),
            "greeting": model_call("Generate a greeting", max_tokens=50),
            "client_roots": ROOTS,
        }
    )
    roots = as_json(replies["client_roots"].get("roots"))
    return answer(f"{_said(replies['greeting'])} {field(replies['user_name'], 'name')}, your roots: {roots}")


def _two_rounds(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    name = field(exchange.elicit("Step 1: What is your name?", NAME_FORM, key="step1"), "name")
    color = field(exchange.elicit("Step 2: What is your favorite color?", COLOR_FORM, key="step2"), "color")
    return answer(f"{name} likes {color}.")


def _what_can_be_answered(exchange: Exchange, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    every = {
        "sampling": model_call("Generate a greeting", max_tokens=50),
        "elicitation": elicitation("What is your name?", NAME_FORM),
        "roots": ROOTS,
    }
    replies = exchange.ask({name: request for name, request in every.items() if name in exchange.client_capabilities})
    return answer(f"Answered: {', '.join(replies) or 'nothing'}.")

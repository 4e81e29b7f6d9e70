"""Asks the person at the client by elicitation: a form that their client shows while a call runs or, for a stateless
request, between two of its rounds. The operation decides what is asked and what an answer does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from handrail.kernel.errors import InvalidParams
from handrail.operation import Call, Field, Operation, Question
from handrail.protocol.exchange import Exchange
from handrail.protocol.wire import RpcError
from handrail.surfaces.elicitation import OpenQuestions, filled

STATELESS_PUTS = 2
"""How often a stateless client gets the same question before it gets the plain result: without a limit, a client that
cannot show the question would never get further."""
_ROUND = "round"


def may_be_asked(operation: Operation[Any, Any], call: Call) -> bool:
    """Whether a person at the client may decide what this operation asks: not if decisions are made only outside it."""
    return operation.asks is not None and not call.humans_decide


class PersonAtClient:
    """Behind the `Person` port. `asked` belongs to the connection or, for clients without one, is kept by `name`."""

    def __init__(self, exchange: Exchange, asked: OpenQuestions, name: str = "") -> None:
        self._exchange = exchange
        self._asked = asked
        self._name = name

    def earlier(self) -> Mapping[str, Any] | None:
        noted = self._exchange.answers.noted(_ROUND)
        return noted["told"] if noted is not None else None

    def is_open_to(self, question: Question) -> bool:
        return self._was_put(question) or self._asked.may_put((self._name, question.id))

    def ask(self, question: Question, told: Mapping[str, Any], wait_s: Callable[[], float]) -> Mapping[str, str] | None:
        key = (self._name, question.id)
        if not self._was_put(question) and not self._asked.begin(key):
            return None
        declined = False
        try:
            answer = self._ask(question, told, wait_s)
            if answer is None:
                return None
            declined = answer.get("action") != "accept"
            return None if declined else filled(question, answer.get("content"))
        except (InvalidParams, RpcError) as problem:  # a client that fails now would fail every time
            declined = True
            if isinstance(problem, RpcError):
                return None
            raise
        finally:
            self._asked.end(key, declined=declined)

    def _was_put(self, question: Question) -> bool:
        """Whether an earlier round of this call ended in this question."""
        noted = self._exchange.answers.noted(_ROUND)
        return noted is not None and noted["question"] == question.id

    def _ask(self, question: Question, told: Mapping[str, Any], wait_s: Callable[[], float]) -> dict[str, Any] | None:
        self._exchange.answers.note(_ROUND, {"question": question.id, "told": dict(told)})
        return self._exchange.elicit_while(wait_s, question.message, form_schema(question), key=question.id)


def form_schema(question: Question) -> dict[str, Any]:
    """The form in the protocol's terms: flat, with simple fields."""
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in question.form},
        "required": [field.name for field in question.form if field.required],
    }


def _property(field: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "title": field.title}
    if field.options:
        schema["enum"] = list(field.options)
    elif field.most:
        schema["maxLength"] = field.most
    return schema

"""The four model APIs that coding agents speak: what a request says, how a turn is answered in each. No socket here.

A dialect reads requests (`tools`, `results`) and writes one answer, whole or as a stream of server-sent events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

Body = dict[str, Any]
Event = tuple[str, object]
"""The name of a server-sent event (may be empty) and its data; a text is sent as it stands."""


@dataclass(frozen=True)
class Asked:
    """A tool that the model wants to be called: the name as the client listed it, and its arguments."""

    name: str
    arguments: Body
    space: str = ""
    """The namespace the client listed it in, where it has such."""


@dataclass(frozen=True)
class Answer:
    """What the model says in one turn. `tokens` is how long it claims the conversation to be."""

    number: int
    model: str
    text: str
    asked: Sequence[Asked]
    tokens: int

    def call_id(self, position: int) -> str:
        return f"call_{self.number}_{position}"


class Dialect(Protocol):
    """One model API."""

    name: str

    def speaks(self, path: str) -> bool: ...

    def tools(self, body: Body) -> list[tuple[str, str]]:
        """Every tool of the request: its name and its namespace, which is mostly empty."""
        ...

    def results(self, body: Body) -> list[str]:
        """What the calls of this conversation returned, as the model reads it, oldest first."""
        ...

    def streams(self, path: str, body: Body) -> bool: ...

    def whole(self, answer: Answer) -> Body: ...

    def events(self, answer: Answer) -> Iterator[Event]: ...


def strings(value: object) -> Iterator[str]:
    """Every text inside a decoded JSON value, in its order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


class Messages:
    """Anthropic's Messages."""

    name = "messages"

    def speaks(self, path: str) -> bool:
        return path.endswith("/messages")

    def tools(self, body: Body) -> list[tuple[str, str]]:
        return [(tool["name"], "") for tool in body.get("tools") or [] if "name" in tool]

    def results(self, body: Body) -> list[str]:
        return [
            "\n".join(strings(block.get("content")))
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block.get("type") == "tool_result"
        ]

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: Answer) -> Body:
        content: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
        for position, asked in enumerate(answer.asked):
            content.append(
                {"type": "tool_use", "id": answer.call_id(position), "name": asked.name, "input": asked.arguments}
            )
        return {
            "id": f"msg_{answer.number}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": content,
            "stop_reason": "tool_use" if answer.asked else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": answer.tokens, "output_tokens": 1},
        }

    def events(self, answer: Answer) -> Iterator[Event]:
        for event in self._events(self.whole(answer)):
            yield event["type"], event

    def _events(self, message: Body) -> Iterator[Body]:
        yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": as_json(block["input"])}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
        yield {"type": "message_stop"}


class Responses:
    """OpenAI's Responses."""

    name = "responses"

    def speaks(self, path: str) -> bool:
        return path.endswith("/responses")

    def tools(self, body: Body) -> list[tuple[str, str]]:
        found = []
        for tool in body.get("tools") or []:
            if tool.get("type") == "namespace":
                found += [(inner["name"], tool["name"]) for inner in tool["tools"]]
            elif "name" in tool:
                found.append((tool["name"], ""))
        return found

    def results(self, body: Body) -> list[str]:
        given = body["input"] if isinstance(body["input"], list) else []
        return [
            "\n".join(strings(item["output"]))
            for item in given
            if str(item.get("type", "")).endswith("_output") and "output" in item
        ]

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: Answer) -> Body:
        output: list[Body] = []
        if answer.text:
            said = {"type": "output_text", "text": answer.text, "annotations": []}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{answer.number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [said],
                }
            )
        for position, asked in enumerate(answer.asked):
            call = {
                "type": "function_call",
                "id": f"fc_{answer.number}_{position}",
                "call_id": answer.call_id(position),
                "name": asked.name,
                "arguments": as_json(asked.arguments),
                "status": "completed",
            }
            output.append({**call, "namespace": asked.space} if asked.space else call)
        return {
            "id": f"resp_{answer.number}",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": answer.model,
            "output": output,
            "usage": {
                "input_tokens": answer.tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 1,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": answer.tokens + 1,
            },
        }

    def events(self, answer: Answer) -> Iterator[Event]:
        response = self.whole(answer)
        begun = {**response, "status": "in_progress", "output": []}
        yield "response.created", {"type": "response.created", "response": begun}
        for index, item in enumerate(response["output"]):
            for name in ("response.output_item.added", "response.output_item.done"):
                yield name, {"type": name, "output_index": index, "item": item}
        yield "response.completed", {"type": "response.completed", "response": response}


class Chat:
    """OpenAI's Chat completions, which many other providers speak."""

    name = "chat"

    def speaks(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def tools(self, body: Body) -> list[tuple[str, str]]:
        return [(tool["function"]["name"], "") for tool in body.get("tools") or [] if "function" in tool]

    def results(self, body: Body) -> list[str]:
        return ["\n".join(strings(said["content"])) for said in body["messages"] if said["role"] == "tool"]

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def _parts(self, answer: Answer) -> tuple[Body, Body]:
        message: Body = {"role": "assistant", "content": answer.text or None}
        if answer.asked:
            message["tool_calls"] = [
                {
                    "index": position,
                    "id": answer.call_id(position),
                    "type": "function",
                    "function": {"name": asked.name, "arguments": as_json(asked.arguments)},
                }
                for position, asked in enumerate(answer.asked)
            ]
        usage = {"prompt_tokens": answer.tokens, "completion_tokens": 1, "total_tokens": answer.tokens + 1}
        return message, {"id": f"chat_{answer.number}", "created": 0, "model": answer.model, "usage": usage}

    def whole(self, answer: Answer) -> Body:
        message, frame = self._parts(answer)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.asked else "stop"}
        return {**frame, "object": "chat.completion", "choices": [choice]}

    def events(self, answer: Answer) -> Iterator[Event]:
        message, frame = self._parts(answer)
        ending = "tool_calls" if answer.asked else "stop"
        for delta, reason in ((message, None), ({}, ending)):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            yield "", {**frame, "object": "chat.completion.chunk", "choices": [choice]}
        yield "", "[DONE]"


class GenerateContent:
    """Gemini's generateContent."""

    name = "generateContent"

    def speaks(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def tools(self, body: Body) -> list[tuple[str, str]]:
        return [
            (declared["name"], "")
            for tool in body.get("tools") or []
            for declared in tool.get("functionDeclarations") or []
        ]

    def results(self, body: Body) -> list[str]:
        return [
            "\n".join(strings(part["functionResponse"]["response"]))
            for content in body["contents"]
            for part in content["parts"]
            if "functionResponse" in part
        ]

    def streams(self, path: str, body: Body) -> bool:
        return path.endswith(":streamGenerateContent")

    def whole(self, answer: Answer) -> Body:
        parts: list[Body] = [{"text": answer.text}] if answer.text else []
        parts += [{"functionCall": {"name": asked.name, "args": asked.arguments}} for asked in answer.asked]
        return {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": answer.tokens,
                "candidatesTokenCount": 1,
                "totalTokenCount": answer.tokens + 1,
            },
            "modelVersion": answer.model,
        }

    def events(self, answer: Answer) -> Iterator[Event]:
        yield "", self.whole(answer)


DIALECTS: tuple[Dialect, ...] = (Messages(), Responses(), Chat(), GenerateContent())

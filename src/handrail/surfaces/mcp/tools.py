"""Operations as MCP tools: how each is listed, and how a call to it is answered in both call styles.

`tools/call` wraps a result in content; the bare style of guide.md (`"method": "workflow_list"`) answers with the plain
result object. Both share argument parsing, the operation, and the mapping of refusals.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.catalog import operation_named
from handrail.kernel.errors import Cancelled, Refusal, StoreTooNew, StoreUnusable
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Actor
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call, Effect, Operation, PublishedOperation
from handrail.protocol.client_requests import RequestCancelled as GivenUp
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.revisions import META_CLIENT
from handrail.protocol.wire import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, encode
from handrail.selection import how_to_enable
from handrail.surfaces.arguments import published_common
from handrail.surfaces.elicitation import Meanwhile, OpenQuestions, Patience
from handrail.surfaces.mcp.client_person import STATELESS_PUTS, PersonAtClient, may_be_asked
from handrail.surfaces.mcp.off_tools import complete_hint
from handrail.surfaces.refusals import bare_error, cut, numbered_error, refused_result, speaks_numbers
from handrail.surfaces.schemas import portable, request_schema, response_schema
from handrail.surfaces.toolset_switch import ToolsetSwitch

if TYPE_CHECKING:
    from handrail.surfaces import invocation
else:
    invocation = late_module("handrail.surfaces.invocation")

PATIENCE = Patience()


def tool_of(
    entry: PublishedOperation, *, whole: bool, active: Collection[str] = (), as_documented: bool = False
) -> dict[str, Any]:
    """A tool as `tools/list` shows it. `whole` adds the output schema and examples; `active` toolsets add the arguments
    that they let every operation accept. Both cost every client tokens. `as_documented` keeps the keywords of a
    source document that not every model's API takes."""
    operation = entry.operation
    schema = request_schema(operation)
    if not as_documented:
        schema = portable(schema)
    if beside := published_common(operation, active):
        schema = {**schema, "properties": {**schema["properties"], **beside}}
    tool: dict[str, Any] = {
        "name": entry.name,
        "description": operation.summary,
        "inputSchema": schema,
        "annotations": _annotations(operation),
    }
    if whole:
        tool["outputSchema"] = response_schema(operation)
        shown = next(example for example in operation.examples if example.response is not None)
        tool["examples"] = {
            "request": {"method": entry.name, "params": shown.request},
            "response": shown.response,
        }
    return tool


def _annotations(operation: Operation[Any, Any]) -> dict[str, bool]:
    """All four, also where the protocol's default would say the same: clients that ask before each call decide by them,
    and one that is left out counts as the worst. No operation reaches beyond the store and the repositories here."""
    reads = operation.effect is Effect.READ
    return {
        "readOnlyHint": reads,
        "destructiveHint": operation.effect is Effect.DESTRUCTIVE,
        "idempotentHint": reads or operation.idempotent,
        "openWorldHint": False,
    }


def for_the_model(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What a client hands on to its model of a listed tool, and so what the tool costs. The annotations are for the
    client."""
    return {name: tool[name] for name in tool if name != "annotations"}


def actor_of(exchange: Exchange) -> Actor:
    """Who calls: the principal admitted by the transport, otherwise the client, by the name it gives."""
    if (principal := exchange.connection.principal) is not None:
        return Actor(principal.name, "mcp")
    client = exchange.meta.get(META_CLIENT) if exchange.stateless else exchange.connection.client_info
    name = client.get("name") if isinstance(client, dict) else None
    return Actor(name[:100] if isinstance(name, str) and name else "agent", "mcp")


def client_of(exchange: Exchange) -> invocation.CallingClient:
    """What is known about who is behind the connection."""
    connection = exchange.connection
    if connection.memory is None:
        agent = connection.principal.agent_id if connection.principal is not None else None
        connection.memory = invocation.CallingClient((agent,) if agent is not None else ())
    known: invocation.CallingClient = connection.memory
    return known


class _Caller:
    """Calls operations for a client: as which actor, with which person to ask, for how long."""

    def __init__(self, call: Call, patience: Patience) -> None:
        self._context = call
        most_s = min(patience.most_s, call.bounds.wait_ms / 1000)
        self._patience = msgspec.structs.replace(patience, most_s=most_s)
        self._clock_is_off = False
        self._asked = OpenQuestions(most=STATELESS_PUTS)
        """What clients without a connection were asked, by their names."""

    def call(self, exchange: Exchange, operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Any:
        client = client_of(exchange)
        if exchange.connection.lasting and client.session is None:
            client.session = self._context.world.new_session()
        result = invocation.invoke(
            operation,
            self._context,
            arguments,
            actor=actor_of(exchange),
            client=client,
            cancelled=lambda: exchange.cancelled,
            meanwhile=Meanwhile(
                patience=self._patience,
                tell=lambda so_far_s, most_s: exchange.progress(so_far_s, most_s, "still waiting"),
                person=self._person(exchange, operation),
                known_as=exchange.task.id if exchange.task is not None else None,
            ),
        )
        exchange.raise_if_cancelled()
        self._tell_of_clock()
        return result

    def _tell_of_clock(self) -> None:
        """Logs, once, that this machine's clock is off."""
        remark = self._context.ledger.clock_remark()
        if remark is not None and not self._clock_is_off:
            print(f"handrail: {remark}", file=sys.stderr)  # noqa: T201 - stderr is the log
        self._clock_is_off = remark is not None

    def _person(self, exchange: Exchange, operation: Operation[Any, Any]) -> PersonAtClient | None:
        if not (may_be_asked(operation, self._context) and exchange.can_elicit):
            return None
        if exchange.stateless:
            return PersonAtClient(exchange, self._asked, actor_of(exchange).name)
        return PersonAtClient(exchange, client_of(exchange).asked)


def _waits(operation: Operation[Any, Any] | None, arguments: Mapping[str, Any]) -> bool:
    return operation is not None and operation.wait is not None and bool(arguments.get("wait_ms"))


def note_failure(exchange: Exchange, refusal: Refusal) -> None:
    """A store that cannot be opened is fatal: the client gets this answer, then the process exits with 1."""
    if isinstance(refusal, StoreUnusable | StoreTooNew):
        exchange.connection.failed = True


def rpc_error_for(exchange: Exchange, refusal: Refusal) -> RpcError:
    """The error for a request other than `tools/call`."""
    note_failure(exchange, refusal)
    return bare_error(refusal, stateless=exchange.stateless)


def why_not_here(operation: Operation[Any, Any], switch: ToolsetSwitch, call: Call, principal: Any = None) -> str:
    """Why this server does not do what another would, and where it is done. `principal` is who was admitted."""
    here = next((entry.name for entry in switch.published() if entry.operation is operation), None)
    if here is not None:
        return f"here it is called {here}"
    if switch.read_only and operation.effect is not Effect.READ:
        if principal is not None and "write" not in principal.rights:
            able = "handrail token create NAME --rights read,write"
            return f"it changes something, and the token {principal.name} may only read; one that may write: {able}"
        path = call.server.http.path if call.server.http is not None else ""
        return f"it changes something, and {path} is read-only: call it at {path.replace('/readonly', '', 1)}"
    toolset = operation.toolset
    return f"it belongs to the toolset {toolset.name}, which is off: start with {how_to_enable(toolset)}"


class CatalogTools:
    """The selected operations, behind the protocol's `Tools` and `AsksPeople` ports."""

    def __init__(
        self,
        switch: ToolsetSwitch,
        call: Call,
        *,
        whole: bool,
        as_documented: bool = False,
        patience: Patience = PATIENCE,
    ) -> None:
        self._switch = switch
        self._call = call
        self._caller = _Caller(call, patience)
        self._listing = functools.partial(tool_of, whole=whole, as_documented=as_documented)
        self._listed_for: tuple[PublishedOperation, ...] | None = None
        self._listed: tuple[dict[str, Any], ...] = ()

    def published(self) -> Sequence[Mapping[str, Any]]:
        entries = self._switch.published()
        if entries is not self._listed_for:
            active = {toolset.name for toolset in self._switch.active()}
            self._listed = tuple(self._listing(entry, active=active) for entry in entries)
            self._listed_for = entries
        return self._listed

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return _waits(self._switch.find(name), arguments)

    def asks(self, name: str) -> bool:
        """True for operations that may ask the person at the client while they run."""
        operation = self._switch.find(name)
        return operation is not None and may_be_asked(operation, self._call)

    def is_quick(self, name: str) -> bool:
        """True for operations that only read memory and a few small files."""
        operation = self._switch.find(name)
        return operation is not None and operation.effect is Effect.READ and not operation.stored

    def task_use(self, name: str) -> TaskUse:  # noqa: ARG002 - no operation continues after its reply
        return TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        operation = self._switch.find(name)
        if operation is None:
            told = cut(name)  # it may have any length, and an agent reads the answer
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {told}{self._why_not(exchange, name)}", {"name": told})
        try:
            result = self._caller.call(exchange, operation, arguments)
        except Cancelled as cancelled:
            if exchange.task is not None:
                raise GivenUp from cancelled
            return refused_result(cancelled)
        except Refusal as refusal:
            note_failure(exchange, refusal)
            complete_hint(refusal, operation, self._switch)
            if speaks_numbers(operation, stateless=exchange.stateless):
                raise numbered_error(refusal) from refusal
            return refused_result(refusal)
        answer: dict[str, Any] = {"content": [{"type": "text", "text": encode(result).decode()}]}
        if isinstance(result, dict):
            answer["structuredContent"] = result
        return answer

    def _why_not(self, exchange: Exchange, name: str) -> str:
        elsewhere = operation_named(name)
        if elsewhere is not None:
            return f"; {why_not_here(elsewhere, self._switch, self._call, exchange.connection.principal)}"
        return did_you_mean(cut(name), [entry.name for entry in self._switch.published()])


class CatalogMethods:
    """The same operations called by their bare names, behind the `Methods` port."""

    def __init__(self, switch: ToolsetSwitch, call: Call, *, patience: Patience = PATIENCE) -> None:
        self._switch = switch
        self._call = call
        self._caller = _Caller(call, patience)

    def knows(self, method: str) -> bool:
        return self._switch.find(method) is not None or operation_named(method) is not None

    def waits(self, method: str, params: Mapping[str, Any]) -> bool:
        return _waits(self._switch.find(method), params)

    def call(self, exchange: Exchange, method: str, params: Mapping[str, Any]) -> Any:
        operation = self._switch.find(method)
        if operation is None:
            elsewhere = operation_named(method)
            assert elsewhere is not None, "only methods that are known get here"
            reason = why_not_here(elsewhere, self._switch, self._call, exchange.connection.principal)
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {reason}", {"method": method})
        try:
            return self._caller.call(exchange, operation, params)
        except Refusal as refusal:
            note_failure(exchange, refusal)
            complete_hint(refusal, operation, self._switch)
            if speaks_numbers(operation, stateless=exchange.stateless):
                raise numbered_error(refusal) from refusal
            raise bare_error(refusal, stateless=exchange.stateless) from refusal

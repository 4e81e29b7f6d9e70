"""One call of an operation, from raw arguments to a plain result: who calls, what it may wait for, what it is told.

Every surface calls through here. Three arguments are understood by every operation that uses the store, beside its
own: `agent_id`, `fence` and `agent_secret` say in whose name it is done. No wire format.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.claiming import Writer
from handrail.domain.crew.posting import HUMAN, unread_count
from handrail.domain.crew.presence import arrive, find_agent, knows_secret
from handrail.kernel.errors import ClaimHeld, IdentityUnproven, InvalidParams, Refusal, StoreRefused
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Operation
from handrail.surfaces.arguments import parse_arguments

NAMES_AGENT, NAMES_FENCE, NAMES_SECRET = "agent_id", "fence", "agent_secret"
IDENTITY = {NAMES_AGENT: {"type": "string"}, NAMES_FENCE: {"type": "integer"}}
"""What is published of them, for operations that a claim can refuse: one line, paid by every client."""
UNREAD = "unread_messages"


class Client:
    """Who is behind a connection, as far as it has shown. One per connection; a call without one stands alone."""

    def __init__(self, agents: tuple[str, ...] = ()) -> None:
        self.agents = list(agents)
        """The agents that have registered or proved themselves here."""
        self.noted: set[str] = set()
        """Agents in whose name something was written without proof: said once in the ledger."""

    @property
    def agent(self) -> str | None:
        """The agent that is meant where none is named: the only one that is known here."""
        return self.agents[0] if len(self.agents) == 1 else None

    def knows(self, agent_id: str) -> None:
        if agent_id not in self.agents:
            self.agents.append(agent_id)


class Claimant(msgspec.Struct, frozen=True):
    """In whose name a call is made, as its arguments and its connection say."""

    agent_id: str | None = None
    fence: int | None = None
    secret: str | None = None


class Answered(NamedTuple):
    """What a handler answered to whom, and how many messages wait for them."""

    result: Any
    writer: Writer
    unread: int = 0
    warning: str | None = None


def carries_identity(operation: Operation[Any, Any]) -> bool:
    """True where `agent_id` and `fence` decide whether the call is refused."""
    return ClaimHeld in operation.refusals


def run(
    operation: Operation[Any, Any],
    call: Call,
    arguments: Mapping[str, Any],
    *,
    actor: Actor,
    client: Client | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Any:
    """One call, from raw arguments to a result of plain JSON values. Raises Refusal."""
    client = client or Client()
    claimant, rest = _split(operation, arguments, client)
    request = parse_arguments(operation, rest)
    if operation.acts_as is not None:
        named = getattr(request, operation.acts_as)
        claimant = msgspec.structs.replace(claimant, agent_id=None if named == HUMAN else named)
    if operation.prepare is not None:
        looking = msgspec.structs.replace(call, writer=Writer(claimant.agent_id, claimant.fence))
        call = msgspec.structs.replace(call, prepared=operation.prepare(looking, request))
    if not operation.stored:
        return msgspec.to_builtins(operation.handler(call, request), str_keys=True)
    answer = _stored(operation, call, request, _Asking(claimant, client, actor, cancelled))
    shown = msgspec.to_builtins(answer.result, str_keys=True)
    if answer.writer.proven and answer.writer.agent_id is not None:
        client.knows(answer.writer.agent_id)
    elif operation.introduces and answer.writer.agent_id is None:
        client.knows(shown["id"])
    if answer.unread and isinstance(shown, dict):
        shown[UNREAD] = answer.unread
    if answer.warning is not None and isinstance(shown, dict):
        shown["warnings"] = [*shown.get("warnings", ()), answer.warning]
    return shown


class _Asking(NamedTuple):
    """Who asks, through which connection, and whether they still want to know."""

    claimant: Claimant
    client: Client
    actor: Actor
    cancelled: Callable[[], bool]


def _stored(operation: Operation[Any, Any], call: Call, request: Any, asking: _Asking) -> Answered:
    """The answer of an operation that uses the store."""
    agent_id = asking.claimant.agent_id
    actor = asking.actor if agent_id is None else Actor(agent_id, asking.actor.channel)

    def once() -> Answered:
        if agent_id is not None:
            call.ledger.renew(agent_id, call.crew.lease_ms)
        writing = operation.effect is not Effect.READ
        return call.ledger.run(actor, lambda unit: _in_unit(operation, call, unit, request, asking), writing=writing)

    try:
        answer = _awaited(operation, call, request, once, asking.cancelled)
    except (IdentityUnproven, StoreRefused):
        raise
    except Refusal:
        if agent_id is not None:  # what is refused leaves nothing behind but this: its agent is there
            with contextlib.suppress(StoreRefused):
                call.ledger.run(actor, lambda unit: arrive(unit, agent_id, call.crew))
        raise
    if agent_id is not None and operation.effect is not Effect.READ:
        asking.client.noted.add(agent_id)
    return _followed(operation, call, request, answer, actor)


def _followed(operation: Operation[Any, Any], call: Call, request: Any, answer: Answered, actor: Actor) -> Answered:
    """The answer after what must follow it. That this fails changes nothing about the answer, which stands."""
    if operation.follow is None:
        return answer
    try:
        then = operation.follow(call, request, answer.result)
        if then is None:
            return answer
        return answer._replace(
            result=call.ledger.run(
                actor, lambda unit: then(msgspec.structs.replace(call, unit=unit, writer=answer.writer)), writing=True
            )
        )
    except Refusal as refusal:
        return answer._replace(warning=f"{refusal.message}; what was asked for is done")


def _split(
    operation: Operation[Any, Any], arguments: Mapping[str, Any], client: Client
) -> tuple[Claimant, dict[str, Any]]:
    """Who calls, and the operation's own arguments. An argument of its own that has one of these names stays its
    own."""
    rest = dict(arguments)
    if not operation.stored:
        return Claimant(), rest
    own = operation.request.__struct_fields__
    given = {
        name: rest.pop(name) for name in (NAMES_AGENT, NAMES_FENCE, NAMES_SECRET) if name in rest and name not in own
    }
    agent_id, fence, secret = given.get(NAMES_AGENT), given.get(NAMES_FENCE), given.get(NAMES_SECRET)
    if not isinstance(agent_id, str | None) or not isinstance(secret, str | None):
        raise InvalidParams("agent_id and agent_secret are texts", hint="agent_register gives both")
    if fence is not None and (not isinstance(fence, int) or isinstance(fence, bool)):
        raise InvalidParams("fence is a number", hint="task_claim gives it")
    return Claimant(agent_id if agent_id is not None else client.agent, fence, secret), rest


def _in_unit(operation: Operation[Any, Any], call: Call, unit: UnitOfWork, request: Any, asking: _Asking) -> Answered:
    writer = Writer(None, asking.claimant.fence)
    if asking.claimant.agent_id is not None:
        writer = _identified(operation, call, unit, asking.claimant, asking.client)
    result = operation.handler(msgspec.structs.replace(call, unit=unit, writer=writer), request)
    if writer.agent_id is None or operation.toolset.name == "message":
        return Answered(result, writer)
    return Answered(result, writer, unread_count(unit, writer.agent_id))


def _identified(
    operation: Operation[Any, Any], call: Call, unit: UnitOfWork, claimant: Claimant, client: Client
) -> Writer:
    """The caller as an agent. Where it is not proven, that is refused or noted, as the settings want it."""
    assert claimant.agent_id is not None
    agent = find_agent(unit, claimant.agent_id)
    proven = agent.id in client.agents or knows_secret(agent, claimant.secret)
    if not proven and call.crew.strict:
        raise IdentityUnproven(
            f"this call names {agent.name} ({agent.id}) and does not prove to be its own",
            hint="send agent_secret, which agent_register gave, or register on this connection",
            id=agent.id,
        )
    arrive(unit, agent.id, call.crew)
    if not proven and operation.effect is not Effect.READ and agent.id not in client.noted:
        _note(unit, agent.id, operation.name)
    return Writer(agent.id, claimant.fence, proven)


def _note(unit: UnitOfWork, agent_id: str, tool: str) -> None:
    agent = unit.get(Agent, agent_id)
    assert agent is not None
    counted = msgspec.structs.replace(agent, mismatches=agent.mismatches + 1)
    unit.record("agent.unproven", counted, data={"tool": tool})


def _awaited(
    operation: Operation[Any, Any],
    call: Call,
    request: Any,
    once: Callable[[], Answered],
    cancelled: Callable[[], bool],
) -> Answered:
    """The first answer that is worth a reply, or the last one there was time for."""
    wait = operation.wait
    wait_ms = wait.for_ms(request) if wait is not None else 0
    if wait is None or wait_ms <= 0:
        return once()
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        position = call.ledger.position()
        answer = once()
        left = deadline - time.monotonic()
        if wait.is_over(answer.result) or left <= 0 or cancelled():
            return answer
        # Not longer than a heartbeat: who waits is there, and must not lose its claims by waiting.
        call.ledger.wait(position, min(left, call.crew.heartbeat_ms / 1000), cancelled)

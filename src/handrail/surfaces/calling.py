"""One call of an operation, from raw arguments to a plain result: who calls, what it waits for, what is added to it.

Every surface calls through here. Every operation that uses the store accepts three arguments beside its own:
`agent_id`, `fence` and `agent_secret`, which identify the acting agent. If a result asks a person something and they
can be reached, they are asked (`talking.py`). Two more arguments are accepted while their toolsets are on
(`beside.py`). No wire format.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.identity import Writer
from handrail.domain.crew.posting import HUMAN, unread_count
from handrail.domain.crew.presence import arrive, find_agent, knows_secret
from handrail.kernel.errors import IdentityUnproven, InvalidParams, Refusal, StoreRefused
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Operation
from handrail.surfaces.arguments import parse_arguments
from handrail.surfaces.asking import ELICITED, Asked, Meanwhile, Person, Waited, merge_told_once
from handrail.surfaces.beside import AGENT_ID, AGENT_SECRET, FENCE, Beside, take_beside
from handrail.surfaces.kept_answers import Keyed
from handrail.surfaces.talking import Answered, Talk
from handrail.surfaces.under_way import UnderWay

UNREAD = "unread_messages"
REPLAYED = "idempotent"
"""Set in an answer that repeats an earlier one."""


class Client:
    """What is known about who is behind a connection. One per connection; a call without one stands alone."""

    def __init__(self, agents: tuple[str, ...] = (), session: str | None = None) -> None:
        self.session = session
        """A name for the connection, if it outlives a call."""
        self.agents = list(agents)
        """The agents that have registered or proved their identity here."""
        self.noted: set[str] = set()
        """Agents whose name was used to write without proof, which the ledger notes once."""
        self.asked = Asked()
        """What the person at this connection was asked."""

    @property
    def agent(self) -> str | None:
        """The agent assumed when none is named: the only one known here."""
        return self.agents[0] if len(self.agents) == 1 else None

    def knows(self, agent_id: str) -> None:
        if agent_id not in self.agents:
            self.agents.append(agent_id)


class Claimant(msgspec.Struct, frozen=True):
    """The agent a call acts as, according to its arguments and its connection."""

    agent_id: str | None = None
    fence: int | None = None
    secret: str | None = None
    named: str | None = None
    """The agent named by the arguments themselves, independent of the connection."""


def run(
    operation: Operation[Any, Any],
    call: Call,
    arguments: Mapping[str, Any],
    *,
    actor: Actor,
    client: Client | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    meanwhile: Meanwhile | None = None,
) -> Any:
    """One call, from raw arguments to a result of plain JSON values. Raises Refusal."""
    client = client or Client()
    call = msgspec.structs.replace(call, session=client.session)
    meanwhile = meanwhile or Meanwhile()
    beside, others = take_beside(operation, call, arguments, meanwhile.known_as)
    claimant, rest = _split_off_claimant(operation, others, client)
    request = parse_arguments(operation, rest)
    if operation.acts_as is not None:
        named = getattr(request, operation.acts_as)
        claimant = msgspec.structs.replace(claimant, agent_id=None if named == HUMAN else named)
    if not operation.stored:
        call = _prepared(operation, call, request, claimant)
        return msgspec.to_builtins(operation.handler(call, request), str_keys=True)
    asking = _Asking(claimant, client, actor, cancelled, Waited(meanwhile.patience, meanwhile.tell))
    with contextlib.ExitStack() as stack:
        asking = _with_beside(stack, operation, call, request, rest, asking, beside)
        # A person's answer is not part of the arguments, so it cannot be found again by a key.
        answer = _ask_person_and_answer(
            operation, call, request, asking, meanwhile.person if asking.keyed is None else None
        )
    replayed = asking.keyed is not None and asking.keyed.replayed
    shown = msgspec.to_builtins(answer.result, str_keys=True)
    if answer.told:
        shown |= merge_told_once(tuple(answer.told), answer.told, shown)
    if answer.writer.proven and answer.writer.agent_id is not None:
        client.knows(answer.writer.agent_id)
    elif operation.introduces and answer.writer.agent_id is None and not (replayed and call.crew.strict):
        client.knows(shown["id"])
    if replayed and isinstance(shown, dict):
        shown[REPLAYED] = True
    if answer.unread and isinstance(shown, dict):
        shown[UNREAD] = answer.unread
    if answer.warning is not None and isinstance(shown, dict):
        shown["warnings"] = [*shown.get("warnings", ()), answer.warning]
    return shown


def _prepared(operation: Operation[Any, Any], call: Call, request: Any, claimant: Claimant) -> Call:
    """The call with the result of its operation's `prepare`."""
    if operation.prepare is None:
        return call
    looking = msgspec.structs.replace(call, writer=Writer(claimant.agent_id, claimant.fence))
    return msgspec.structs.replace(call, prepared=operation.prepare(looking, request))


class _Asking(NamedTuple):
    """The caller, their connection, and whether they still want the answer."""

    claimant: Claimant
    client: Client
    actor: Actor
    cancelled: Callable[[], bool]
    waited: Waited
    would_ask: Callable[[Any, Any], object | None] = lambda request, result: None  # noqa: ARG005 - nobody is there
    """What a person should be asked because of a result, if there is one to ask."""
    under_way: tuple[UnderWay, ...] = ()
    """The rows by which others see this call."""
    keyed: Keyed | None = None


def _with_beside(
    stack: contextlib.ExitStack,
    operation: Operation[Any, Any],
    call: Call,
    request: Any,
    arguments: Mapping[str, Any],
    asking: _Asking,
    beside: Beside,
) -> _Asking:
    """Adds what an `op_id` or an idempotency key asks for; it ends with `stack`."""
    actor, caller = asking.actor, asking.claimant.agent_id
    if caller is None or (call.crew.strict and caller not in asking.client.agents):  # not proved yet
        caller = actor.name
    for op_id in beside.op_ids:
        row = UnderWay(call, actor, caller, op_id, operation.name)
        stack.enter_context(row.begun(arguments, asking.cancelled))
        asking = asking._replace(under_way=(*asking.under_way, row))
    if beside.key is not None:
        keyed = Keyed(operation, call, beside.key, request, (asking.claimant.named, asking.claimant.fence))
        turn = stack.enter_context(keyed.turn(actor, asking.cancelled)) if operation.prepare is not None else None
        rows = (*asking.under_way, turn) if turn is not None else asking.under_way
        asking = asking._replace(keyed=keyed, under_way=rows)
    return asking


def _is_heard(call: Call, actor: Actor, asking: _Asking) -> bool:
    """Whether a call counts as a sign of life of its agent: with strict identity, only once it has proved it."""
    claimant, client = asking.claimant, asking.client
    agent_id, secret = claimant.agent_id, claimant.secret
    if agent_id is None or not call.crew.strict or agent_id in client.agents:
        return agent_id is not None
    if secret is None:
        return False

    def proved(unit: UnitOfWork) -> bool:
        agent = unit.get(Agent, agent_id)
        return agent is not None and knows_secret(agent, secret)

    return call.ledger.run(actor, proved)


def _ask_person_and_answer(
    operation: Operation[Any, Any], call: Call, request: Any, asking: _Asking, person: Person | None
) -> Answered:
    """The answer of an operation that uses the store, after asking the person, if there is one."""

    def answer_to(asked: Any, asking: _Asking) -> Answered:
        known = asking.keyed is not None and asking.keyed.replayed  # then there is nothing to prepare
        ready = call if known else _prepared(operation, call, asked, asking.claimant)
        return _answer_from_store(operation, ready, asked, asking)

    if operation.asks is None or person is None:
        return answer_to(request, asking)
    by_person = asking._replace(actor=Actor(asking.actor.name, ELICITED))
    talk = Talk(
        operation.asks,
        person,
        asking.waited,
        call.ledger,
        answer_to=lambda asked: answer_to(asked, asking._replace(would_ask=talk.question)),
        answer_to_person=lambda brought: answer_to(brought, by_person),
    )
    return talk.answer(request)


def _answer_from_store(operation: Operation[Any, Any], call: Call, request: Any, asking: _Asking) -> Answered:
    """The answer of an operation that uses the store."""
    agent_id = asking.claimant.agent_id
    actor = asking.actor
    if agent_id is not None and actor.channel != ELICITED:  # a person's answer is not attributed to their agent
        actor = Actor(agent_id, actor.channel)

    def once(now: Call) -> Answered:
        if agent_id is not None and _is_heard(call, actor, asking):
            call.ledger.renew(agent_id, call.crew.lease_ms)
        writing = operation.effect is not Effect.READ
        answer = call.ledger.run(actor, lambda unit: _in_unit(operation, now, unit, request, asking), writing=writing)
        if _ends_at_once(operation):
            for row in asking.under_way:
                row.has_ended()
        return answer

    try:
        answer = _wait_for_answer(operation, call, request, once, asking)
    except (IdentityUnproven, StoreRefused):
        raise
    except Refusal:
        if agent_id is not None:  # a refused call still shows that its agent is present
            with contextlib.suppress(StoreRefused):
                call.ledger.run(actor, lambda unit: arrive(unit, agent_id, call.crew))
        raise
    if agent_id is not None and operation.effect is not Effect.READ:
        asking.client.noted.add(agent_id)
    return _with_follow_up(operation, call, request, answer, actor)


def _with_follow_up(
    operation: Operation[Any, Any], call: Call, request: Any, answer: Answered, actor: Actor
) -> Answered:
    """The answer after what must follow it. If that fails, the answer still stands."""
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


def _split_off_claimant(
    operation: Operation[Any, Any], arguments: Mapping[str, Any], client: Client
) -> tuple[Claimant, dict[str, Any]]:
    """Separates who calls from the operation's own arguments. If the operation itself has an argument of one of these
    names, it stays the operation's."""
    rest = dict(arguments)
    if not operation.stored:
        return Claimant(), rest
    own = operation.request.__struct_fields__
    given = {name: rest.pop(name) for name in (AGENT_ID, FENCE, AGENT_SECRET) if name in rest and name not in own}
    agent_id, fence, secret = given.get(AGENT_ID), given.get(FENCE), given.get(AGENT_SECRET)
    if not isinstance(agent_id, str | None) or not isinstance(secret, str | None):
        raise InvalidParams("agent_id and agent_secret are texts", hint="agent_register gives both")
    if fence is not None and (not isinstance(fence, int) or isinstance(fence, bool)):
        raise InvalidParams("fence is a number", hint="task_claim gives it")
    return Claimant(agent_id if agent_id is not None else client.agent, fence, secret, agent_id), rest


def _in_unit(operation: Operation[Any, Any], call: Call, unit: UnitOfWork, request: Any, asking: _Asking) -> Answered:
    writer = Writer(None, asking.claimant.fence)
    if asking.claimant.agent_id is not None:
        writer = _identify(operation, call, unit, asking.claimant, asking.client)
    for row in asking.under_way:
        row.check(unit)
    kept = asking.keyed.answer(unit) if asking.keyed is not None else None
    if kept is not None:
        result = kept.result
    else:
        rules = call.rules()  # looked at once for each try, and the same throughout it
        result = operation.handler(
            msgspec.structs.replace(call, unit=unit, writer=writer, rules=lambda: rules), request
        )
        if asking.keyed is not None:
            asking.keyed.keep(unit, request, result)
    if _ends_at_once(operation):
        for row in asking.under_way:
            row.end_in(unit)
    if writer.agent_id is None or operation.toolset.name == "message":
        return Answered(result, writer)
    return Answered(result, writer, unread_count(unit, writer.agent_id))


def _ends_at_once(operation: Operation[Any, Any]) -> bool:
    """True if all that a call does is one unit of work, so that its end can be committed with it."""
    return operation.effect is not Effect.READ and operation.wait is None and operation.asks is None


def _identify(
    operation: Operation[Any, Any], call: Call, unit: UnitOfWork, claimant: Claimant, client: Client
) -> Writer:
    """The caller as an agent. An unproven one is refused or noted, depending on the settings."""
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


def _wait_for_answer(
    operation: Operation[Any, Any],
    call: Call,
    request: Any,
    once: Callable[[Call], Answered],
    asking: _Asking,
) -> Answered:
    """The first answer worth a reply or a question, or the last one there was time for."""
    wait = operation.wait
    wait_ms = min(wait.for_ms(request), call.bounds.wait_ms) if wait is not None else 0
    if wait is None or wait_ms <= 0:
        return once(call)
    waited = asking.waited
    end_s = waited.so_far_s + wait_ms / 1000
    while True:
        position = call.ledger.position()
        answer = once(call)
        left = end_s - waited.so_far_s
        if wait.is_over(answer.result) or left <= 0 or asking.cancelled():
            return answer
        if asking.would_ask(request, answer.result) is not None:
            return answer
        # No longer than a heartbeat: a waiting agent is present, and must not lose its claims by waiting.
        pause_s = waited.so_far_s + min(left, call.crew.heartbeat_ms / 1000)
        while (rest := pause_s - waited.so_far_s) > 0 and not asking.cancelled():
            if call.ledger.wait(position, min(rest, waited.patience.tell_s), asking.cancelled):
                break
            waited.beat()
        call = _prepared(operation, call, request, asking.claimant)  # the outside world may have changed too

"""One call of an operation, from raw arguments to a plain result. Every surface calls through here; no wire format.

An `Invocation` admits the caller and separates who they are from what they ask, parses the rest, answers from an
earlier call with the same key, prepares what is slow, runs the handler in one unit of work, waits for news, lets follow
what must follow, and shows the result. Arguments that every operation accepts beside its own are in
`arguments.py`; questions to a person during a call in `elicitation.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from handrail.domain.crew.agent import Agent, Writer
from handrail.domain.crew.outbox import HUMAN, unread_count
from handrail.domain.crew.presence import arrive, find_agent
from handrail.domain.crew.token import fits, knows_secret
from handrail.kernel.errors import IdentityUnproven, InvalidParams, Refusal, StoreAway, StoreRefused
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Operation, Question
from handrail.surfaces.arguments import AGENT_ID, AGENT_SECRET, FENCE, CommonArguments, parse_arguments, take_common
from handrail.surfaces.cancellable_call import CancellableCall
from handrail.surfaces.elicitation import (
    ELICITED,
    Answered,
    Conversation,
    Meanwhile,
    OpenQuestions,
    Waited,
    merge_told_once,
)
from handrail.surfaces.idempotency import KeyedCall

UNREAD = "unread_messages"
REPLAYED = "idempotent"
"""Set in an answer that repeats an earlier one."""


class CallingClient:
    """What is known about who is behind a connection. One per connection; a call without one stands alone."""

    def __init__(self, agents: tuple[str, ...] = (), session: str | None = None) -> None:
        self.session = session
        """A name for the connection, if it outlives a call."""
        self.agents = list(agents)
        """The agents that have registered or proved their identity here."""
        self.noted: set[str] = set()
        """Agents whose name was used to write without proof, which the ledger notes once."""
        self.asked = OpenQuestions()
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


def invoke(
    operation: Operation[Any, Any],
    call: Call,
    arguments: Mapping[str, Any],
    *,
    actor: Actor,
    client: CallingClient | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    meanwhile: Meanwhile | None = None,
) -> Any:
    """One call, from raw arguments to a result of plain JSON values. Raises Refusal."""
    invocation = Invocation(operation, call, actor, client or CallingClient(), cancelled, meanwhile or Meanwhile())
    return invocation.answer(arguments)


class Invocation:
    """One call under way. `answer` is the whole path; the methods below are its stages, in order."""

    def __init__(
        self,
        operation: Operation[Any, Any],
        call: Call,
        actor: Actor,
        client: CallingClient,
        cancelled: Callable[[], bool],
        meanwhile: Meanwhile,
    ) -> None:
        kept = operation.wait.keeps() if operation.wait is not None and operation.wait.keeps is not None else None
        self._operation = operation
        self._call = msgspec.structs.replace(call, session=client.session, kept=kept)
        self._actor = actor
        self._client = client
        self._cancelled = cancelled
        self._meanwhile = meanwhile
        self._waited = Waited(meanwhile.patience, meanwhile.tell)
        self._claimant = Claimant()
        self._rows: tuple[CancellableCall, ...] = ()
        """The rows by which others see this call."""
        self._keyed: KeyedCall | None = None

    def answer(self, arguments: Mapping[str, Any]) -> Any:
        common, rest = take_common(self._operation, self._call, arguments, self._meanwhile.known_as)
        rest = self._admit(rest)
        request = parse_arguments(self._operation, rest)
        self._act_as(request)
        if not self._operation.stored:
            return msgspec.to_builtins(self._operation.handler(self._prepared(request), request), str_keys=True)
        with contextlib.ExitStack() as stack:
            self._begin(stack, request, rest, common)
            answered = self._converse(request)
        return self._shown(answered)

    def _admit(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Separates who calls from the operation's own arguments, which it returns. If the operation itself has an
        argument of one of these names, it stays the operation's."""
        rest = dict(arguments)
        if not self._operation.stored:
            return rest
        own = self._operation.request.__struct_fields__
        given = {name: rest.pop(name) for name in (AGENT_ID, FENCE, AGENT_SECRET) if name in rest and name not in own}
        agent_id, fence, secret = given.get(AGENT_ID), given.get(FENCE), given.get(AGENT_SECRET)
        if not isinstance(agent_id, str | None) or not isinstance(secret, str | None):
            raise InvalidParams("agent_id and agent_secret are texts", hint="agent_register gives both")
        if fence is not None and (not isinstance(fence, int) or isinstance(fence, bool)):
            raise InvalidParams("fence is a number", hint="task_claim gives it")
        meant = agent_id if agent_id is not None else self._client.agent
        self._claimant = Claimant(meant, fence, secret, agent_id)
        return rest

    def _act_as(self, request: Any) -> None:
        """The agent that the request itself names as the acting one, if the operation has such an argument."""
        if self._operation.acts_as is not None:
            named = getattr(request, self._operation.acts_as)
            self._claimant = msgspec.structs.replace(self._claimant, agent_id=None if named == HUMAN else named)

    def _begin(
        self, stack: contextlib.ExitStack, request: Any, arguments: Mapping[str, Any], common: CommonArguments
    ) -> None:
        """Does what an `op_id` or an idempotency key asks for; it ends with `stack`."""
        operation, call, claimant = self._operation, self._call, self._claimant
        caller = claimant.agent_id
        if caller is None or (call.crew.strict and caller not in self._client.agents):  # not proved yet
            caller = self._actor.name
        for op_id in common.op_ids:
            row = CancellableCall(call, self._actor, caller, op_id, operation.name)
            stack.enter_context(row.begun(arguments, self._cancelled))
            self._rows += (row,)
        if common.key is not None:
            self._keyed = KeyedCall(operation, call, common.key, request, (claimant.named, claimant.fence))
            if operation.prepare is not None:
                turn = stack.enter_context(self._keyed.turn(self._actor, self._cancelled))
                self._rows += (turn,) if turn is not None else ()

    def _converse(self, request: Any) -> Answered:
        """The answer, after asking the person at the client what it asks of them, if there is one."""
        asks, person = self._operation.asks, self._meanwhile.person
        if asks is None or person is None or self._keyed is not None:
            # A person's answer is not part of the arguments, so it cannot be found again by a key.
            return self._answer_from_store(request, self._actor)
        by_person = Actor(self._actor.name, ELICITED)
        conversation = Conversation(
            asks,
            person,
            self._waited,
            self._call.ledger,
            answer_to=lambda asked: self._answer_from_store(asked, self._actor, conversation.question),
            answer_to_person=lambda brought: self._answer_from_store(brought, by_person),
        )
        return conversation.answer(request)

    def _answer_from_store(
        self, request: Any, actor: Actor, would_ask: Callable[[Any, Any], Question | None] | None = None
    ) -> Answered:
        """The answer of an operation that uses the store. `would_ask` says what a person should be asked because of a
        result, if there is one to ask."""
        agent_id = self._claimant.agent_id
        if agent_id is not None and actor.channel != ELICITED:  # a person's answer is not attributed to their agent
            actor = Actor(agent_id, actor.channel)
        replays = self._keyed is not None and self._keyed.replayed  # then there is nothing to prepare
        call = self._call if replays else self._prepared(request)
        try:
            answered = self._wait(call, request, actor, would_ask)
        except (IdentityUnproven, StoreRefused):
            raise
        except Refusal:
            if agent_id is not None:  # a refused call still shows that its agent is present
                with contextlib.suppress(StoreRefused):
                    call.ledger.run(actor, lambda unit: arrive(unit, agent_id, call.crew))
            raise
        if agent_id is not None and self._operation.effect is not Effect.READ:
            self._client.noted.add(agent_id)
        return self._follow(call, request, answered, actor)

    def _prepared(self, request: Any) -> Call:
        """The call with the result of its operation's `prepare`."""
        if self._operation.prepare is None:
            return self._call
        looking = msgspec.structs.replace(self._call, writer=Writer(self._claimant.agent_id, self._claimant.fence))
        return msgspec.structs.replace(self._call, prepared=self._operation.prepare(looking, request))

    def _wait(
        self, call: Call, request: Any, actor: Actor, would_ask: Callable[[Any, Any], Question | None] | None
    ) -> Answered:
        """The first answer worth a reply or a question, or the last one there was time for."""
        wait, waited = self._operation.wait, self._waited
        wait_ms = min(wait.for_ms(request), call.bounds.wait_ms) if wait is not None else 0
        if wait is None or wait_ms <= 0:
            return self._run(call, request, actor)
        end_s = waited.so_far_s + wait_ms / 1000
        answered: Answered | None = None
        while True:
            try:
                position = call.ledger.position()
                answered = self._run(call, request, actor)
                left = end_s - waited.so_far_s
                if wait.is_over(answered.result) or left <= 0 or self._cancelled():
                    return answered
                if would_ask is not None and would_ask(request, answered.result) is not None:
                    return answered
                # No longer than a heartbeat: a waiting agent is present, and must not lose its claims by waiting.
                self._wait_for_news(position, min(left, call.crew.heartbeat_ms / 1000))
            except StoreAway as away:
                if answered is None or self._operation.effect is Effect.READ:
                    raise
                warning = f"while the call waited: {away.message}; what it did before is recorded"
                return answered._replace(warning=warning)
            call = self._prepared(request)  # the outside world may have changed too

    def _wait_for_news(self, position: int, within_s: float) -> None:
        """Waits for the ledger's next event, telling the caller from time to time."""
        waited = self._waited
        until_s = waited.so_far_s + within_s
        while (rest := until_s - waited.so_far_s) > 0 and not self._cancelled():
            if self._call.ledger.wait(position, min(rest, waited.patience.tell_s), self._cancelled):
                return
            waited.beat()

    def _run(self, call: Call, request: Any, actor: Actor) -> Answered:
        """The handler's answer, in one unit of work."""
        agent_id = self._claimant.agent_id
        writing = self._operation.effect is not Effect.READ
        if agent_id is not None and self._is_heard(actor):
            # A store that cannot be written now can still be read.
            with contextlib.suppress(*(() if writing else (StoreAway,))):
                call.ledger.renew(agent_id, call.crew.lease_ms)
        answered = call.ledger.run(actor, lambda unit: self._in_unit(call, unit, request), writing=writing)
        if self._ends_at_once:
            for row in self._rows:
                row.has_ended()
        return answered

    def _in_unit(self, call: Call, unit: UnitOfWork, request: Any) -> Answered:
        writer = Writer(None, self._claimant.fence)
        if self._claimant.agent_id is not None:
            writer = self._identify(unit, self._claimant.agent_id)
        for row in self._rows:
            row.check(unit)
        kept = self._keyed.answer(unit) if self._keyed is not None else None
        if kept is not None:
            result = kept.result
        else:
            rules = call.rules()  # looked at once for each try, and the same throughout it
            now = msgspec.structs.replace(call, unit=unit, writer=writer, rules=lambda: rules)
            result = self._operation.handler(now, request)
            if self._keyed is not None:
                self._keyed.keep(unit, request, result)
        if self._ends_at_once:
            for row in self._rows:
                row.end_in(unit)
        if writer.agent_id is None or not self._operation.tells_unread:
            return Answered(result, writer)
        return Answered(result, writer, unread_count(unit, writer.agent_id))

    def _follow(self, call: Call, request: Any, answered: Answered, actor: Actor) -> Answered:
        """The answer after what must follow it. If that fails, the answer still stands."""
        if self._operation.follow is None:
            return answered
        try:
            then = self._operation.follow(call, request, answered.result)
            if then is None:
                return answered

            def followed(unit: UnitOfWork) -> Any:
                return then(msgspec.structs.replace(call, unit=unit, writer=answered.writer))

            return answered._replace(result=call.ledger.run(actor, followed, writing=True))
        except Refusal as refusal:
            return answered._replace(warning=f"{refusal.message}; what was asked for is done")

    def _shown(self, answered: Answered) -> Any:
        """The result as plain JSON values, with what is told beside it; the client learns who called."""
        operation = self._operation
        replayed = self._keyed is not None and self._keyed.replayed
        shown = msgspec.to_builtins(answered.result, str_keys=True)
        if answered.told:
            shown |= merge_told_once(tuple(answered.told), answered.told, shown)
        if answered.writer.proven and answered.writer.agent_id is not None:
            self._client.knows(answered.writer.agent_id)
        elif operation.introduces and answered.writer.agent_id is None and not (replayed and self._call.crew.strict):
            self._client.knows(shown["id"])
        if not isinstance(shown, dict):
            return shown
        if replayed:
            shown[REPLAYED] = True
        if answered.unread:
            shown[UNREAD] = answered.unread
        if answered.warning is not None:
            shown["warnings"] = [*shown.get("warnings", ()), answered.warning]
        return shown

    @property
    def _ends_at_once(self) -> bool:
        """True if all that a call does is one unit of work, so that its end can be committed with it."""
        operation = self._operation
        return operation.effect is not Effect.READ and operation.wait is None and operation.asks is None

    def _is_heard(self, actor: Actor) -> bool:
        """Whether a call counts as a sign of life of its agent: with strict identity, only once it has proved it."""
        call, agent_id, secret = self._call, self._claimant.agent_id, self._claimant.secret
        if agent_id is None or not call.crew.strict or agent_id in self._client.agents:
            return agent_id is not None
        if secret is None:
            return False

        def proved(unit: UnitOfWork) -> bool:
            agent = unit.get(Agent, agent_id)
            return agent is not None and knows_secret(unit, agent, secret)

        return call.ledger.run(actor, proved)

    def _identify(self, unit: UnitOfWork, agent_id: str) -> Writer:
        """The caller as an agent. An unproven one is refused or noted, depending on the settings."""
        agent = find_agent(unit, agent_id)
        proven = agent.id in self._client.agents or knows_secret(unit, agent, self._claimant.secret)
        if not proven and self._call.crew.strict:
            raise _unproven(agent, self._claimant.secret)
        arrive(unit, agent.id, self._call.crew)
        if not proven and self._operation.effect is not Effect.READ and agent.id not in self._client.noted:
            agent = find_agent(unit, agent_id)  # as its arrival left it
            counted = msgspec.structs.replace(agent, mismatches=agent.mismatches + 1)
            unit.record("agent.unproven", counted, data={"tool": self._operation.name})
        return Writer(agent.id, self._claimant.fence, proven)


def _unproven(agent: Agent, secret: str | None) -> IdentityUnproven:
    if secret is not None and fits(agent, secret):
        return IdentityUnproven(
            f"the secret of {agent.name} ({agent.id}) was not given out on this machine, so it proves nothing here",
            hint="register as a new agent; `handrail db trust --credentials`, by a person, lets old secrets in",
            id=agent.id,
        )
    return IdentityUnproven(
        f"this call names {agent.name} ({agent.id}) and does not prove to be its own",
        hint="send agent_secret, which agent_register gave, or register on this connection",
        id=agent.id,
    )

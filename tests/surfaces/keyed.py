"""Operations made for tests of calls with keys: one that writes, and looks at the world for as long as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call, Effect, Ledger, Operation, ResultT
from handrail.surfaces.invocation import invoke
from handrail.toolsets.vocabulary import WORKFLOW
from tests.store.records import workflow
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import RegistryDesk


class Make(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be made."""

    name: str
    wait_ms: int = 0


class Made(msgspec.Struct, frozen=True):
    """What was made."""

    id: str
    names: list[str]


def make(call: Call, request: Make) -> Made:
    made = workflow(call.work.new_id("wf"), name=request.name)
    call.work.record("workflow.created", made)
    return Made(made.id, [request.name])


def an_operation(**given: Any) -> Operation[Any, Any]:
    """One that makes something, with whatever else a test wants of it."""
    plain: dict[str, Any] = {
        "name": "make",
        "toolset": WORKFLOW,
        "effect": Effect.WRITE,
        "stored": True,
        "summary": "Makes it",
        "request": Make,
        "response": Made,
        "handler": make,
        "examples": (),
    }
    return Operation(**{**plain, **given})


def call_it(desk: RegistryDesk, operation: Operation[Any, Any], **arguments: Any) -> Any:
    given_name = {"name": "it", "idempotency_key": "k1", **arguments}
    return invoke(operation, desk._handrail.call, given_name, actor=TESTER)


def workflows(desk: RegistryDesk) -> int:
    """How many there are."""
    return desk.store.run(TESTER, lambda unit: unit.count(Workflow, Query()))


class Slow:
    """A look at the world that takes until the test lets it go on."""

    def __init__(self) -> None:
        self.times = 0
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, call: Call, request: Any) -> None:
        del call, request
        self.times += 1
        self.begun.set()
        assert self.go_on.wait(20)


class Noticing:
    """A ledger that notices when somebody waits for news."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.waiting = threading.Event()

    def run(self, actor: Actor, work: Callable[[UnitOfWork], ResultT], *, writing: bool = False) -> ResultT:
        return self._ledger.run(actor, work, writing=writing)

    def renew(self, holder: str, ttl_ms: int) -> None:
        self._ledger.renew(holder, ttl_ms)

    def position(self) -> int:
        return self._ledger.position()

    def clock_remark(self) -> str | None:
        return self._ledger.clock_remark()

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        self.waiting.set()
        return self._ledger.wait(position, timeout_s, cancelled)


def noticed(desk: RegistryDesk) -> threading.Event:
    """Set as soon as a call at this desk waits for news."""
    ledger = Noticing(desk._handrail.call.ledger)
    desk.with_call(ledger=ledger)
    return ledger.waiting

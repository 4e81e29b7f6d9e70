"""Calls that are done only once: an answer is kept under its idempotency key, committed with what the call did, and a
later call with the same key gets that answer instead of being done again.

A key belongs to one tool. What was asked (the parsed arguments, the acting agent, the repository) is kept as a hash;
asking something else under the same key is refused. Refusals are not kept. Of two concurrent calls one commits, and the
other is retried and finds its answer. If an operation has a `prepare`, which can be slow and touch the outside world,
the second call waits for the first instead.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.domain.registry.cancellation import RunningCall, end_call, is_running
from handrail.kernel.errors import KeyReused, StoreBusy
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Actor
from handrail.kernel.records import KeyWrite, UnitOfWork
from handrail.known_types import make_known
from handrail.operation import Call, Operation
from handrail.surfaces.arguments import RESERVED
from handrail.surfaces.cancellable_call import CancellableCall

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")

KEPT_MS = 24 * 60 * 60 * 1000
"""How long an answer is kept."""
LONGEST_TURN_MS = 10 * 60 * 1000
"""A first call that has not ended after this long counts as lost, if nobody can tell whether its process still runs."""
LOOK_S = 5.0
"""How long a second call waits before it checks whether the first one's process still runs."""
UNKEPT = "secret"
"""The member of an answer that is never kept."""
TOLD_ONCE = "the secret was told once and is not kept; where it was lost, register anew under another key"


class KeptAnswer(msgspec.Struct, frozen=True):
    """An answer that was given before."""

    result: Any


class KeyedCall:
    """One call with an idempotency key."""

    def __init__(
        self, operation: Operation[Any, Any], call: Call, key: str, request: Any, who: tuple[Any, ...]
    ) -> None:
        self._operation = operation
        self._call = call
        self._key = key
        self.scope = f"{operation.toolset.family}.{operation.name}"
        self._hash = _hash([call.here.repository, *who, request])
        self._secret = UNKEPT in getattr(operation.response, "__struct_fields__", ())
        self.replayed = False
        """True once an earlier answer was found."""

    def answer(self, unit: UnitOfWork) -> KeptAnswer | None:
        """What was answered before. Raises KeyReused if something else was asked."""
        found = unit.key_answer(self.scope, self._key)
        self.replayed = found is not None
        if found is None:
            return None
        asked, answer = found
        if asked != self._hash:
            raise KeyReused(
                f"idempotency_key {self._key} was used for {self._operation.name} with other arguments",
                hint="a key stands for one call: repeat it as it was, or take a new key",
                idempotency_key=self._key,
            )
        if self._operation.follow is not None:  # `follow` needs the answer as its own type
            make_known(self._operation.response)
            return KeptAnswer(msgspec.json.decode(answer, type=self._operation.response))
        result = msgspec.json.decode(answer)
        return KeptAnswer({**result, "warnings": [TOLD_ONCE]} if self._secret else result)

    def keep(self, unit: UnitOfWork, request: Any, result: Any) -> None:
        """Keeps an answer together with what this unit writes. One that is still waiting for something is not kept."""
        wait = self._operation.wait
        if wait is not None and wait.for_ms(request) > 0 and not wait.is_over(result):
            return
        shown = msgspec.to_builtins(result, str_keys=True)
        if self._secret:
            shown.pop(UNKEPT, None)
        now = unit.now_ms()
        answer = msgspec.json.encode(shown)
        unit.keep_answer(KeyWrite(self.scope, self._key, self._hash, answer, now + KEPT_MS, now))

    @contextlib.contextmanager
    def turn(self, actor: Actor, cancelled: Callable[[], bool]) -> Iterator[CancellableCall | None]:
        """Held while this call is the only one under way with its key. Gives its row, or None if there is an answer."""
        op_id = f"{RESERVED}{self.scope}:{self._key}"
        row = CancellableCall(self._call, actor, actor.name, op_id, self._operation.name)
        if not self._wait_for_turn(row, actor, cancelled):
            yield None
            return
        with row.until_it_ends(lambda: False):
            yield row

    def _wait_for_turn(self, row: CancellableCall, actor: Actor, cancelled: Callable[[], bool]) -> bool:
        """Waits for the first call to end. False if it left an answer."""

        def take(unit: UnitOfWork) -> bool | None:
            if self.answer(unit) is not None:
                return False
            first = unit.get(RunningCall, row.op_id)
            if first is not None and self._goes_on(first, unit.now_ms()):
                return None
            end_call(unit, row.op_id, "done", lost=True)  # left by a call that began and never ended
            row.begin_in(unit, {})
            return True

        ledger = self._call.ledger
        deadline = time.monotonic() + self._call.bounds.wait_ms / 1000
        while True:
            position = ledger.position()
            taken = ledger.run(actor, take, writing=True)
            if taken is not None:
                return taken
            left = deadline - time.monotonic()
            if left <= 0 or cancelled():
                raise StoreBusy(
                    f"the first call with idempotency_key {self._key} is still under way",
                    hint="call again with the same key and arguments: its answer will be there",
                )
            ledger.wait(position, min(left, LOOK_S), cancelled)

    def _goes_on(self, first: RunningCall, now_ms: int) -> bool:
        alive = self._call.world.is_alive(first.session) if first.session is not None else None
        if alive is None and now_ms - first.started_at > LONGEST_TURN_MS:
            return False
        return is_running(first, self._call.world.is_alive)


def _hash(asked: list[Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()

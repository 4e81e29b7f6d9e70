"""A running call that others can see and cancel: it has a row from its beginning to its end. What the row means is
defined in `domain/registry/cancellation.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handrail.domain.registry.cancellation import CancellingCaller, begin_call, check_wanted, end_call
from handrail.kernel.errors import Cancelled, Refusal, StoreAway, StoreRefused
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call


class CancellableCall:
    """One call with an `op_id`."""

    def __init__(self, call: Call, actor: Actor, caller: str, op_id: str, tool: str) -> None:
        """`actor` records its beginning and end. Not the acting agent: that would be a sign of life."""
        self._call = call
        self._actor = actor
        self._caller = caller
        self._tool = tool
        self.op_id = op_id
        self._ended = False
        """True once its end was committed with what it did."""

    def begin_in(self, unit: UnitOfWork, arguments: Mapping[str, Any]) -> None:
        caller = CancellingCaller(self._caller, self._call.session or self._call.world.new_session())
        begin_call(unit, self.op_id, self._tool, caller, arguments, self._call.world.is_alive)

    @contextlib.contextmanager
    def begun(self, arguments: Mapping[str, Any], cancelled: Callable[[], bool]) -> Iterator[None]:
        """Held while the call is under way."""
        self._call.ledger.run(self._actor, lambda unit: self.begin_in(unit, arguments), writing=True)
        with self.until_it_ends(cancelled):
            yield

    @contextlib.contextmanager
    def until_it_ends(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Held while a call that has already begun is under way. Raises Cancelled at the end if it was cancelled while
        its answer was being prepared."""
        try:
            yield
        except BaseException as error:
            given_up = isinstance(error, Cancelled) or cancelled()
            told = {"refused": error.code} if isinstance(error, Refusal) else {}
            with contextlib.suppress(StoreRefused):
                self._end("cancelled" if given_up else "done", **told)
            raise
        if not self._ended:
            too_late = None
            with contextlib.suppress(StoreAway):  # what was asked for is done, and its row ends with this process
                too_late = self._end("cancelled" if cancelled() else "done")
            if too_late is not None:
                raise too_late

    def check(self, unit: UnitOfWork) -> None:
        """Raises Cancelled if somebody has cancelled it."""
        check_wanted(unit, self.op_id)

    def end_in(self, unit: UnitOfWork) -> None:
        """Records its end together with what it did: a cancellation comes before both or after both."""
        end_call(unit, self.op_id, "done")

    def has_ended(self) -> None:
        """Called once what `end_in` wrote is committed."""
        self._ended = True

    def _end(self, status: str, **told: Any) -> Cancelled | None:
        def end(unit: UnitOfWork) -> Cancelled | None:
            try:
                check_wanted(unit, self.op_id)
            except Cancelled as wanted:
                end_call(unit, self.op_id, "cancelled", **told)
                return wanted
            end_call(unit, self.op_id, status, **told)
            return None

        return self._call.ledger.run(self._actor, end, writing=True)

"""What the page can be asked: the record of a route, what a handler is given, and what all handlers share. No sockets,
no table of routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from handrail.domain.work.lookup import find_task, find_workflow
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NotAllowed
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call

CHANNEL = "page"
"""The channel that the ledger records for what people do here."""


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking."""

    name: str
    decides: bool
    """True for a person signed in with a cookie of this page: only they change anything."""

    @property
    def actor(self) -> Actor:
        """The actor that the ledger records."""
        return Actor(self.name, CHANNEL)

    def check_decides(self, what: str) -> None:
        """Raises NotAllowed unless they may do what is reserved for people."""
        if not self.decides:
            raise NotAllowed(
                f"only a person who signed in here {what}", hint="sign in with the link that `handrail up` prints"
            )


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, parsed."""

    visitor: Visitor
    path: Mapping[str, str] = {}
    """The parts of the path that the pattern names."""
    query: Mapping[str, str] = {}
    body: Any = None
    """The posted body, decoded."""


class PageRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One address. A handler runs on a worker thread and returns what `msgspec.json` can encode, or raises Refusal."""

    method: str
    pattern: str
    """Such as `/api/workflows/{workflow}/graph`."""
    handler: Callable[[Call, PageRequest], Any]
    stored: bool = True
    """True: the handler runs inside one unit of work (`call.work`). False: it also reads files or git, and opens units
    of its own with `call.ledger.run`, so that none is open while it reads."""


def read(pattern: str, handler: Callable[[Call, PageRequest], Any], *, stored: bool = True) -> PageRoute:
    return PageRoute(method="GET", pattern=pattern, handler=handler, stored=stored)


def write(pattern: str, handler: Callable[[Call, PageRequest], Any], *, stored: bool = True) -> PageRoute:
    """A route that changes something: only for visitors who decide."""
    return PageRoute(method="POST", pattern=pattern, handler=handler, stored=stored)


def workflow_asked(unit: UnitOfWork, workflow_id: str) -> Workflow:
    """The workflow with this id, or a refusal that says where the page lists them."""
    return find_workflow(unit, workflow_id, hint="the Workflows screen lists them all")


def task_asked(unit: UnitOfWork, task_id: str) -> Task:
    """The task with this id, or a refusal that says where the page lists them."""
    return find_task(unit, task_id, hint="the workflow's Tasks tab lists its tasks")

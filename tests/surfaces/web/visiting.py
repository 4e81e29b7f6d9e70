"""A visitor of the page: asks its routes over a desk's store, without sockets, as the server asks them."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.surfaces.web.route import CHANNEL, PageRequest, Visitor
from handrail.surfaces.web.routes import RouteTable
from handrail.surfaces.web.work_routes import WORK_ROUTES
from tests.toolsets.plan.planned import Desk

PERSON = Visitor(name="maria", decides=True)
READER = Visitor(name="token", decides=False)
ROUTES = RouteTable(WORK_ROUTES)


class Page:
    """What a browser sees: plain JSON, or the refusal."""

    def __init__(self, call: Call, visitor: Visitor = PERSON) -> None:
        self._call = call
        self.visitor = visitor

    def get(self, path: str, **query: str) -> Any:
        return self._ask("GET", path, PageRequest(visitor=self.visitor, query=query))

    def post(self, path: str, **body: Any) -> Any:
        return self._ask("POST", path, PageRequest(visitor=self.visitor, body=body))

    def refused(self, path: str, **body: Any) -> Refusal:
        """The refusal that a post must end in."""
        try:
            answer = self.post(path, **body)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{path} was not refused: {answer}")

    def _ask(self, method: str, path: str, asked: PageRequest) -> Any:
        found = ROUTES.find(method, path)
        assert found is not None, path
        route, named = found
        asked = msgspec.structs.replace(asked, path=named)
        if not route.stored:
            answer = route.handler(self._call, asked)
        else:
            actor = Actor(self.visitor.name, CHANNEL)
            answer = self._call.ledger.run(
                actor, lambda unit: route.handler(msgspec.structs.replace(self._call, unit=unit), asked)
            )
        return msgspec.json.decode(msgspec.json.encode(answer))


def page_of(desk: Desk, visitor: Visitor = PERSON) -> Page:
    """The page of the server whose tools the desk calls."""
    return Page(desk._handrail.call, visitor)

"""The table of addresses: one about something that is not there says where the page lists what is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from handrail.kernel.errors import RunNotFound, TaskNotFound
from handrail.surfaces.web.route import PageRequest, PageRoute, Visitor
from handrail.surfaces.web.routes import ROUTES
from tests.domain.overview.crewed import Crewed
from tests.toolsets.plan.planned import TESTER

VISITOR = Visitor(name="ann", decides=True)
ABOUT = [route for route in ROUTES if "{workflow}" in route.pattern or "{task}" in route.pattern]


@pytest.mark.parametrize("route", ABOUT, ids=lambda route: route.pattern)
def test_an_unknown_thing_is_refused_in_the_pages_words(route: PageRoute, tmp_path: Path) -> None:
    call = Crewed(tmp_path)._handrail.call
    asked = PageRequest(visitor=VISITOR, path={"workflow": "wf_unknown", "task": "task_unknown"}, body={})
    with pytest.raises((RunNotFound, TaskNotFound)) as refused:
        if route.stored:
            call.ledger.run(TESTER, lambda unit: route.handler(msgspec.structs.replace(call, unit=unit), asked))
        else:
            route.handler(call, asked)
    assert "lists" in str(refused.value.hint)
    assert "workflow_" not in str(refused.value.hint), "tools are for agents"

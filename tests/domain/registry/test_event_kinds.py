"""The table of event kinds: it names every kind that is recorded and no other, and says which of them are undone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.domain.registry.event_kinds import EVENT_KINDS, KINDS, is_write
from handrail.domain.work.task import TASK_MACHINE
from handrail.domain.work.workflow import WORKFLOW_MACHINE
from handrail.domain.workspaces.records import WORKSPACE_MACHINE
from handrail.kernel.errors import NothingToUndo
from handrail.kernel.ledger import Event

SOURCE = Path(__file__).parent.parent.parent.parent / "src" / "handrail"
MACHINES = {"task.": TASK_MACHINE, "workflow.": WORKFLOW_MACHINE, "workspace.": WORKSPACE_MACHINE}
"""Kinds that end in a state."""
FORWARD = ("pipeline", "gate", "token", "tx")
"""Families of which nothing is undone: decisions and rights."""
CLAIMS = {"task.claimed", "task.claim_resumed", "task.claim_ended", "task.released", "graph.locked", "graph.unlocked"}
READ = {"message.read", "message.acknowledged"}


class Recorded(ast.NodeVisitor):
    """The kinds of events that a module records."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.found: set[str] = set()
        self._within: list[ast.FunctionDef] = []
        self.visit(module)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within.append(node)
        self.generic_visit(node)
        self._within.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("record", "record_changes") and node.args:
            place = 0 if node.func.attr == "record" else 1
            within = self._within[-1] if self._within else None
            if within is None or within.name not in ("record", "record_changes"):
                self.found.update(self._kinds(node.args[place], within))

    def _kinds(self, given: ast.expr, within: ast.FunctionDef | None) -> Iterator[str]:
        if isinstance(given, ast.Constant):
            yield str(given.value)
        elif isinstance(given, ast.IfExp):
            yield from self._kinds(given.body, within)
            yield from self._kinds(given.orelse, within)
        elif isinstance(given, ast.JoinedStr):
            start = given.values[0]
            assert isinstance(start, ast.Constant), ast.unparse(given)
            assert isinstance(start.value, str)
            yield from (start.value + state for state in MACHINES[start.value].states)
        elif isinstance(given, ast.Name):
            yield from self._named(given.id, within)
        else:
            pytest.fail(f"{ast.unparse(given)} cannot be told beforehand")

    def _named(self, name: str, within: ast.FunctionDef | None) -> Iterator[str]:
        """A constant of this module or of the one it comes from, or what the function is called with."""
        for node in self.module.body:
            if isinstance(node, ast.Assign):
                names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets[:1]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                for known, value in zip(names, values, strict=False):
                    if ast.unparse(known) == name:
                        yield from self._kinds(value, None)
                        return
            if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
                path = SOURCE.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
                yield from Recorded(ast.parse(path.read_text(encoding="utf-8")))._named(name, None)
                return
        assert within is not None, name
        place = [argument.arg for argument in within.args.args if argument.arg != "self"].index(name)
        calls = [node for node in ast.walk(self.module) if isinstance(node, ast.Call)]
        given = [node.args[place] for node in calls if ast.unparse(node.func).split(".")[-1] == within.name]
        assert given, f"nobody calls {within.name}"
        for one in given:
            yield from self._kinds(one, None)


def recorded_kinds() -> set[str]:
    found: set[str] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ".record" in text:
            found |= Recorded(ast.parse(text)).found
    return {kind for kind in found if "." in kind}


def test_every_kind_that_is_recorded_has_its_place_and_no_other_has() -> None:
    recorded = recorded_kinds()
    assert len(recorded) > 50, "the search has gone blind"
    assert recorded - KINDS.keys() == set(), "name them in EVENT_KINDS"
    machines = {f"{start}{state}" for start, machine in MACHINES.items() for state in machine.states}
    assert KINDS.keys() - recorded - machines == set(), "nobody records these any more"


def test_the_search_for_kinds_can_fail() -> None:
    text = (
        "LAST = 'x.last'\ndef f(unit, kind):\n    unit.record(kind)\n"
        "def g(unit, a):\n    f(unit, 'x.one' if a else LAST)"
    )
    assert Recorded(ast.parse(text)).found == {"x.one", "x.last"}


def test_a_kind_is_named_once_and_has_a_verb() -> None:
    assert len(KINDS) == len(EVENT_KINDS)
    assert [kind.name for kind in EVENT_KINDS if not kind.verb] == ["ledger.undo"], "it has the verb of what it undid"


# -- which of them are undone -----------------------------------------------------------------------------------------


def event(kind: str) -> Event:
    return Event("wf_1", 3, 7, kind, "anna", "mcp", 5, {}, (), "")


@pytest.mark.parametrize("kind", [*KINDS, "gate.of_later", "op.of_later", "weather.changed"])
def test_decisions_claims_and_rights_are_not_undone_and_reading_is_passed_over(kind: str) -> None:
    family = kind.partition(".")[0]
    if family in FORWARD or kind in CLAIMS:
        with pytest.raises(NothingToUndo, match="only move forward") as refused:
            is_write(event(kind))
        assert refused.value.details == {"position": 7}
    else:
        assert is_write(event(kind)) is not (family == "op" or kind in READ)

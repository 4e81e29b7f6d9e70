"""Plans against a brute-force model: whatever is done to a plan, the counters say what a look at everything would."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handrail.domain.work.task import FINISHED, SHOWN_STATES, Dependency, Task
from handrail.domain.work.workflow import Tally
from handrail.kernel.errors import Refusal
from handrail.kernel.records import Query
from handrail.store.tables import BY_RECORD
from tests.toolsets.plan.plan_model import LEGAL
from tests.toolsets.plan.planned import Desk

NAMES = [f"t{number}" for number in range(10)]
GROUPS = [None, "a", "b"]


class Entry:
    """What the model knows of a task: nothing that could be computed."""

    def __init__(self, draft: dict[str, Any]) -> None:
        self.plan_anew(draft)
        self.status = "pending"
        self.traces = False

    def plan_anew(self, draft: dict[str, Any]) -> None:
        self.needs = list(dict.fromkeys(draft.get("depends_on", [])))
        self.parent = draft.get("parent")
        self.priority = draft["priority"]
        self.sequence = draft["sequence"]


@st.composite
def drafts(draw: st.DrawFn, names: list[str], known: list[str]) -> list[dict[str, Any]]:
    """Entries that may refer to each other and to what is there; sound ones and others."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    others = [*chosen, *known]
    found = []
    for name in chosen:
        entry: dict[str, Any] = {
            "name": name,
            "description": "",
            "sequence": draw(st.integers(0, 3)),
            "priority": draw(st.integers(0, 1)),
            "parallel_group": draw(st.sampled_from(GROUPS)),
            "depends_on": draw(st.lists(st.sampled_from(others), max_size=2, unique=True)),
        }
        if draw(st.integers(0, 3)) == 0:
            entry["parent"] = draw(st.sampled_from(others))
        found.append(entry)
    return found


class PlanMachine(RuleBasedStateMachine):
    """Agents that plan, work, fail and plan anew, against a plan that is looked at as a whole each time."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self.folder.name))
        self.store = self.desk.store
        self.model: dict[str, Entry] = {}
        self.workflow_id = self.desk.call("workflow_create", name="w", source_type="prompt", source_content="")["id"]
        self.desk.call("workflow_set_parallelism", id=self.workflow_id, max_parallel_tasks=3)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.verify() == []
            self.folder.cleanup()

    def refused(self, tool: str, **arguments: Any) -> str | None:
        """The code of the refusal, or None when it was done."""
        try:
            self.desk.call(tool, **arguments)
        except Refusal as refusal:
            return refusal.code
        return None

    # -- the model --------------------------------------------------------------------------------------------------

    def above(self, name: str, model: dict[str, Entry]) -> list[str]:
        found: list[str] = []
        parent = model[name].parent
        while parent in model and parent not in found:
            found.append(parent)
            parent = model[parent].parent
        return found

    def needs(self, name: str, model: dict[str, Entry] | None = None) -> set[str]:
        model = self.model if model is None else model
        return {need for member in (name, *self.above(name, model)) for need in model[member].needs}

    def open_parts(self, name: str) -> list[str]:
        return [other for other, entry in self.model.items() if entry.parent == name and entry.status not in FINISHED]

    def is_blocked(self, name: str) -> bool:
        return any(self.model[need].status not in FINISHED for need in self.needs(name))

    def is_sound(self, model: dict[str, Entry]) -> bool:
        """True when every unfinished task can be finished in some order: looked for by finishing what can be."""
        for name, entry in model.items():
            if name in self.above(name, model):
                return False
            if entry.status not in FINISHED and name in self.needs(name, model):
                return False
        done = {name for name, entry in model.items() if entry.status in FINISHED}
        while True:
            able = {
                name
                for name in model
                if name not in done
                and (self.needs(name, model) <= done or model[name].status in ("planning", "in_progress", "paused"))
                and all(part in done for part, entry in model.items() if entry.parent == name)
            }
            if not able:
                return len(done) == len(model)
            done |= able

    # -- what agents do ---------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        entries = data.draw(drafts(NAMES, sorted(self.model)))
        code = self.refused("workflow_add_tasks", id=self.workflow_id, tasks=entries)
        wanted = {**self.model, **{entry["name"]: Entry(entry) for entry in entries}}
        taken = any(entry["name"] in self.model for entry in entries)
        to_finished = any(
            parent in self.model and self.model[parent].status in FINISHED
            for parent in (entry.get("parent") for entry in entries)
        )
        own = any(entry["name"] in (*entry["depends_on"], entry.get("parent")) for entry in entries)
        if taken or own or to_finished or not self.is_sound(wanted):
            assert code == "INVALID_PLAN", entries
        else:
            assert code is None, entries
            self.model = wanted

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        status = data.draw(st.sampled_from(sorted(LEGAL)))
        entry = self.model[name]
        code = self.refused("task_update_status", id=self.id_of(name), status=status, outcome="o", error="e")
        if status not in LEGAL[entry.status]:
            assert code == "ILLEGAL_TRANSITION"
        elif status in ("planning", "in_progress") and self.is_blocked(name):
            assert code == "TASK_BLOCKED"
        elif status in FINISHED and self.open_parts(name):
            assert code == "TASKS_OPEN"
        else:
            assert code is None
            entry.status = status
            entry.traces |= status == "in_progress"

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def plan_task_anew(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        entry = self.model[name]
        plan = {"approach": "", "steps": []}
        code = self.refused("task_replan", id=self.id_of(name), reason="r", new_plan=plan)
        if entry.status in ("failed", "in_progress"):
            assert code is None
            entry.status, entry.traces = "pending", True
        else:
            assert code == "ILLEGAL_TRANSITION"

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        entry = self.model[name]
        code = self.refused("workflow_remove_task", task_id=self.id_of(name))
        if entry.status not in ("pending", "failed"):
            assert code == "ILLEGAL_TRANSITION"
        elif self.open_parts(name):
            assert code == "TASKS_OPEN"
        else:
            assert code is None
            needs = self.needs(name)
            for other in self.model.values():
                if name in other.needs and other.status not in FINISHED:
                    other.needs = [*(need for need in other.needs if need != name), *needs]
            self.drop(name)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def replan(self, data: st.DataObject) -> None:
        entries = data.draw(drafts(NAMES, sorted(self.model)))
        held = self.held()
        named = {entry["name"] for entry in entries}
        decided = {
            name
            for name, entry in self.model.items()
            if entry.status in ("pending", "failed") and (name in named or name not in held)
        }
        kept = {name: entry for name, entry in self.model.items() if name not in decided}
        taken = [entry for entry in entries if entry["name"] not in kept]
        wanted = dict(kept)
        for draft in taken:
            wanted[draft["name"]] = Entry(draft)
        code = self.refused("workflow_replan", id=self.workflow_id, reason="r", tasks=entries)
        names = set(wanted)
        unknown = any(
            name not in names for draft in taken for name in (*draft["depends_on"], draft.get("parent")) if name
        )
        own = any(draft["name"] in (*draft["depends_on"], draft.get("parent")) for draft in taken)
        to_finished = any(
            wanted[parent].status in FINISHED
            for parent in (draft.get("parent") for draft in taken)
            if parent and parent in wanted
        )
        if unknown or own or to_finished or not self.is_sound(wanted):
            assert code == "INVALID_PLAN", (entries, code)
            return
        assert code is None, entries
        for draft in taken:
            if draft["name"] in self.model:
                self.model[draft["name"]].plan_anew(draft)
                self.model[draft["name"]].status = "pending"
            else:
                self.model[draft["name"]] = Entry(draft)
        left = sorted(decided - named, key=lambda name: -len(self.above(name, self.model)))
        for name in left:
            self.drop(name)

    def held(self) -> set[str]:
        """What a running task is part of."""
        return {
            above
            for name, entry in self.model.items()
            if entry.status in ("planning", "in_progress", "paused")
            for above in self.above(name, self.model)
        }

    def drop(self, name: str) -> None:
        if self.model[name].traces or any(entry.parent == name for entry in self.model.values()):
            self.model[name].status = "skipped"
            return
        del self.model[name]
        for other in self.model.values():
            other.needs = [need for need in other.needs if need != name]

    # -- what must hold ---------------------------------------------------------------------------------------------

    def tasks(self) -> dict[str, Task]:
        with self.store.engine.reading() as reader:
            return {task.name: task for task, _ in reader.select(BY_RECORD[Task], Query())}

    def id_of(self, name: str) -> str:
        return self.tasks()[name].id

    @invariant()
    def the_counters_are_what_a_look_at_everything_says(self) -> None:
        if not getattr(self, "model", None):
            return
        tasks = self.tasks()
        assert set(tasks) == set(self.model)
        ids = {task.id: name for name, task in tasks.items()}
        with self.store.engine.reading() as reader:
            links = [link for link, _ in reader.select(BY_RECORD[Dependency], Query())]
            tally = reader.get(BY_RECORD[Tally], self.workflow_id)
        counts = dict.fromkeys(SHOWN_STATES, 0)
        for name, task in tasks.items():
            entry = self.model[name]
            shown = "blocked" if entry.status == "pending" and self.is_blocked(name) else entry.status
            counts[shown] += 1
            assert task.shown_status == shown, name
            assert task.open_children == len(self.open_parts(name)), name
            assert task.unblocks == sum(link.needs_id == task.id for link in links), name
            needed = {ids[link.needs_id] for link in links if link.task_id == task.id}
            assert task.unmet == sum(self.model[need].status not in FINISHED for need in needed), name
            if entry.status not in FINISHED:
                assert needed == self.needs(name), name
                assert set(task.depends_on) == set(entry.needs), name
        assert tally is not None
        assert tally[0].counts == counts

    @invariant()
    def what_is_next_and_how_far_it_is_follow(self) -> None:
        if not getattr(self, "model", None):
            return
        tasks = self.tasks()
        ready = [
            name
            for name, entry in self.model.items()
            if entry.status in ("pending", "failed") and not self.is_blocked(name) and not self.open_parts(name)
        ]
        ready.sort(key=lambda n: (-self.model[n].priority, self.model[n].sequence, -tasks[n].unblocks, tasks[n].id))
        at_work = [name for name, entry in self.model.items() if entry.status in ("planning", "in_progress")]
        running = sum(not self.open_parts(name) for name in at_work)  # a whole waits while its parts run
        answer = self.desk.call("workflow_next_tasks", limit=50)
        assert [task["name"] for task in answer["tasks"]] == ready
        assert answer["recommended_count"] == max(0, min(len(ready), 3 - running))
        unfinished = [entry.sequence for entry in self.model.values() if entry.status not in FINISHED]
        assert answer["all_complete"] is (not unfinished)
        progress = self.desk.call("workflow_progress")
        if unfinished:
            assert progress["current_sequence"] == min(unfinished)
        assert progress["estimated_remaining"] == len(unfinished)
        assert progress["total_tasks"] == len(self.model)


PlanMachine.TestCase.settings = settings(stateful_step_count=25)
TestPlans = PlanMachine.TestCase

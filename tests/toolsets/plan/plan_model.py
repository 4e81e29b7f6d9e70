"""A plan as a plain reference has it: a table of tasks, each with what it waits for, and nothing that could be counted.
What a changed graph of it may be, and what it does, is found by looking at everything.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.toolsets.registry.graph_model import Doc, by_ends, same, tidy

DONE = ("completed", "skipped")
OPEN = ("pending", "failed")
LEGAL = {
    "pending": {"planning", "in_progress", "skipped"},
    "planning": {"in_progress", "completed", "failed"},
    "in_progress": {"completed", "paused", "failed"},
    "paused": {"in_progress", "failed"},
    "failed": {"pending", "in_progress", "skipped"},
    "completed": set(),
    "skipped": set(),
}
"""What `task_update_status` may do, written out: a model that read the table under test would agree with any table."""
PART_OF = "part_of"
DEFAULTS: Doc = {"description": "", "priority": 0}
PROGRESS = ("status", "assignedAgent", "workspace", "startedAt", "finishedAt")


class Hold(NamedTuple):
    """Who had a task last, and until when."""

    holder: str | None = None
    until: int = 0


class Entry:
    """One task."""

    def __init__(self, name: str, attributes: Doc, parent: str | None = None) -> None:
        self.name = name
        self.attributes = {**DEFAULTS, **attributes}
        self.needs: set[str] = set()
        self.parent = parent
        self.status = "pending"
        self.traces = False
        self.hold = Hold()


class Reading(NamedTuple):
    """The edges of a document as a plan reads them."""

    needs: dict[str, set[str]]
    parents: dict[str, str]


class PlanModel:
    """The tasks of one workflow by their ids."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: dict[str, Entry] = {}

    # -- what it is ---------------------------------------------------------------------------------------------------

    def document(self) -> Doc:
        nodes, edges = {}, {}
        for key, task in self.tasks.items():
            said = {name: value for name, value in task.attributes.items() if value != ""}
            nodes[key] = {"label": task.name, "attributes": said}
            for need in task.needs:
                edges[by_ends(need, key)] = {"from": need, "to": key}
            if task.parent is not None:
                edges[by_ends(task.parent, key, PART_OF)] = {"from": task.parent, "to": key, "label": PART_OF}
        return {"name": self.name, "nodes": nodes, "edges": edges, "metadata": {}}

    def above(self, key: str) -> list[str]:
        found: list[str] = []
        while (parent := self.tasks[key].parent) is not None:
            found.append(parent)
            key = parent
        return found

    def waits_for(self, key: str) -> set[str]:
        """What must be done first: what is planned for it, and for what it is part of."""
        return set().union(*(self.tasks[one].needs for one in (key, *self.above(key))))

    def is_blocked(self, key: str) -> bool:
        return any(self.tasks[need].status not in DONE for need in self.waits_for(key))

    def has_open_parts(self, key: str) -> bool:
        return any(task.parent == key and task.status not in DONE for task in self.tasks.values())

    def holder(self, key: str, now: int) -> str | None:
        hold = self.tasks[key].hold
        return hold.holder if hold.until > now else None

    def ready(self, now: int) -> set[str]:
        """What can be begun and nobody has."""
        return {
            key
            for key, task in self.tasks.items()
            if task.status in OPEN
            and not self.is_blocked(key)
            and not self.has_open_parts(key)
            and self.holder(key, now) is None
        }

    # -- what it may become -------------------------------------------------------------------------------------------

    def verdict(self, after: Doc, names: set[str], now: int) -> str | None:
        """The code of the refusal that a changed graph must end in."""
        before = self.document()
        ways = self._read(after)
        if ways is None or not self._is_sayable(before, after) or not self._keeps_work(after, ways):
            return "GRAPH_INVALID"
        if not self._keeps_whole(ways) or not self._can_end(after, ways):
            return "GRAPH_INVALID"
        touched = [key for key in self.tasks if self._is_touched(key, after, ways)]
        return "CLAIM_HELD" if any(self.holder(key, now) not in (None, *names) for key in touched) else None

    @staticmethod
    def _read(after: Doc) -> Reading | None:
        needs: dict[str, set[str]] = {key: set() for key in after["nodes"]}
        parents: dict[str, str] = {}
        for edge in after["edges"].values():
            if not edge.keys() <= {"from", "to", "label"} or edge["from"] == edge["to"]:
                return None
            if "label" not in edge:
                needs[edge["to"]].add(edge["from"])
            elif edge["label"] != PART_OF or parents.setdefault(edge["to"], edge["from"]) != edge["from"]:
                return None
        return Reading(needs, parents)

    def _is_sayable(self, before: Doc, after: Doc) -> bool:
        names = [node.get("label", "") for node in after["nodes"].values()]
        if before["name"] != after["name"] or after["metadata"] or len(set(names)) < len(names) or "" in names:
            return False
        owners = {task.name: key for key, task in self.tasks.items()}
        for key, node in after["nodes"].items():
            said = node.get("attributes", {})
            if owners.get(node["label"], key) != key or not said.keys() <= {"sequence", "priority", "description"}:
                return False
            if key in self.tasks and "sequence" not in said:
                return False
            if said.get("sequence", 0) < 0 or abs(said.get("priority", 0)) > 1000:
                return False
        return True

    def _keeps_work(self, after: Doc, ways: Reading) -> bool:
        """Whether every task that is done or under way stays as it was planned."""
        for key, task in self.tasks.items():
            if task.status in OPEN:
                continue
            if key not in after["nodes"] or self._is_other(key, after):
                return False
            if {need for need in task.needs if need in after["nodes"]} != ways.needs[key]:
                return False
            if ways.parents.get(key) != task.parent:
                left = task.parent not in after["nodes"] and key not in ways.parents
                if not left or task.status not in DONE:
                    return False
        return True

    def _keeps_whole(self, ways: Reading) -> bool:
        """Whether nothing becomes part of what has ended, or of itself."""
        for key, above in ways.parents.items():
            was = self.tasks[key].parent if key in self.tasks else None
            if was != above and above in self.tasks and self.tasks[above].status in DONE:
                return False
            seen = {key}
            walk: str | None = above
            while walk is not None:
                if walk in seen:
                    return False
                seen.add(walk)
                walk = ways.parents.get(walk)
        return True

    def _can_end(self, after: Doc, ways: Reading) -> bool:
        """Whether all that is open can end in some order: looked for by ending whatever can."""
        status = {key: self.tasks[key].status if key in self.tasks else "pending" for key in after["nodes"]}
        ended = {key for key in status if status[key] in DONE}
        needs: dict[str, set[str]] = {}
        for key in status:
            needs[key] = set(ways.needs[key])
            walk = ways.parents.get(key)
            while walk is not None:
                needs[key] |= ways.needs[walk]
                walk = ways.parents.get(walk)
        while len(ended) < len(status):
            able = {
                key
                for key in status.keys() - ended
                if (needs[key] <= ended or status[key] not in OPEN)
                and all(part in ended for part, above in ways.parents.items() if above == key)
            }
            if not able:
                return False
            ended |= able
        return True

    def _is_other(self, key: str, after: Doc) -> bool:
        """Whether a task's own values would be others."""
        task, node = self.tasks[key], after["nodes"][key]
        return task.name != node.get("label") or not same(task.attributes, {**DEFAULTS, **node.get("attributes", {})})

    def _is_touched(self, key: str, after: Doc, ways: Reading) -> bool:
        task = self.tasks[key]
        if task.status in DONE:
            return False
        if key not in after["nodes"] or self._is_other(key, after):
            return True
        return task.needs != ways.needs[key] or task.parent != ways.parents.get(key)

    # -- what it becomes ----------------------------------------------------------------------------------------------

    def become(self, after: Doc, created: dict[str, str]) -> list[str]:
        """Makes the plan what a graph says, new tasks under their ids. The names of those that stay as skipped."""
        ways = self._read(after)
        assert ways is not None
        named = {key: node["label"] for key, node in after["nodes"].items()}
        renamed = {key for key, task in self.tasks.items() if named.get(key, task.name) != task.name}
        self._renew(after, ways, created, renamed)
        gone = [key for key in self.tasks if key not in after["nodes"] and key not in created.values()]
        skipped, removed = [], set()
        for key in sorted(gone, key=lambda key: -len(self.above(key))):
            if self.tasks[key].traces or any(task.parent == key for task in self.tasks.values()):
                self.tasks[key].status = "skipped"
                skipped.append(self.tasks[key].name)
            else:
                removed.add(key)
                del self.tasks[key]
        for task in self.tasks.values():
            task.needs -= removed
        return skipped

    def _renew(self, after: Doc, ways: Reading, created: dict[str, str], renamed: set[str]) -> None:
        def place(key: str) -> str:
            return created.get(key, key)

        for key, node in after["nodes"].items():
            if key not in self.tasks:
                self.tasks[created[key]] = Entry(node["label"], node.get("attributes", {}))
        for key, node in after["nodes"].items():
            task = self.tasks[place(key)]
            if task.status not in OPEN:
                continue
            if key not in created:
                again = self._is_touched(key, after, ways) or bool(task.needs & renamed)
                task.status = "pending" if task.status == "failed" and again else task.status
                task.name, task.attributes = node["label"], {**DEFAULTS, **node.get("attributes", {})}
            task.needs = {place(need) for need in ways.needs[key]}
            above = ways.parents.get(key)
            task.parent = None if above is None else place(above)


def planned(document: Doc) -> Doc:
    """A plan's document without what follows the work."""
    nodes = {}
    for key, node in document["nodes"].items():
        said = {name: value for name, value in node.get("attributes", {}).items() if name not in PROGRESS}
        nodes[key] = tidy({"label": node.get("label", ""), "attributes": said})
    return {**document, "nodes": nodes, "metadata": {}}

"""Where a task stands, from its rows: which steps of its plan are done, which decisions hold, which errors are open,
what comes next.

The rules are those of `domain/recovery`, which answers a server's callers and is too much to load here; tests compare
the two.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail.hooks.open_tasks import StoreReading

CHECKPOINTS = 50
DECISIONS = 40
NEEDS = 30
PARTS = 20
ERRORS = 3
SOLVING = ("recovery", "complete", "replan")
_MARKING = ("progress", "recovery", "complete")
_TEXT = 6000
"""How many characters of a text are read; more never fits."""
_DOCUMENT = 100_000
"""How many characters of a JSON value are read."""

_NOTE = (
    f"c.id, c.task_id, c.sequence, c.type, substr(c.summary, 1, {_TEXT}), "
    f"CASE WHEN length(c.detail) <= {_DOCUMENT} THEN c.detail ELSE '{{}}' END, c.created_at"
)
_TASK = (
    f"SELECT substr(description, 1, {_TEXT}), CASE WHEN length(plan) <= {_DOCUMENT} THEN plan ELSE 'null' END, "  # noqa: S608 - our own numbers
    f"CASE WHEN length(context) <= {_DOCUMENT} THEN context ELSE '{{}}' END, "
    f"CASE WHEN length(acceptance) <= {_DOCUMENT} THEN acceptance ELSE '[]' END, parent_task_id FROM task WHERE id = ?"
)


class HookCheckpoint:
    """A checkpoint."""

    __slots__ = ("at", "detail", "id", "sequence", "summary", "task", "type")

    def __init__(self, row: tuple[object, ...]) -> None:
        self.id, self.task = str(row[0]), str(row[1])
        self.sequence = row[2] if isinstance(row[2], int) else 0
        self.type, self.summary = str(row[3]), str(row[4])
        detail = json.loads(str(row[5]))
        self.detail: dict[str, object] = detail if isinstance(detail, dict) else {}
        self.at = row[6] if isinstance(row[6], int) else 0

    @property
    def is_settled(self) -> bool:
        return (
            self.type == "error"
            and bool(self.detail.get("resolution"))
            and not self.detail.get("requires_human_review")
        )


class OpenTaskFacts:
    """What is known about an open task."""

    def __init__(self, connection: StoreReading, task_id: str, workflow_id: str) -> None:
        self._connection = connection
        description, plan, context, acceptance, parent = connection.execute(_TASK, (task_id,)).get
        self.task_id = task_id
        self.description = str(description)
        self.plan = _object(plan)
        self.is_planned = plan != "null"
        self.context = _object(context)
        self.acceptance = [str(one) for one in json.loads(acceptance)]
        self.parent = None if parent is None else self._name_of(str(parent))
        self.notes = self._notes("c.task_id = ? ORDER BY c.sequence DESC, c.id DESC LIMIT ?", task_id, CHECKPOINTS)
        """Newest first."""
        self.steps = [str(step) for step in _listed(self.plan.get("steps"))] if _has_steps(self.plan) else []
        self.done = self._steps_done()
        self.next_step = next((n for n in range(1, len(self.steps) + 1) if n not in self.done), None)
        self.goal, self.workflow_status = connection.execute(
            f"SELECT substr(source_content, 1, {_TEXT}), status FROM workflow WHERE id = ?",  # noqa: S608 - our own number
            (workflow_id,),
        ).get
        self.counts: dict[str, int] = self._counts(workflow_id)
        self.decisions = self._decisions(workflow_id)
        self.errors = self._errors()

    def _notes(self, condition: str, *values: str | int) -> list[HookCheckpoint]:
        asked = f"SELECT {_NOTE} FROM checkpoint c WHERE {condition}"  # noqa: S608 - our own words
        return [HookCheckpoint(row) for row in self._connection.execute(asked, values)]

    def _name_of(self, task_id: str) -> str:
        row = self._connection.execute("SELECT substr(name, 1, 500) FROM task WHERE id = ?", (task_id,)).fetchone()
        return task_id if row is None else str(row[0])

    def _counts(self, workflow_id: str) -> dict[str, int]:
        row = self._connection.execute("SELECT counts FROM tally WHERE id = ?", (workflow_id,)).fetchone()
        return {} if row is None else {str(status): int(count) for status, count in json.loads(row[0]).items()}

    def _steps_done(self) -> set[int]:
        """The steps that were marked as done since the plan was last changed."""
        since = max((note.sequence for note in self.notes if note.type == "replan"), default=0)
        marks = [
            number
            for note in self.notes
            if note.sequence > since and note.type in _MARKING
            for number in _listed(note.detail.get("step"))
        ]
        done = {number for number in marks if type(number) is int and 1 <= number <= len(self.steps)}
        oldest = min((note.sequence for note in self.notes), default=1)
        if oldest > since + 1 and done:  # earlier marks are beyond what was read
            done |= set(range(1, max(done)))
        return done

    def _decisions(self, workflow_id: str) -> list[HookCheckpoint]:
        """The decisions that no later one replaces: this task's first, then the newest."""
        newest = self._notes(
            "c.workflow_id = ? AND c.type = 'decision' ORDER BY c.created_at DESC, c.id DESC LIMIT ?",
            workflow_id,
            DECISIONS,
        )
        known = {note.id: note for note in (*newest, *(note for note in self.notes if note.type == "decision"))}
        found = sorted(known.values(), key=lambda note: (note.at, note.id), reverse=True)
        replaced = set()
        for later in found:
            named = {str(name) for name in _listed(later.detail.get("supersedes"))}
            for note in found:
                is_earlier = (note.at, note.id) < (later.at, later.id)
                if is_earlier and (note.id in named or note.summary in named):
                    replaced.add(note.id)
        holding = [note for note in found if note.id not in replaced]
        return sorted(holding, key=lambda note: note.task != self.task_id)

    def _errors(self) -> list[HookCheckpoint]:
        """This task's errors that nothing later resolved, newest first."""
        of_type = "c.task_id = ? AND c.type = ? ORDER BY c.sequence DESC LIMIT ?"
        solved = [note.sequence for kind in SOLVING for note in self._notes(of_type, self.task_id, kind, 1)]
        since = max(solved, default=0)
        errors = self._notes(of_type, self.task_id, "error", ERRORS)
        return [note for note in errors if note.sequence > since and not note.is_settled]

    def needs(self) -> list[tuple[str, str]]:
        """The tasks it depended on and their results: name and outcome."""
        rows = self._connection.execute(
            f"SELECT substr(t.name, 1, 500), substr(t.outcome, 1, {_TEXT}) FROM dependency d "  # noqa: S608 - our own numbers
            "JOIN task t ON t.id = d.needs_id WHERE d.task_id = ? AND t.outcome IS NOT NULL "
            f"ORDER BY d.inherited, t.sequence, t.id LIMIT {NEEDS}",
            (self.task_id,),
        )
        return [(str(name), str(outcome)) for name, outcome in rows]

    def open_parts(self) -> list[tuple[str, str, str]]:
        """Its unfinished subtasks: id, name and state."""
        rows = self._connection.execute(
            "SELECT id, substr(name, 1, 500), "  # noqa: S608 - our own number
            "CASE WHEN status = 'pending' AND unmet > 0 THEN 'blocked' ELSE status END FROM task "
            "WHERE parent_task_id = ? AND status NOT IN ('completed', 'skipped') ORDER BY "
            "CASE status WHEN 'pending' THEN 1 WHEN 'planning' THEN 2 WHEN 'in_progress' THEN 3 WHEN 'paused' THEN 4 "
            f"ELSE 5 END, id LIMIT {PARTS}",
            (self.task_id,),
        )
        return [(str(task_id), str(name), str(status)) for task_id, name, status in rows]


def _object(text: str) -> dict[str, object]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _has_steps(plan: dict[str, object]) -> bool:
    return isinstance(plan.get("steps"), list)


def _listed(value: object) -> list[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]

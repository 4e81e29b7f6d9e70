"""Turns what is known about a task into the pieces of its bundle: what each is, in which lengths, how relevant.

The one place that says what matters more. The round counts first: everything in its shortest form, then in longer ones.
Within a round the order is `RELEVANCE`, and within a section that of the material.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.journal.decision_log import SUPERSEDES
from handrail.domain.journal.plan_steps import PlanStep, plan_steps
from handrail.domain.recovery.material import SOLVING, OpenIssue, RecoveryMaterial
from handrail.domain.recovery.options import Include
from handrail.domain.recovery.packer import BundlePiece, PieceLength, Place, Rank
from handrail.domain.recovery.position import STEP, Steps, TaskPosition, next_move, steps_of
from handrail.domain.recovery.truncate import compact, cut, first_of, gist, json_weight, line
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task

RELEVANCE = (
    "name",
    "next",
    "description",
    "plan",
    "last_checkpoint",
    "open_issues",
    "tried",
    "acceptance",
    "source_summary",
    "plan_summary",
    "context",
    "dependency_outcomes",
    "decisions",
    "checkpoints",
    "parent",
    "subtasks",
    "changed_files",
    "progress",
    "sibling_tasks",
    "prior_tasks",
    "files_likely_affected",
)
"""What an agent that forgot everything needs first."""

LENGTHS = (40, 80, 120, 200, 320, 640, 1280)
"""Tokens of a text in the first, second, … round; after that it is whole."""
VALUE_LENGTHS = ((20, 5, 2), (60, 12, 3), (200, 20, 3))
"""For a JSON value, by round: tokens of each text in it, members of each list or object, depth."""
ITEM_LENGTHS = (30, 120)
"""Tokens of a list entry's text where it is not shown whole."""
NEWS_LENGTHS = (16, 60)
"""Tokens of the news of a sibling task."""
HURRIED = ("description", "plan")
"""Members that grow by two steps in the second round: the task itself."""
STALE = 2
"""How many rounds later a replaced decision or a solved error comes."""
NAME = 12
"""Tokens of a name when there is no room for all of it."""
FORM = 12
"""The round for what the contract specifies but nobody misses: ids and times of checkpoints."""
CHARACTERS_PER_TOKEN = 12
"""A text with more characters than this per token of the budget cannot be shown whole, so its cost is not computed."""

_ELSEWHERE = ("previous_plan", SUPERSEDES, STEP)
"""Members of a detail that describe what no longer holds, or what is elsewhere in the bundle."""
_FIRST_ROUNDS = {
    "checkpoints": (3, 10, 40),
    "decisions": (4, 12, 30),
    "open_issues": (3, 8, 20),
    "tried": (2, 4, 5),
    "dependency_outcomes": (4, 10, 20),
    "subtasks": (4, 10, 20),
    "sibling_tasks": (3, 8, 12),
    "prior_tasks": (2, 6, 15),
}
"""How many entries of a list have appeared by the first, second and third round."""


def skeleton_of(material: RecoveryMaterial, tools: Mapping[str, str]) -> dict[str, Any]:
    """What is always included. None is a placeholder for what may be added."""
    workflow, task = material.workflow, material.task
    return {
        "workflow": {
            "id": workflow.id,
            "name": line(workflow.name, NAME),
            "source_type": workflow.source_type,
            "source_summary": "",
            "plan_summary": "",
            "status": workflow.status,
            "max_parallel_tasks": workflow.max_parallel_tasks,
            "progress": None,
        },
        "current_task": {
            "id": task.id,
            "name": line(task.name, NAME),
            "description": "",
            "acceptance": None,
            "plan": {},
            "context": {},
            "files_likely_affected": None,
            "checkpoints": [],
            "status": task.shown_status,
            "parent": None,
            "subtasks": None,
        },
        "next": cut(next_sentence(material, tools), 20),
        "open_issues": None,
        "tried": None,
        "decisions": None,
        "dependency_outcomes": None,
        "changed_files": None,
        "sibling_tasks": None,
        "prior_tasks": [],
    }


def next_sentence(material: RecoveryMaterial, tools: Mapping[str, str]) -> str:
    standing = TaskPosition(
        workflow=material.workflow,
        task=material.task,
        steps=steps_of(material.task, material.checkpoints),
        last=material.checkpoints[0] if material.checkpoints else None,
        waits_for=[need for need in material.needs if not need.is_finished],
        open_parts=[part for part in material.parts if not part.is_finished],
        changed=material.changed,
    )
    return next_move(standing, tools)


def pieces_of(
    material: RecoveryMaterial, include: Include, tools: Mapping[str, str], max_tokens: int
) -> list[BundlePiece]:
    """Everything that may be said about a task."""
    maker = _Maker(max_tokens * CHARACTERS_PER_TOKEN)
    _task_pieces(maker, material, tools)
    _workflow_pieces(maker, material, include)
    _checkpoint_pieces(maker, material)
    _neighbour_pieces(maker, material, include)
    return maker.pieces


class _Ranked(NamedTuple):
    """The section an entry is ranked in, its index there, and by how many rounds it is delayed."""

    section: str
    at: int
    later: int = 0


class _Maker:
    """Builds and collects pieces."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.pieces: list[BundlePiece] = []

    def field(self, place: Place, values: Sequence[Any], *, begin: int = 1) -> None:
        """A member in growing lengths, the last of them whole."""
        name = place[-1]
        relevance = RELEVANCE.index(name)
        hurried = 2 if name in HURRIED else -1
        shown, beyond = self._that_could_fit(values)
        steps = growing(shown, lambda number: (begin + number - (number == hurried), relevance, number))
        self.pieces.append(BundlePiece(name, place, steps, enough=len(steps) + bool(beyond), beyond=beyond))

    def text(self, place: Place, text: str, shorten: Callable[[str, int], str] = cut) -> None:
        """A text in growing lengths."""
        if text:
            first = (shorten if shorten is not cut else line)(text, LENGTHS[0])
            self.field(place, [first, *(shorten(text, tokens) for tokens in LENGTHS[1:]), text])

    def value(self, place: Place, value: Any) -> None:
        """A JSON value in growing lengths."""
        if value:
            shorter = [
                compact(value, tokens=tokens, members=members, depth=depth) for tokens, members, depth in VALUE_LENGTHS
            ]
            self.field(place, [*shorter, value])

    def item(
        self,
        section: str,
        values: Sequence[Any],
        *,
        index: int,
        place: Place = (),
        rank: _Ranked | None = None,
        form: Any = None,
        order: int | None = None,
    ) -> None:
        """A list entry in growing lengths, and last in the contract's full form, which adds nothing an agent needs."""
        ranked_as, ranked_at, later = rank or _Ranked(section, index)
        relevance = RELEVANCE.index(ranked_as)
        limits = _FIRST_ROUNDS.get(ranked_as, (1,))
        begin = next((number for number, limit in enumerate(limits, 1) if ranked_at < limit), len(limits) + 1) + later
        shown, beyond = self._that_could_fit(values)
        steps = growing(shown, lambda number: (begin + number, relevance, ranked_at))
        enough = len(steps) + bool(beyond)
        if form is not None and not beyond and form != steps[-1].value:
            steps += (PieceLength((FORM, relevance, ranked_at), form, json_weight(form)),)
        listed_at = (index if order is None else order,)
        self.pieces.append(
            BundlePiece(section, place or (section,), steps, item=True, order=listed_at, enough=enough, beyond=beyond)
        )

    def _that_could_fit(self, values: Sequence[Any]) -> tuple[Sequence[Any], int]:
        """The lengths that have a chance to fit, and the rough cost of the longest if it has none. Rough, because
        estimating a text's tokens takes longer than sending it."""
        text = msgspec.json.encode(values[-1]).decode()
        if len(text) <= self._longest:
            return values, 0
        fitting = [value for value in values[1:-1] if len(msgspec.json.encode(value)) <= self._longest]
        return [values[0], *fitting], len(text) * (40 if text.isascii() else 160)


def growing(values: Sequence[Any], rank: Callable[[int], Rank]) -> tuple[PieceLength, ...]:
    """A step for each value that is longer than those before it, ranked by its number. Of two that cost the same, the
    later one wins: it is the more complete."""
    steps: list[PieceLength] = []
    for value in values:
        weight = json_weight(value)
        if steps and weight <= steps[-1].weight:
            steps[-1] = steps[-1]._replace(value=value, weight=weight)
        else:
            steps.append(PieceLength(rank(len(steps)), value, weight))
    return tuple(steps)


# -- the task ---------------------------------------------------------------------------------------------------------


def _task_pieces(maker: _Maker, material: RecoveryMaterial, tools: Mapping[str, str]) -> None:
    task, at = material.task, "current_task"
    maker.field((at, "name"), [line(task.name, NAME), task.name])
    maker.field(("next",), [next_sentence(material, tools)])
    maker.text((at, "description"), task.description)
    if task.acceptance:
        maker.value((at, "acceptance"), task.acceptance)
    likely = [path for path in task.files_likely_affected if path not in _named_files(material)]
    if likely:
        maker.field((at, "files_likely_affected"), _lists(likely), begin=2)
    if task.plan:
        _plan_piece(maker, task.plan, steps_of(task, material.checkpoints))
    maker.value((at, "context"), task.context)
    if material.parent is not None:
        parent = material.parent
        shown = {"id": parent.id, "name": parent.name}
        maker.field(
            (at, "parent"),
            [
                {**shown, "description": line(parent.description, tokens)} if tokens else shown
                for tokens in (0, 40, 160)
            ],
        )
    for index, part in enumerate(material.parts):
        maker.item("subtasks", [_brief(part)], index=index, place=(at, "subtasks"))
    if material.files:
        maker.field(("changed_files",), _lists(list(material.files)))


def _plan_piece(maker: _Maker, plan: dict[str, Any], steps: Steps) -> None:
    """A plan; its shorter forms have only the steps from the next one on."""
    place = ("current_task", "plan")
    done = len(steps.done)
    begin = (steps.next or 1) - 1 if done else 0
    first = [f"… {begin} done"] if begin else []
    rest = {name: member for name, member in plan.items() if name != "steps"}
    shorter = []
    for tokens, members in ((16, 3), (40, 8), (120, 30)):
        shown = compact(rest, tokens=tokens, members=members, depth=2)
        if steps.texts:
            window = [line(text, tokens) for text in steps.texts[begin:]]
            shown["steps"] = [*first, *first_of(window, members)]
        shorter.append(shown)
    maker.field(place, [*shorter, plan])


def _named_files(material: RecoveryMaterial) -> set[str]:
    """The files that the plan or a checkpoint already names."""
    plan = material.task.plan or {}
    planned = [plan.get(name) for name in ("files_to_modify", "files_to_create")]
    return {str(path) for listed in planned if isinstance(listed, list) for path in listed} | {*material.files}


def _lists(values: list[str]) -> list[list[str]]:
    return [[cut(value, 40) for value in first_of(values, most)] for most in (4, 12)] + [values]


def _brief(task: Task) -> dict[str, Any]:
    return {"id": task.id, "name": task.name, "status": task.shown_status}


# -- the workflow -----------------------------------------------------------------------------------------------------


def _workflow_pieces(maker: _Maker, material: RecoveryMaterial, include: Include) -> None:
    workflow, at = material.workflow, "workflow"
    maker.field((at, "name"), [line(workflow.name, NAME), workflow.name])
    if include.workflow_summary:
        maker.text((at, "source_summary"), workflow.source_content, gist)
        counts = {status: count for status, count in material.tally.counts.items() if count}
        if counts:
            maker.field((at, "progress"), [counts])
    if include.workflow_plan and workflow.plan:
        maker.text((at, "plan_summary"), plan_text(workflow.plan, material.steps_left))


def plan_text(plan: Mapping[str, Any], left: Sequence[PlanStep]) -> str:
    """A workflow's plan in words: its summary, approach, steps, risks and assumptions. Steps that nobody has begun
    (`left`) come before the others, because they must survive when the text is cut."""
    parts = [str(plan[name]) for name in ("summary", "approach") if plan.get(name)]
    steps = plan_steps(plan)
    for title, told in (("To come", left), ("Begun", [step for step in steps if step not in left])):
        if told:
            parts.append(f"{title}: {'; '.join(step.numbered for step in told)}")
    for name in ("risks", "assumptions"):
        listed = plan.get(name)
        if isinstance(listed, list) and listed:
            parts.append(f"{name.capitalize()}: {'; '.join(map(str, listed))}")
    return "\n".join(dict.fromkeys(parts))


# -- checkpoints: what was done, decided, and went wrong ---------------------------------------------------------------


def _checkpoint_pieces(maker: _Maker, material: RecoveryMaterial) -> None:
    task = material.task
    shown = material.checkpoints[: material.shown]
    told = {checkpoint.id for checkpoint in shown}
    standing = {decision.checkpoint.id for decision in material.decisions}
    unsolved = {issue.error.id for issue in material.issues if issue.error is not None}
    places = {"decisions": 0, "open_issues": 0}
    for index, checkpoint in enumerate(shown):
        rank = _Ranked("checkpoints", index)
        if index == 0:
            rank = _Ranked("last_checkpoint", 0)
        elif checkpoint.id in material.replaced or _is_solved(checkpoint, shown):
            rank = _Ranked("checkpoints", index, STALE)
        elif checkpoint.id in unsolved or checkpoint.id in standing:
            name = "open_issues" if checkpoint.id in unsolved else "decisions"
            rank = _Ranked(name, places[name])
            places[name] += 1
        flags = {"open": True} if checkpoint.id in unsolved else {}
        flags |= {"superseded": True} if checkpoint.id in material.replaced else {}
        maker.item(
            "checkpoints",
            [{**length, **flags} for length in _checkpoint_lengths(checkpoint, files=index == 0)],
            index=index,
            place=("current_task", "checkpoints"),
            rank=rank,
            form={**_whole_checkpoint(checkpoint), **flags},
            order=checkpoint.sequence,
        )
    issues = [issue for issue in material.issues if issue.error is None or issue.error.id not in told]
    for index, issue in enumerate(issues, start=places["open_issues"]):
        maker.item("open_issues", _issue_lengths(issue, task), index=index)
    given_up = [replan for replan in material.replans if replan.id not in told]
    for index, replan in enumerate(given_up):
        lengths = [{"sequence": replan.sequence, **_given_up(replan, tokens)} for tokens in ITEM_LENGTHS]
        maker.item("tried", lengths, index=index)
    close = {task.id, *(need.id for need in material.needs)}
    decisions = [decision for decision in material.decisions if decision.checkpoint.id not in told]
    ranked = sorted(range(len(decisions)), key=lambda number: decisions[number].checkpoint.task_id not in close)
    for index, number in enumerate(ranked, start=places["decisions"]):
        checkpoint, name = decisions[number]
        at = {} if checkpoint.task_id == task.id else {"task": line(name, NAME)}
        maker.item(
            "decisions",
            [{**at, "summary": length["summary"], **_detail(length)} for length in _checkpoint_lengths(checkpoint)],
            index=index,
            form={"id": checkpoint.id, "task_id": checkpoint.task_id, **at, **_content_of(checkpoint)},
            order=number,
        )


def _given_up(replan: Checkpoint, tokens: int) -> dict[str, str]:
    """Why a plan was abandoned, and what had gone wrong with it."""
    error = replan.detail.get("error")
    why = {"error": line(error, tokens)} if isinstance(error, str) and error else {}
    return {**why, "reason": line(replan.summary, tokens)}


def _is_solved(checkpoint: Checkpoint, newest: Sequence[Checkpoint]) -> bool:
    if checkpoint.is_settled:
        return True
    return checkpoint.type == "error" and any(
        other.type in SOLVING and other.sequence > checkpoint.sequence for other in newest
    )


def _checkpoint_lengths(checkpoint: Checkpoint, *, files: bool = False) -> list[dict[str, Any]]:
    """A checkpoint short, longer, and whole; with `files` the longer one includes the files it changed."""
    known = {"sequence": checkpoint.sequence, "type": checkpoint.type}
    short, medium = ({**known, "summary": line(checkpoint.summary, tokens)} for tokens in ITEM_LENGTHS)
    detail = {name: value for name, value in checkpoint.detail.items() if name not in _ELSEWHERE}
    if detail:
        medium["detail"] = compact(detail, tokens=40, members=5, depth=2)
    if files and checkpoint.files_changed:
        medium["files_changed"] = first_of(checkpoint.files_changed, 4)
    return [short, medium, {**known, **_content_of(checkpoint)}]


def _content_of(checkpoint: Checkpoint) -> dict[str, Any]:
    said: dict[str, Any] = {"summary": checkpoint.summary}
    if checkpoint.detail:
        said["detail"] = checkpoint.detail
    if checkpoint.files_changed:
        said["files_changed"] = checkpoint.files_changed
    return said


def _detail(length: Mapping[str, Any]) -> dict[str, Any]:
    return {"detail": length["detail"]} if "detail" in length else {}


def _whole_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(checkpoint)
    del whole["workflow_id"]
    return whole


def _issue_lengths(issue: OpenIssue, task: Task) -> list[dict[str, Any]]:
    at: dict[str, Any] = (
        {} if issue.task.id == task.id else {"task_id": issue.task.id, "task": line(issue.task.name, 12)}
    )
    if issue.error is None:
        at["status"] = issue.task.shown_status
    else:
        at["sequence"] = issue.error.sequence
    return [{**at, "error": line(issue.text, tokens)} for tokens in ITEM_LENGTHS] + [{**at, "error": issue.text}]


# -- tasks around it --------------------------------------------------------------------------------------------------


def _neighbour_pieces(maker: _Maker, material: RecoveryMaterial, include: Include) -> None:
    if include.dependency_outcomes:
        for index, need in enumerate(material.needs):
            known = {"task_id": need.id, "task_name": need.name}
            status = {} if need.status == "completed" else {"status": need.shown_status}
            outcome = need.outcome or ""
            lengths = [line(outcome, tokens) for tokens in ITEM_LENGTHS] + [outcome]
            maker.item("dependency_outcomes", [{**known, "outcome": text, **status} for text in lengths], index=index)
    for index, sibling in enumerate(material.siblings):
        shown = _brief(sibling.task)
        heard = [{**shown, "brief_summary": line(sibling.news, tokens)} for tokens in NEWS_LENGTHS]
        maker.item("sibling_tasks", heard if sibling.news else [shown], index=index)
    for index, done in enumerate(material.prior):
        maker.item("prior_tasks", _prior_lengths(done, full=include.prior_task_full), index=index)


def _prior_lengths(task: Task, *, full: bool) -> list[dict[str, Any]]:
    known = {"id": task.id, "name": task.name}
    lengths: list[dict[str, Any]] = [
        {**known, "outcome": line(task.outcome or "", tokens), "status": task.status} for tokens in ITEM_LENGTHS
    ]
    if full:
        whole: dict[str, Any] = {**known, "outcome": task.outcome or "", "status": task.status}
        whole["description"] = task.description
        if task.outcome_detail:
            whole["outcome_detail"] = task.outcome_detail
        lengths.append(whole)
    return lengths

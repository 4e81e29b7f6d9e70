"""`handrail review`: what agents asked a person to look at, and the word with which a person closes it.

Nothing waits for a review. It is shown until somebody closes it, even after its workflow has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, REVIEW, Gate
from handrail.domain.journal.journal import resolutions
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import InvalidParams, NotFound, SeveralOpen
from handrail.kernel.records import LAST, Query
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import bold, columns, dim, one_line, packed, wrapped
from handrail.surfaces.cli.options import common_options, person, typed_text
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.gate_answers import closed_review
from handrail.toolsets.here import SHOWN

SHOWN_REVIEWS = 200
_PAGE = 500


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review with what it is about."""

    id: str
    status: str
    question: str
    resolution: str | None
    """For an issue, what the agent did about it."""
    workflow_id: str
    workflow_name: str
    task_id: str | None
    task_name: str | None
    created_at: int
    for_ms: int
    answer: str | None
    remark: str | None
    answered_by: str | None
    channel: str | None
    answered_at: int | None


class OpenReviews(msgspec.Struct, frozen=True, kw_only=True):
    """The open ones, oldest first."""

    reviews: list[Review]
    more: int


@click.command()
@click.argument("review_id", metavar="[ID]", required=False, shell_complete=completions.reviews)
@click.option("--close", "word", metavar="WORD", help="Close it with a verdict, such as ok, fixed or rejected.")
@click.option("--remark", metavar="TEXT", help="A remark to go with the verdict.")
@click.option("--all", "everywhere", is_flag=True, help="Every repository in the store, not only this one.")
@common_options
def review(
    review_id: str | None,
    word: str | None,
    remark: str | None,
    everywhere: bool,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """List what agents asked a person to review; with an ID, show one; with --close, close it.

    ID may be the beginning of one. No work waits for a review. Your name and verdict are kept with it.
    """
    if review_id is None:
        if word is not None or remark is not None:
            raise InvalidParams("nobody knows which review is meant", hint="name it: handrail review ID --close WORD")
        listed = in_one_look(root, options, lambda call: read_reviews(call, everywhere=everywhere))
        echo_json(listed) if as_json else echo_lines(drawn(listed, columns()))
        return
    if word is None and remark is not None:
        raise InvalidParams("a remark goes with the word that closes a review", hint="add --close WORD")
    found = in_one_look(root, options, lambda call: _read_or_close(call, review_id, word, remark))
    echo_json(found) if as_json else echo_lines(drawn_one(found, columns()))


def read_reviews(call: Call, *, everywhere: bool = False) -> OpenReviews:
    """The open reviews of this repository, or of all."""
    gates = list(open_reviews_here(call, everywhere=everywhere))
    return OpenReviews(
        reviews=[_shown(call, gate) for gate in gates[:SHOWN_REVIEWS]], more=max(0, len(gates) - SHOWN_REVIEWS)
    )


def open_reviews_here(call: Call, *, everywhere: bool = False, workflow_id: str | None = None) -> Iterator[Gate]:
    """Open reviews, oldest first: of one workflow, of this repository, or of all."""
    conditions: tuple[tuple[str, Any], ...] = (("kind", REVIEW), ("status", GATE_MACHINE.initial))
    if workflow_id is not None:
        conditions = (("workflow_id", workflow_id), *conditions)
    offset = 0
    while page := call.work.select(Gate, Query(conditions, ("created_at",), _PAGE, offset)):
        for gate in page:
            if everywhere or workflow_id is not None or not call.here.shared or _is_here(call, gate):
                yield gate
        offset += len(page)


def _is_here(call: Call, gate: Gate) -> bool:
    workflow = call.work.get(Workflow, gate.workflow_id)
    return workflow is not None and workflow.repository_path == call.here.repository


def _read_or_close(call: Call, text: str, word: str | None, remark: str | None) -> Review:
    """One review, closed if a word is given."""
    gate = _review_meant(call, text)
    if word is None:
        return _shown(call, gate)
    said = typed_text(remark) if remark else None
    return _shown(call, closed_review(call.work, gate, person(), typed_text(word), said))


def _review_meant(call: Call, text: str) -> Gate:
    text = typed_text(text)
    exact = call.work.get(Gate, text)
    beginning = Query((("id >", text), ("id <", text + LAST)), ("id",), SHOWN + 1)
    found = [exact] if exact is not None else call.work.select(Gate, beginning) if text.startswith("gate_") else []
    reviews = [gate for gate in found if gate.kind == REVIEW]
    if len(reviews) > 1:
        raise SeveralOpen(
            f"{one_line(text)} could mean several reviews",
            hint=f"say more of its id: {', '.join(gate.id for gate in reviews[:SHOWN])}",
            open=[{"id": gate.id, "name": gate.question} for gate in reviews[:SHOWN]],
        )
    if reviews:
        return reviews[0]
    if found:
        raise InvalidParams(
            f"{found[0].id} is a decision that work waits for, not a review", hint="`handrail status` shows it"
        )
    raise NotFound(f"there is no review {one_line(text)}", hint="`handrail review` lists the open ones")


def _shown(call: Call, gate: Gate) -> Review:
    workflow = call.work.get(Workflow, gate.workflow_id)
    task = call.work.get(Task, gate.task_id) if gate.task_id is not None else None
    return Review(
        id=gate.id,
        status=gate.status,
        question=gate.question,
        resolution=resolutions(call.work, [gate]).get(gate.id),
        workflow_id=gate.workflow_id,
        workflow_name=workflow.name if workflow is not None else "",
        task_id=gate.task_id,
        task_name=task.name if task is not None else None,
        created_at=gate.created_at,
        for_ms=max(0, call.work.now_ms() - gate.created_at),
        answer=gate.answer,
        remark=gate.feedback,
        answered_by=gate.answered_by,
        channel=gate.channel,
        answered_at=gate.answered_at,
    )


def drawn(found: OpenReviews, room: int) -> Iterator[str]:
    """The open reviews as lines of at most `room` columns."""
    if not found.reviews:
        yield "Nothing is to be reviewed."
        return
    for number, one in enumerate(found.reviews):
        if number:
            yield ""
        yield from _heading_lines(one, room)
    if found.more:
        yield f"\n{found.more} more are open."
    yield ""
    yield from wrapped("Close one with a word: handrail review ID --close ok", room)


def drawn_one(one: Review, room: int) -> Iterator[str]:
    """One review, open or closed."""
    yield from _heading_lines(one, room)
    if one.answered_at is not None:
        remark = f": {one.remark}" if one.remark else ""
        by = f"{one.answered_by or 'somebody'} through {one.channel or 'nothing known'}"
        yield from wrapped(f"closed by {by} with {one.answer}{remark}", room, "  ")


def _heading_lines(one: Review, room: int) -> Iterator[str]:
    since = f" for {spoken_time(one.for_ms)}" if one.answered_at is None else ""
    yield from packed((bold(one.id), dim(one.status + since)), room)
    yield from wrapped(one.question, room, "  ")
    if one.resolution is not None:
        yield from wrapped(f"what the agent did: {one.resolution}", room, "  ")
    task = f'"{one.task_name}" ({one.task_id}) of ' if one.task_id is not None else ""
    yield from wrapped(f'asked in {task}"{one.workflow_name}" ({one.workflow_id})', room, "  ")

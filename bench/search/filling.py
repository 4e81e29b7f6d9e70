"""Fills a store with checkpoints as agents write them: made-up words, a few of them often and most of them seldom."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate, islice

from handrail.domain.work.checkpoint import Checkpoint
from handrail.kernel.ledger import Change, NewEvent
from handrail.store.ports import Engine
from handrail.store.tables import BY_RECORD
from handrail.store.writes import NEW_STREAM, Head, RowWrite, WriteSet, chained

AT_ONCE = 1000
WORKFLOW = "wf_bench"
VOCABULARY = 20_000
TITLE, BODY = 10, 40
"""Words of a summary, and of what is said in detail."""
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "xo", "zu")
_TABLE = BY_RECORD[Checkpoint]


def word(rank: int) -> str:
    """The word of this rank; 0 is the commonest."""
    letters = ""
    rank += len(_SYLLABLES)  # no word of one syllable
    while rank:
        rank, place = divmod(rank, len(_SYLLABLES))
        letters += _SYLLABLES[place]
    return letters


def checkpoints(count: int, seed: int = 1) -> Iterator[Checkpoint]:
    chosen = random.Random(seed)
    words = [word(rank) for rank in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))

    def text(length: int) -> str:
        return " ".join(chosen.choices(words, cum_weights=weights, k=length)).capitalize()

    for number in range(count):
        yield Checkpoint(
            id=f"cp_{number:08}",
            workflow_id=WORKFLOW,
            task_id=f"task_{number // 20:06}",
            sequence=number % 20 + 1,
            type="decision" if number % 5 == 0 else "progress",
            summary=text(TITLE),
            detail={"reasoning": text(BODY)},
            files_changed=[f"src/{word(chosen.randrange(500))}/{word(chosen.randrange(2000))}.py"],
            created_at=number + 1,
        )


def fill(engine: Engine, count: int) -> Head:
    """So many checkpoints with an event each; where their stream stands then."""
    made = checkpoints(count)
    head = NEW_STREAM
    while batch := list(islice(made, AT_ONCE)):
        head = write(engine, head, batch)
    return head


def write(engine: Engine, head: Head, batch: list[Checkpoint]) -> Head:
    events = [
        NewEvent(
            "checkpoint.added",
            "bench",
            "mcp",
            note.created_at,
            {},
            (Change(_TABLE.name, note.id, _TABLE.document_of(note), None),),
        )
        for note in batch
    ]
    stream = chained(WORKFLOW, head, events)
    engine.commit(WriteSet((stream,), tuple(RowWrite(_TABLE.name, note.id, _TABLE.row_of(note)) for note in batch)))
    return stream.head

"""Which tasks of a plan are drawn as one box: those that belong together according to the plan itself.

A task's group is the task it is part of; else its parallel group; else the prefix of its name, as in "api: routes", if
many names share prefixes. If that leaves too many boxes, the remaining tasks are grouped by how far along the plan they
are. A group is one box only if the drawing stays free of cycles: no line may leave it and come back.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from handrail.domain.layout.edges import Edge, is_acyclic, parts
from handrail.domain.layout.ranks import earliest
from handrail.domain.work.task import Task

MOST_BOXES = 80
"""How many boxes a person can take in."""
_CHUNKS = 24
"""How many boxes to make of tasks that nothing else groups."""
_WHOLE = 0.6
"""A group with more than this share of a plan says nothing: it is the plan."""
_TRY_WORK = 1_000_000
"""How many tasks and edges may be visited to find compatible groups."""
_PREFIX = re.compile(r"\s*([^:/.]{1,40}?)\s*[:/.]")


class Group(NamedTuple):
    """Tasks that can be one box; `members` are their indexes in the plan."""

    key: str
    label: str
    members: list[int]


class Named(NamedTuple):
    """A group's unique key, and its title for people."""

    key: str
    label: str


def groups_of(tasks: Sequence[Task], edges: Sequence[Edge]) -> list[Group]:
    """The groups of a plan; all of them can be collapsed at once. `edges` join indexes in `tasks`."""
    grouping = _Grouping(len(tasks), edges)
    grouping.put_in(_said_by_plan(tasks), in_pieces=True)
    for several in (True, False):
        if grouping.boxes > MOST_BOXES and grouping.alone > _CHUNKS:
            grouping.put_in(grouping.by_progress(several=several), in_pieces=False)
    return grouping.groups()


# -- what the plan says -----------------------------------------------------------------------------------------------


def _said_by_plan(tasks: Sequence[Task]) -> list[Named | None]:
    """The group that the plan itself suggests for each task, if any."""
    chosen: list[Named | None] = [None] * len(tasks)
    most = max(2, _WHOLE * len(tasks))
    for found in (_families(tasks), _lanes(tasks), _prefixes(tasks)):
        sizes = Counter(named.key for named, before in zip(found, chosen, strict=True) if named and not before)
        for place, named in enumerate(found):
            if named and not chosen[place] and 2 <= sizes[named.key] <= most:
                chosen[place] = named
    return chosen


def _families(tasks: Sequence[Task]) -> list[Named | None]:
    """Groups tasks by the outermost task they are part of, ignoring one that contains most of the plan."""
    by_id = {task.id: task for task in tasks}
    most = max(2, _WHOLE * len(tasks))
    left_out: set[str] = set()
    while True:
        heads = [_head(task, by_id, left_out) for task in tasks]
        sizes = Counter(head.id for head in heads)
        too_large = {head for head, size in sizes.items() if size > most} - left_out
        if not too_large:
            return [Named(f"part:{head.id}", head.name) if sizes[head.id] > 1 else None for head in heads]
        left_out |= too_large


def _head(task: Task, by_id: dict[str, Task], left_out: set[str]) -> Task:
    for _ in by_id:  # bounded, in case a task is part of itself
        above = by_id.get(task.parent_task_id or "")
        if above is None or above.id in left_out:
            break
        task = above
    return task


def _listable(text: str) -> str:
    """A text with commas encoded, so that keys can be joined with commas; different texts stay different."""
    return text.replace("%", "%25").replace(",", "%2C")


def _lanes(tasks: Sequence[Task]) -> list[Named | None]:
    lanes = [task.parallel_group for task in tasks]
    return [Named(f"lane:{_listable(lane)}", lane) if lane else None for lane in lanes]


def _prefixes(tasks: Sequence[Task]) -> list[Named | None]:
    """Groups tasks by the prefix of their names, if the plan names tasks that way: half of them share a prefix."""
    matches = [_PREFIX.match(task.name) for task in tasks]
    words = [match[1] if match else "" for match in matches]
    found = [Named(f"name:{_listable(word.casefold())}", word) if word else None for word in words]
    sizes = Counter(named.key for named in found if named)
    shared = sum(size for size in sizes.values() if size > 1)
    return found if shared * 2 >= len(tasks) else [None] * len(tasks)


# -- what can be drawn ------------------------------------------------------------------------------------------------


class _Grouping:
    """The groups added so far. The boxes never form a cycle."""

    def __init__(self, count: int, edges: Sequence[Edge]) -> None:
        self._edges = edges
        self._keys: list[str | None] = [None] * count
        self._labels: dict[str, str] = {}
        self._tries = _TRY_WORK // (count + len(edges) + 1)

    @property
    def alone(self) -> int:
        """How many tasks have no group."""
        return self._keys.count(None)

    @property
    def boxes(self) -> int:
        return self.alone + len(set(self._keys) - {None})

    def groups(self) -> list[Group]:
        members: dict[str, list[int]] = defaultdict(list)
        for place, key in enumerate(self._keys):
            if key is not None:
                members[key].append(place)
        return [Group(key, self._labels[key], places) for key, places in members.items()]

    def put_in(self, wanted: Sequence[Named | None], *, in_pieces: bool) -> None:
        """Adds these groups, for tasks that have none. A group that would form a cycle is left out; with `in_pieces`,
        its connected pieces that form none are added instead."""
        members: dict[str, list[int]] = defaultdict(list)
        for place, named in enumerate(wanted):
            if named is not None and self._keys[place] is None:
                members[named.key].append(place)
                self._labels.setdefault(named.key, named.label)
        for key, places in members.items():
            if len(places) > 1:
                self._set(places, key)
        tangled = self._tangled_keys()
        doubtful = [(key, places) for key, places in members.items() if key in tangled]
        for _, places in doubtful:
            self._set(places, None)
        for key, places in sorted(doubtful, key=lambda item: (-len(item[1]), item[1])):
            if not self._fits(key, places) and in_pieces:
                for number, piece in enumerate(self._pieces(places), start=1):
                    self._labels[f"{key}#{number}"] = self._labels[key]
                    self._fits(f"{key}#{number}", piece)

    def by_progress(self, *, several: bool) -> list[Named | None]:
        """Groups the remaining tasks by their step in the plan; with `several`, combines steps that hold few tasks."""
        box, count, joined = self._contracted()
        ranks = earliest(count, joined)
        at_rank: dict[int, list[int]] = defaultdict(list)
        for place, key in enumerate(self._keys):
            if key is None:
                at_rank[ranks[box[place]]].append(place)
        size = max(4, math.ceil(self.alone / _CHUNKS))
        found: list[Named | None] = [None] * len(self._keys)
        steps: list[int] = []
        held: list[int] = []
        for rank in sorted(at_rank):
            if held and (not several or len(held) + len(at_rank[rank]) > 2 * size):
                _name_chunks(found, steps, held, size)
                steps, held = [], []
            steps.append(rank + 1)
            held += at_rank[rank]
        _name_chunks(found, steps, held, size)
        return found

    def _contracted(self) -> tuple[list[int], int, list[Edge]]:
        """The box of each task, how many boxes there are, and the edges between them."""
        numbers: dict[str | int, int] = {}
        box = [numbers.setdefault(place if key is None else key, len(numbers)) for place, key in enumerate(self._keys)]
        joined = {(box[source], box[target]) for source, target in self._edges if box[source] != box[target]}
        return box, len(numbers), sorted(joined)

    def _tangled_keys(self) -> set[str]:
        """The groups that are part of a cycle, or lie between two cycles."""
        box, _, joined = self._contracted()
        inner = _without_ends(_without_ends(joined), back=True)
        tangled = {end for edge in inner for end in edge}
        return {key for place, key in enumerate(self._keys) if key is not None and box[place] in tangled}

    def _fits(self, key: str, places: Sequence[int]) -> bool:
        """Adds a group if that forms no cycle; returns whether it did."""
        if len(places) < 2 or self._tries <= 0:
            return False
        self._tries -= 1
        self._set(places, key)
        _, count, joined = self._contracted()
        if is_acyclic(count, joined):
            return True
        self._set(places, None)
        return False

    def _set(self, places: Sequence[int], key: str | None) -> None:
        for place in places:
            self._keys[place] = key

    def _pieces(self, places: Sequence[int]) -> list[list[int]]:
        """The connected components of a group."""
        number = {place: local for local, place in enumerate(places)}
        inside = [
            (number[source], number[target]) for source, target in self._edges if {source, target} <= number.keys()
        ]
        return [[places[local] for local in piece] for piece in parts(len(places), inside)]


def _without_ends(edges: Sequence[Edge], *, back: bool = False) -> list[Edge]:
    """Repeatedly removes the edges of boxes that nothing leads to; with `back`, of boxes that lead nowhere."""
    onward: dict[int, list[int]] = defaultdict(list)
    waits: Counter[int] = Counter()
    for source, target in edges:
        first, second = (target, source) if back else (source, target)
        onward[first].append(second)
        waits[second] += 1
    free = [box for box in onward if not waits[box]]
    gone = set(free)
    for box in free:
        for other in onward[box]:
            waits[other] -= 1
            if not waits[other]:
                gone.add(other)
                free.append(other)
    return [edge for edge in edges if gone.isdisjoint(edge)]


def _name_chunks(found: list[Named | None], steps: Sequence[int], places: Sequence[int], size: int) -> None:
    """Names tasks of the same steps as one group, or as several if there are many."""
    if not places:
        return
    span = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]}–{steps[-1]}"
    label = f"{'Step' if len(steps) == 1 else 'Steps'} {span}"
    count = 1 if len(places) <= 2 * size else math.ceil(len(places) / size)
    for number, place in enumerate(sorted(places)):
        chunk = number * count // len(places) + 1
        found[place] = (
            Named(f"step:{span}", label) if count == 1 else Named(f"step:{span}/{chunk}", f"{label} ({chunk})")
        )

"""The flow format: which phases a run has, who does each one, what it reads and writes, and how it can end.

A flow is a document that a team can copy and change; the three bundled ones are files of the same format
(`docs/flows.md`). This module reads and checks flows; `engine.py` decides what happens in a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from handrail.domain.pipeline.request import SOURCES
from handrail.kernel.errors import InvalidFlow
from handrail.kernel.wording import did_you_mean

MOST_PHASES = 60
REQUEST = "request.md"
"""The file every run has from the start."""
NUMBER = "{N}"
"""Stands for a task's number in a file name."""
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERDICT = re.compile(r"[A-Z]+(_[A-Z]+)*")
_FILE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]|\{N\})*\.md")
_AT_PHASE = re.compile(r" - at `(?:key in )?\$\.phases\[(\d+)\]")
PLACES = frozenset({"workspace", "branch", "spec-name", "title", "body", "source_url", "source_id", "source_project"})
"""Placeholders allowed in braces in a command's words; `placeholders.py` inserts the run's values."""
_PLACE = re.compile(r"\{([^{}]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that no editor shows but a terminal obeys."""
_LAID_OUT = re.compile(r"[\n\t]")
"""Those of them that are legitimate in a text of several lines."""

Kind = Literal["agent", "review", "gate", "tasks", "task-reviews", "exec"]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Words = Annotated[list[Annotated[str, Meta(min_length=1, max_length=2000)]], Meta(min_length=1, max_length=60)]


def numbered(name: str, number: int) -> str:
    """A file name with the task's number filled in."""
    return name.replace(NUMBER, str(number))


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One phase of a flow.

    - `agent`: an agent writes `output`; the phase is over once the file exists (and contains `contains`).
    - `review`: an agent judges and writes a verdict into `output`; one of `passes` ends the phase, one of `fails` sends
      the run back to `revises`, at most `retries` times; after that a person is asked.
    - `gate`: a person is shown `shows` and answers with one of `options`; `reject` goes back to `returns_to`, any other
      answer goes on. With --auto it opens by itself if the review `auto_after` approved.
    - `tasks`: agents do the tasks of `plan`, in parallel where possible; each writes its `output`.
    - `task-reviews`: each task's work is judged; if it fails, the task is done again, at most `retries` times.
    - `exec`: `commands` are run, one after the other.
    """

    id: Name
    label: Name
    kind: Kind
    agent: Name | None = None
    model: Name = "sonnet"
    inputs: list[Name] = []
    """Workspace files it reads; `{N}` stands for a task's number."""
    if_there: list[Name] = []
    """Files it reads if they exist."""
    output: Name | None = None
    """The file it writes; `{N}` stands for a task's number."""
    contains: Annotated[str, Meta(max_length=200)] = ""
    plan: Name | None = None
    passes: list[Name] = []
    fails: list[Name] = []
    revises: Name | None = None
    retries: Annotated[int, Meta(ge=0, le=20)] = 1
    """How often it may send the work back; the next time, a person is asked. With 1, that is the second time."""
    shows: Name | None = None
    options: list[Name] = []
    returns_to: Name | None = None
    auto_after: Name | None = None
    commands: Annotated[list[Words], Meta(max_length=20)] = []
    """Argument lists, never shell command lines."""
    only_for: list[Name] = []
    """The source types it applies to; empty means all."""
    unless: list[Literal["skip_pr"]] = []
    """Flags that exclude it."""
    after_answer: dict[Name, Name] = {}
    """Done only if an earlier gate got this answer: phase id, answer."""
    instead: dict[Name, Name] = {}
    """A different agent if a phase is skipped: phase id, agent."""

    def output_for(self, number: int) -> str:
        """The file it writes for one task."""
        return numbered(self.output or "", number)


class Flow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole flow."""

    name: Name
    description: Annotated[str, Meta(max_length=2000)] = ""
    extends: Name | None = None
    """Another flow to take the phases from, if it has none of its own."""
    skip: list[Name] = []
    phases: Annotated[list[Phase], Meta(max_length=MOST_PHASES)] = []

    def phase(self, phase_id: str) -> Phase:
        return next(phase for phase in self.phases if phase.id == phase_id)

    def position(self, phase_id: str) -> int:
        return next(place for place, phase in enumerate(self.phases) if phase.id == phase_id)

    def knows(self, phase_id: str) -> bool:
        return any(phase.id == phase_id for phase in self.phases)


def is_flow_id(name: str) -> bool:
    """Whether this can be a flow's name: lowercase letters, digits and hyphens, like its file name."""
    return _ID.fullmatch(name) is not None and len(name) <= 100


def read_flow(document: Any, find: Callable[[str], Flow | None]) -> Flow:
    """The flow a document describes, checked; `find` looks up others by name. Raises InvalidFlow, naming the place."""
    try:
        flow = msgspec.convert(document, Flow)
    except msgspec.ValidationError as problem:
        place = _phase_at(document, str(problem))
        raise InvalidFlow(
            f"{f'phase {place}: ' if place else ''}the flow cannot be read: {problem}",
            hint="docs/flows.md has the format",
            **({"phase": place} if place else {}),
        ) from None
    if not is_flow_id(flow.name):
        raise InvalidFlow(f"{flow.name} cannot be a flow's name", hint="small letters, digits and hyphens")
    if flow.extends is not None:
        base = find(flow.extends)
        if base is None:
            raise InvalidFlow(
                f"{flow.name} extends {flow.extends}, which is not there", hint="`handrail flow list` shows flows"
            )
        if flow.phases:
            raise InvalidFlow(f"{flow.name} extends {flow.extends} and has phases of its own", hint="leave out one")
        flow = msgspec.structs.replace(flow, phases=base.phases, skip=list(dict.fromkeys((*base.skip, *flow.skip))))
    _check(flow)
    return flow


def _phase_at(document: Any, problem: str) -> str | None:
    """The id of the phase a validation error is about, or its number if it has no valid id."""
    match = _AT_PHASE.search(problem)
    if match is None:
        return None
    phase = document["phases"][int(match[1])]
    named = phase.get("id") if isinstance(phase, Mapping) else None
    return named if isinstance(named, str) and _ID.fullmatch(named) else str(int(match[1]) + 1)


def _check(flow: Flow) -> None:
    if not flow.phases:
        raise InvalidFlow(f"{flow.name} has no phases", hint="name some, or extend another flow")
    seen: dict[str, Phase] = {}
    for phase in flow.phases:
        if not _ID.fullmatch(phase.id):
            raise _invalid_phase(phase, "an id is small letters, digits and hyphens")
        if phase.id in seen:
            raise _invalid_phase(phase, "another phase has this id")
        _check_kind(phase)
        _check_places(phase, seen)
        _check_files(phase, seen)
        seen[phase.id] = phase
    for phase in flow.phases:
        for other in phase.instead:
            if other not in seen:
                raise _invalid_phase(phase, f"instead names {other}, which is no phase{did_you_mean(other, seen)}")
    _check_skips(flow, seen)
    if _CONTROL.search(_LAID_OUT.sub("", flow.description)):
        raise InvalidFlow(
            f"the description of {flow.name} has a control character in it", hint="take out what no editor shows"
        )


def _check_skips(flow: Flow, phases: Mapping[str, Phase]) -> None:
    for skipped in flow.skip:
        if skipped not in phases:
            raise InvalidFlow(
                f"{flow.name} skips {skipped}, which is not one of its phases{did_you_mean(skipped, phases)}",
                hint=f"phases: {', '.join(phases)}",
            )
    kept = [phase for phase in flow.phases if phase.id not in flow.skip]
    if not kept:
        raise InvalidFlow(f"{flow.name} skips all of its phases", hint="leave one")
    for phase in kept:
        if phase.revises in flow.skip:
            raise _invalid_phase(phase, f"it revises {phase.revises}, which is skipped: skip both, or neither")
        if phase.returns_to in flow.skip:
            raise _invalid_phase(
                phase, f"reject returns to {phase.returns_to}, which is skipped: skip both, or neither"
            )
        for field in ("revises", "returns_to"):
            other = phases.get(getattr(phase, field) or "")
            if other is not None and (where := _missing(other, phase)):
                raise _invalid_phase(
                    phase, f"{field} names {other.id}, which is done {where}; this phase runs in parallel to that"
                )


def _missing(other: Phase, phase: Phase) -> str:
    """How `other` is more restricted than `phase`; empty if it is done whenever `phase` is."""
    if other.only_for and not (phase.only_for and set(phase.only_for) <= set(other.only_for)):
        return f"only for {', '.join(other.only_for)}"
    if not set(other.unless) <= set(phase.unless):
        return "only without --nopr"
    return "only after some answers" if not other.after_answer.items() <= phase.after_answer.items() else ""


_NEEDS: Mapping[Kind, Sequence[str]] = {
    "agent": ("agent", "output"),
    "review": ("agent", "output", "passes", "fails", "revises"),
    "gate": ("options",),
    "tasks": ("agent", "output", "plan"),
    "task-reviews": ("agent", "output", "passes", "fails", "revises"),
    "exec": ("commands",),
}
_ALL = frozenset({"id", "label", "kind", "only_for", "unless", "after_answer"})
_BY_AGENT = _ALL | {"agent", "model", "inputs", "if_there", "output", "instead"}
_BY_VERDICT = _BY_AGENT | {"passes", "fails", "revises", "retries"}
_KNOWS: Mapping[Kind, frozenset[str]] = {
    "agent": _BY_AGENT | {"contains"},
    "review": _BY_VERDICT,
    "gate": _ALL | {"shows", "options", "returns_to", "auto_after"},
    "tasks": _BY_AGENT | {"plan"},
    "task-reviews": _BY_VERDICT,
    "exec": _ALL | {"commands"},
}
BY_TASK: tuple[Kind, ...] = ("tasks", "task-reviews")
"""Kinds of phases that run once for each task of the plan."""
_SOURCE_TYPES = ("text", *(source.type for source in SOURCES))


def _check_kind(phase: Phase) -> None:
    """Checks what the kind of a phase requires and allows, on its own."""
    for field in _NEEDS[phase.kind]:
        if not getattr(phase, field):
            raise _invalid_phase(phase, f"a phase of kind {phase.kind} needs {field}")
    given = msgspec.to_builtins(phase)  # omits fields that have their default value
    for field in given:
        if field not in _KNOWS[phase.kind]:
            raise _invalid_phase(phase, f"a phase of kind {phase.kind} has no {field}: it would have no effect")
    if phase.kind == "gate" and not set(phase.options) - {"reject", "abandon"}:
        raise _invalid_phase(phase, "options needs one that goes on, such as approve")
    if phase.kind == "gate" and phase.options[0] in ("reject", "abandon"):
        raise _invalid_phase(phase, f"{phase.options[0]} cannot be the first option: --auto chooses that one")
    if phase.kind == "gate" and ("reject" in phase.options) != (phase.returns_to is not None):
        raise _invalid_phase(phase, "the option reject and returns_to go together: what is rejected is done again")
    if set(phase.passes) & set(phase.fails):
        raise _invalid_phase(phase, "a verdict cannot both pass and fail")
    _check_words(phase)


def _check_words(phase: Phase) -> None:
    """Checks its names, verdicts, options and placeholders: the engine would wait forever for an unknown word."""
    _check_visible(phase)
    for agent in (*([phase.agent] if phase.agent is not None else []), *phase.instead.values()):
        if not _ID.fullmatch(agent):
            raise _invalid_phase(phase, f"{agent} cannot be an agent's name: small letters, digits and hyphens")
    for source in phase.only_for:
        if source not in _SOURCE_TYPES:
            raise _invalid_phase(phase, f"no request comes from {source}{did_you_mean(source, _SOURCE_TYPES)}")
    for verdict in (*phase.passes, *phase.fails):
        if not _VERDICT.fullmatch(verdict):
            raise _invalid_phase(phase, f"{verdict} cannot be a verdict: capital letters and _")
    for option in phase.options:
        if not _ID.fullmatch(option):
            raise _invalid_phase(phase, f"{option} cannot be an option: one word of small letters, digits and hyphens")
    for word in (word for command in phase.commands for word in command):
        unknown = [place for place in _PLACE.findall(word) if place not in PLACES]
        if unknown:
            raise _invalid_phase(phase, f"{{{unknown[0]}}} is not known in commands{did_you_mean(unknown[0], PLACES)}")


def _check_visible(phase: Phase) -> None:
    """Refuses control characters: a label is shown to people, the rest to agents."""
    if not phase.label.strip():
        raise _invalid_phase(phase, "label has nothing in it that can be read")
    lines = (("contains", phase.contains), *(("commands", word) for command in phase.commands for word in command))
    laid_out = ((field, _LAID_OUT.sub("", text)) for field, text in lines)
    for field, text in (("label", phase.label), ("model", phase.model), *laid_out):
        if found := _CONTROL.search(text):
            raise _invalid_phase(phase, f"{field} has the control character U+{ord(found[0]):04X} in it; take it out")


def _check_places(phase: Phase, before: Mapping[str, Phase]) -> None:
    """Checks the phases it names: they must come before it and be of a suitable kind."""
    kinds = {"revises": ("agent", "tasks"), "returns_to": ("agent", "tasks"), "auto_after": ("review",)}
    named = [(field, getattr(phase, field), kinds[field]) for field in kinds]
    for field, other, meant in (*named, *(("after_answer", gate, ("gate",)) for gate in phase.after_answer)):
        if other is None:
            continue
        if other not in before:
            raise _invalid_phase(
                phase, f"{field} names {other}, which does not come before it{did_you_mean(other, before)}"
            )
        if before[other].kind not in meant:
            raise _invalid_phase(phase, f"{field} names {other}, which is of kind {before[other].kind}, not {meant[0]}")
    for gate, answer in phase.after_answer.items():
        if answer not in before[gate].options:
            raise _invalid_phase(
                phase, f"{gate} is never answered {answer}{did_you_mean(answer, before[gate].options)}"
            )
    if phase.kind == "task-reviews" and before[phase.revises or ""].kind != "tasks":
        raise _invalid_phase(phase, f"revises names {phase.revises}, which has no tasks")
    if phase.kind in BY_TASK and any(other.kind == phase.kind for other in before.values()):
        raise _invalid_phase(phase, f"a flow has one phase of kind {phase.kind}")


def _check_files(phase: Phase, before: Mapping[str, Phase]) -> None:
    """Checks the files it names: they must be plain names, and required ones must be written before it."""
    for name in (phase.output, phase.plan, phase.shows, *phase.inputs, *phase.if_there):
        if name is not None and not _FILE.fullmatch(name):
            raise _invalid_phase(
                phase, f"{name} is no plain name of a Markdown file in the workspace, such as design.md"
            )
        if name is not None and NUMBER in name and phase.kind not in BY_TASK:
            raise _invalid_phase(phase, f"{name}: only phases of kind tasks and task-reviews know {{N}}")
    if phase.kind in BY_TASK and NUMBER not in (phase.output or ""):
        raise _invalid_phase(phase, "output needs {N}, since every task writes its own")
    if phase.plan is not None and NUMBER in phase.plan:
        raise _invalid_phase(phase, "plan is one file for all tasks")
    written = {other.output: other for other in before.values() if other.output is not None}
    judges = {name for name, other in written.items() if other.kind != "agent"}
    if phase.output == REQUEST or phase.output in (written if phase.kind != "agent" else judges):
        raise _invalid_phase(phase, f"{phase.output} is another's file; a review and a task have files of their own")
    known = {REQUEST, *written, *(other.plan for other in (*before.values(), phase) if other.plan is not None)}
    for name in (*phase.inputs, *([phase.shows] if phase.shows is not None else [])):
        if name not in known:
            near = did_you_mean(name, known)
            raise _invalid_phase(
                phase, f"nobody writes {name} before it{near or '; what may be missing goes to if_there'}"
            )


def _invalid_phase(phase: Phase, why: str) -> InvalidFlow:
    return InvalidFlow(f"phase {phase.id}: {why}", hint="docs/flows.md has the format", phase=phase.id)


# -- comparing --------------------------------------------------------------------------------------------------------

_GUARDS = ("gate", "review", "task-reviews")
_ACTS = ("tasks", "exec")


def weakens(flow: Flow, than: Flow) -> list[str]:
    """Which gates and reviews of another flow this one leaves out or makes easier to pass, one sentence each; empty if
    it is as strict.

    One with a different id is matched by its subject: the file a gate shows, the file a review judges.
    """
    guards = [phase for phase in phases_kept(than) if phase.kind in _GUARDS]
    return [why for guard in guards for why in _weaker(flow, than, guard)]


def _weaker(flow: Flow, than: Flow, guard: Phase) -> list[str]:
    there = [phase for phase in phases_kept(flow) if phase.kind == guard.kind]
    meant = [phase for phase in there if phase.id == guard.id]
    meant = meant or [phase for phase in there if _subject(flow, phase) == _subject(than, guard)]
    if guard.kind == "gate" and "reject" not in guard.options:  # it guards only phases that wait for its answer
        return _phases_not_waiting(flow, than, guard, [guard.id, *(phase.id for phase in meant)])
    if not meant:
        return [f"{guard.id} ({guard.label}) is left out"]
    return min(
        ([*_what_it_lets_through(guard, phase), *_when_it_is_skipped(flow, than, guard, phase)] for phase in meant),
        key=len,
    )


def _phases_not_waiting(flow: Flow, than: Flow, guard: Phase, gates: Sequence[str]) -> list[str]:
    """The phases that wait for an answer at a gate in the other flow, but not here."""
    waiting = [phase for phase in phases_kept(than) if guard.id in phase.after_answer]
    alike = [
        phase
        for phase in phases_kept(flow)
        if any(phase.id == other.id or any(one in other.commands for one in phase.commands) for other in waiting)
    ]
    free = [phase for phase in alike if not any(gate in phase.after_answer for gate in gates)]
    return [f"{phase.id} does not wait for an answer at {guard.id} ({guard.label})" for phase in free]


def _what_it_lets_through(guard: Phase, phase: Phase) -> list[str]:
    """How a gate or review lets more through than the one it corresponds to."""
    found: list[str] = []
    if guard.kind == "gate":
        if "reject" not in phase.options:
            found.append(f"{phase.id} cannot be answered with reject")
        if guard.shows is not None and phase.shows != guard.shows:
            found.append(f"{phase.id} shows {phase.shows or 'nothing'}, not {guard.shows}")
        if phase.auto_after is not None and guard.auto_after is None:
            found.append(f"--auto opens {phase.id}")
    if taken := [verdict for verdict in phase.passes if verdict in guard.fails]:
        found.append(f"{phase.id} lets {', '.join(taken)} pass")
    return found


def _when_it_is_skipped(flow: Flow, than: Flow, guard: Phase, phase: Phase) -> list[str]:
    """How a gate or review is skipped more often, or comes later, than the one it corresponds to."""
    found: list[str] = []
    if phase.only_for and not (guard.only_for and set(guard.only_for) <= set(phase.only_for)):
        found.append(f"{phase.id} is only for {', '.join(phase.only_for)}")
    if not set(phase.unless) <= set(guard.unless):
        found.append(f"{phase.id} is left out with --nopr")
    if not phase.after_answer.items() <= guard.after_answer.items():
        found.append(f"{phase.id} is left out after some answers")
    before = {other.kind for other in phases_kept(than)[: phases_kept(than).index(guard)]}
    earlier = phases_kept(flow)[: phases_kept(flow).index(phase)]
    if late := [other.id for other in earlier if other.kind in _ACTS and other.kind not in before]:
        found.append(f"{phase.id} comes only after {late[0]}")
    return found


def phases_kept(flow: Flow) -> list[Phase]:
    """The phases that a run of this flow goes through."""
    return [phase for phase in flow.phases if phase.id not in flow.skip]


def _subject(flow: Flow, phase: Phase) -> str | None:
    """What a gate or review is about."""
    if phase.kind == "gate":
        return phase.shows or phase.id
    return flow.phase(phase.revises).output if phase.kind == "review" and phase.revises is not None else phase.kind

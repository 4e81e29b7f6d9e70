"""WorkRail's JSON workflows as guides of ours, as plain data that `domain/guides/definition.py` accepts.

Our guides have no loops: a loop's steps are flattened, and their guidance says how to repeat them. Anything only
WorkRail's own server could fill in (templates, features, references to its texts) is named in the remarks. Not a
runner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, kind_in_words, unreadable
from handrail.domain.exchange.foreign_tasks import counted, plain_title, remark_on, several
from handrail.domain.exchange.workrail_steps import (
    assessment,
    calls,
    condition,
    consequences,
    criteria,
    fragments,
    functions,
    in_words,
    joined,
    json_text,
    loop_variables,
    notes,
    prompt_of_blocks,
    prompts,
    rounds,
)
from handrail.domain.guides.definition import (
    CATEGORY_MAX,
    DESCRIPTION_MAX,
    ID_MAX,
    ID_MIN,
    NAME_MAX,
    VERSION_MAX,
    VERSION_PATTERN,
    GuideProblem,
    Matcher,
    parse_guide,
)

MOST_LOOPS = 8
"""Nesting depth of loops. WorkRail allows none."""
_FIRST_VERSION = "1.0.0"
_VERSION = re.compile(VERSION_PATTERN.removesuffix("$") + r"\Z")
_OF_THE_GUIDE = (
    *("id", "name", "description", "version", "steps", "preconditions", "clarificationPrompts", "metaGuidance"),
    *("functionDefinitions", "references", "extensionPoints", "assessments", "category", "$schema"),
)
_OF_A_STEP = (
    *(
        "id",
        "type",
        "title",
        "prompt",
        "promptBlocks",
        "templateCall",
        "guidance",
        "askForFiles",
        "requireConfirmation",
    ),
    *("runCondition", "validationCriteria", "agentRole", "functionDefinitions", "functionCalls", "functionReferences"),
    *("promptFragments", "outputContract", "assessmentRefs", "assessmentConsequences", "loop", "body"),
    *("hasValidation", "notesOptional"),  # about WorkRail's own bookkeeping
)
_NOT_OF_A_LOOP = ("askForFiles", "validationCriteria")
"""Fields that only a step can follow. On a loop they become guidance, word for word."""
_KINDS_IN_A_GUIDE: dict[str, type] = {
    "name": str,
    "description": str,
    "category": str,
    "references": list,
    "extensionPoints": list,
    "assessments": list,
}
_KINDS_IN_A_STEP: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "prompt": str,
    "promptBlocks": dict,
    "templateCall": dict,
    "agentRole": str,
    "askForFiles": bool,
    "requireConfirmation": (bool, dict),
    "assessmentRefs": list,
    "loop": dict,
}
"""What is read of a field if it is of this kind. Anything else is kept as a field that nobody knows."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})


class GuideTaken(msgspec.Struct, frozen=True):
    """A guide as plain data, and what the importing person should know."""

    guide: dict[str, Any]
    remarks: list[str]


def read_guide(text: str, name: str, matcher: Matcher | None = None) -> GuideTaken:
    """The guide for a WorkRail workflow. `name` is used if it lacks an id or a name. With a matcher, patterns and
    schemas that cannot be used here become guidance; without one they stay, and checking the guide reports them."""
    source = ForeignJson(text)
    data = source.one()
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list) or not data["steps"]:
        said = "it has no steps" if isinstance(data, dict) else f"it holds {kind_in_words(data)}"
        raise unreadable(said, hint="a workflow is an object with id, name, description, version and steps")
    taking = _Taking(data, source.remarks(), matcher)
    guide = taking.guide(name)
    try:
        parse_guide(guide, matcher=matcher or _Anything(), server_version="0.0.0")
    except GuideProblem as problem:
        raise unreadable(str(problem), hint="fix the workflow there, then import it again") from None
    return GuideTaken(guide, taking.remarks)


class _Anything:
    """Accepts every pattern and schema; they are checked when the guide is loaded."""

    def pattern_problem(self, pattern: str, flags: str) -> str | None:  # noqa: ARG002 - the port's
        return None

    def matches(self, pattern: str, flags: str, text: str) -> bool:  # noqa: ARG002 - the port's
        return True

    def schema_problem(self, schema: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - the port's
        return None

    def schema_errors(self, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:  # noqa: ARG002 - the port's
        return ()


class _Taking:
    """The conversion of one workflow."""

    def __init__(self, data: dict[str, Any], remarks: list[str], matcher: Matcher | None) -> None:
        self.remarks = remarks
        self._data = data
        self._matcher = matcher
        self._ids: set[str] = set()
        self._assessments = {
            entry["id"]: entry
            for entry in _list(data.get("assessments"))
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        }
        steps = data["steps"]
        self._by_id = {step["id"]: step for step in steps if isinstance(step, dict) and isinstance(step.get("id"), str)}
        self._bodies = {
            step["body"]
            for step in steps
            if isinstance(step, dict) and isinstance(step.get("body"), str) and step["body"] in self._by_id
        }
        self._missing: list[str] = []
        self._judged: set[str] = set()
        """Assessments that a step refers to."""

    def guide(self, name: str) -> dict[str, Any]:
        """The guide as in one of our files."""
        data = self._data
        steps = self._steps([step for step in data["steps"] if _id_of(step) not in self._bodies], [], "steps", 0)
        if not steps:
            raise unreadable("it has no step that can be done", hint="look at its loops: their bodies are empty")
        meta = _texts(data.get("metaGuidance"))
        meta += self._functions(steps) + self._references() + self._slots() + self._unused_assessments()
        title = plain_title(data["name"]) if isinstance(data.get("name"), str) else ""
        guide: dict[str, Any] = {
            "id": _slug(data.get("id"), plain_title(name) or "guide", set()),
            "name": self._within(title or plain_title(name) or "Guide", NAME_MAX, "name"),
            "description": self._within(
                _text(data.get("description")) or title or name, DESCRIPTION_MAX, "description"
            ),
            "version": self._version(),
        }
        if category := _text(data.get("category")):
            guide["category"] = self._within(category, CATEGORY_MAX, "category")
        for key in ("preconditions", "clarificationPrompts"):
            guide[key] = self._notes(key, _texts(data.get(key)))
        guide["metaGuidance"] = self._notes("metaGuidance", meta)
        guide["steps"] = steps
        self._add_remarks(guide)
        return {key: value for key, value in guide.items() if value != []}

    def _steps(self, raw: list[Any], held: list[dict[str, Any]], where: str, depth: int) -> list[dict[str, Any]]:
        if depth > MOST_LOOPS:
            raise unreadable(f"loops are nested more than {MOST_LOOPS} deep", hint="take the inner ones apart")
        found: list[dict[str, Any]] = []
        for number, step in enumerate(raw):
            at = f"{where}[{number}]"
            if not isinstance(step, dict):
                raise unreadable(f"{at} is {kind_in_words(step)}", hint="a step is an object with id, title and prompt")
            if step.get("type") == "loop" or "body" in step:
                found += self._loop(step, held, at, depth)
            else:
                found += self._step(step, held)
        return found

    def _loop(self, raw: dict[str, Any], held: list[dict[str, Any]], where: str, depth: int) -> list[dict[str, Any]]:
        """A loop's steps, flattened. The possible first steps say how often they are done, the possible last ones how
        to go round again."""
        title = plain_title(_text(raw.get("title"))) or _text(raw.get("id")) or "loop"
        body = raw.get("body")
        if isinstance(body, str):
            if body not in self._by_id:
                self.remarks.append(f'loop "{title}" repeats "{body[:80]}", which is no step of the file')
            body = [self._by_id.get(body, {"id": body, "title": title, "prompt": body})]
        if not isinstance(body, list):
            raise unreadable(f"{where}.body is {kind_in_words(body)}", hint="a loop's body is a list of steps")
        guidance = self._loop_guidance(raw)
        own = self._condition(raw, guidance)
        around = [*held, own] if own else held
        laid = self._steps(body, around, f"{where}.body", depth + 1)
        if not laid:
            self.remarks.append(f'loop "{title}" has no steps and was left out')
            return []
        loop = raw["loop"] if isinstance(raw.get("loop"), dict) else {}
        often, ended = rounds(loop)
        ids = ", ".join(step["id"] for step in laid)
        opening = (
            f'This is the loop "{title}". Its steps ({ids}) are done {often}. If nothing is to be done in it now, add '
            f"their ids to completedSteps and go on.{loop_variables(loop)}"
        )
        closing = (
            f'When a round of the loop "{title}" is done: to go round again, take {ids} out of completedSteps and ask '
            f"for the next step. Go on when {ended}."
        )
        first, last = _ends(laid, joined(around))
        for step in first:
            step["guidance"] = [opening, *guidance, *step.get("guidance", ())]
            self._confirmation(raw, step)
        for step in last:
            step["guidance"] = [*step.get("guidance", ()), closing]
        self.remarks.append(f'loop "{title}" was flattened ({ids}); the guidance says how to repeat its steps')
        return laid

    def _step(self, raw: dict[str, Any], held: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A step, or several if its prompt is too long for one."""
        step_id = _slug(raw.get("id"), "step", self._ids)
        if step_id != raw.get("id"):
            self.remarks.append(f"step {json_text(raw.get('id'))[:80]} is called {step_id} here")
        guidance = self._guidance(raw)
        own = self._condition(raw, guidance)
        rules = self._criteria(raw, guidance)
        step: dict[str, Any] = {
            "title": self._within(plain_title(_text(raw.get("title"))) or step_id, NAME_MAX, f"title of {step_id}")
        }
        if raw.get("askForFiles") is True:
            step["askForFiles"] = True
        if (when := joined([*held, own] if own else held)) is not None:
            step["runCondition"] = when
        pieces = prompts(self._prompt(raw, step_id)) or [step["title"]]
        if len(pieces) > 1:
            self.remarks.append(f"the prompt of {step_id} is too long for one step and became {len(pieces)}")
        found = []
        for number, piece in enumerate(pieces, start=1):
            of = f" ({number} of {len(pieces)})" if len(pieces) > 1 else ""
            own_id = step_id if number == 1 else _slug(f"{step_id[: ID_MAX - 8]}-part-{number}", "step", self._ids)
            made = {"id": own_id, **step, "title": step["title"][: NAME_MAX - len(of)] + of, "prompt": piece}
            found.append(made)
        if guidance:
            found[0]["guidance"] = guidance
        if rules is not None:
            found[-1]["validationCriteria"] = rules
        self._confirmation(raw, found[-1])
        return found

    def _prompt(self, raw: dict[str, Any], step_id: str) -> str:
        prompt = self._prompt_text(raw)
        if not prompt:
            self.remarks.append(f"step {step_id} has no prompt; its title stands in")
        return prompt

    def _prompt_text(self, raw: dict[str, Any]) -> str:
        """Everything that a step or a loop says to do."""
        prompt = _text(raw.get("prompt"))
        if isinstance(raw.get("promptBlocks"), dict):
            blocks = prompt_of_blocks(raw["promptBlocks"], self._missing)
            prompt = "\n\n".join(part for part in (prompt, blocks) if part.strip())
        call = raw.get("templateCall")
        if isinstance(call, dict):
            template = _text(call.get("templateId")) or json_text(call)
            self._missing.append(template)
            with_what = f" with {json_text(call['args'])}" if call.get("args") else ""
            prompt = "\n\n".join(part for part in (prompt, f"Carry out {template}{with_what}.") if part.strip())
        return prompt.strip()

    def _loop_guidance(self, raw: dict[str, Any]) -> list[str]:
        """What a loop says besides its steps and how often they are done."""
        prompt = self._prompt_text(raw)
        kept = [f"{key}: {json_text(raw[key])}" for key in _NOT_OF_A_LOOP if raw.get(key) not in (*_NOTHING, False)]
        return [*([prompt] if prompt else []), *self._guidance(raw), *kept]

    def _guidance(self, raw: dict[str, Any]) -> list[str]:
        """Everything a step says besides its prompt."""
        found = []
        if role := _text(raw.get("agentRole")):
            found.append(f"Role: {role}")
        found += _texts(raw.get("guidance"))
        if raw.get("promptFragments"):
            found += fragments(raw["promptFragments"])
        if raw.get("functionDefinitions"):
            found += functions(raw["functionDefinitions"]).values()
        for key in ("functionCalls", "functionReferences"):
            found += calls(raw[key]) if raw.get(key) else []
        for reference in _list(raw.get("assessmentRefs")):
            known = self._assessments.get(reference) if isinstance(reference, str) else None
            self._judged |= {reference} if known else set()
            found.append(
                assessment(known) if known else f"Before you go on, judge: {_text(reference) or json_text(reference)}"
            )
        if raw.get("assessmentConsequences"):
            found += consequences(raw["assessmentConsequences"])
        contract = raw.get("outputContract")
        if contract:
            named = contract.get("contractRef") if isinstance(contract, dict) else contract
            optional = isinstance(contract, dict) and contract.get("required") is False
            found.append(f"State what {_text(named) or json_text(named)} asks for{', if you can' if optional else ''}.")
            self._missing.append(_text(named) or json_text(named))
        return found + self._unknown_fields(raw)

    def _unknown_fields(self, raw: dict[str, Any]) -> list[str]:
        """Fields that no known version of the format has, or not like this."""
        is_loop = raw.get("type") == "loop" or "body" in raw
        left = {
            key: value
            for key, value in raw.items()
            if value not in _NOTHING
            and (
                key not in _OF_A_STEP
                or not isinstance(value, _KINDS_IN_A_STEP.get(key, object))
                or (key == "loop" and not is_loop)
            )
        }
        if left:
            self.remarks.append(f"step {_text(raw.get('id'))}: {several(list(left))} became guidance, word for word")
        return [f"{key}: {value if isinstance(value, str) else json_text(value)}" for key, value in left.items()]

    def _condition(self, raw: dict[str, Any], guidance: list[str]) -> dict[str, Any] | None:
        value = raw.get("runCondition")
        if value is None:
            return None
        made = condition(value)
        if made is None:
            guidance.append(f"Do this only when this holds, and otherwise add it to completedSteps: {json_text(value)}")
            self.remarks.append(f"the condition of {_text(raw.get('id'))} cannot be checked here; its guidance says it")
        return made

    def _criteria(self, raw: dict[str, Any], guidance: list[str]) -> Any:
        value = raw.get("validationCriteria")
        if value is None:
            return None
        made, left = criteria(value, self._matcher)
        if left:
            guidance += [
                f"The output must also pass this, which is not checked here: {json_text(rule)}" for rule in left
            ]
            self.remarks.append(
                f"{counted(len(left), 'rule')} of {_text(raw.get('id'))} cannot be checked here; the guidance has it"
            )
        return made

    def _confirmation(self, raw: dict[str, Any], step: dict[str, Any]) -> None:
        """Confirmation is all or nothing here: if it is conditional there, it is always required, and guidance says
        when it was meant."""
        value = raw.get("requireConfirmation")
        if value is True or (isinstance(value, dict) and value):
            step["requireConfirmation"] = True
        if isinstance(value, dict) and value:
            said = f"Confirmation is meant for when this holds: {in_words(value)}"
            step["guidance"] = [*step.get("guidance", ()), said]
            self.remarks.append(f"{step['id']} always asks for confirmation; there it depends on: {in_words(value)}")

    def _functions(self, steps: list[dict[str, Any]]) -> list[str]:
        """Adds the workflow's functions to the guidance of steps that name them; returns those that no step names."""
        unused = []
        defined = self._data.get("functionDefinitions")
        for name, said in functions(defined).items() if defined else ():
            users = [step for step in steps if f"{name}(" in "\n".join((step["prompt"], *step.get("guidance", ())))]
            for step in users:
                step["guidance"] = [*step.get("guidance", ()), said]
            unused += [] if users else [said]
        return unused

    def _references(self) -> list[str]:
        found = []
        for entry in _list(self._data.get("references")):
            if isinstance(entry, dict):
                strictly = ". Follow it strictly." if entry.get("authoritative") is True else ""
                title, purpose = _text(entry.get("title")), _text(entry.get("purpose"))
                found.append(f"Read {_text(entry.get('source'))} ({title}): {purpose.rstrip('.')}{strictly}")
            else:
                found += [f"Read {text}" for text in _texts([entry])]
        return found

    def _unused_assessments(self) -> list[str]:
        """The workflow's assessments that no step refers to, in words."""
        entries = _list(self._data.get("assessments"))
        known = [entry for key, entry in self._assessments.items() if key in self._judged]
        unused = [entry for entry in entries if entry not in known]
        self.remarks += remark_on(
            "no step refers to these assessments; the notes about the whole have them",
            [_id_of(entry) or json_text(entry) for entry in unused],
        )
        return [assessment(entry) if isinstance(entry, dict) else json_text(entry) for entry in unused]

    def _slots(self) -> list[str]:
        return [
            f"{{{{wr.bindings.{_text(entry.get('slotId'))}}}}} stands for {_text(entry.get('default'))}: "
            f"{_text(entry.get('purpose'))}"
            if isinstance(entry, dict)
            else json_text(entry)
            for entry in _list(self._data.get("extensionPoints"))
        ]

    def _notes(self, key: str, texts: list[str]) -> list[str]:
        found = notes([text.strip() for text in texts])
        if len(found) > len(dict.fromkeys(text.strip() for text in texts if text.strip())):
            self.remarks.append(f"entries of {key} that are too long were parted")
        return found

    def _within(self, text: str, room: int, what: str) -> str:
        if len(text) <= room:
            return text
        self.remarks.append(f"the {what} was too long and was cut after {room - 1} characters")
        return text[: room - 1] + "…"

    def _version(self) -> str:
        said = self._data.get("version")
        if isinstance(said, str) and len(said) <= VERSION_MAX and _VERSION.match(said):
            return said
        self.remarks.append(
            f"the version {json_text(said)[:80]} is not one of three numbers; it is {_FIRST_VERSION} here"
        )
        return _FIRST_VERSION

    def _add_remarks(self, guide: dict[str, Any]) -> None:
        data = self._data
        if guide["id"] != data.get("id"):
            self.remarks.append(f"the guide is called {guide['id']} here, not {json_text(data.get('id'))[:80]}")
        if self._missing:
            names = several(list(dict.fromkeys(self._missing)))
            self.remarks.append(f"the file does not contain these texts, which belong to WorkRail itself: {names}")
        left = [
            key
            for key, value in data.items()
            if value not in _NOTHING
            and (key not in _OF_THE_GUIDE or not isinstance(value, _KINDS_IN_A_GUIDE.get(key, object)))
        ]
        if left:
            self.remarks.append(f"a guide here has no place for: {several(left)}")


def _ends(
    steps: list[dict[str, Any]], around: dict[str, Any] | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps that may be first in a round of a loop, and those that may be last: a step with a condition besides the
    loop's own may be skipped, and then the next or the previous one takes its place."""
    sure = [place for place, step in enumerate(steps) if step.get("runCondition") == around]
    return (steps[: sure[0] + 1], steps[sure[-1] :]) if sure else (steps, steps)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    """Entries of a list that should be texts; one that stands alone is taken for a list, anything else as JSON."""
    entries = value if isinstance(value, list) else [value]
    return [entry if isinstance(entry, str) else json_text(entry) for entry in entries if entry not in _NOTHING]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _id_of(step: Any) -> str:
    return _text(step.get("id")) if isinstance(step, dict) else ""


def _slug(value: Any, otherwise: str, taken: set[str]) -> str:
    """A free id of lowercase letters, digits and hyphens; marks it as taken."""
    said = re.sub(r"[^a-z0-9]+", "-", (value if isinstance(value, str) else "").lower())
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9-]{3,64}", value):
        said = value
    said = said.lstrip("-")[:ID_MAX]  # on a command line it would read as an option
    if not said.strip("-"):
        said = re.sub(r"[^a-z0-9]+", "-", otherwise.lower())[:ID_MAX].strip("-") or "guide"
    said = said if len(said) >= ID_MIN else f"step-{said}"
    found, number = said, 2
    while found in taken:
        found, number = f"{said[: ID_MAX - 6]}-{number}", number + 1
    taken.add(found)
    return found

"""A guide as data: the records of the file format, its limits, and `parse_guide`, the only way in.

Not a file reader (`handrail.outside.guide_files`), and not the published JSON Schema (`schema.py`); a test keeps the
schema consistent with this module.

The port for what guides need and pure Python cannot do safely: patterns and JSON Schemas written by strangers.

Not an engine. `handrail.outside.linear_matcher` implements it with engines that run in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from handrail.kernel.wording import did_you_mean, nearest


class Matcher(Protocol):
    """Patterns and schemas, checked before use. No method raises because of what an author or agent wrote."""

    def pattern_problem(self, pattern: str, flags: str) -> str | None:
        """Why `pattern` cannot be used, and what to do instead; None if it can be used."""

    def matches(self, pattern: str, flags: str, text: str) -> bool:
        """Whether `pattern`, already checked, occurs anywhere in `text`."""

    def schema_problem(self, schema: Mapping[str, Any]) -> str | None:
        """Why `schema` is not a usable JSON Schema, and what to do instead; None if it is one."""

    def schema_errors(self, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
        """What in `value` violates `schema`, each as "path: reason", at most five; empty if it conforms."""


ID_PATTERN = "^[a-z0-9-]+$"
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
ID_MIN, ID_MAX = 3, 64
NAME_MAX = 128
DESCRIPTION_MAX = 512
CATEGORY_MAX = 64
NOTE_MAX = 256
"""One entry of preconditions, clarificationPrompts or metaGuidance."""
PROMPT_MAX = 8192  # raised from 2048: prompts with a worked example did not fit
VERSION_MAX = 256
VERSION_PATTERN = (
    r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$"
)
"""SemVer 2, pre-release and build included."""
FLAGS_PATTERN = "^[gimsuy]*$"
NESTING_MAX = 16
"""Conditions within conditions, compositions within compositions. Nobody can read deeper ones."""
DEPTH_MAX = 64
"""Nested objects and lists in the whole file, including schemas: a reply contains the whole guide."""


def _anchored(pattern: str) -> str:
    """The pattern for Python, where `$` would accept a trailing line break."""
    return pattern.removesuffix("$") + r"\Z"


Id: TypeAlias = Annotated[str, Meta(pattern=_anchored(ID_PATTERN), min_length=ID_MIN, max_length=ID_MAX)]
Version: TypeAlias = Annotated[str, Meta(pattern=_anchored(VERSION_PATTERN), max_length=VERSION_MAX)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Note: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NOTE_MAX)]
Number: TypeAlias = int | float
Count: TypeAlias = Annotated[int, Meta(ge=0)]
RuleType = Literal["contains", "regex", "length", "schema"]


class Condition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a step or rule applies. Everything it states must hold; `conditions.py` says what each key means."""

    var: Text | UnsetType = UNSET
    equals: Any = UNSET
    not_equals: Any = UNSET
    gt: Number | UnsetType = UNSET
    gte: Number | UnsetType = UNSET
    lt: Number | UnsetType = UNSET
    lte: Number | UnsetType = UNSET
    and_: tuple[Condition, ...] | UnsetType = field(default=UNSET, name="and")
    or_: tuple[Condition, ...] | UnsetType = field(default=UNSET, name="or")
    not_: Condition | UnsetType = field(default=UNSET, name="not")


class Rule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One check of a step's output, with the message that tells the agent what was missing."""

    type: RuleType
    message: Text
    value: Text | None = None
    pattern: Text | None = None
    flags: Annotated[str, Meta(pattern=_anchored(FLAGS_PATTERN))] | None = None
    min: Count | None = None
    max: Count | None = None
    schema: dict[str, Any] | None = None
    condition: Condition | None = None


if TYPE_CHECKING:
    Branch: TypeAlias = "Rule | Composition"
else:
    # msgspec cannot tell two untagged Structs apart: entries come out raw and `_branch` converts them.
    Branch = Any


class Composition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules combined: exactly one of and, or, not."""

    and_: Annotated[tuple[Branch, ...], Meta(min_length=1)] | None = field(default=None, name="and")
    or_: Annotated[tuple[Branch, ...], Meta(min_length=1)] | None = field(default=None, name="or")
    not_: Branch | None = field(default=None, name="not")


class Step(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """One thing to do, and how to tell that it was done."""

    id: Id
    title: Name
    prompt: Annotated[str, Meta(min_length=1, max_length=PROMPT_MAX)]
    guidance: tuple[str, ...] = ()
    ask_for_files: bool = False
    require_confirmation: bool = False
    run_condition: Condition | None = None
    validation_criteria: tuple[Rule, ...] | Composition | None = None


class Guide(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel", kw_only=True):
    """Steps in order, and what to know before the first one."""

    id: Id
    name: Name
    description: Annotated[str, Meta(min_length=1, max_length=DESCRIPTION_MAX)]
    version: Version
    category: Annotated[str, Meta(min_length=1, max_length=CATEGORY_MAX)] = "general"
    min_server_version: Version | None = None
    preconditions: tuple[Note, ...] = ()
    clarification_prompts: tuple[Note, ...] = ()
    meta_guidance: tuple[Note, ...] = ()
    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]


Path: TypeAlias = tuple[str | int, ...]

RULE_FIELDS: dict[str, tuple[str, ...]] = {
    "contains": ("value",),
    "regex": ("pattern", "flags"),
    "length": ("min", "max"),
    "schema": ("schema",),
}
"""The fields that belong to each rule type, besides message and condition."""


class GuideProblem(Exception):  # noqa: N818 - it describes the file, it is not a failure of the program
    """What keeps a document from being a guide: where, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path_text(path)}: {reason}" if path else reason)


def path_text(path: Path) -> str:
    """A path as people write it: `steps[2].prompt`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def valid_id(value: object) -> bool:
    """Whether this could be the id of a guide."""
    return isinstance(value, str) and ID_MIN <= len(value) <= ID_MAX and set(value) <= _ID_CHARACTERS


def guide_to_wire(guide: Guide) -> dict[str, Any]:
    """The guide as in its file: without defaults, but always with `category`."""
    wire: dict[str, Any] = {}
    for key, value in msgspec.to_builtins(guide).items():
        wire[key] = _plain(value)
        if key == "version":
            wire["category"] = guide.category
    return wire


def step_to_wire(step: Step) -> dict[str, Any]:
    """One step as in its file, without defaults."""
    wire: dict[str, Any] = _plain(msgspec.to_builtins(step))
    return wire


def _plain(value: Any) -> Any:
    """Tuples as lists, so that what is sent equals what is read back."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def parse_guide(data: object, *, matcher: Matcher, server_version: str) -> Guide:
    """The guide a decoded file describes. Raises `GuideProblem` for the first thing that is wrong with it."""
    if not isinstance(data, dict):
        said = "the file is empty" if data is None else f"the file holds {kind_of(data)}"
        raise GuideProblem((), f"{said}; a guide is an object with id, name, description, version and steps")
    _look_over(data)
    if "$schema" in data and not isinstance(data["$schema"], str):
        raise GuideProblem(("$schema",), f"must be text, not {kind_of(data['$schema'])}")
    # Editors find their schema through this key; it is not part of the guide.
    guide = _convert({key: value for key, value in data.items() if key != "$schema"}, Guide, ())
    _check_server(guide, server_version)
    for key, notes in (
        ("preconditions", guide.preconditions),
        ("clarificationPrompts", guide.clarification_prompts),
        ("metaGuidance", guide.meta_guidance),
    ):
        _check_unique(notes, (key,))
    taken: dict[str, int] = {}
    steps: list[Step] = []
    for number, step in enumerate(guide.steps):
        if step.id in taken:
            raise GuideProblem(("steps", number, "id"), f'"{step.id}" is already the id of steps[{taken[step.id]}]')
        taken[step.id] = number
        steps.append(_checked_step(step, ("steps", number), matcher))
    return msgspec.structs.replace(guide, steps=tuple(steps))


def _look_over(data: dict[Any, Any]) -> None:
    """Checks what no record can express: depth, keys that are not text, and null, which only `equals` may have."""
    pending: list[tuple[Any, Path, bool]] = [(data, (), False)]
    while pending:
        value, path, opaque = pending.pop()
        if len(path) > DEPTH_MAX:
            raise GuideProblem(path[:3], f"is nested more than {DEPTH_MAX} levels deep")
        if value is None and not opaque:
            raise GuideProblem(path, "has no value: give it one or leave the key out")
        if isinstance(value, dict):
            for key, entry in reversed(value.items()):
                if not isinstance(key, str):
                    raise GuideProblem(path, f"the key {key!r} must be text: put it in quotes")
                inside = opaque or key in {"equals", "not_equals"} or (key == "schema" and entry is not None)
                pending.append((entry, (*path, key), inside))
        elif isinstance(value, list):
            pending.extend((entry, (*path, number), opaque) for number, entry in reversed(tuple(enumerate(value))))


def _check_server(guide: Guide, server_version: str) -> None:
    needed = guide.min_server_version
    if needed is not None and _precedence(needed) > _precedence(server_version):
        reason = f"this guide needs Handrail {needed} or newer; this is {server_version}"
        raise GuideProblem(("minServerVersion",), reason)


def _precedence(version: str) -> tuple[Any, ...]:
    """A key that sorts versions according to SemVer 2; for other schemes only the first three numbers count."""
    core, _, tag = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split(".")[:3] if part.isascii() and part.isdigit())
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in tag.split(".") if part)
    return numbers, not tag, parts


def _check_unique(entries: tuple[str, ...], path: Path) -> None:
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        if entry in first:
            raise GuideProblem((*path, number), f"says the same as {path_text(path)}[{first[entry]}]; keep one")
        first[entry] = number


def _checked_step(step: Step, path: Path, matcher: Matcher) -> Step:
    if step.run_condition is not None:
        _check_condition(step.run_condition, (*path, "runCondition"))
    at = (*path, "validationCriteria")
    criteria = step.validation_criteria
    if isinstance(criteria, Composition):
        return msgspec.structs.replace(step, validation_criteria=_composed(criteria, at, matcher))
    for number, rule in enumerate(criteria or ()):
        _check_rule(rule, (*at, number), matcher)
    return step


def _check_condition(condition: Condition, path: Path, depth: int = 1) -> None:
    if depth > NESTING_MAX:
        raise GuideProblem(path, f"conditions are nested more than {NESTING_MAX} deep")
    if condition.var is UNSET:
        for operator in ("equals", "not_equals", "gt", "gte", "lt", "lte"):
            if getattr(condition, operator) is not UNSET:
                raise GuideProblem((*path, operator), f'needs "var" beside "{operator}": the variable to compare')
    for key, inner in (("and", condition.and_), ("or", condition.or_)):
        for number, entry in enumerate(() if inner is UNSET else inner):
            _check_condition(entry, (*path, key, number), depth + 1)
    if condition.not_ is not UNSET:
        _check_condition(condition.not_, (*path, "not"), depth + 1)


def _composed(raw: Composition, path: Path, matcher: Matcher, depth: int = 1) -> Composition:
    """The composition with its entries converted and checked."""
    if depth > NESTING_MAX:
        raise GuideProblem(path, f"compositions are nested more than {NESTING_MAX} deep")
    given = [key for key, value in (("and", raw.and_), ("or", raw.or_), ("not", raw.not_)) if value is not None]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "is empty"
        raise GuideProblem(path, f"{said}; a composition has exactly one of and, or, not (nest them to combine)")

    def entries(key: str, values: tuple[Any, ...] | None) -> tuple[Branch, ...] | None:
        if values is None:
            return None
        return tuple(_branch(value, (*path, key, number), matcher, depth) for number, value in enumerate(values))

    inverted = None if raw.not_ is None else _branch(raw.not_, (*path, "not"), matcher, depth)
    return Composition(and_=entries("and", raw.and_), or_=entries("or", raw.or_), not_=inverted)


def _branch(raw: Any, path: Path, matcher: Matcher, depth: int) -> Rule | Composition:
    if isinstance(raw, dict) and "type" not in raw and not raw.keys().isdisjoint({"and", "or", "not"}):
        return _composed(_convert(raw, Composition, path), path, matcher, depth + 1)
    rule = _convert(raw, Rule, path)
    _check_rule(rule, path, matcher)
    return rule


def _check_rule(rule: Rule, path: Path, matcher: Matcher) -> None:
    for owner, fields in RULE_FIELDS.items():
        for name in fields:
            if owner != rule.type and getattr(rule, name) is not None:
                reason = f'"{name}" belongs to a rule of type {owner}, not {rule.type}: leave it out or change the type'
                raise GuideProblem((*path, name), reason)
    if rule.condition is not None:
        _check_condition(rule.condition, (*path, "condition"))
    for at, reason in _rule_problems(rule, matcher):
        raise GuideProblem((*path, *at), reason)


def _rule_problems(rule: Rule, matcher: Matcher) -> Iterator[tuple[Path, str]]:
    if rule.type == "contains" and rule.value is None:
        yield (), 'a contains rule needs "value": the text that must be there'
    if rule.type == "regex":
        if rule.pattern is None:
            yield (), 'a regex rule needs "pattern"'
        elif problem := matcher.pattern_problem(rule.pattern, rule.flags or ""):
            yield ("pattern",), problem
    if rule.type == "length":
        if rule.min is None and rule.max is None:
            yield (), 'a length rule needs "min", "max" or both'
        elif rule.min is not None and rule.max is not None and rule.min > rule.max:
            yield ("min",), f"min {rule.min} is above max {rule.max}: no output could pass"
    if rule.type == "schema":
        if rule.schema is None:
            yield (), 'a schema rule needs "schema": a JSON Schema'
        elif problem := matcher.schema_problem(rule.schema):
            yield ("schema",), problem


Record = TypeVar("Record", bound=Struct)


def _convert(raw: Any, kind: type[Record], path: Path) -> Record:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        inner, reason = _translated(str(error), raw, kind)
        raise GuideProblem((*path, *inner), reason) from None


def _translated(message: str, raw: Any, kind: type[Struct]) -> tuple[Path, str]:
    """msgspec's message as a path and a plain sentence. An unknown message is passed on: correct, if less plain."""
    text, _, place = message.rpartition(" - at `$")
    if not text:
        text, place = message, ""
    path = tuple(_path_parts(place.removesuffix("`")))
    subject = text.partition("`")[2].rpartition("`")[0]
    if text.startswith("Object contains unknown field"):
        return (*path, subject), _unknown_key(subject, _record_at(kind, path))
    if text.startswith("Object missing required field"):
        return path, f'the key "{subject}" is missing'
    return path, _plain_reason(text, _value_at(raw, path), path)


def _path_parts(place: str) -> Iterator[str | int]:
    for part in place.replace("[", ".[").split("."):
        if part.startswith("["):
            yield int(part[1:-1]) if part[1:-1].isdecimal() else part
        elif part:
            yield part


def _record_at(kind: type[Struct], path: Path) -> type[Struct]:
    for part, following in zip(path, (*path, None)[1:], strict=True):
        if part == "steps":
            kind = Step
        elif part in {"runCondition", "condition"}:
            kind = Condition
        elif part == "validationCriteria":
            kind = Rule if isinstance(following, int) else Composition
    return kind


def _value_at(raw: Any, path: Path) -> Any:
    for part in path:
        raw = raw[part]
    return raw


def _unknown_key(key: str, record: type[Struct]) -> str:
    if record is Rule and key in {"and", "or", "not"}:
        return f'a list holds rules only; to combine them, write one object with "{key}" in place of the list'
    allowed = record.__struct_encode_fields__
    guess = nearest(key, allowed)
    hint = f"did you mean {guess}?" if guess else f"allowed here: {', '.join(allowed)}"
    return f'there is no key "{key}" here; {hint}'


_TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "int | float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_PATTERN_WORDS = {
    "id": 'may only have the small letters a-z, digits and "-"',
    "version": 'must be a version of three numbers such as "1.0.0" (SemVer 2)',
    "minServerVersion": 'must be a version of three numbers such as "1.0.0" (SemVer 2)',
    "flags": "may only have the letters g, i, m, s, u, y",
}


def _plain_reason(text: str, value: Any, path: Path) -> str:
    bound = text.rpartition(" ")[2]
    if ", got " in text:
        return _wrong_type(text, value)
    if " of length " in text:
        return _wrong_length(value, bound, below="of length >=" in text)
    if "matching regex" in text:
        return _PATTERN_WORDS.get(str(path[-1]) if path else "", text)
    if text.startswith("Invalid enum value"):
        return f"must be one of {', '.join(RULE_FIELDS)}{did_you_mean(str(value), RULE_FIELDS)}"
    return f"must be {bound} or more" if text.startswith("Expected `int` >= ") else text


def _wrong_type(text: str, value: Any) -> str:
    expected = text.partition("`")[2].partition("`")[0].removesuffix(" | null")
    wanted = _TYPE_WORDS.get(expected) or " or ".join(_TYPE_WORDS.get(one, one) for one in expected.split(" | "))
    quote = ": put it in quotes" if expected == "str" and isinstance(value, bool | int | float) else ""
    return f"must be {wanted}, not {kind_of(value)}{quote}"


def _wrong_length(value: Any, bound: str, *, below: bool) -> str:
    if below and not value:
        return "must not be empty"
    return (
        f"has {len(value)} characters; at {'least' if below else 'most'} {bound} are {'needed' if below else 'allowed'}"
    )


def kind_of(value: object) -> str:
    """The kind of this JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list | tuple) else "an object"

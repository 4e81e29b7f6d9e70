"""Turns the texts of WorkRail's steps into prompts and guidance: blocks, fragments, functions, assessments, loops.

Only words. `workrail.py` decides where they go.

Converts WorkRail's conditions and validation rules to ours. They are nearly the same; where they are not, the result is
None.

The output is plain data that `domain/guides/definition.py` accepts. The caller decides what to do with a rule that has
no equivalent here.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from handrail.domain.guides.conditions import describe
from handrail.domain.guides.definition import (
    FLAGS_PATTERN,
    NESTING_MAX,
    NOTE_MAX,
    PROMPT_MAX,
    RULE_FIELDS,
    Condition,
    Matcher,
)

_NUMBERS = ("gt", "gte", "lt", "lte")
_LEVELS_OF_A_VALUE = 24
"""Maximum depth of an `equals` value or a schema; a guide has room for 64 levels including the path to it."""


def condition(value: Any, depth: int = 1) -> dict[str, Any] | None:
    """The condition, or None if it cannot be expressed here."""
    if not isinstance(value, dict) or depth > NESTING_MAX - 1:  # a loop may wrap one more around it
        return None
    made: dict[str, Any] = {}
    for key, inner in value.items():
        kept: Any
        if key == "var":
            kept = inner if isinstance(inner, str) and inner else None
        elif key in ("equals", "not_equals"):
            if "var" not in value or _levels(inner) > _LEVELS_OF_A_VALUE:
                return None
            made[key] = inner
            continue
        elif key in _NUMBERS:
            kept = inner if _is_number(inner) and "var" in value else None
        elif key in ("and", "or"):
            kept = _all_conditions(inner, depth)
        else:
            kept = condition(inner, depth + 1) if key == "not" else None
        if kept is None:
            return None
        made[key] = kept
    return made


def _all_conditions(value: Any, depth: int) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    found = [condition(entry, depth + 1) for entry in value]
    kept = [entry for entry in found if entry is not None]
    return kept if len(kept) == len(found) else None


def in_words(value: Any) -> str:
    """A condition in plain words, or as JSON if it cannot be expressed here."""
    made = condition(value)
    return json_text(value) if made is None else describe(msgspec.convert(made, Condition))


def joined(conditions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """One condition that requires all of these; None if there is nothing to require."""
    needed = [entry for entry in conditions if entry]
    if len(needed) > 1:
        return {"and": needed}
    return needed[0] if needed else None


def criteria(value: Any, matcher: Matcher | None) -> tuple[list[dict[str, Any]] | dict[str, Any] | None, list[Any]]:
    """The criteria of a step, and those without an equivalent here. A composition is converted entirely or not at all:
    part of it would demand something else."""
    if isinstance(value, dict) and "type" not in value:
        made = _composition(value, matcher, 1)
        return made, [value] if made is None else []
    listed = value if isinstance(value, list) else [value]
    rules = [_rule(entry, matcher) for entry in listed]
    kept = [rule for rule in rules if rule is not None]
    return kept or None, [entry for entry, rule in zip(listed, rules, strict=True) if rule is None]


def _composition(value: dict[str, Any], matcher: Matcher | None, depth: int) -> dict[str, Any] | None:
    if len(value) != 1 or depth > NESTING_MAX:
        return None
    key, inner = next(iter(value.items()))
    if key == "not":
        branch = _branch(inner, matcher, depth)
        return None if branch is None else {"not": branch}
    if key not in ("and", "or") or not isinstance(inner, list) or not inner:
        return None
    branches = [_branch(entry, matcher, depth) for entry in inner]
    return None if None in branches else {key: branches}


def _branch(value: Any, matcher: Matcher | None, depth: int) -> dict[str, Any] | None:
    if isinstance(value, dict) and "type" not in value:
        return _composition(value, matcher, depth + 1)
    return _rule(value, matcher)


def _rule(value: Any, matcher: Matcher | None) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or value["type"] not in RULE_FIELDS:
        return None
    fields = _RULES[value["type"]](value, matcher)
    if fields is None:
        return None
    message = value.get("message")
    said = message if isinstance(message, str) and message else f"The output breaks a rule of type {value['type']}."
    made = {"type": value["type"], "message": said, **fields}
    if value.get("condition") is not None:
        holds = condition(value["condition"])
        if holds is None:
            return None
        made |= {"condition": holds} if holds else {}
    return made


def _contains(value: dict[str, Any], _matcher: Matcher | None) -> dict[str, Any] | None:
    said = value.get("value")
    return {"value": said} if isinstance(said, str) and said else None


def _regex(value: dict[str, Any], matcher: Matcher | None) -> dict[str, Any] | None:
    pattern = value.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        return None
    allowed = FLAGS_PATTERN.strip("^$[]*")
    flags = "".join(flag for flag in dict.fromkeys(str(value.get("flags") or "")) if flag in allowed)
    if matcher is not None and matcher.pattern_problem(pattern, flags) is not None:
        return None
    return {"pattern": pattern, "flags": flags} if flags else {"pattern": pattern}


def _length(value: dict[str, Any], _matcher: Matcher | None) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for key in ("min", "max"):
        number = value.get(key)
        if number is not None:
            if not _is_number(number) or number < 0 or number != int(number):
                return None
            found[key] = int(number)
    return found if found and found.get("min", 0) <= found.get("max", found.get("min", 0)) else None


def _schema(value: dict[str, Any], matcher: Matcher | None) -> dict[str, Any] | None:
    schema = value.get("schema")
    if not isinstance(schema, dict) or _levels(schema) > _LEVELS_OF_A_VALUE:
        return None
    if matcher is not None and matcher.schema_problem(schema) is not None:
        return None
    return {"schema": schema}


_RULES = {"contains": _contains, "regex": _regex, "length": _length, "schema": _schema}


def json_text(value: Any) -> str:
    """A value as it would appear in a file."""
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_levels(entry) for entry in inner), default=0)


_BREAKS = ("\n\n", "\n", ". ", " ")
"""Where a text may be split, best place first."""


def parted(text: str, room: int) -> list[str]:
    """A text in pieces that fit, split where it hurts least. Only whitespace between them is lost."""
    found: list[str] = []
    rest = text
    while len(rest) > room:
        places = (rest.rfind(mark, room // 2, room) + len(mark.rstrip(" ")) for mark in _BREAKS if mark in rest[:room])
        at = next((place for place in places if place > room // 2), room)
        found.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return [piece for piece in [*found, rest] if piece]


def prompts(text: str) -> list[str]:
    """A prompt, split for consecutive steps if it is too long."""
    return parted(text, PROMPT_MAX)


def notes(texts: list[str]) -> list[str]:
    """Notes of a guide: each short enough, without duplicates."""
    return list(dict.fromkeys(piece for text in texts for piece in parted(text, NOTE_MAX)))


def prompt_of_blocks(blocks: dict[str, Any], missing: list[str]) -> str:
    """Structured blocks as one prompt, in WorkRail's order. References to texts that are not in the file are noted."""
    parts = [_value(blocks.get("goal"), missing)]
    parts.append(_listed("Constraints", blocks.get("constraints"), missing))
    parts.append(_listed("Procedure", blocks.get("procedure"), missing, numbered=True))
    required = blocks.get("outputRequired")
    if isinstance(required, dict) and required:
        parts.append("Output required:\n" + "\n".join(f"- {key}: {_plain(text)}" for key, text in required.items()))
    parts.append(_listed("Verify", blocks.get("verify"), missing))
    known = {"goal", "constraints", "procedure", "outputRequired", "verify"}
    parts += [f"{key}: {_plain(value)}" for key, value in blocks.items() if key not in known and value]
    return "\n\n".join(part for part in parts if part)


def _listed(heading: str, value: Any, missing: list[str], *, numbered: bool = False) -> str:
    entries = value if isinstance(value, list) else [value]
    said = [text for entry in entries if (text := _value(entry, missing))]
    lines = [f"{number}. {text}" if numbered else f"- {text}" for number, text in enumerate(said, start=1)]
    return f"{heading}:\n" + "\n".join(lines) if lines else ""


def _value(value: Any, missing: list[str]) -> str:
    """A value of a block: text, or pieces of text and references to WorkRail's own texts."""
    if not isinstance(value, list):
        return _plain(value) if value is not None else ""
    said = []
    for piece in value:
        if isinstance(piece, dict) and isinstance(piece.get("refId"), str):
            missing.append(piece["refId"])
            said.append(f"[{piece['refId']}]")
        else:
            said.append(_plain(piece.get("text", piece)) if isinstance(piece, dict) else _plain(piece))
    return "".join(said)


def fragments(value: Any) -> list[str]:
    """Parts of a prompt that apply only sometimes, as guidance that says when."""
    found = []
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            when = entry.get("when")
            found.append(f"When {in_words(when)}: {entry['text']}" if when else entry["text"])
        else:
            found.append(_plain(entry))
    return found


def functions(value: Any) -> dict[str, str]:
    """Function definitions: each function's name and what it does."""
    found = {}
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            said = f"{entry['name']}(): {_plain(entry.get('definition', ''))}"
            parameters = entry.get("parameters")
            found[entry["name"]] = said + (f" Parameters: {json_text(parameters)}" if parameters else "")
        else:
            found[_plain(entry)] = _plain(entry)
    return found


def calls(value: Any) -> list[str]:
    """Function calls and references, as guidance."""
    found = []
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found.append(f"Do {entry['name']}() with {json_text(entry.get('args', {}))}.")
        else:
            found.append(f"Do {_plain(entry)}.")
    return found


def assessment(value: dict[str, Any]) -> str:
    """What a step has to judge before it ends."""
    lines = [f"Before you go on, judge: {_plain(value.get('purpose', value.get('id', '')))}"]
    for dimension in value.get("dimensions") or []:
        if isinstance(dimension, dict):
            levels = dimension.get("levels")
            shown = f" ({', '.join(_plain(level) for level in levels)})" if isinstance(levels, list) else ""
            lines.append(f"- {_plain(dimension.get('id', ''))}{shown}: {_plain(dimension.get('purpose', ''))}")
    return "\n".join(lines)


def consequences(value: Any) -> list[str]:
    """What follows from a judgement."""
    found = []
    for entry in value if isinstance(value, list) else [value]:
        when, effect = (entry.get("when"), entry.get("effect")) if isinstance(entry, dict) else (None, None)
        if isinstance(when, dict) and isinstance(effect, dict) and "anyEqualsLevel" in when and "guidance" in effect:
            found.append(f"If you judged anything {_plain(when['anyEqualsLevel'])}: {_plain(effect['guidance'])}")
        else:
            found.append(_plain(entry))
    return found


def rounds(loop: dict[str, Any]) -> tuple[str, str]:
    """How often a loop's steps are done, and when to stop repeating them."""
    kind = loop.get("type")
    source = loop.get("conditionSource")
    held = source.get("condition") if isinstance(source, dict) and "condition" in source else loop.get("condition")
    most = loop.get("maxIterations")
    limit = f", {most} rounds at most" if isinstance(most, int) and not isinstance(most, bool) else ""
    if kind == "forEach":
        return f"once for each entry of the variable {_plain(loop.get('items'))}{limit}", "no entry is left"
    if kind == "for":
        count = loop.get("count")
        often = f"as often as the variable {count} says" if isinstance(count, str) else f"{_plain(count)} times"
        return f"{often}{limit}", "they were done that often"
    if held is None:
        return f"until they decide to stop{limit}", "the decision is to stop"
    words = in_words(held)
    if kind == "until":
        return f"until this holds: {words}{limit}", f"this holds: {words}"
    return f"as long as this holds: {words}{limit}", f"this no longer holds: {words}"


def loop_variables(loop: dict[str, Any]) -> str:
    """The loop's variables, for the agent to keep."""
    meanings = {
        "iterationVar": "the number of the round",
        "itemVar": "the entry at hand",
        "indexVar": "its place, from 0",
    }
    named = [f"{loop[key]} ({meaning})" for key, meaning in meanings.items() if isinstance(loop.get(key), str)]
    return f" Keep in context: {', '.join(named)}." if named else ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)

"""Turns the texts of WorkRail's steps into prompts and guidance: blocks, fragments, functions, assessments, loops.

Only words. `workrail.py` decides where they go.
"""

from __future__ import annotations

from typing import Any

from handrail.domain.exchange.workrail_rules import in_words, json_text
from handrail.domain.guides.definition import NOTE_MAX, PROMPT_MAX

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

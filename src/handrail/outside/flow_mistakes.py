"""Everything that is wrong in a flow file at once, as long as each mistake is in one place: an unknown key, a value of
the wrong type, a word outside its enum. Mistakes between phases are found one at a time, by `flow_files.py`, once the
phases themselves can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from handrail.domain.pipeline.flow import Flow, Kind, Phase
from handrail.domain.pipeline.flow_shelf import BrokenFlow
from handrail.kernel.nearest import did_you_mean
from handrail.known_types import make_known
from handrail.outside.flow_files import FILE_BYTES, FlowFiles
from handrail.outside.user_files import Flaw, UserFile, WrittenPath
from handrail.validator_words import explained

FEW = 50
"""How many mistakes of one file are reported."""
_PLACE = re.compile(r":\d+:\d+\Z")
_WHOLE_PHASE = {"id": "a", "label": "A", "kind": "agent"}
_WHOLE_FLOW = {"name": "a"}
_WORD = re.compile(r"Invalid enum value '(?P<word>.*)'", re.DOTALL)


def mistakes_in(broken: BrokenFlow, flows: FlowFiles) -> list[BrokenFlow]:
    """Every mistake that can be reported on its own, or else the one already known."""
    file = Path(_PLACE.sub("", broken.where))
    try:
        written = UserFile(file, FILE_BYTES, flows.tree_of(file))
    except Flaw:
        return [broken]
    make_known(Flow)
    found = []
    for phase, path, reason in _mistakes(written.data):
        told = f"phase {phase}: {reason}" if phase is not None else reason
        found.append(BrokenFlow(broken.name, broken.source, f"{file}{written.at(path)}", told, phase))
    if not any(one.phase == broken.phase for one in found):
        found.insert(0, broken)
    return found[:FEW]


def _mistakes(data: Any) -> Iterator[tuple[str | None, WrittenPath, str]]:
    """For each mistake: its phase, where it is, and what it is."""
    if not _is_plain(data):
        return
    top = {key: value for key, value in data.items() if key != "phases"}
    for path, reason in _mistakes_in_members(top, Flow, _WHOLE_FLOW):
        yield None, path, reason
    phases = data.get("phases")
    for place, phase in enumerate(phases if isinstance(phases, list) else ()):
        if _is_plain(phase):
            named = phase["id"] if isinstance(phase.get("id"), str) and phase["id"] else f"number {place + 1}"
            for path, reason in _mistakes_in_members(phase, Phase, _WHOLE_PHASE):
                yield named, ("phases", place, *path), reason


def _is_plain(data: Any) -> bool:
    return isinstance(data, dict) and all(isinstance(key, str) for key in data)


def _mistakes_in_members(
    given: Mapping[str, Any], kind: type, whole: Mapping[str, Any]
) -> Iterator[tuple[WrittenPath, str]]:
    """What is wrong with each member by itself, beside others that are right; then what is missing."""
    names = kind.__struct_fields__  # type: ignore[attr-defined]
    for key, value in given.items():
        if (problem := _problem({**whole, key: value}, kind)) is not None:
            yield (key,), _words(problem, names)
    for key in whole:
        if key not in given:
            yield (), f"{key} is required"


def _problem(document: Mapping[str, Any], kind: type) -> str | None:
    convert: Callable[[Any, Any], Any] = msgspec.convert
    try:
        convert(document, kind)
    except msgspec.ValidationError as problem:
        return str(problem)
    return None


def _words(problem: str, names: tuple[str, ...]) -> str:
    """A validator's message in plain words; for an unknown word, with the known ones."""
    wrong = _WORD.match(problem)
    if wrong is not None and problem.endswith("`$.kind`"):
        word, kinds = wrong["word"][:100], get_args(Kind)
        return f"there is no kind {word} (kinds: {', '.join(kinds)}){did_you_mean(word, kinds)}"
    return explained(problem, kind="key", names=names, whole="the flow")

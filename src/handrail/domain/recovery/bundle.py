"""The bundle that `task_load_context` returns: the task, what led to it and what surrounds it, packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.recovery.material import RecoveryMaterial
from handrail.domain.recovery.options import ALL_CHECKPOINTS, MOST_TOKENS, Include, RecoveryOptions
from handrail.domain.recovery.packer import BundlePiece, pack
from handrail.domain.recovery.pieces import pieces_of, skeleton_of
from handrail.domain.recovery.truncate import json_weight

_UNREAD_CHECKPOINT = 80
"""A guess at what a checkpoint costs that was not read, in tokens."""
_NOTE_SHARE = 4
"""The note of what is missing counts by section if even the longest such note takes at most a quarter of the budget."""


def context_bundle(material: RecoveryMaterial, asked: RecoveryOptions, tools: Mapping[str, str]) -> dict[str, Any]:
    """The bundle, never over budget. `tools` maps the tools that are on to the names they have on this server."""
    pieces = pieces_of(material, asked.include, tools, asked.max_tokens)

    def note(taken: Sequence[int], whole_tokens: int) -> dict[str, Any]:
        return _note(material, asked, tools, _Missing(pieces, taken, material, asked.include), whole_tokens)

    def note_in_short(taken: Sequence[int], whole_tokens: int) -> dict[str, Any]:
        return _in_short(note(taken, whole_tokens))

    longest = json_weight(note([0] * len(pieces), MOST_TOKENS))
    chosen = note if longest <= asked.max_tokens * 100 // _NOTE_SHARE else note_in_short
    return pack(skeleton_of(material, tools), pieces, asked.max_tokens, chosen).bundle


class _Missing:
    """What is not in a bundle."""

    def __init__(
        self, pieces: Sequence[BundlePiece], taken: Sequence[int], material: RecoveryMaterial, include: Include
    ) -> None:
        self.sections: dict[str, int] = {}
        shortened: dict[str, None] = {}
        for piece, count in zip(pieces, taken, strict=True):
            if count == 0:
                self.sections[piece.section] = self.sections.get(piece.section, 0) + 1
            elif count < piece.enough:
                shortened[piece.section] = None
        self.older = max(0, material.task.checkpoints - material.shown)
        if self.older and not include.all_checkpoints:
            self.sections["checkpoints"] = self.sections.get("checkpoints", 0) + self.older
        self.shortened = [section for section in shortened if section not in self.sections]
        self.prior = _unread_prior(material) if include.prior_task_outcomes else 0
        self.unread = self.older if include.all_checkpoints else 0
        """Checkpoints beyond what one call can show."""

    @property
    def anything(self) -> bool:
        return bool(self.sections or self.shortened)


def _unread_prior(material: RecoveryMaterial) -> int:
    told = [*material.needs, *material.parts, *(sibling.task for sibling in material.siblings), *material.prior]
    seen = {task.id for task in (*told, material.task) if task.is_finished}
    return max(0, material.tally.finished - len(seen))


def _note(
    material: RecoveryMaterial, asked: RecoveryOptions, tools: Mapping[str, str], missing: _Missing, whole_tokens: int
) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    if missing.anything:
        entries.append(
            {
                "sections": missing.sections,
                **({"shortened": missing.shortened} if missing.shortened else {}),
                "tool": tools.get("task_load_context", "task_load_context"),
                "arguments": _ask_again(asked, missing, whole_tokens),
            }
        )
    beyond = (
        ("prior_tasks", missing.prior, "workflow_get", {"id": material.workflow.id, "include_tasks": True}),
        ("checkpoints", missing.unread, "checkpoint_list", {"task_id": material.task.id}),
    )
    if material.more_decisions:  # they were not counted, and no budget would include them
        entries.append({"sections": {"older_decisions": 1}, "command": f"handrail decisions {material.workflow.id}"})
    for section, count, tool, arguments in beyond:
        if count:
            handle = {"tool": tools[tool], "arguments": arguments} if tool in tools else {}
            entries.append({"sections": {section: count}, **handle})
    return {"omitted": entries} if entries else {}


def _in_short(note: Mapping[str, Any]) -> dict[str, Any]:
    """The note for a tight budget: how much is missing, and how to get it."""
    if not note:
        return {}
    entries = note["omitted"]
    count = sum(sum(entry["sections"].values()) + len(entry.get("shortened", ())) for entry in entries)
    handle = {name: entries[0][name] for name in ("tool", "arguments") if name in entries[0]}
    return {"omitted": [{"sections": {"all": count}, **handle}]}


def _ask_again(asked: RecoveryOptions, missing: _Missing, whole_tokens: int) -> dict[str, Any]:
    """The arguments of a call that would return everything."""
    include = {
        name: value for name, value in msgspec.to_builtins(asked.include).items() if value != getattr(Include(), name)
    }
    unread = 0 if asked.include.all_checkpoints else min(missing.older, ALL_CHECKPOINTS)
    if unread:
        include = {**include, "all_checkpoints": True}
    wanted = (whole_tokens + unread * _UNREAD_CHECKPOINT) * 21 // 20 + 50
    arguments: dict[str, Any] = {} if asked.task_id is None else {"task_id": asked.task_id}
    if include:
        arguments["include"] = include
    return {**arguments, "max_tokens": min(max(wanted, asked.max_tokens), MOST_TOKENS)}

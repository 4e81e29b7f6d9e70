"""A workflow template: tasks with `{{variables}}` in their texts, to be applied repeatedly. The record only."""

from __future__ import annotations

from typing import Any

import msgspec


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """One template. `tasks` are plan entries as given, `variables` what has to be filled in."""

    id: str
    name: str
    description: str | None
    tasks: list[dict[str, Any]]
    variables: list[dict[str, Any]]
    created_at: int

    @property
    def stream(self) -> str:
        return self.id

"""Whether a client trusts a folder, and whether it has Handrail's plugin, as its own user's file says. Pure: texts in,
an answer out; the file is the user's, so nothing that a repository brings has a say here."""

from __future__ import annotations

import posixpath
from typing import Any

from handrail.domain.setup import jsonc, toml_edit
from handrail.domain.setup.clients import SERVER
from handrail.domain.setup.edits import NotUnderstood, value_at


def codex_trusts(text: str, folders: tuple[str, ...]) -> bool:
    """Whether Codex's config calls one of these folders trusted: the project's, or its repository's."""
    projects = _table(toml_edit.plain, text, "projects")
    return any(value_at(projects.get(folder), ("trust_level",)) == "trusted" for folder in folders)


def gemini_trusts(text: str, folders: tuple[str, ...]) -> bool:
    """Whether Gemini CLI's list trusts a folder: the longest rule that covers it decides."""
    rules = _table(jsonc.plain, text)
    longest, answer = -1, False
    for rule, level in rules.items():
        above = posixpath.dirname(rule) if level == "TRUST_PARENT" else rule
        covers = any(folder == above or folder.startswith(above.rstrip("/") + "/") for folder in folders)
        if covers and len(rule) > longest:
            longest, answer = len(rule), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return answer


def has_folder_trust_off(text: str) -> bool:
    """Whether Gemini CLI's settings turn its question about folders off."""
    return value_at(_table(jsonc.plain, text), ("security", "folderTrust", "enabled")) is False


def claude_plugin(text: str) -> bool:
    """Whether Claude Code's settings have our plugin on."""
    return any(name.split("@")[0] == SERVER and on for name, on in _table(jsonc.plain, text, "enabledPlugins").items())


def codex_plugin(text: str) -> bool:
    """Whether Codex's config has our plugin on."""
    known = _table(toml_edit.plain, text, "plugins").items()
    return any(name.split("@")[0] == SERVER and value_at(one, ("enabled",)) is not False for name, one in known)


def _table(parsed: Any, text: str, name: str = "") -> dict[str, Any]:
    """A text's object, or one of its members; empty if it is none or cannot be read."""
    try:
        whole = parsed(text)
    except NotUnderstood:
        return {}
    inner = whole.get(name) if name and isinstance(whole, dict) else whole
    return inner if isinstance(inner, dict) else {}

"""What is written in the rich data set: plans, files, documents, and texts that mean no good. Data only."""

from __future__ import annotations

from typing import Any

CONFIG = """# Only a person answers gates here. Agents are taken for present for an hour after their last call.
approvals = "human"
heartbeat_ms = 1200000
"""
HOSTILE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(document.cookie)</script>"
TURNED = "invoice\u202egnp.exe\u202c"
"""A name that reads from the right to the left after the override."""
LONG_WORD = "Antidisestablishmentarianism" * 12
CELLS = "a | b\n# not a heading\n[not a link](javascript:alert(1)) `tick"
ESCAPES = "\x1b[2J\x1b]0;owned\x07bell"

START: dict[str, str | bytes | None] = {
    ".gitignore": ".handrail/\n.specs/\n",
    "README.md": "# notes\n\nNotes that stay on your machine.\n",
    "notes/__init__.py": '"""Notes."""\n',
    "notes/store.py": '"""Keeps notes."""\n\n\ndef save(note: str) -> None:\n    print(note)\n',
    "notes/old_search.py": (
        '"""Finds notes."""\n\n\ndef find(word: str) -> list[str]:\n    return [word]\n\n\nLIMIT = 50\n'
    ),
    "notes/legacy.py": '"""Nobody calls this any more."""\n',
    "assets/icon.bin": bytes(range(256)) * 8,
}
OTHER_START: dict[str, str | bytes | None] = {
    ".gitignore": ".handrail/\n",
    "README.md": "# site\n\nThe site of notes.\n",
}


def task(name: str, *needs: str, group: str | None = None, part_of: str | None = None, **more: Any) -> dict[str, Any]:
    """One task of a plan."""
    made: dict[str, Any] = {"name": name, "description": f"{name}, so that notes survive without a net.", **more}
    made |= {"depends_on": list(needs), "sequence": more.get("sequence", 1)}
    if group is not None:
        made["parallel_group"] = group
    if part_of is not None:
        made["parent"] = part_of
    return made


SURVEY, SCHEMA, LOG = "Survey what is stored", "Design the schema", "Append-only change log"
RENAME, INDEX, MIGRATE = "Move search to its own module", "Index the words", "Migrate old notes"
CLOCKS, MERGE, PROTOCOL = "Logical clocks", "Merge two histories", "Write down the protocol"
PUSH, PULL, RETRY = "Push changes", "Pull changes", "Retry with backoff"
LIST, EDITOR, CONFLICT = "List that updates itself", "Editor keeps drafts", "Show conflicts side by side"
BANNER, SETTINGS, ICONS = "Offline banner", "Settings for sync", "New icons"
FUZZ, SOAK, BENCH = "Fuzz the merge", "Soak test over a bad net", "Measure sync of 10,000 notes"
GUIDE, CHANGES, EXAMPLES = "User guide", "Release notes", "Examples"
ENCRYPT, KEYS, ROTATE = "Encrypt at rest", "Keep keys", "Rotate keys"
TELEMETRY, RELEASE = "Telemetry", "Release candidate"
RISKY = f"Escape titles like {HOSTILE}"
LONG = f"Break {LONG_WORD[:120]} somewhere"

PLAN: dict[str, Any] = {
    "summary": "Notes work without a net and meet again when there is one",
    "approach": "A change log under the store, clocks for the order, then transport and interface side by side",
    "risks": ["Two devices with wrong clocks", HOSTILE],
    "assumptions": ["One person, several devices"],
    "tasks": [
        task(SURVEY, group="storage", estimated_complexity="low", acceptance=["Every field has an owner"]),
        task(SCHEMA, SURVEY, group="storage", files_likely_affected=["notes/store.py"]),
        task(LOG, SCHEMA, group="storage", priority=5, files_likely_affected=["notes/log.py"], sequence=2),
        task(RENAME, SURVEY, group="storage", files_likely_affected=["notes/search.py"]),
        task(INDEX, RENAME, group="storage", sequence=2),
        task(MIGRATE, LOG, group="storage", estimated_complexity="high", sequence=3),
        task(CLOCKS, SCHEMA, group="sync", sequence=2),
        task(MERGE, LOG, CLOCKS, group="sync", priority=9, estimated_complexity="high", sequence=3),
        task(PROTOCOL, SURVEY, group="sync"),
        task(PUSH, PROTOCOL, LOG, group="sync", sequence=4),
        task(PULL, PROTOCOL, MERGE, group="sync", sequence=4),
        task(RETRY, PUSH, PULL, group="sync", sequence=5),
        task(LIST, INDEX, group="interface", sequence=3),
        task(EDITOR, group="interface", files_likely_affected=["notes/editor.py"]),
        task(CONFLICT, MERGE, EDITOR, group="interface", sequence=4),
        task(BANNER, RETRY, group="interface", sequence=6),
        task(SETTINGS, PUSH, group="interface", sequence=5),
        task(ICONS, group="interface", files_likely_affected=["assets/**"]),
        task(RISKY, group="interface", acceptance=["Shown as text, everywhere"]),
        task(FUZZ, MERGE, group="checks", sequence=4),
        task(SOAK, RETRY, group="checks", sequence=6, requires=["network"]),
        task(BENCH, RETRY, group="checks", sequence=6),
        task(GUIDE, BANNER, SETTINGS, group="writing", sequence=7),
        task(CHANGES, GUIDE, group="writing", sequence=8),
        task(EXAMPLES, group="writing"),
        task(ENCRYPT, SCHEMA, sequence=2),
        task(KEYS, part_of=ENCRYPT, sequence=2),
        task(ROTATE, KEYS, part_of=ENCRYPT, sequence=3),
        task(TELEMETRY, sequence=9),
        task(LONG, sequence=9),
        task(RELEASE, CHANGES, SOAK, BENCH, FUZZ, ENCRYPT, sequence=10),
    ],
}

SITE_PLAN: dict[str, Any] = {
    "summary": "The site says what notes do without a net",
    "approach": "Words first, pictures after",
    "tasks": [
        task("Write the page"),
        task("Take pictures", "Write the page"),
        task("Publish", "Write the page", "Take pictures"),
    ],
}
DONE_PLAN: dict[str, Any] = {
    "summary": "Faster start",
    "approach": "Measure, then leave things out",
    "tasks": [task("Measure the start"), task("Import later", "Measure the start"), task("Say it", "Import later")],
}

LOG_FILES: dict[str, str | bytes | None] = {
    "notes/log.py": (
        '"""The change log: what happened to which note, in order."""\n\n'
        "from __future__ import annotations\n\nimport json\nfrom pathlib import Path\n\n\n"
        "class Log:\n"
        '    """One file, only ever written at its end."""\n\n'
        "    def __init__(self, path: Path) -> None:\n        self._path = path\n\n"
        "    def append(self, change: dict[str, str]) -> None:\n"
        '        with self._path.open("a", encoding="utf-8") as file:\n'
        '            file.write(json.dumps(change) + "\\n")\n'
    ),
    "notes/store.py": (
        '"""Keeps notes, and what happened to them."""\n\nfrom notes.log import Log\n\n\n'
        'def save(log: Log, note: str) -> None:\n    log.append({"saved": note})\n'
    ),
}
SEARCH_FILES: dict[str, str | bytes | None] = {
    "notes/old_search.py": None,
    "notes/search.py": '"""Finds notes."""\n\n\ndef find(word: str) -> list[str]:\n    return [word]\n\n\nLIMIT = 80\n',
    "notes/legacy.py": None,
}
ICON_FILES: dict[str, str | bytes | None] = {"assets/icon.bin": bytes(reversed(range(256))) * 9}
HOSTILE_FILES: dict[str, str | bytes | None] = {
    "notes/titles.py": f'TITLES = [\n    "{HOSTILE}",\n    "{SCRIPT}",\n    "{TURNED}",\n    "{LONG_WORD}",\n]\n',
    "README.md": "# notes\n\nNotes that stay on your machine, whatever their titles say.\n",
}
EDITOR_FILES: dict[str, str | bytes | None] = {
    "notes/editor.py": '"""Drafts."""\n\nDRAFTS: dict[str, str] = {}\n\n\ndef keep(note: str, text: str) -> None:\n'
    "    DRAFTS[note] = text\n",
}

MERGE_FILES: dict[str, str | bytes | None] = {
    "notes/merge.py": '"""Two histories become one."""\n\n\ndef merge(one: list[str], other: list[str]) -> list[str]:\n'
    "    return sorted({*one, *other})\n",
}

REQUEST = "Share a note by a link that expires --nopr --effort=M"
ENDED_REQUEST = "Export all notes as one file --nopr --effort=M --until=checkpoint-a"
ANALYSIS = "# Analysis\n\nA link needs an address, a note, and a moment after which it is void.\n"
INVESTIGATION = "# Investigation\n\nNothing in the store knows time yet; the change log will.\n"
DESIGN = f"""# Design: links that expire

## The change
`notes share NOTE --for 2d` prints a link. Whoever has it reads the note until then; nobody writes.

| part | where | why |
|---|---|---|
| token | `notes/links.py` | 128 bits of chance, only its hash is kept |
| moment | change log | an entry, so that it travels with the note |

## What could go wrong
1. A clock that is wrong makes a link live longer. The device that made it decides.
2. A title such as {HOSTILE} is shown by a browser: it is escaped there, and {SCRIPT} too.
3. {LONG_WORD}

## Tests
- A link that has expired shows nothing, not even the title.
- A token that is one letter off is refused in the same time.

```python
def expired(link: Link, now_ms: int) -> bool:
    return now_ms >= link.until_ms
```
"""
REVISE = """# Review

## Verdict: REVISE

## Findings

**1. [MAJOR] notes/links.py keeps the token itself, not a hash of it**
**2. [MINOR] the word void is used for two things**
"""
APPROVE = "# Review\n\n## Verdict: APPROVE\n\nThe token is kept as a hash, and time is the maker's.\n"
TASKS = """# Tasks

## Task 1: Keep links
mode: sequential
files:
- notes/links.py
"""

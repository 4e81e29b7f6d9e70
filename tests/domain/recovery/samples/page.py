"""The bundles of the samples as docs/recovery.md shows them. `python -m tests.domain.recovery.samples.page` rewrites
them there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from tests.domain.recovery.samples.shelf import SAMPLES

PAGE = Path(__file__).parents[4] / "docs" / "recovery.md"
MAX_TOKENS = 1500


def written(bundle: dict[str, Any]) -> str:
    """The JSON, with a line for every member of the task and every entry of a longer list."""
    lines = []
    for name, member in bundle.items():
        if name == "current_task":
            lines.append(_block(name, "{", [f"{_json(key)}: {_json(value)}" for key, value in member.items()], "}"))
        elif isinstance(member, list) and len(member) > 1 and isinstance(member[0], dict):
            lines.append(_block(name, "[", [_json(entry) for entry in member], "]"))
        else:
            lines.append(f"{_json(name)}: {_json(member)}")
    return "{" + ",\n ".join(lines) + "}"


def _block(name: str, begin: str, members: list[str], end: str) -> str:
    return f"{_json(name)}: {begin}\n   " + ",\n   ".join(members) + end


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def shown_on_page(text: str) -> dict[str, str]:
    """The blocks of the page by the heading each stands under."""
    found: dict[str, str] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        block = re.search(r"```json\n(.*?)\n```", rest, flags=re.DOTALL)
        if block is not None:
            found[heading.strip()] = block[1]
    return found


def blocks() -> dict[str, str]:
    """What the blocks should be."""
    return {heading_of(name): written(sample().load(max_tokens=MAX_TOKENS)) for name, sample in SAMPLES.items()}


def heading_of(name: str) -> str:
    return name[0].upper() + name[1:]


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = shown_on_page(text)
    for heading, block in blocks().items():
        text = text.replace(f"```json\n{shown[heading]}\n```", f"```json\n{block}\n```")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

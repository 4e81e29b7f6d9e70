"""The prompts that come with Handrail: Markdown files with front matter, read when prompts are first asked for."""

from __future__ import annotations

import functools

import msgspec
import yaml

from handrail.domain.prompts.text import PromptText
from handrail.known_types import make_known
from handrail.outside.user_files import bundled_folder

BUNDLED = bundled_folder("prompts")
_MARK = "---\n"


@functools.cache
def bundled_prompts() -> dict[str, PromptText]:
    """All prompts by name, in alphabetical order. They are part of the installation and do not change."""
    texts = (prompt_in(file.read_text(encoding="utf-8")) for file in sorted(BUNDLED.glob("*.md")))
    return {text.name: text for text in texts}


def prompt_in(written: str) -> PromptText:
    """A file's prompt: front matter between two marks, then the text."""
    before, front, body = written.replace("\r\n", "\n").split(_MARK, 2)
    assert not before, "a prompt begins with its front matter"
    make_known(PromptText)
    return msgspec.convert({**yaml.safe_load(front), "body": body}, PromptText)

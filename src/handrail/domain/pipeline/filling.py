"""What a run puts into the places of a command: `{workspace}`, `{title}` and the rest. Pure, and no shell's words: a
place becomes part of one argument, whatever stands in it.

Which places there are is the flow format's (`flow.py`); which command comes when is the engine's.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from handrail.domain.pipeline.asking import SOURCES
from handrail.domain.pipeline.run import PipelineRun

_PLACE = re.compile(r"\{([a-z_-]+)\}")
_PROJECT = re.compile(r"https://(?:gitlab\.com/(\S+?)/-/|github\.com/([^/\s]+/[^/\s]+)/issues/)")


def filled(run: PipelineRun, word: str) -> str:
    """A command's word with what the run knows, in one pass: what is put in is not looked at again."""
    values = place_values(run)
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), word)


def place_values(run: PipelineRun) -> dict[str, str]:
    closes = f"\n\nCloses #{run.source_id}" if run.source_type == "github_issue" else ""
    return {
        "workspace": run.workspace,
        "branch": run.branch or "",
        "spec-name": run.spec_name,
        "title": f"feat: {run.title}",
        "body": f"{run.title}\n\nDocuments: {run.workspace}{closes}",
        "source_url": run.source_url or "",
        "source_id": _number(run),
        "source_project": _project(run),
    }


def _number(run: PipelineRun) -> str:
    """The issue's number, by its address: what was sent beside that may be another's."""
    found = (source.pattern.fullmatch(run.source_url or "") for source in SOURCES)
    return next((match[1] for match in found if match is not None), run.source_id or "")


def _project(run: PipelineRun) -> str:
    """The project that the issue is in, as one part of a path of its service's interface: `group%2Fproject`."""
    match = _PROJECT.match(run.source_url or "")
    return quote(match[1] or match[2], safe="") if match is not None else ""

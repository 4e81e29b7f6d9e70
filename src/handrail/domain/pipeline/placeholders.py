"""Fills a run's values into the placeholders of a command: `{workspace}`, `{title}` and the rest. Pure. No shell is
involved: a placeholder becomes part of one argument, whatever its value.

The flow format (`flow.py`) defines the placeholders; the engine decides which command comes when.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from handrail.domain.pipeline.request import SOURCES
from handrail.domain.pipeline.run import PipelineRun

_PLACE = re.compile(r"\{([a-z_-]+)\}")
_PROJECT = re.compile(r"https://(?:gitlab\.com/(\S+?)/-/|github\.com/([^/\s]+/[^/\s]+)/issues/)")


def filled(run: PipelineRun, word: str) -> str:
    """A command's word with the run's values, filled in one pass: inserted text is not expanded again."""
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
    """The issue's number, taken from its address: an id sent alongside may belong to another issue."""
    found = (source.pattern.fullmatch(run.source_url or "") for source in SOURCES)
    return next((match[1] for match in found if match is not None), run.source_id or "")


def _project(run: PipelineRun) -> str:
    """The issue's project as one path segment for its service's API: `group%2Fproject`."""
    match = _PROJECT.match(run.source_url or "")
    return quote(match[1] or match[2], safe="") if match is not None else ""

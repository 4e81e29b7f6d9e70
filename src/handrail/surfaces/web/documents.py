"""The documents of a run for the page: which there are, and the text of one. Only what lies in the run's own workspace
is listed or read; a name is looked up among those, never made a path.
"""

from __future__ import annotations

import msgspec

from handrail.domain.overview.pipeline import DocumentRow
from handrail.domain.pipeline.run import PipelineRun
from handrail.kernel.errors import NotFound
from handrail.operation import Call

SHOWN = 300
TEXT = 400_000
"""Characters of one document that are shown."""


class DocumentText(msgspec.Struct, frozen=True, kw_only=True):
    """One document."""

    name: str
    path: str
    """From the repository on."""
    size: int
    """Bytes of all of it."""
    text: str
    cut: bool
    """True where only the beginning is here."""


def listed(call: Call, run: PipelineRun) -> list[DocumentRow]:
    """The documents of a run, by name."""
    texts = call.specs(run.repository_path).texts(run.workspace)
    return [_row(run, name, text) for name, text in sorted(texts.items())[:SHOWN]]


def document_text(call: Call, run: PipelineRun, name: str) -> DocumentText:
    text = call.specs(run.repository_path).texts(run.workspace).get(name)
    if text is None:
        raise NotFound(
            f"{run.workspace} has no document {name[:100]}", hint="the run's own view lists its documents by name"
        )
    row = _row(run, name, text)
    return DocumentText(name=name, path=row.path, size=row.size, text=text[:TEXT], cut=len(text) > TEXT)


def _row(run: PipelineRun, name: str, text: str) -> DocumentRow:
    return DocumentRow(name=name, path=f"{run.workspace}/{name}", size=len(text.encode("utf-8", "replace")))

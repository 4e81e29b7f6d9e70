"""The documents of a run for the page: a list, and the text of one. Only the run's own workspace is listed or read; a
name is looked up in that list, never turned into a path."""

from __future__ import annotations

import msgspec

from handrail.domain.overview.pipeline import DocumentRow
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.workspace_texts import WorkspaceTexts, document_bytes
from handrail.kernel.errors import NotFound
from handrail.operation import Call
from handrail.surfaces.gate_answers import documents_of

SHOWN = 300
TEXT = 400_000
"""How many characters of one document are shown."""


class DocumentText(msgspec.Struct, frozen=True, kw_only=True):
    """One document."""

    name: str
    path: str
    """Relative to the repository."""
    size: int
    """Size of the whole document in bytes."""
    text: str
    cut: bool
    """True if only the beginning is included."""


def listed(call: Call, run: PipelineRun) -> list[DocumentRow]:
    """The documents of a run, by name."""
    files = documents_of(call, run)
    return [_row(run, name, files) for name in sorted(files)[:SHOWN]]


def document_text(call: Call, run: PipelineRun, name: str) -> DocumentText:
    files = documents_of(call, run)
    if name not in files:
        raise NotFound(
            f"{run.workspace} has no document {name[:100]}", hint="the run's own view lists its documents by name"
        )
    row, text = _row(run, name, files), files[name]
    return DocumentText(name=name, path=row.path, size=row.size, text=text[:TEXT], cut=len(text) > TEXT)


def _row(run: PipelineRun, name: str, files: WorkspaceTexts) -> DocumentRow:
    return DocumentRow(name=name, path=f"{run.workspace}/{name}", size=len(document_bytes(files, name)))

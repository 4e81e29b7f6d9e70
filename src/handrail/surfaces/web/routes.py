"""The table of what the page can be asked, and the lookup of the route for an address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from handrail.domain.work.workflow import Workflow
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call
from handrail.surfaces.report.build import report_html, report_markdown
from handrail.surfaces.web.crew_routes import CREW_ROUTES
from handrail.surfaces.web.responses import Download
from handrail.surfaces.web.route import PageRequest, PageRoute, read, workflow_asked
from handrail.surfaces.web.work_routes import WORK_ROUTES


def _report(make: Callable[[Call, Workflow], str], ending: str, kind: str) -> Callable[[Call, PageRequest], Any]:
    """A handler that makes a workflow's report to keep."""

    def handler(call: Call, asked: PageRequest) -> Download:
        workflow = workflow_asked(call.work, asked.path["workflow"])
        text = make(call, workflow)
        return Download(name=f"report-{workflow.id}.{ending}", kind=f"{kind}; charset=utf-8", data=text.encode())

    return handler


REPORT_ROUTES: tuple[PageRoute, ...] = (
    read("/api/workflows/{workflow}/report.html", _report(report_html, "html", "text/html")),
    read("/api/workflows/{workflow}/report.md", _report(report_markdown, "md", "text/markdown")),
)
ROUTES: tuple[PageRoute, ...] = (*WORK_ROUTES, *CREW_ROUTES, *REPORT_ROUTES)


class RouteTable:
    """Routes by method and address."""

    def __init__(self, routes: Sequence[PageRoute], more_paths: Sequence[str] = ()) -> None:
        self._routes = [(route, route.pattern.split("/")) for route in routes]
        self._more_paths = tuple(more_paths)
        """Addresses that are served elsewhere, for hints."""

    def find(self, method: str, path: str) -> tuple[PageRoute, dict[str, str]] | None:
        """The route for an address, with the parts it names. Literal parts win over named ones."""
        parts = path.split("/")
        best: tuple[PageRoute, dict[str, str]] | None = None
        for route, pattern in self._routes:
            if route.method != method or (named := _fits(pattern, parts)) is None:
                continue
            if best is None or len(named) < len(best[1]):
                best = (route, named)
        return best

    def methods(self, path: str) -> list[str]:
        """The methods an address accepts."""
        parts = path.split("/")
        return sorted({route.method for route, pattern in self._routes if _fits(pattern, parts) is not None})

    def hint(self, path: str) -> str:
        """What may have been meant by an unknown address."""
        known = [*self._more_paths, *(route.pattern for route, _ in self._routes)]
        return f"no data lies there{did_you_mean(path, known)}"


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    """The named parts of an address that fits the pattern; None if it does not."""
    if len(pattern) != len(parts):
        return None
    named: dict[str, str] = {}
    for wanted, given in zip(pattern, parts, strict=True):
        if wanted.startswith("{") and wanted.endswith("}"):
            if not given:
                return None
            named[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return named

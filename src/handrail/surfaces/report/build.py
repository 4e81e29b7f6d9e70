"""Makes a workflow's report: reads it in the call's unit of work, then writes it in one of its forms. The commands and
the page all ask here; neither disk nor socket is touched."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.overview.graph import Layouts, critical_tasks
from handrail.domain.overview.report import Report, report
from handrail.domain.pipeline.turns import RunRules
from handrail.domain.work.workflow import Workflow
from handrail.operation import Call
from handrail.surfaces.report.html import page
from handrail.surfaces.report.markdown import markdown


def report_data(call: Call, workflow: Workflow) -> Report:
    """The facts alone."""
    return _report(call, workflow, critical_tasks(call.work, workflow.id))


def report_html(call: Call, workflow: Workflow) -> str:
    """One HTML file that needs nothing else."""
    plan = Layouts().view(call.work, workflow.id)
    return page(_report(call, workflow, plan.critical), plan)


def report_markdown(call: Call, workflow: Workflow) -> str:
    """One Markdown page."""
    return markdown(report_data(call, workflow))


def _report(call: Call, workflow: Workflow, critical: Sequence[str]) -> Report:
    rules = RunRules(call.humans_decide, call.budget.prices, call.budget.limits)
    return report(call.work, workflow, critical, rules)

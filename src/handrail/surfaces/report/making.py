"""A workflow's report made: gathered in the call's unit of work, then written in one of its forms. For the command line
and the page alike; neither disk nor socket is touched."""

from __future__ import annotations

from handrail.domain.overview.graph import GraphView, Layouts
from handrail.domain.overview.report import Report, report
from handrail.domain.overview.workflow import find_workflow
from handrail.domain.pipeline.running import Rules
from handrail.operation import Call
from handrail.surfaces.report.html import page
from handrail.surfaces.report.markdown import markdown


def report_data(call: Call, workflow_id: str) -> Report:
    """The facts alone."""
    return _gathered(call, workflow_id)[0]


def report_html(call: Call, workflow_id: str) -> str:
    """One HTML file that needs nothing else."""
    return page(*_gathered(call, workflow_id))


def report_markdown(call: Call, workflow_id: str) -> str:
    return markdown(report_data(call, workflow_id))


def _gathered(call: Call, workflow_id: str) -> tuple[Report, GraphView]:
    workflow = find_workflow(call.work, workflow_id)
    plan = Layouts().view(call.work, workflow.id)
    rules = Rules(call.humans_decide, call.budget.prices, call.budget.limits)
    return report(call.work, workflow, plan.critical, rules), plan

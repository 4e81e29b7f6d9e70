"""A report as one HTML file: no script, nothing fetched, readable on paper. Every text of an agent is escaped on its
way in (`markup.py`), and the file's own policy forbids whatever might get through."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from handrail.domain.journal.markdown import minute
from handrail.domain.overview.decisions import DecisionRow
from handrail.domain.overview.graph import GraphView
from handrail.domain.overview.report import Report
from handrail.domain.overview.report_tasks import ReportTask
from handrail.kernel.clock import spoken_time
from handrail.surfaces.report import drawings
from handrail.surfaces.report.markup import SHEET, Html, Part, joined, tag
from handrail.surfaces.report.words import changed, claims, findings, lines_of, path_names, state, total_rows

BOXES = 1500
"""Boxes beyond which a plan is not drawn: nobody reads it on paper."""


def page(report: Report, plan: GraphView) -> str:
    """The file."""
    name = report.workflow.name
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: report"),
        tag("style", Html(SHEET)),
    )
    body = tag("body", tag("main", _sections(report, plan)), _footer(report))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _policy() -> str:
    """Nothing may be loaded or run but the one sheet of style."""
    digest = base64.b64encode(hashlib.sha256(SHEET.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _sections(report: Report, plan: GraphView) -> Iterable[Part]:
    tasks = {task.row.id: task for task in report.tasks}
    yield _head(report)
    yield _section("What it took", tag("dl", [_fact(*row) for row in total_rows(report)], class_="facts"))
    if 0 < len(plan.nodes) <= BOXES:
        yield _section("Plan", tag("div", drawings.graph(plan, tasks), class_="wide plan"), _path(report))
    bars = drawings.timeline(report.timeline)
    if bars is not None:
        yield _section("Timeline", tag("div", bars, class_="wide"))
    yield _phases(report)
    yield _tasks(report)
    yield _decisions(report)
    yield _questions(report)
    yield _strays(report)
    yield _issues(report)


def _head(report: Report) -> Html:
    row = report.workflow
    ended = f", ended {minute(report.ended_at)}" if report.ended_at is not None else ""
    where = f" in {row.repository_name}" if row.repository_name else ""
    return tag(
        "header",
        tag("h1", row.name),
        tag("p", _pill(row.status), f" begun {minute(row.created_at)}{ended}{where} ", tag("code", row.id)),
        tag("p", row.sentence) if report.ended_at is None else None,
        _quote(report.goal),
        _quote(report.summary),
        tag("p", report.approach, class_="muted") if report.approach else None,
        tag("ol", [tag("li", text) for text in report.steps]) if report.steps else None,
        _list(f"Risk: {text}" for text in report.risks),
        _list(f"Assumption: {text}" for text in report.assumptions),
    )


def _section(title: str, *parts: Part) -> Html:
    return tag("section", tag("h2", title), parts)


def _fact(name: str, value: str, note: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value), tag("dd", note))


def _pill(status: str) -> Html:
    return tag("span", state(status), class_=f"pill s-{status}")


def _path(report: Report) -> Html | None:
    names = path_names(report)
    return tag("p", "Critical path: ", " → ".join(names), class_="muted") if names else None


def _table(heads: Sequence[tuple[str, str]], rows: Iterable[Part]) -> Html:
    """A table; each head has its text and its class."""
    heading = tag("tr", [tag("th", text, class_=kind or None, scope="col") for text, kind in heads])
    return tag("table", tag("thead", heading), tag("tbody", list(rows)))


def _more(count: int, what: str) -> Html | None:
    return tag("p", f"Not listed: {count:,} more {what}.", class_="muted") if count else None


# -- what happened ----------------------------------------------------------------------------------------------------


def _phases(report: Report) -> Html | None:
    run = report.pipeline
    if run is None:
        return None
    states = {"done": "completed", "now": "in_progress", "waits": "waiting", "next": "pending"}
    rows = [
        tag(
            "tr",
            tag("td", phase.label, tag("br") if phase.feedback else None, phase.feedback),
            tag("td", _pill(states.get(phase.state, phase.state))),
            tag("td", spoken_time(phase.elapsed_ms) if phase.elapsed_ms else "", class_="number"),
            tag("td", str(phase.tries) if phase.tries else "", class_="number"),
            tag("td", f"{phase.tokens:,}" if phase.tokens else "", class_="number wide-only"),
            tag("td", " by ".join(filter(None, (phase.answer, phase.answered_by)))),
        )
        for phase in run.phases
    ]
    heads = (("Phase", ""), ("State", ""), ("Time", "number"), ("Tries", "number"), ("Tokens", "number wide-only"))
    about = f"{run.flow}, effort {run.effort}{f', on {run.branch}' if run.branch else ''}; {run.sentence}"
    return _section("Pipeline", tag("p", about), _table((*heads, ("Answer", "")), rows))


def _tasks(report: Report) -> Html | None:
    if not report.tasks:
        return None
    heads = (("Task", ""), ("State", ""), ("Agent", "wide-only"), ("Attempts", "number wide-only"))
    rows = [_task(task) for task in report.tasks]
    table = _table((*heads, ("At work", "number"), ("Changes", "number")), rows)
    return _section("Tasks", table, _more(report.tasks_more, "tasks"))


def _task(task: ReportTask) -> Html:
    row = task.row
    shown = tag(
        "tr",
        tag("td", row.name, tag("div", row.group, class_="muted") if row.group else None),
        tag("td", _pill(row.status)),
        tag("td", row.agent or "", class_="who wide-only"),
        tag("td", str(row.attempts) if row.attempts else "", class_="number wide-only"),
        tag("td", spoken_time(task.worked_ms) if task.worked_ms else "", class_="number"),
        tag("td", changed(task), class_="number"),
    )
    detail = _detail(task)
    below = tag("tr", tag("td", tag("details", tag("summary", "More"), detail), colspan="6"), class_="detail")
    return joined([shown, below if detail else None])


def _detail(task: ReportTask) -> list[Html]:
    parts: list[Html | None] = [
        tag("p", "Goal: ", task.goal.strip(), class_="muted") if task.goal.strip() else None,
        _quote(task.text),
        tag("p", f"Its agent says: {task.ended.replace('_', ' ')}", class_="muted") if task.ended else None,
        _list(f"{title}: {', '.join(texts)}" for title, texts, _ in claims(task)),
        tag("p", f"Areas: {', '.join(task.areas)}", class_="muted") if task.areas else None,
        _list(f"{change.change} {change.path} {lines_of(change)}{_scope(change.in_scope)}" for change in task.files),
        _more(task.files_more, "files"),
        _list(f"{check.command} ended with {check.exit_code}" for check in task.checks),
        _list(findings(task)),
    ]
    return [part for part in parts if part is not None]


def _scope(in_scope: bool | None) -> str:
    return ", outside its areas" if in_scope is False else ""


def _quote(text: str | None) -> Html | None:
    return tag("div", text.strip(), class_="quote") if text and text.strip() else None


def _list(texts: Iterable[str]) -> Html | None:
    items = [tag("li", text) for text in texts]
    return tag("ul", items) if items else None


def _decisions(report: Report) -> Html | None:
    if not report.decisions:
        return None
    rows = [
        tag(
            "tr",
            tag("td", minute(one.at), class_="when wide-only"),
            tag(
                "td",
                tag("b", one.title),
                tag("div", one.chosen),
                tag("div", one.reason, class_="muted"),
                _alternatives_and_costs(one),
            ),
            tag("td", "superseded" if one.superseded_by else "holds"),
            tag("td", one.task_name, tag("div", one.by or "", class_="muted"), class_="wide-only"),
        )
        for one in report.decisions
    ]
    heads = (("When", "wide-only"), ("Decision", ""), ("State", ""), ("Where", "wide-only"))
    more = _more(report.decisions_more, "decisions, made before these")
    return _section("Decisions", _table(heads, rows), more)


def _alternatives_and_costs(one: DecisionRow) -> Html | None:
    """What else was considered, and what it costs."""
    considered = [f"Considered: {', '.join(one.alternatives)}"] if one.alternatives else []
    return _list([*considered, *([f"Trade-offs: {one.consequences}"] if one.consequences else [])])


def _questions(report: Report) -> Html | None:
    if not report.gates:
        return None
    rows = [
        tag(
            "tr",
            tag("td", gate.question, tag("div", gate.task_name or "", class_="muted")),
            tag("td", _pill("waiting") if gate.status == "open" else gate.answer or gate.status),
            tag("td", gate.feedback or ""),
            tag("td", f"{gate.answered_by} through {gate.channel}" if gate.answered_by else ""),
            tag("td", spoken_time(gate.waited_ms), class_="number"),
            tag("td", minute(gate.answered_at) if gate.answered_at else "", class_="when wide-only"),
        )
        for gate in report.gates
    ]
    heads = (("Question", ""), ("Answer", ""), ("Said with it", ""), ("By", ""), ("Waited", "number"))
    more = _more(report.gates_more, "questions, asked before these")
    return _section("Questions to people", _table((*heads, ("When", "wide-only")), rows), more)


def _strays(report: Report) -> Html | None:
    if not report.strays:
        return None
    rows = [tag("tr", tag("td", tag("code", one.path)), tag("td", one.task_name)) for one in report.strays]
    table = _table((("File", ""), ("Changed by", "")), rows)
    return _section("Outside the declared areas", table, _more(report.strays_more, "files"))


def _issues(report: Report) -> Html | None:
    if not report.issues:
        return None
    rows = [
        tag(
            "tr",
            tag("td", issue.text, tag("div", ", in ".join(filter(None, (kind, issue.task_name))), class_="muted")),
            tag("td", issue.resolution or "", tag("div", "a person was asked") if issue.for_review else None),
            tag("td", minute(issue.at), class_="when wide-only"),
        )
        for issue in report.issues
        for kind in ((issue.kind or "").replace("_", " "),)
    ]
    return _section("Issues", _table((("What was met", ""), ("What was done", ""), ("When", "wide-only")), rows))


def _footer(report: Report) -> Html:
    return tag(
        "footer", f"Made by Handrail, {minute(report.made_at)}. Times are UTC; what agents said is quoted as said."
    )

"""Reports: the facts of a workflow, as one HTML file in which nothing runs, and as Markdown that nothing breaks."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import click.testing
import msgspec
import pytest

from handrail.domain.journal.journal import LOOKING
from handrail.domain.overview.graph import Layouts
from handrail.domain.overview.report import Report, covered
from handrail.domain.overview.report import report as make_report
from handrail.domain.pipeline.turns import RunRules
from handrail.domain.work.lookup import find_workflow
from handrail.operation import Call
from handrail.surfaces.cli.main import cli
from handrail.surfaces.report.build import report_data, report_html, report_markdown
from handrail.surfaces.report.drawings import brief_span, tick_marks
from handrail.surfaces.report.markup import Html, tag
from handrail.surfaces.report.words import path_names, total_rows
from tests.domain.overview.crewed import RULES, Crewed
from tests.page import rich_texts as texts
from tests.page.rich import Facts, build
from tests.page.rich_stage import Stage

MINUTE = 60_000


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return build(tmp_path_factory.mktemp("rich"))


class Made:
    """Reports of the rich data set, in one look each."""

    def __init__(self, rich: Facts) -> None:
        self._stage = Stage(rich.project, rich.home, minutes=0)

    def of(self, make: object, workflow: str) -> object:
        assert callable(make)
        call: Call = self._stage.handrail.call
        return call.ledger.run(
            LOOKING, lambda unit: make(msgspec.structs.replace(call, unit=unit), find_workflow(unit, workflow))
        )


@pytest.fixture(scope="module")
def made(rich: Facts) -> Made:
    return Made(rich)


@pytest.fixture(scope="module")
def report(made: Made, rich: Facts) -> Report:
    found = made.of(report_data, rich.workflow)
    assert isinstance(found, Report)
    return found


def texts_of(made: Made, rich: Facts) -> list[str]:
    return [str(made.of(report_html, key)) for key in (rich.workflow, rich.run, rich.done, rich.site)]


# -- facts ------------------------------------------------------------------------------------------------------------


def test_the_totals_are_those_of_the_story(report: Report) -> None:
    totals = report.totals
    assert (report.workflow.total, report.workflow.finished) == (32, 9)
    assert totals.attempts == 14
    assert totals.retries == 1
    assert totals.out_of_scope == 3
    assert (totals.files, totals.distinct_files) == (8, 8)
    assert (totals.checks_run, totals.checks_failed) == (8, 0)
    assert totals.busy_ms <= totals.wall_ms
    assert totals.agent_ms >= totals.busy_ms
    assert totals.parallelism == round(totals.agent_ms / totals.busy_ms, 2)
    assert (totals.asked, totals.reviews, totals.unanswered) == (0, 2, 1)
    rows = {name: (value, note) for name, value, note in total_rows(report)}
    assert rows["Asked of people"] == ("2", "2 looks that nothing waited for; 1 still open")
    assert rows["Side by side"][0].endswith(" at once")
    assert totals.tokens is None, "nobody reported any outside of a run"


def test_every_task_is_told_with_what_came_of_it(report: Report) -> None:
    by_name = {task.row.name: task for task in report.tasks}
    log = by_name[texts.LOG]
    assert [(file.path, file.change, file.in_scope) for file in log.files] == [
        ("notes/log.py", "added", True),
        ("notes/store.py", "modified", True),
    ]
    assert log.worked_ms == 9 * MINUTE
    assert log.ended == "success"
    assert [check.command for check in log.checks] == ["pytest -q", "ruff check ."]
    clocks = by_name[texts.CLOCKS]
    assert clocks.row.attempts == 2
    assert clocks.worked_ms == 15 * MINUTE, "both attempts, without the time in between"
    assert by_name[texts.INDEX].text is not None
    assert [task.row.name for task in report.tasks if task.on_critical][:2] == [texts.SURVEY, texts.SCHEMA]


def test_claims_stand_apart_from_what_was_found(report: Report) -> None:
    by_name = {task.row.name: task for task in report.tasks}
    rename = by_name[texts.RENAME]
    assert rename.claims.achievements == ["Tests pass"]
    assert rename.claims.limitations == ["Only tried on small files"]
    assert (rename.claims.commands, rename.claims.tests) == (["pytest -q"], "passed")
    assert (rename.outside, rename.outside_more) == (["notes/legacy.py", "notes/old_search.py"], 0)
    assert rename.goal == f"To do: {texts.RENAME}"
    assert by_name[texts.SURVEY].claims.achievements == []


def test_the_plan_in_words_is_told(report: Report) -> None:
    assert report.summary == "Notes work without a net and meet again when there is one"
    assert report.approach is not None
    assert report.risks == ["Two devices with wrong clocks", "<img src=x onerror=alert(1)>"]
    assert report.assumptions == ["One person, several devices"]


def test_the_critical_path_is_that_of_the_drawing(made: Made, rich: Facts, report: Report) -> None:
    drawn = made.of(lambda call, workflow: Layouts().view(call.work, workflow.id).critical, rich.workflow)
    assert report.critical == drawn


def test_decisions_questions_and_strays_are_there_with_who_and_when(report: Report) -> None:
    assert [(one.chosen, one.status) for one in report.decisions] == [
        ("wall clocks", "superseded"),
        ("Lamport clocks", "accepted"),
    ]
    answered = [(gate.answer, gate.answered_by, gate.channel) for gate in report.gates if gate.status == "answered"]
    assert answered == [("ok", "you", "page")]
    assert {(one.path, one.task_name) for one in report.strays} == {
        ("notes/legacy.py", texts.RENAME),
        ("notes/old_search.py", texts.RENAME),
        ("README.md", texts.RISKY),
    }
    assert [issue.for_review for issue in report.issues] == [True]


def test_a_run_tells_its_phases_its_tokens_and_how_long_it_waited(made: Made, rich: Facts) -> None:
    run = made.of(report_data, rich.ended_run)
    assert isinstance(run, Report)
    assert run.pipeline is not None
    assert run.totals.tokens == 144_000
    assert run.totals.asked == 2
    assert run.totals.person_ms == 2 * MINUTE
    assert [gate.answer for gate in run.gates] == ["reject", "approve"]


@pytest.mark.parametrize(
    ("spans", "total"),
    [([], 0), ([(0, 5)], 5), ([(0, 5), (3, 4)], 5), ([(3, 9), (0, 5)], 9), ([(0, 1), (5, 6)], 2), ([(2, 2)], 0)],
)
def test_time_that_several_share_counts_once(spans: list[tuple[int, int]], total: int) -> None:
    assert covered(spans) == total


def test_the_time_at_work_of_a_lost_agent_ends_with_its_claim(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    (anna,) = desk.register("Anna")
    desk.claim(anna, "task_1")
    desk.wait(60)
    found = desk.at(plan, lambda unit, workflow: make_report(unit, workflow, (), RunRules()))
    (bar,) = [bar for bar in found.timeline.bars if bar.kind == "work"]
    assert (bar.until, bar.how) == (bar.since + RULES.lease_ms, "left")
    assert found.totals.agent_ms == RULES.lease_ms
    assert {name: value for name, value, _ in total_rows(found)}["Side by side"] == "one at a time"


def test_of_a_long_critical_path_the_first_are_named(report: Report) -> None:
    many = [task.row.id for task in report.tasks][:11]
    named = path_names(msgspec.structs.replace(report, critical=many))
    assert (len(named), named[-1]) == (9, "and 3 more")
    assert max(map(len, named)) <= 60


# -- HTML -------------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """Every element of a page with its attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "h1", "h2", "p", "code"),
    *("div", "dl", "dt", "dd", "b", "span", "br", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "details"),
    *("summary", "svg", "g", "rect", "path", "line", "text"),
}


def test_nothing_in_the_file_runs_or_is_fetched(made: Made, rich: Facts) -> None:
    for page in texts_of(made, rich):
        parser = Elements()
        parser.feed(page)
        assert parser.open == [], "every element is closed"
        assert {name for name, _ in parser.found} <= KNOWN
        named = {key for _, attributes in parser.found for key in attributes}
        assert not {key for key in named if key.startswith("on") or key in ("href", "src", "style", "xlink:href")}
        policy = next(
            attributes["content"]
            for _, attributes in parser.found
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy is not None
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert not re.search(r"url\(|@import|https?:", page)


def test_hostile_text_is_there_as_text(made: Made, rich: Facts) -> None:
    page = str(made.of(report_html, rich.workflow))
    parser = Elements()
    parser.feed(page)
    assert texts.HOSTILE in parser.text
    assert "img" not in {name for name, _ in parser.found}
    assert "\u202e" not in page
    assert "\x1b" not in page


def test_the_plan_and_the_timeline_are_drawn(made: Made, rich: Facts) -> None:
    parser = Elements()
    parser.feed(str(made.of(report_html, rich.workflow)))
    boxes = [attributes for name, attributes in parser.found if name == "rect" and "box" in str(attributes["class"])]
    assert len(boxes) == 32
    assert any("critical" in str(box["class"]) for box in boxes)
    assert any(attributes.get("class") == "work" for name, attributes in parser.found if name == "rect")
    assert "attempt 2: at work for" in parser.text
    assert "✓ done" in parser.text
    assert "▶ running" in parser.text
    assert any(attributes.get("class") == "wide plan" for _, attributes in parser.found)


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (0.5, ["0 s"]),
        (150, ["0 s", "30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s"]),
        (498, ["0 s", "2 min", "4 min", "6 min", "8 min"]),
        (26 * 3600, ["0 s", "6 h", "12 h", "18 h", "1 d"]),
        (400 * 86_400, ["0 s", "90 d", "180 d", "270 d", "360 d"]),
    ],
)
def test_the_axis_of_a_timeline_has_round_steps(seconds: float, marks: list[str]) -> None:
    assert [brief_span(at) for at in tick_marks(int(seconds * 1000))] == marks


def test_an_attribute_cannot_be_left() -> None:
    made = tag("p", '<"&', class_='a"><script>', hidden=True, title=None)
    assert made == '<p class="a&quot;&gt;&lt;script&gt;" hidden>&lt;&quot;&amp;</p>'
    assert tag("p", Html("<b>x</b>"), ["y", None, ["z"]]) == "<p><b>x</b>yz</p>"


def test_html_and_markdown_have_the_same_facts(made: Made, rich: Facts) -> None:
    parser = Elements()
    parser.feed(str(made.of(report_html, rich.workflow)))
    page = str(made.of(report_markdown, rich.workflow))
    assert "Areas: notes/search.py" in parser.text
    assert "areas: `notes/search.py`" in page
    for fact in (
        "Two devices with wrong clocks",
        "Only tried on small files",
        "To do: New icons",
        "1 file (1 without line counts)",
        "Tests, as the agent says: passed",
        "1 of them superseded",
        "wall clocks",
    ):
        assert fact in parser.text, fact
        assert fact in page, fact


# -- Markdown ---------------------------------------------------------------------------------------------------------


def test_hostile_text_breaks_no_markdown(made: Made, rich: Facts) -> None:
    page = str(made.of(report_markdown, rich.workflow))
    assert "<img" not in page
    assert "](javascript" not in page
    assert "\n# not a heading" not in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert len(widths) == 2 + 32
    assert set(widths) == {7}, "every row has six cells"


def test_a_run_in_markdown_tells_its_phases_and_who_answered(made: Made, rich: Facts) -> None:
    page = str(made.of(report_markdown, rich.ended_run))
    assert "| Design | done | 3 minutes | 3 | 54,000 |  |" in page
    assert "at Human Reviews Design, about `.specs/" in page
    answers = [line for line in page.splitlines() if line.startswith("  - Answered")]
    assert [re.sub(r"Answered [-0-9: ]+UTC", "Answered", line) for line in answers] == [
        "  - Answered, after 1 minute, by you through page with reject: Say how it is tested",
        "  - Answered, after 1 minute, by you through page with approve: Say how it is tested",
    ]


# -- the command ------------------------------------------------------------------------------------------------------


def exported(rich: Facts, *words: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(rich.home), "COLUMNS": "100"})
    return runner.invoke(cli, ["export", *words, "--root", str(rich.project)])


def test_export_writes_a_file_and_does_not_replace_one(rich: Facts, tmp_path: Path) -> None:
    target = tmp_path / "notes.html"
    done = exported(rich, rich.workflow, "-o", str(target))
    assert (done.exit_code, done.output) == (0, f"wrote {target}\n")
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>\n")
    again = exported(rich, rich.workflow, "-o", str(target))
    assert again.exit_code == 2
    assert "add --force" in again.output
    assert exported(rich, rich.workflow, "-o", str(target), "--force").exit_code == 0
    by_ending = tmp_path / "notes.md"
    exported(rich, rich.workflow, "-o", str(by_ending))
    assert by_ending.read_text(encoding="utf-8").startswith("# Notes without a net\n")


def test_export_prints_where_the_output_is_redirected(rich: Facts) -> None:
    assert exported(rich, rich.done).output.startswith("<!doctype html>")
    document = msgspec.json.decode(exported(rich, rich.done, "--format", "json").output)
    assert document["workflow"]["status"] == "completed"
    assert document["totals"]["attempts"] == 3
    assert msgspec.json.decode(exported(rich, rich.done, "--json").output)["workflow"] == document["workflow"]
    assert exported(rich, rich.done, "--format", "md", "-o", "-").output.startswith("# Faster start\n")


def test_export_refuses_what_is_not_there_and_asks_which_is_meant(rich: Facts, tmp_path: Path) -> None:
    assert "there is no workflow nothing" in exported(rich, "nothing").output
    assert "several workflows are open here" in exported(rich).output
    nowhere = exported(rich, rich.done, "-o", str(tmp_path / "no" / "folder.html"))
    assert "cannot be written" in nowhere.output

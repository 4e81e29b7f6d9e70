"""What a run puts into its commands: nothing hostile, nothing twice, and the issue that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.pipeline.engine import decide
from handrail.domain.pipeline.flow import PLACES
from handrail.domain.pipeline.placeholders import filled, place_values
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import Facts, RunState
from tests.domain.pipeline.bundled import bundled

GITLAB = "https://gitlab.com/group/sub/project/-/issues/42"


def begun(**values: Any) -> PipelineRun:
    whole: dict[str, Any] = {
        "id": "wf_1",
        "repository_path": "/repo",
        "workspace": ".specs/20260401-fix",
        "spec_name": "fix",
        "title": "Fix it",
        "request": "Fix it",
        "source_type": "text",
        "source_url": None,
        "source_id": None,
        "effort": "M",
        "branch": None,
        "flow": {},
        "flags": {},
        "state": {},
        "task_ids": {},
        "dispatched": None,
        "log": [],
        "findings": [],
        "friction": [],
        "lessons": {},
        "created_at": 1,
        "updated_at": 1,
    }
    return PipelineRun(**{**whole, **values})


def test_every_place_a_flow_may_have_is_filled() -> None:
    assert set(place_values(begun())) == PLACES


def test_what_is_put_in_is_not_looked_at_again() -> None:
    run = begun(title="{branch} $(rm) `x`", branch="main")
    assert filled(run, "{title}") == "feat: {branch} $(rm) `x`"
    assert filled(run, "a {unknown} {N} {branch}") == "a {unknown} {N} main"


@pytest.mark.parametrize(
    ("url", "number", "project"),
    [
        (GITLAB, "42", "group%2Fsub%2Fproject"),
        ("https://gitlab.com/g/p/-/work_items/7#note_1", "7", "g%2Fp"),
        ("https://gitlab.com/g/a:repo%2F../-/issues/1", "1", "g%2Fa%3Arepo%252F.."),
        ("https://github.com/owner/repo/issues/9", "9", "owner%2Frepo"),
        ("https://team.atlassian.net/browse/ABC-42", "ABC-42", ""),
        (None, "99", ""),
    ],
)
def test_the_issue_is_the_one_of_the_address(url: str | None, number: str, project: str) -> None:
    run = begun(source_url=url, source_id="99")
    assert (filled(run, "{source_id}"), filled(run, "{source_project}")) == (number, project)


def posting(source: str, answer: str | None) -> Any:
    """What is next at the end of a run from this source, once the person has answered."""
    flow = bundled("full")
    before = flow.phases[: flow.position("post-to-source")]
    state = RunState(done=[phase.id for phase in before])
    if answer is not None:
        state = state.but(done=[*state.done, "post-to-source"], answers={"post-to-source": answer})
    return decide(flow, state, Facts(source_type=source, skip_pr=True), {})


def test_an_issue_on_gitlab_gets_the_summary_as_a_note() -> None:
    asked = posting("gitlab_issue", None)
    assert (asked.type, asked.gate, asked.options) == ("checkpoint", "post-to-source", ["post", "skip"])
    action = posting("gitlab_issue", "post")
    run = begun(source_type="gitlab_issue", source_url=GITLAB, source_id="42")
    assert [filled(run, word) for word in action.command] == [
        "glab",
        "api",
        "--hostname",
        "gitlab.com",
        "--method",
        "POST",
        "projects/group%2Fsub%2Fproject/issues/42/notes",
        "--field",
        "body=@.specs/20260401-fix/summary.md",
    ]
    assert posting("gitlab_issue", "skip").type == "done"


def test_an_issue_on_github_gets_a_comment_and_nothing_else() -> None:
    action = posting("github_issue", "post")
    assert (action.phase, action.command[0], action.setup_only) == ("post-comment", "gh", False)


@pytest.mark.parametrize("source", ["text", "jira_issue", "linear_issue"])
def test_where_no_command_is_known_nobody_is_asked(source: str) -> None:
    assert posting(source, None).type == "done"

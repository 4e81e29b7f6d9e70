"""What a run leaves in `.specs/` for people, later runs and other machines."""

from __future__ import annotations

import json
from pathlib import Path

from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

NOTES = "# Summary\n\n## Improvement Report\n\n- The tests need a running database.\n"
REVIEW = "# Review\n\n## Verdict: APPROVE_WITH_NOTES\n**[MAJOR] retries have no upper bound in the fetch layer**\n"


def finished(folder: Path) -> Orchestrator:
    desk = Desk(folder, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, folder / "project", "Fix the auth timeout in the fetch layer")
    run.written["summary.md"] = [NOTES]
    run.written["review-design.md"] = [REVIEW]
    run.run()
    return run


def test_a_finished_run_stands_in_the_index_with_what_it_teaches(tmp_path: Path) -> None:
    run = finished(tmp_path)
    index = json.loads((run.project / ".specs" / "index.json").read_text(encoding="utf-8"))
    (told,) = index["runs"]
    assert (told["workspace"], told["outcome"]) == (run.workspace, "completed")
    assert told["findings"][0]["severity"] == "MAJOR"
    assert told["friction"] == ["The tests need a running database."]
    notes = (run.project / run.workspace / "improvement.md").read_text(encoding="utf-8")
    assert "The tests need a running database." in notes


def test_a_fresh_clone_learns_from_the_index(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    index = (finished(tmp_path / "one").project / ".specs" / "index.json").read_text(encoding="utf-8")
    desk = Desk(tmp_path / "two", profile="", toolsets="pipeline,plan")
    specs = tmp_path / "two" / "project" / ".specs"
    specs.mkdir()
    (specs / "index.json").write_text(index, encoding="utf-8")
    later = Orchestrator(desk.call, tmp_path / "two" / "project", "Fix another auth timeout in the fetch layer")
    prompts = [action["prompt"] for action in iter_spawned(later)]
    assert any("retries have no upper bound" in prompt for prompt in prompts)
    assert any("The tests need a running database." in prompt for prompt in prompts)


def iter_spawned(run: Orchestrator) -> list[dict[str, str]]:
    run.run()
    return [action for action in run.seen if action["type"] == "spawn_agent"]

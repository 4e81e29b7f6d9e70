"""The summary of a workflow: one size, whatever the workflow."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.recovery.summary import MOST_BYTES, MOST_TOKENS, summarize
from handrail.domain.work.workflow import Workflow, empty_tally
from handrail.kernel.tokens import estimate_tokens
from handrail.store.store import Store
from tests.store.ground import memory_ground
from tests.store.records import ANNA, checkpoint, put, task, workflow


def summary_of(*records: Any, markdown: bool = False) -> tuple[Any, int]:
    store: Store = memory_ground().store
    tasks = [record for record in records if hasattr(record, "unmet")]
    put(store, workflow(source_content="Make imports survive.", plan={"summary": "Retry"}), *records)
    put(store, empty_tally("wf_1").after(come=tasks))

    def work(unit: Any) -> tuple[Any, int]:
        found = unit.get(Workflow, "wf_1")
        return summarize(unit, found, markdown=markdown)

    return store.run(ANNA, work)


RECORDS = (
    task("task_1", name="wrap", status="completed", outcome="Retries five times", updated_at=2),
    task("task_2", name="test", status="in_progress", checkpoints=2, updated_at=3),
    task("task_3", name="docs", status="pending"),
    task("task_4", name="ship", status="pending", unmet=1),
    task("task_5", name="proxy", status="failed", error="the proxy hangs"),
    checkpoint("cp_1", task_id="task_2", sequence=1, type="decision", summary="Five tries"),
    checkpoint("cp_2", task_id="task_2", sequence=2, summary="Half of the cases"),
)


def test_a_summary_tells_goal_progress_running_next_decisions_issues_and_outcomes() -> None:
    summary, _ = summary_of(*RECORDS)
    assert summary == {
        "workflow": {"id": "wf_1", "name": "Ship it", "status": "planning"},
        "goal": "Make imports survive.",
        "plan": "Retry",
        "progress": {"total": 5, "pending": 1, "blocked": 1, "in_progress": 1, "completed": 1, "failed": 1},
        "running": [{"id": "task_2", "name": "test", "last": "Half of the cases"}],
        "next_ready": [{"id": "task_3", "name": "docs"}],
        "open_issues": [{"task_id": "task_5", "task": "proxy", "error": "the proxy hangs"}],
        "decisions": [{"task": "test", "summary": "Five tries"}],
        "recent_outcomes": [{"task": "wrap", "outcome": "Retries five times"}],
    }


def test_as_markdown_it_is_fit_for_a_file() -> None:
    summary, _ = summary_of(*RECORDS, markdown=True)
    assert summary == (
        "## Ship it (wf_1, planning)\n\nMake imports survive.\nRetry\n\n"
        "5 tasks: 1 pending, 1 blocked, 1 in_progress, 1 failed, 1 completed\n\n"
        "**Running**\n- test (task_2): Half of the cases\n\n"
        "**Next**\n- docs (task_3)\n\n"
        "**Unsolved**\n- proxy: the proxy hangs\n\n"
        "**Decided**\n- test: Five tries\n\n"
        "**Done lately**\n- wrap: Retries five times"
    )


def test_a_workflow_without_tasks_is_summed_up_too() -> None:
    assert summary_of()[0]["progress"] == {"total": 0}
    assert "No tasks yet" in summary_of(markdown=True)[0]


@pytest.mark.parametrize("markdown", [True, False])
@pytest.mark.parametrize("text", ["word ", "語学", "🚀", "internationalisations ", '"\\\x01\n', "- must "])
def test_a_summary_of_huge_texts_stays_within_its_size(text: str, markdown: bool) -> None:
    states = ("completed", "in_progress", "pending", "failed")
    huge = text * 3000
    records = [
        task(
            f"task_{n}",
            name=f"{n} {text * 20}"[:200],
            status=states[n % 4],
            outcome=huge,
            error=huge,
            checkpoints=1,
            updated_at=n,
        )
        for n in range(60)
    ]
    notes = [checkpoint(f"cp_{n}", task_id=f"task_{n}", type="decision", summary=huge[:4000]) for n in range(60)]
    summary, tokens = summary_of(*records, *notes, markdown=markdown)
    reply = msgspec.json.encode({"summary": summary, "token_estimate": tokens})
    assert estimate_tokens(reply.decode()) == tokens <= MOST_TOKENS
    assert len(reply) <= MOST_BYTES
    assert all(heading in str(summary) for heading in (("Running", "Next") if markdown else ("running", "next_ready")))

"""What must hold with every client, as classes that its test file inherits from.

The truth is in two places: what Handrail's own command line says of the store, and the requests the model received.
"""

from __future__ import annotations

import os
import signal

from tests.clients.real.clients import Client
from tests.clients.real.conftest import HookRuns, NewSeat, Walked
from tests.clients.real.processes import gone, servers_below
from tests.clients.real.scripted_model import ASIDE
from tests.clients.real.stories import (
    BLOCK,
    CHOSEN,
    HINT,
    HOSTILE,
    MADE,
    PLANNING,
    QUESTION,
    RAILS,
    REFUSED,
    REQUEST,
    SECRET,
    SECRET_FILE,
    SUMMARY,
    TASK,
    WORKFLOW,
    begin,
    held,
    standing,
)


class WorkChecks:
    """One conversation: a workflow begun, a task started, a decision, a refused call, the task completed."""

    def test_the_client_ends_well_and_says_what_the_model_said(self, walked: Walked) -> None:
        assert walked.ended.code == 0, walked.ended.errors
        assert "Done." in walked.ended.output

    def test_every_tool_reaches_the_model(self, walked: Walked) -> None:
        offered = [name for name in walked.requests[0].tools if "handrail" in name]
        tools = [tool["name"] for tool in walked.seat.told("tools")["tools"]]
        assert [tool for tool in tools if not any(name.endswith(tool) for name in offered)] == []
        assert len(offered) == len(tools)

    def test_the_block_for_agents_reaches_the_model(self, walked: Walked) -> None:
        assert BLOCK in walked.requests[0].words

    def test_what_was_started_decided_and_completed_is_in_the_store(self, walked: Walked) -> None:
        (decision,) = walked.seat.told("decisions")["decisions"]
        assert (decision["task_name"], decision["question"], decision["chosen"]) == (TASK, QUESTION, CHOSEN)
        moments = walked.seat.told("journal", WORKFLOW)["moments"]
        assert [moment["kind"] for moment in moments] == ["created", "began", "decision", "ended"]
        assert moments[-1]["text"] == SUMMARY

    def test_results_reach_the_model_as_text(self, walked: Walked) -> None:
        for position, word in ((1, '"workflow_id"'), (2, '"task_id"'), (3, '"cp_'), (5, '"verification"')):
            assert word in walked.requests[position].results[-1]

    def test_a_refused_call_reaches_the_model_with_its_hint(self, walked: Walked) -> None:
        refusal = walked.requests[4].results[-1]
        assert REFUSED in refusal
        assert HINT in refusal


class HookChecks:
    """What the hooks say is in the request that reaches the model."""

    def test_at_the_start_the_model_reads_where_the_work_stands(self, hooks: HookRuns) -> None:
        assert standing(RAILS[0]) in hooks.started[0].words

    def test_on_resuming_it_reads_where_the_work_stands_now(self, hooks: HookRuns) -> None:
        assert standing(RAILS[1]) in hooks.resumed[0].words

    def test_after_compaction_it_reads_where_the_work_stands(self, hooks: HookRuns) -> None:
        after = hooks.compacted[-1].words
        assert ASIDE in after, "nothing was compacted"
        assert standing(RAILS[2]) in after


class PromptChecks:
    """Handrail's prompts, as the client's slash commands."""

    plan: str
    resume: str
    opening = PLANNING
    """What stands before the request in what the command becomes."""

    def test_the_whole_request_reaches_the_model(self, client: Client, new_seat: NewSeat) -> None:
        seat = new_seat(client)
        ended = seat.run(f"{self.plan} {REQUEST}")
        assert ended.code == 0, ended.errors
        words = seat.model.conversation()[0].words
        assert REQUEST in words.partition(self.opening)[2]

    def test_stored_words_run_and_read_nothing(self, client: Client, new_seat: NewSeat) -> None:
        seat = new_seat(client)
        (seat.project / SECRET_FILE).write_text(SECRET)
        workflow = seat.call("start_workflow", name=HOSTILE, description=HOSTILE)["workflow_id"]
        seat.call("start_task", workflow_id=workflow, name=HOSTILE, goal=HOSTILE)
        ended = seat.run(self.resume)
        assert ended.code == 0, ended.errors
        words = seat.model.conversation()[0].words
        assert SECRET_FILE in words, "the open task was not brought along"
        assert SECRET not in words
        assert not (seat.project / MADE).exists()


class EndChecks:
    """The client is killed in the middle of a conversation."""

    def test_no_server_is_left_when_the_client_is_killed(self, client: Client, new_seat: NewSeat) -> None:
        seat = new_seat(client, *begin(), held())
        with seat.started("Lay the rails.") as process:
            reached = seat.model.wait_for(lambda requests: sum(not one.aside for one in requests) == 3)
            assert reached, "the model was not asked a third time"
            servers = servers_below(process.pid)
            assert servers
            os.kill(process.pid, signal.SIGKILL)
            assert [pid for pid in servers if not gone(pid)] == []
        (workflow,) = seat.told("status")["workflows"]
        assert [task["name"] for task in workflow["running"]] == [TASK]

"""Who drives a run: one orchestrator at a time, told apart by its agent or its connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.kernel.errors import Refusal, WorkspaceHeld
from handrail.outside.process_names import new_session
from handrail.surfaces.invocation import CallingClient
from tests.toolsets.pipeline.test_tools_control import Deskbound


def dead_session() -> str:
    """A process that had our number before us: it is gone."""
    host, pid, started, number = new_session().rsplit("/", 3)
    return f"{host}/{pid}/{int(started) - 1}/{number}"


class Two:
    """A run and two that want to drive it."""

    def __init__(self, folder: Path, first: str | None, second: str | None) -> None:
        self.run = Deskbound(folder)
        self.first, self.second = CallingClient(session=first), CallingClient(session=second)

    def next(self, client: CallingClient, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.run.desk.call_as(
            client, "pipeline_next_action", workspace=self.run.workspace, **arguments
        )
        return answer

    def refused(self, client: CallingClient, tool: str = "pipeline_next_action", **arguments: Any) -> Refusal:
        try:
            answer = self.run.desk.call_as(client, tool, workspace=self.run.workspace, **arguments)
        except WorkspaceHeld as refusal:
            return refusal
        raise AssertionError(f"not refused: {answer}")

    def register(self, client: CallingClient, name: str) -> str:
        answer = self.run.desk.call_as(client, "agent_register", name=name, runtime="custom")
        return str(answer["id"])


def test_the_second_is_told_of_the_first_and_may_take_over(tmp_path: Path) -> None:
    two = Two(tmp_path, new_session(), new_session())
    action = two.next(two.first)
    refusal = two.refused(two.second)
    assert refusal.message.startswith("tester drives")
    assert refusal.details["held_by"]["name"] == "tester"
    assert "session" not in refusal.details["held_by"]
    two.refused(two.second, "pipeline_report_result", phase="phase-1")
    assert two.next(two.second, take_over=True)["prompt"] == action["prompt"]
    assert two.next(two.second)["phase"] == "phase-1"
    two.refused(two.first)  # the first is not the first any more


def test_whoever_is_gone_holds_nothing(tmp_path: Path) -> None:
    two = Two(tmp_path, dead_session(), new_session())
    two.next(two.first)
    assert two.next(two.second)["phase"] == "phase-1"


def test_of_whom_nothing_is_known_it_is_believed_for_a_time(tmp_path: Path) -> None:
    two = Two(tmp_path, "elsewhere/1/1/1", new_session())
    two.next(two.first)
    two.run.desk.clock.advance(30 * 60_000 - 1)
    two.refused(two.second)
    two.run.desk.clock.advance(1)
    assert two.next(two.second)["phase"] == "phase-1"


def test_who_cannot_be_known_again_holds_nothing_and_takes_nothing(tmp_path: Path) -> None:
    two = Two(tmp_path, None, new_session())
    two.next(two.first)
    two.next(two.second)
    two.refused(two.first)  # a command is told of who drives
    assert two.next(two.first, take_over=True)["phase"] == "phase-1"
    assert two.next(two.second)["phase"] == "phase-1", "it has left nothing behind"


def test_an_orchestrator_that_registers_later_is_still_the_same(tmp_path: Path) -> None:
    two = Two(tmp_path, new_session(), new_session())
    two.next(two.first)
    two.register(two.first, "worker")
    assert two.next(two.first)["phase"] == "phase-1"
    two.register(two.first, "another worker")
    assert two.next(two.first)["phase"] == "phase-1"
    two.refused(two.second)


def test_an_agent_is_known_wherever_it_calls_from_and_gone_once_it_is_lost(tmp_path: Path) -> None:
    two = Two(tmp_path, None, None)
    agent = two.register(two.first, "driver")
    two.next(two.first, agent_id=agent)
    assert two.next(CallingClient(), agent_id=agent)["phase"] == "phase-1"
    refusal = two.refused(two.second)
    assert refusal.details["held_by"]["agent_id"] == agent
    two.run.desk.clock.advance(100_000)
    assert two.next(two.second)["phase"] == "phase-1"


def test_an_agent_that_is_silent_while_its_process_runs_is_still_there(tmp_path: Path) -> None:
    two = Two(tmp_path, dead_session(), new_session())
    agent = two.register(two.first, "driver")
    two.next(two.first, agent_id=agent)
    back = CallingClient(session=new_session())
    two.next(back, agent_id=agent)
    two.run.desk.clock.advance(10 * 60_000)
    two.refused(two.second)  # its subagents work, and it is seen where it is now


def test_two_agents_on_one_connection_are_two(tmp_path: Path) -> None:
    two = Two(tmp_path, new_session(), None)
    first, second = two.register(two.first, "first"), two.register(two.first, "second")
    two.next(two.first, agent_id=first)
    two.refused(two.first, agent_id=second)


def test_a_run_that_is_over_is_anybodys_to_look_at(tmp_path: Path) -> None:
    two = Two(tmp_path, new_session(), new_session())
    two.run.call = lambda tool, **arguments: two.run.desk.call_as(two.first, tool, **arguments)
    two.run.run()
    assert two.next(two.second)["type"] == "done"
    info = two.run.desk.call("state_resume_info", workspace=two.run.workspace)
    assert "held_by" not in info


def test_who_asks_again_writes_nothing(tmp_path: Path) -> None:
    two = Two(tmp_path, new_session(), None)
    two.next(two.first)
    position = two.run.desk.store.position()
    two.next(two.first)
    assert two.run.desk.store.position() == position

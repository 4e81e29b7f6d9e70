"""A run over a memory store, driven without tools: its documents are a dictionary, its agents do what they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.lessons import Lessons
from handrail.domain.pipeline.request import Flags
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import GateAnswer
from handrail.domain.pipeline.start import RunRequest, begin
from handrail.domain.pipeline.state import RunState
from handrail.domain.pipeline.turns import Previous, RunRules, Turn, take_turn
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from tests.domain.pipeline.bundled import bundled

ResultT = TypeVar("ResultT")

DRIVER = Actor("driver", "test")
REPOSITORY = "/project"
WORKSPACE = ".specs/20260401-fix-auth"
TASKS = """## Task 1: Wrap
mode: parallel
## Task 2: Ask somebody
mode: human_gate
depends_on: [1]
## Task 3: Use
depends_on: [1, 2]
"""


class Driven:
    """One run, or the place where one can be."""

    def __init__(
        self,
        flow: Flow | None = None,
        *,
        rules: RunRules | None = None,
        limits: Mapping[str, float] | None = None,
        flags: Flags | None = None,
        state: RunState | None = None,
        begun: bool = True,
    ) -> None:
        self.clock = FixedClock()
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())
        self.rules = rules or RunRules()
        self.files: dict[str, str] = {"request.md": "Fix the auth timeout"}
        self.run_id = ""
        self.version = 0
        self.seen: list[Action] = []
        self.answers: dict[str, list[str]] = {}
        if begun:
            request = RunRequest(
                REPOSITORY,
                WORKSPACE,
                "fix-auth",
                "Fix the auth timeout",
                "M",
                flow or bundled("full"),
                flags or Flags(),
                "feature/fix-auth",
                limits=limits or {},
            )
            self.run_id = self.work(lambda unit: begin(unit, request, state or RunState(), Lessons())).id

    def work(self, does: Callable[[UnitOfWork], ResultT]) -> ResultT:
        return self.store.run(DRIVER, does)

    @property
    def run(self) -> PipelineRun:
        found = self.work(lambda unit: unit.get(PipelineRun, self.run_id))
        assert found is not None
        return found

    @property
    def state(self) -> RunState:
        return self.run.run_state()

    @property
    def status(self) -> str:
        found = self.work(lambda unit: unit.get(Workflow, self.run_id))
        assert found is not None
        return found.status

    def turn(self, *, answer: str | None = None, **previous: Any) -> Turn:
        given = GateAnswer(answer) if answer is not None else None
        done = self.work(
            lambda unit: take_turn(
                unit, self._here(unit), self.files, Previous(**previous), answer=given, rules=self.rules
            )
        )
        self.seen.append(done.action)
        return done

    def _here(self, unit: UnitOfWork) -> PipelineRun:
        found = unit.get(PipelineRun, self.run_id)
        assert found is not None
        return found

    def do(self, action: Action, tokens: int = 100) -> Turn:
        """Carries out one action and reports it."""
        match action.type:
            case "checkpoint" | "human_gate":
                planned = self.answers.get(action.gate or "", [])
                return self.turn(answer=planned.pop(0) if planned else action.options[0])
            case "write_file":
                self.files[action.path or ""] = action.content or ""
            case "spawn_agent":
                self.produce(action)
        return self.turn(complete=True, tokens=tokens, duration_ms=60_000)

    def produce(self, action: Action) -> None:
        phase = self.run.flow_followed().phase(action.phase)
        names = [(phase.output or "").replace("{N}", str(task)) for task in action.tasks] or [phase.output or ""]
        for name in names:
            self.version += 1
            if phase.passes:
                self.files[name] = f"# Review {self.version}\n\n## Verdict: {phase.passes[0]}\n"
            else:
                self.files[name] = (
                    f"## Text {self.version}\n" if name != "tasks.md" else f"# List {self.version}\n\n{TASKS}"
                )

    def go(self, until: Callable[[Action], bool] = lambda _: False) -> Action:
        """Runs to its end, or to the first action that is looked for."""
        action = self.turn().action
        for _ in range(200):
            if action.type == "done" or until(action):
                return action
            action = self.do(action).action
        raise AssertionError("the run does not end")

    def phases(self) -> list[str]:
        return [action.phase for action in self.seen if action.type != "done"]

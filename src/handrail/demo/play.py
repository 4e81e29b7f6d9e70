"""What every step of the demo uses: agents that call the real tools, lines that report the answers, and pauses.

The stage stands for the audience: it prints a line, waits a moment, and gets the person's answer to a gate. Ids are
never printed, so that every run of the demo reads the same.
"""

from __future__ import annotations

from typing import Any, Protocol

from handrail.demo.ground import Ground
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, settings_at

CHANNEL = "demo"


class Stage(Protocol):
    """Where the play is shown, and who watches it."""

    def title(self, text: str) -> None:
        """A new act."""

    def line(self, who: str, what: str) -> None:
        """One thing that happened."""

    def patch(self, text: str) -> None:
        """One line of a patch."""

    def beat(self) -> None:
        """A moment to read it."""

    def decide(self, call: Call) -> tuple[str, str]:
        """Shows the waiting gate, has it answered, and returns the answer and its comment."""


class DemoAgent:
    """One agent of the play, with its own connection."""

    def __init__(self, play: Play, name: str) -> None:
        self._play = play
        self._client = CallingClient()
        self.name = name
        self.id = ""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool once, as a client would. Raises Refusal."""
        operation = self._play.handrail.switch.find(tool)
        assert operation is not None, tool
        answer: dict[str, Any] = invoke(
            operation, self._play.handrail.call, arguments, actor=Actor(self.name, CHANNEL), client=self._client
        )
        return answer

    def refused(self, tool: str, **arguments: Any) -> Refusal:
        """Makes a call that must be refused, and returns the refusal. If it succeeds, the script is wrong."""
        try:
            answer = self.call(tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was to be refused, and answered {answer}")

    def says(self, what: str) -> None:
        self._play.tell(self.name, what)


class Play:
    """The play in progress: the ground, the tools over it, and the agents."""

    def __init__(self, ground: Ground, stage: Stage, ledger: LazyLedger | None = None) -> None:
        place = WorkPlace(project=ground.project, home=ground.home, environ={})
        self.ground = ground
        self.stage = stage
        self.handrail: Handrail = assemble(place, settings_at(place, {"profile": "all"}), ledger=ledger)
        self.ada, self.ben, self.cleo = (DemoAgent(self, name) for name in ("Ada", "Ben", "Cleo"))
        self.workflow = ""
        self.tasks: dict[str, str] = {}
        """Ids by name."""
        self.spaces: dict[str, dict[str, Any]] = {}
        """Worktrees by the name of their task, as `workspace_create` returned them."""

    @property
    def agents(self) -> tuple[DemoAgent, ...]:
        return (self.ada, self.ben, self.cleo)

    def tell(self, who: str, what: str) -> None:
        self.stage.line(who, what)
        self.stage.beat()

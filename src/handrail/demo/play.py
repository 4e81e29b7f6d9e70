"""What every step of the demo uses: agents that call the real tools, lines that tell of the answers, and pauses.

The stage is whoever watches: it prints a line, waits a moment, and has the person's answer to a gate. Ids are never
told, so that every play reads the same.
"""

from __future__ import annotations

from typing import Any, Protocol

from handrail.demo.ground import Ground
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.surfaces.calling import Client, run
from handrail.wiring import Handrail, LazyLedger, Place, assemble, settings_at

CHANNEL = "demo"


class Stage(Protocol):
    """Where the play is seen, and who watches it."""

    def title(self, text: str) -> None:
        """A new act."""

    def line(self, who: str, what: str) -> None:
        """One thing that happened."""

    def patch(self, text: str) -> None:
        """One line of a patch."""

    def beat(self) -> None:
        """A moment to read it in."""

    def decide(self, call: Call) -> tuple[str, str]:
        """Shows the gate that waits, has it answered, and gives the answer and what was said with it."""


class Agent:
    """One agent of the play, on a connection of its own."""

    def __init__(self, play: Play, name: str) -> None:
        self._play = play
        self._client = Client()
        self.name = name
        self.id = ""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call of a tool, as a client would make it. Raises Refusal."""
        operation = self._play.handrail.switch.find(tool)
        assert operation is not None, tool
        answer: dict[str, Any] = run(
            operation, self._play.handrail.call, arguments, actor=Actor(self.name, CHANNEL), client=self._client
        )
        return answer

    def refused(self, tool: str, **arguments: Any) -> Refusal:
        """A call that is not granted, and why. What is granted here would be a mistake of the script."""
        try:
            answer = self.call(tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was to be refused, and answered {answer}")

    def says(self, what: str) -> None:
        self._play.tell(self.name, what)


class Play:
    """The play under way: the ground, the tools over it, and the agents."""

    def __init__(self, ground: Ground, stage: Stage, ledger: LazyLedger | None = None) -> None:
        place = Place(project=ground.project, home=ground.home, environ={})
        self.ground = ground
        self.stage = stage
        self.handrail: Handrail = assemble(place, settings_at(place, {"profile": "all"}), ledger=ledger)
        self.ada, self.ben, self.cleo = (Agent(self, name) for name in ("Ada", "Ben", "Cleo"))
        self.workflow = ""
        self.tasks: dict[str, str] = {}
        """Ids by name."""
        self.spaces: dict[str, dict[str, Any]] = {}
        """Worktrees by the name of their task, as the claim told of them."""

    @property
    def agents(self) -> tuple[Agent, ...]:
        return (self.ada, self.ben, self.cleo)

    def tell(self, who: str, what: str) -> None:
        self.stage.line(who, what)
        self.stage.beat()

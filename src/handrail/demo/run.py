"""The last acts: a pipeline whose first design is sent back by its review, a gate only a person opens, and the end.

The engine decides what comes next; this module only carries out its actions, as an orchestrating agent would.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handrail.demo import texts
from handrail.demo.play import DemoAgent, Play
from handrail.domain.pipeline.engine import QUESTIONS

MOST_TURNS = 200
"""The most turns of the loop; anyone who rejects that often has seen enough."""
DESIGN, REVIEW = "design.md", "review-design.md"
VERDICT = "## Verdict: "


class DemoRun(NamedTuple):
    """What a run starts with, and its designs, one per attempt."""

    request: str
    slug: str
    designs: tuple[str, ...]


COUNTS_AS_JSON = DemoRun(texts.REQUEST, "counts-as-json", (texts.FIRST_DESIGN, texts.SECOND_DESIGN))


class Orchestrated:
    """A run, driven by Ada; Ben reviews."""

    def __init__(self, play: Play, wanted: DemoRun = COUNTS_AS_JSON) -> None:
        self._play = play
        self._wanted = wanted
        self._designs = 0
        self._said: list[str] = []
        self._workspace = self._begin_run()

    def _begin_run(self) -> str:
        ada = self._play.ada
        asked = ada.call("pipeline_init", arguments=self._wanted.request, current_branch="main")
        ready = ada.call(
            "pipeline_init_with_context",
            workspace=asked["workspace"],
            task_text=asked["core_text"],
            flags=asked["flags"],
            user_confirmation={"effort": "M", "workspace_slug": self._wanted.slug},
        )
        ada.says(f'begins a run: "{asked["core_text"]}", effort {ready["effort"]}, flow {ready["flow_template"]}')
        return str(ready["workspace"])

    def next(self, **reported: Any) -> dict[str, Any]:
        return self._play.ada.call("pipeline_next_action", workspace=self._workspace, **reported)

    def go(self, *, to_the_gate: bool = False) -> dict[str, Any]:
        """Does what the engine says until it is done, or until a person is needed."""
        action = self.next()
        for _ in range(MOST_TURNS):
            if action["type"] == "done" or (to_the_gate and action["type"] in QUESTIONS):
                return action
            if action["type"] in QUESTIONS:
                action = self._wait_for_you(action)
            else:
                self._write(action)
                action = self.next(previous_action_complete=True, previous_action_id=action["action_id"])
        return action

    def _write(self, action: dict[str, Any]) -> None:
        """Writes the requested document, and reports whose turn it was."""
        name = action["output_file"]
        agent: DemoAgent = self._play.ben if name == REVIEW else self._play.ada
        text = self._text(name)
        self._play.ground.write(self._play.ground.project / self._workspace, {name: text})
        verdict = next((line.removeprefix(VERDICT) for line in text.splitlines() if line.startswith(VERDICT)), None)
        agent.says(f"{action['display_message']}: {verdict or f'writes {name}'}")

    def _text(self, name: str) -> str:
        if name == DESIGN:
            self._designs += 1
            written = self._wanted.designs
            if self._designs <= len(written):
                return written[self._designs - 1]
            return texts.NEXT_DESIGN + "".join(f"{number}. {said}\n" for number, said in enumerate(self._said, 1))
        if name == REVIEW:
            return texts.REVISE if self._designs == 1 else f"{texts.APPROVE}\nThis is look {self._designs}.\n"
        return {"analysis.md": texts.ANALYSIS, "investigation.md": texts.INVESTIGATION}[name]

    def _wait_for_you(self, action: dict[str, Any]) -> dict[str, Any]:
        """The gate: an agent cannot open it, you can."""
        play = self._play
        if not self._said:
            refusal = play.ada.refused("pipeline_next_action", workspace=self._workspace, user_response="approve")
            play.ada.says(f"tries to approve it herself: refused, {refusal.code}")
        play.stage.title("A gate that waits for you")
        answer, said = play.stage.decide(play.handrail.call)
        self._said.append(said or f"{answer}, without a word")
        play.tell("You", f"answer {action['name']}: {answer}" + (f', "{said}"' if said else ""))
        return self.next()


def pipeline(play: Play) -> None:
    """A run up to the gate of its design, and past it once you say so."""
    play.stage.title("A pipeline")
    ended = Orchestrated(play).go()
    play.ada.says(f"is told: {ended['summary']}")


def ending(play: Play) -> None:
    """How much of it is in the ledger, and that the ledger is sound."""
    play.stage.title("What is left of it")
    store = play.handrail.ledger.open()
    events, after = 0, 0
    while page := store.feed(after=after):
        events, after = events + len(page), page[-1].position
    problems = store.verify()
    sound = "verified: every row and every hash agrees" if not problems else f"not sound: {problems[0]}"
    play.tell("Ledger", f"{events} events, {sound}")

"""State machines as data: which state may follow which. One table per machine; the docs draw it from the same table."""

from __future__ import annotations

from collections.abc import Mapping

from handrail.kernel.errors import IllegalTransition


class Machine:
    """A named table of transitions. The first state is the initial one.

    `consequences` are transitions that nobody requests: something else causes them, and the diagram says what.
    """

    def __init__(
        self,
        name: str,
        transitions: Mapping[str, tuple[str, ...]],
        consequences: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.name = name
        self.transitions = dict(transitions)
        self.consequences = dict(consequences or {})
        self.initial = next(iter(transitions))
        named = {target for targets in transitions.values() for target in targets}
        named |= {state for move in self.consequences for state in move}
        unknown = named - set(transitions)
        assert not unknown, f"{name}: {unknown} is no state"
        assert self._reachable() == set(transitions), f"{name}: a state can never be reached"

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.transitions)

    @property
    def terminal(self) -> tuple[str, ...]:
        return tuple(state for state, targets in self.transitions.items() if not targets)

    def check(self, subject: str, current: str, wanted: str) -> None:
        """Raises IllegalTransition, naming the states that may follow."""
        allowed = self.transitions[current]
        if wanted not in allowed:
            legal = f"from {current} it can become {' or '.join(allowed)}" if allowed else f"{current} is final"
            raise IllegalTransition(
                f"{subject} is {current} and cannot become {wanted}",
                hint=legal,
                status=current,
                allowed=list(allowed),
            )

    def as_mermaid(self) -> str:
        """The machine as a diagram."""
        lines = ["stateDiagram-v2", f"  [*] --> {self.initial}"]
        for state, targets in self.transitions.items():
            lines += [f"  {state} --> {target}" for target in targets] or [f"  {state} --> [*]"]
        lines += [f"  {current} --> {after}: {cause}" for (current, after), cause in self.consequences.items()]
        return "\n".join(lines)

    def _reachable(self) -> set[str]:
        seen: set[str] = set()
        pending = [self.initial]
        while pending:
            state = pending.pop()
            if state not in seen:
                seen.add(state)
                pending.extend(self.transitions[state])
        return seen

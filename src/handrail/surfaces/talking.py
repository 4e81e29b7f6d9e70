"""A call whose result asks a person something: they are asked, and their answer is delivered, during the call.

Nothing is decided here: an answer takes the same path as any other. While a person thinks, the caller is told that the
call still waits, and a question that no longer stands is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.identity import Writer
from handrail.kernel.errors import IdentityUnproven, Refusal, StoreAway, StoreRefused
from handrail.operation import Asks, Ledger, Question
from handrail.surfaces.asking import Person, Waited, merge_told_once


class Answered(NamedTuple):
    """A handler's answer, the caller it was for, and how many messages wait for them."""

    result: Any
    writer: Writer
    unread: int = 0
    warning: str | None = None
    told: Mapping[str, Any] = {}
    """What earlier answers told once."""


class Talk(NamedTuple):
    """One call, and the person who may be asked during it."""

    asks: Asks[Any, Any]
    person: Person
    waited: Waited
    ledger: Ledger
    answer_to: Callable[[Any], Answered]
    """The answer to the caller's own request."""
    answer_to_person: Callable[[Any], Answered]
    """The answer to a request that carries what the person said."""

    def question(self, request: Any, result: Any) -> Question | None:
        """What the person should be asked because of this result."""
        question = self.asks.question(request, result)
        return question if question is not None and self.person.is_open_to(question) else None

    def answer(self, request: Any) -> Answered:
        """The answer after the person at the client was asked what it asks of them, as far as time allows."""
        earlier = self.person.earlier()
        if earlier is not None:  # the same call again, with an answer: what it reports has been acted on already
            request = self.asks.again(request)
        position = self.ledger.position()
        answer = self.answer_to(request)._replace(told=earlier or {})
        enough_s = 0.0
        while self.waited.left_s > enough_s and (question := self.question(request, answer.result)) is not None:
            watch = Watch(self, self.asks.again(request), question, position)
            told = merge_told_once(self.asks.told_once, answer.told, msgspec.to_builtins(answer.result))
            try:
                said = self.person.ask(question, told, watch.wait_s)
                position = self.ledger.position()
                if said is not None:
                    answer = self.answer_to_person(self.asks.answered(request, question, said))._replace(told=told)
                elif watch.news is not None:
                    position, answer = watch.position, watch.news._replace(told=told)
                else:
                    return answer
            except StoreAway as away:  # what was reported before the person was asked is recorded
                return answer._replace(told=told, warning=f"while the person was asked: {away.message}; {away.hint}")
            except (IdentityUnproven, StoreRefused):
                raise
            except Refusal as refusal:  # the question is obsolete, or the form invalid: answer with the current state
                why = f"what the person answered was not taken: {refusal.message}"
                return self.answer_to(self.asks.again(request))._replace(told=told, warning=why)
            enough_s = self.waited.patience.read_s
        return answer


class Watch:
    """Watches, while a person thinks, whether time is left and their question still stands."""

    def __init__(self, talk: Talk, request: Any, question: Question, position: int) -> None:
        self._talk = talk
        self._request = request
        self._question = question
        self._begun = False
        self.position = position
        """The ledger position up to which events are known."""
        self.news: Answered | None = None
        """The answer that made the question obsolete."""

    def wait_s(self) -> float:
        """How long to wait until this is called again; 0 if there is no point in waiting."""
        if self._begun and self._has_news():
            return 0.0
        self._begun = True
        waited = self._talk.waited
        waited.beat()
        return max(0.0, min(waited.patience.look_s, waited.left_s))

    def _has_news(self) -> bool:
        position = self._talk.ledger.position()
        if position == self.position:
            return False
        self.position = position
        answer = self._talk.answer_to(self._request)
        still = self._talk.asks.question(self._request, answer.result)
        if still is None or still.id != self._question.id:
            self.news = answer
        return self.news is not None

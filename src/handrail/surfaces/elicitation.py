"""What a call needs to wait and to ask a person: its patience, what they filled in, what was asked before. No wire
format: each surface decides how its client shows the question."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from handrail.domain.crew.agent import Writer
from handrail.kernel.errors import IdentityUnproven, InvalidParams, Refusal, StoreAway, StoreRefused
from handrail.kernel.limits import WAIT_MS
from handrail.operation import Asks, Field, Ledger, Question

ELICITED = "elicitation"
"""The channel of answers that a person gave in a form."""
REMEMBERED = 1000
"""For how many questions we remember how often they were asked; older ones may be asked anew."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call waits, and what it does meanwhile. In seconds."""

    most_s: float = WAIT_MS / 1000
    """For everything one call waits for, together."""
    look_s: float = 1.0
    """How often to check, while a person thinks, whether their question still stands."""
    tell_s: float = 5.0
    """How often the caller is told that the call is still waiting."""
    read_s: float = 10.0
    """A further question in the same call is asked only if this much time is left to read it."""
    now_s: Callable[[], float] = time.monotonic


Tell = Callable[[float, float], None]
"""Called with how long a call has waited, and the longest it can."""


def _tell_nobody(_so_far_s: float, _most_s: float) -> None:
    return None


class Waited:
    """How long one call has waited."""

    def __init__(self, patience: Patience, tell: Tell) -> None:
        self.patience = patience
        self._tell = tell
        self._began = self._told = patience.now_s()

    @property
    def so_far_s(self) -> float:
        return self.patience.now_s() - self._began

    @property
    def left_s(self) -> float:
        return self.patience.most_s - self.so_far_s

    def beat(self) -> None:
        """Reports how long it has been, unless that was reported recently."""
        now = self.patience.now_s()
        if now - self._told >= self.patience.tell_s:
            self._told = now
            self._tell(now - self._began, self.patience.most_s)


class ReachablePerson(Protocol):
    """The person at the client, if they may decide and can be asked."""

    def earlier(self) -> Mapping[str, Any] | None:
        """What was told before, if this call was made before and ended in a question; None if it was not."""
        ...

    def is_open_to(self, question: Question) -> bool:
        """False if they are being asked it already, or do not want to be."""
        ...

    def ask(self, question: Question, told: Mapping[str, Any], wait_s: Callable[[], float]) -> Mapping[str, str] | None:
        """What they filled in; None if they did not, or `wait_s` allowed no more time. `told` is what must not be lost
        if this call ends in the question. Raises InvalidParams if the form was filled in wrongly."""
        ...


class Meanwhile(msgspec.Struct, frozen=True, kw_only=True):
    """What a call can do before it has its answer: wait this long, report that, ask somebody."""

    patience: Patience = Patience()
    tell: Tell = _tell_nobody
    person: ReachablePerson | None = None
    known_as: str | None = None
    """An id that the call already has, by which others can cancel it."""


class OpenQuestions:
    """Which questions are open now, and how often each was asked. A declined question is not asked again."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self._most = most
        """How often a question is asked of somebody who does not answer."""
        self._open: set[tuple[str, str]] = set()
        self._put: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def may_put(self, key: tuple[str, str]) -> bool:
        return key not in self._open and self._put.get(key, 0) < self._most

    def begin(self, key: tuple[str, str]) -> bool:
        """True if the question may be asked now; until `end`, nobody else may ask it."""
        with self._lock:
            if not self.may_put(key):
                return False
            self._open.add(key)
            self._count(key, self._put.get(key, 0) + 1)
            return True

    def end(self, key: tuple[str, str], *, declined: bool) -> None:
        with self._lock:
            self._open.discard(key)
            if declined:
                self._count(key, sys.maxsize)

    def _count(self, key: tuple[str, str], times: int) -> None:
        self._put.pop(key, None)
        self._put[key] = times
        for oldest in list(self._put)[:-REMEMBERED]:
            del self._put[oldest]


def filled(question: Question, content: object) -> dict[str, str]:
    """What was filled in, by field name. Raises InvalidParams if that does not fit the form."""
    given = content if isinstance(content, Mapping) else {}
    values = {field.name: _value(field, given.get(field.name)) for field in question.form}
    return {name: value for name, value in values.items() if value}


def _value(field: Field, value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    wrong = ""
    if not isinstance(value, str | None):
        wrong = "is not text"
    elif field.required and not text:
        wrong = "was left empty"
    elif text and field.options and text not in field.options:
        wrong = f"is {text[:100]}, which is none of the options"
    elif field.most and len(text) > field.most:
        wrong = f"has {len(text)} characters, and {field.most} are the most"
    if wrong:
        options = f"one of {', '.join(field.options)}" if field.options else f"a text of at most {field.most}"
        raise InvalidParams(f"{field.name} {wrong}", hint=f"{field.name} is {options}")
    return text


def merge_told_once(names: tuple[str, ...], earlier: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Merges what results tell only once: the later one wins, but two different texts are both kept."""
    told: dict[str, Any] = {}
    for name in names:
        before, now = earlier.get(name), result.get(name)
        if isinstance(before, str) and isinstance(now, str) and before and now and before != now:
            told[name] = before if now in before else f"{before}; {now}"
        elif before or now:
            told[name] = now or before
    return told


class Answered(NamedTuple):
    """A handler's answer, the caller it was for, and how many messages wait for them."""

    result: Any
    writer: Writer
    unread: int = 0
    warning: str | None = None
    told: Mapping[str, Any] = {}
    """What earlier answers told once."""


class Conversation(NamedTuple):
    """One call, and the person who may be asked during it."""

    asks: Asks[Any, Any]
    person: ReachablePerson
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
            watch = QuestionWatch(self, self.asks.again(request), question, position)
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


class QuestionWatch:
    """Watches, while a person thinks, whether time is left and their question still stands."""

    def __init__(self, talk: Conversation, request: Any, question: Question, position: int) -> None:
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

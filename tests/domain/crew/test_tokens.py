"""Tokens: what is issued is found by its text alone, until it is revoked; what is kept would not let anybody in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.token import RIGHTS, Token
from handrail.domain.crew.tokens import Issued, checked_rights, find, is_token, issue, listed, meant, revoke
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import AgentNotFound, InvalidParams, NotFound, SeveralOpen
from handrail.kernel.ids import CountingIds, id_text
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store

ResultT = TypeVar("ResultT")

ANN = Actor("ann", "cli")
SECRET = "s3cret-with_every-sort_of-letter"


class Desk:
    """A store in memory, and tokens made in it."""

    def __init__(self) -> None:
        self.clock = FixedClock(1000)
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())

    def run(self, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
        return self.store.run(ANN, work)

    def issue(self, name: str = "ann", rights: str = "read,write", secret: str = SECRET, **more: Any) -> Issued:
        return self.run(lambda unit: issue(unit, name, rights.split(","), secret, **more))

    def find(self, text: str) -> Token | None:
        return self.run(lambda unit: find(unit, text))

    def meant(self, text: str) -> Token:
        return self.run(lambda unit: meant(unit, text))

    def revoke(self, text: str) -> Token:
        return self.run(lambda unit: revoke(unit, meant(unit, text)))

    def register(self, agent_id: str) -> None:
        agent = Agent(
            id=agent_id,
            name="Otter",
            runtime="custom",
            role="worker",
            status="online",
            capabilities=[],
            current_task_id=None,
            workspace_path=None,
            metadata={},
            secret_hash="",
            created_at=0,
        )
        self.run(lambda unit: unit.record("agent.registered", agent))

    def ledger(self) -> bytes:
        return msgspec.json.encode(self.store.feed(after=0, limit=1000))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_token_is_found_by_its_text_and_has_what_it_was_given(desk: Desk) -> None:
    desk.register("agent_1")
    made = desk.issue("otter", "write,read", agent_id="agent_1")
    assert made.text == f"hr_1_{SECRET}"
    found = desk.find(made.text)
    assert found == made.token
    assert (found.id, found.name, found.rights, found.agent_id) == ("tok_1", "otter", ["read", "write"], "agent_1")
    assert (found.created_at, found.revoked_at) == (1000, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hr_",
        "hr_1",
        "hr_1_",
        "hr__" + SECRET,
        f"hr_2_{SECRET}",
        f"hr_1_{SECRET}x",
        f"hr_1_{SECRET[:-1]}",
        f"hr_1_{SECRET.upper()}",
        f"hr_1_{SECRET}\n",
        f" hr_1_{SECRET}",
        f"hr_1_{SECRET}\x00",
        f"HR_1_{SECRET}",
        f"tok_1_{SECRET}",
        "tok_1",
        SECRET,
        f"hr_١_{SECRET}",
    ],
)
def test_nothing_but_the_whole_text_finds_a_token(desk: Desk, text: str) -> None:
    desk.issue()
    assert desk.find(text) is None


@given(st.text())
def test_no_text_is_too_strange_to_be_refused(text: str) -> None:
    desk = Desk()
    desk.issue()
    assert desk.find(text) is None


def test_what_is_kept_does_not_let_anybody_in(desk: Desk) -> None:
    made = desk.issue()
    assert SECRET.encode() not in desk.ledger()
    assert desk.find(f"hr_1_{made.token.secret_hash}") is None


def test_a_real_id_makes_a_text_with_its_form() -> None:
    letters = id_text("tok", 1_700_000_000_000, 2**80 - 1).removeprefix("tok_")
    assert is_token(f"hr_{letters}_{SECRET}")
    assert not is_token(f"hr_{letters}x_{SECRET}")
    assert not is_token("any-other-bearer-token")


def test_a_revoked_token_is_not_found_and_keeps_its_first_end(desk: Desk) -> None:
    made = desk.issue()
    desk.clock.advance(5)
    assert desk.revoke("tok_1").revoked_at == 1005
    assert desk.find(made.text) is None
    desk.clock.advance(5)
    assert desk.revoke("tok_1").revoked_at == 1005
    kinds = [event.kind for event in desk.store.feed(after=0, limit=10)]
    assert kinds == ["token.created", "token.revoked"]
    assert desk.store.verify() == []


@pytest.mark.parametrize("text", ["tok_1", "ann", f"hr_1_{SECRET}", "hr_1_whatever"])
def test_a_token_can_be_meant_by_id_by_name_and_by_what_was_found_lying_around(desk: Desk, text: str) -> None:
    made = desk.issue("ann")
    desk.issue("bob")
    assert desk.meant(text) == made.token


def test_a_name_is_free_again_once_its_token_is_revoked_and_then_means_the_new_one(desk: Desk) -> None:
    desk.issue("ann")
    with pytest.raises(InvalidParams) as refused:
        desk.issue("ann")
    assert "tok_1" in refused.value.message
    desk.revoke("ann")
    second = desk.issue("ann")
    assert desk.meant("ann") == second.token
    desk.revoke("ann")
    assert desk.meant("ann").id == second.token.id


def test_two_of_one_name_that_were_made_at_once_are_told_apart_by_id(desk: Desk) -> None:
    made = desk.issue("ann").token
    twin = msgspec.structs.replace(made, id="tok_9")
    desk.run(lambda unit: unit.record("token.created", twin))
    with pytest.raises(SeveralOpen) as refused:
        desk.meant("ann")
    assert "tok_1" in refused.value.hint
    assert "tok_9" in refused.value.hint
    desk.revoke("tok_9")
    assert desk.meant("ann") == made


def test_an_unknown_token_is_refused_with_those_there_are_and_never_with_what_was_pasted(desk: Desk) -> None:
    desk.issue("ann")
    with pytest.raises(NotFound) as refused:
        desk.meant("anne")
    assert "did you mean ann?" in refused.value.message
    assert "ann (tok_1)" in refused.value.hint
    with pytest.raises(NotFound) as refused:
        desk.meant("hr_7_some-secret")
    assert "some-secret" not in f"{refused.value.message}{refused.value.hint}"


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ("", "without a name"),
        ("wrte", "did you mean write?"),
        ("read,all", "no right all"),
        ("write", "must also read"),
    ],
)
def test_rights_that_are_none_are_refused_with_those_there_are(rights: str, said: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        checked_rights(rights.split(","))
    assert said in refused.value.message
    assert "read" in refused.value.hint


def test_no_right_at_all_is_refused() -> None:
    with pytest.raises(InvalidParams):
        checked_rights([])


def _fit_together(some: set[str]) -> bool:
    return some == {"decide"} or ("decide" not in some and "read" in some)


@given(st.sets(st.sampled_from(RIGHTS), min_size=1).filter(_fit_together))
def test_rights_come_in_their_own_order(rights: set[str]) -> None:
    assert checked_rights([*rights, *rights]) == tuple(right for right in RIGHTS if right in rights)


@pytest.mark.parametrize("rights", [["read", "decide"], ["read", "write", "decide"]])
def test_what_may_decide_does_nothing_else(rights: list[str]) -> None:
    with pytest.raises(InvalidParams, match="does nothing else"):
        checked_rights(rights)


def test_an_agents_token_never_decides(desk: Desk) -> None:
    desk.register("agent_1")
    with pytest.raises(InvalidParams) as refused:
        desk.issue("otter", "decide", agent_id="agent_1")
    assert "approve" in refused.value.message


def test_a_token_for_an_agent_that_is_not_there_is_refused_with_those_that_are(desk: Desk) -> None:
    desk.register("agent_1")
    with pytest.raises(AgentNotFound) as refused:
        desk.issue("otter", agent_id="agent_2")
    assert "agent_1" in refused.value.hint
    assert desk.run(listed) == []


@pytest.mark.parametrize(
    "name",
    ["", " ", "ann ", " ann", "a\nb", "\x1b[31mann", "x" * 101, "hr_ann", "human", "handrail", id_text("agent", 1, 1)],
)
def test_a_name_that_could_mislead_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidParams):
        desk.issue(name)


@pytest.mark.parametrize("name", ["ann", "Ann Lee", "review-bot", "工具", "x" * 100, "build_server"])
def test_any_other_name_is_taken(desk: Desk, name: str) -> None:
    assert desk.issue(name).token.name == name


class TokensInUse(RuleBasedStateMachine):
    """Whatever is made and revoked, in whatever order: exactly the unrevoked texts find their own token."""

    texts: Bundle[str] = Bundle("texts")

    @initialize()
    def begin(self) -> None:
        self.desk = Desk()
        self.working: dict[str, str] = {}
        self.gone: set[str] = set()
        self.made = 0

    @rule(target=texts, rights=st.sampled_from(["read", "read,write", "decide"]))
    def make(self, rights: str) -> str:
        self.made += 1
        self.desk.clock.advance(1)
        issued = self.desk.issue(f"name {self.made}", rights, f"secret-{self.made}")
        self.working[issued.text] = issued.token.id
        return issued.text

    @rule(text=consumes(texts), by_name=st.booleans())
    def take_back(self, text: str, by_name: bool) -> None:
        token = self.desk.find(text)
        assert token is not None
        self.desk.revoke(token.name if by_name else token.id)
        del self.working[text]
        self.gone.add(text)

    @invariant()
    def only_what_works_is_found(self) -> None:
        for text, token_id in self.working.items():
            found = self.desk.find(text)
            assert found is not None
            assert found.id == token_id
        assert [text for text in self.gone if self.desk.find(text) is not None] == []

    @invariant()
    def all_are_listed_in_the_order_they_were_made(self) -> None:
        assert [token.id for token in self.desk.run(listed)] == [f"tok_{n}" for n in range(1, self.made + 1)]


TestTokensInUse = TokensInUse.TestCase

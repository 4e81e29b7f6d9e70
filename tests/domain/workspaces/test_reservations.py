"""Reserving paths: all or nothing, never two agents at once, gone with time or with their agent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from handrail.domain.crew.agent import Agent, CrewRules
from handrail.domain.crew.message import Message
from handrail.domain.crew.outbox import SYSTEM, unread
from handrail.domain.crew.presence import depart, find_agent, present
from handrail.domain.journal.scope import overlap
from handrail.domain.workspaces.records import Reservation, reservations_stream
from handrail.domain.workspaces.reservations import (
    HELD,
    TTL_MS,
    ReservationOutcome,
    ReservationRequest,
    ReservedByOther,
    kept_by,
    kept_from,
    live,
    release,
    reserve,
    tidy_paths,
)
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import InvalidParams
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.store.unit import Unit

REPOSITORY = "/srv/shop"
TESTER = Actor("tester", "test")
RULES = CrewRules()


class Ground:
    """A repository, and agents in it."""

    def __init__(self, *names: str) -> None:
        self.clock = FixedClock(1_000_000)
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())
        for name in names:
            self.store.run(TESTER, lambda unit, name=name: unit.record("agent.registered", agent(name)))  # type: ignore[misc]
            self.comes(name)

    def comes(self, name: str) -> None:
        """Any call of an agent shows that it is there."""
        self.store.run(
            TESTER, lambda unit: unit.record("agent.seen", find_agent(unit, name), present(unit, name, RULES))
        )

    def goes(self, name: str) -> None:
        self.store.run(TESTER, lambda unit: depart(unit, find_agent(unit, name)))

    def later(self, ms: int, *there: str) -> None:
        """Time passes; these agents are still heard of."""
        self.clock.advance(ms)
        for name in there:
            self.comes(name)

    def ask(self, name: str, *paths: str, repository: str = REPOSITORY, **wanted: Any) -> ReservationOutcome:
        def work(unit: Unit) -> ReservationOutcome:
            return reserve(unit, find_agent(unit, name), ReservationRequest(repository, tidy_paths(paths), **wanted))

        return self.store.run(TESTER, work)

    def give_back(self, name: str, *paths: str) -> int:
        return self.store.run(TESTER, lambda unit: release(unit, kept_by(unit, name), paths or None))

    def live(self) -> list[Reservation]:
        return self.store.run(TESTER, lambda unit: live(unit, REPOSITORY))

    def kept(self, files: list[str], own: str | None = None) -> list[ReservedByOther]:
        return self.store.run(TESTER, lambda unit: kept_from(unit, REPOSITORY, files, own))


def agent(name: str) -> Agent:
    return Agent(
        id=name,
        name=name.title(),
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


@pytest.fixture
def ground() -> Ground:
    return Ground("anna", "ben")


def granted(asked: ReservationOutcome) -> Reservation:
    assert asked.reservation is not None, asked.in_the_way
    return asked.reservation


def test_paths_that_nobody_keeps_are_granted_until_they_expire(ground: Ground) -> None:
    mine = granted(ground.ask("anna", "src/", "docs/*.md", reason="moving", task_id="task_1"))
    assert (mine.paths, mine.reason, mine.task_id) == (["src/", "docs/*.md"], "moving", "task_1")
    assert mine.expires_at == ground.clock.now_ms() + TTL_MS
    assert ground.live() == [mine]
    ground.later(TTL_MS, "anna")
    assert ground.live() == []


def test_what_meets_anothers_is_answered_with_whose_it_is(ground: Ground) -> None:
    first = granted(ground.ask("anna", "src/fetch/", reason="moving"))
    asked = ground.ask("ben", "README.md", "src/fetch/retry.py")
    assert asked.reservation is None
    assert [(one.reservation, one.name, one.path) for one in asked.in_the_way] == [
        (first, "Anna", "src/fetch/retry.py")
    ]
    assert ground.live() == [first], "all or nothing: README.md is not kept either"


def test_what_does_not_meet_is_granted_beside_it(ground: Ground) -> None:
    granted(ground.ask("anna", "src/fetch/"))
    granted(ground.ask("ben", "src/store/", "tests/**"))
    assert [one.agent_id for one in ground.live()] == ["anna", "ben"]


def test_another_repository_is_another_matter(ground: Ground) -> None:
    granted(ground.ask("anna", "**"))
    granted(ground.ask("ben", "**", repository="/srv/other"))


def test_ones_own_reservations_are_never_in_the_way(ground: Ground) -> None:
    first = granted(ground.ask("anna", "src/"))
    second = granted(ground.ask("anna", "src/fetch.py"))
    assert ground.live() == [first, second]


def test_asking_again_for_the_same_paths_renews(ground: Ground) -> None:
    first = granted(ground.ask("anna", "src/", "docs/", reason="moving"))
    ground.later(60_000, "anna")
    again = granted(ground.ask("anna", "docs/", "src/", ttl_ms=5_000))
    assert (again.id, again.expires_at, again.reason) == (first.id, ground.clock.now_ms() + 5_000, "moving")
    assert ground.live() == [again]


def test_paths_given_back_are_free_at_once(ground: Ground) -> None:
    granted(ground.ask("anna", "src/", "docs/"))
    assert ground.give_back("anna", "docs/", "elsewhere/") == 1
    granted(ground.ask("ben", "docs/"))
    assert ground.ask("ben", "src/a.py").reservation is None
    assert ground.give_back("anna") == 1
    granted(ground.ask("ben", "src/a.py"))
    assert ground.give_back("anna") == 0


def test_when_only_what_is_taken_back_would_be_left_nothing_is_left(ground: Ground) -> None:
    granted(ground.ask("anna", "src/", "!src/generated/"))
    assert ground.give_back("anna", "src/") == 1
    assert ground.live() == []


def test_what_takes_back_stays_while_something_is_kept(ground: Ground) -> None:
    granted(ground.ask("anna", "src/", "!src/generated/"))
    granted(ground.ask("ben", "src/generated/"))
    assert ground.give_back("anna", "!src/generated/") == 0
    assert [one.paths for one in ground.live()] == [["src/", "!src/generated/"], ["src/generated/"]]


def test_what_a_reservation_takes_back_is_free_for_others(ground: Ground) -> None:
    granted(ground.ask("anna", "src/**", "!src/generated/**"))
    granted(ground.ask("ben", "src/generated/api.ts"))
    assert ground.ask("ben", "src/api.ts").reservation is None


def test_a_reservation_of_an_agent_that_is_lost_does_not_count(ground: Ground) -> None:
    granted(ground.ask("anna", "src/"))
    ground.later(RULES.lease_ms, "ben")
    assert ground.live() == []
    granted(ground.ask("ben", "src/"))


def test_an_agent_that_comes_back_has_what_nobody_took(ground: Ground) -> None:
    first = granted(ground.ask("anna", "src/"))
    ground.goes("anna")
    assert ground.live() == []
    ground.comes("anna")
    assert ground.live() == [first]


def test_an_agent_that_comes_back_has_not_what_another_took_and_is_told(ground: Ground) -> None:
    lost = granted(ground.ask("anna", "src/", "docs/"))
    untouched = granted(ground.ask("anna", "tests/"))
    ground.later(RULES.lease_ms, "ben")
    taken = granted(ground.ask("ben", "src/a.py"))
    ground.comes("anna")
    assert ground.live() == [untouched, taken]
    (told,) = ground.store.run(TESTER, lambda unit: unit.select(Message, unread("anna", unit.now_ms())))
    assert (told.sender_id, told.body["event"], told.body["ids"]) == (SYSTEM, "paths_lost", [lost.id])
    assert told.body["now_kept_by"] == "ben"


def test_every_reservation_of_a_repository_lies_in_one_stream_of_the_ledger(ground: Ground) -> None:
    granted(ground.ask("anna", "src/"))
    granted(ground.ask("ben", "docs/"))
    granted(ground.ask("ben", "docs/"))
    ground.give_back("anna")
    kinds = [event.kind for event in ground.store.events(reservations_stream(REPOSITORY))]
    assert kinds == ["paths.reserved", "paths.reserved", "paths.renewed", "paths.released"]
    assert ground.store.verify() == []


def test_of_two_units_that_overlap_in_time_one_hears_of_the_other(ground: Ground) -> None:
    """The second asks while the first is about to be written: it must not be granted on what it saw before."""
    runs: list[ReservationOutcome] = []

    def late(unit: Unit) -> ReservationOutcome:
        asked = reserve(unit, find_agent(unit, "ben"), ReservationRequest(REPOSITORY, ["src/a.py"]))
        if not runs:
            granted(ground.ask("anna", "src/"))
        runs.append(asked)
        return asked

    asked = ground.store.run(TESTER, late)
    assert runs[0].reservation is not None, "at first nothing was in its way"
    assert asked.reservation is None
    assert [one.agent_id for one in ground.live()] == ["anna"]


@pytest.mark.parametrize("paths", [[""], ["src/", " "], ["!src/"], ["../other"], ["src/../../x"], ["..\\x"]])
def test_paths_that_reserve_nothing_or_leave_the_repository_are_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidParams):
        tidy_paths(paths)


def test_paths_are_kept_tidy() -> None:
    assert tidy_paths([" src/ ", "src/", "a..b/c"]) == ["src/", "a..b/c"]
    assert tidy_paths(["src/", "!src/a.py", "src/"]) == ["!src/a.py", "src/"], "the last word counts"


def test_one_agent_has_so_many_reservations_and_no_more(ground: Ground) -> None:
    for number in range(HELD):
        granted(ground.ask("anna", f"src/{number}.py"))
    with pytest.raises(InvalidParams, match="50 reservations"):
        ground.ask("anna", "src/more.py")
    granted(ground.ask("anna", "src/7.py"))
    ground.give_back("anna", "src/7.py")
    granted(ground.ask("anna", "src/more.py"))


def test_files_are_told_with_whom_they_belong_to(ground: Ground) -> None:
    granted(ground.ask("anna", "src/**", "!src/generated/**"))
    granted(ground.ask("ben", "docs/"))
    files = ["src/a.py", "src/generated/b.py", "docs/a.md", "README.md"]
    assert [(one.name, one.files) for one in ground.kept(files)] == [("Anna", ["src/a.py"]), ("Ben", ["docs/a.md"])]
    assert [one.name for one in ground.kept(files, own="ben")] == ["Anna"]
    ground.later(RULES.lease_ms)
    assert ground.kept(files) == []


AGENTS = st.sampled_from(["anna", "ben", "carl"])
PATHS = st.lists(
    st.sampled_from(["src/", "src/a.py", "src/b.py", "**/*.py", "docs/", "docs/a.md", "a.md", "!src/b.py", "tests/**"]),
    min_size=1,
    max_size=3,
).filter(lambda paths: any(not path.startswith("!") for path in paths))


class Reserving(RuleBasedStateMachine):
    """Agents ask, give back, vanish and return while time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.ground = Ground("anna", "ben", "carl")

    @rule(name=AGENTS, paths=PATHS, ttl=st.sampled_from([1_000, TTL_MS]))
    def ask(self, name: str, paths: list[str], ttl: int) -> None:
        self.ground.comes(name)
        others = [one for one in self.ground.live() if one.agent_id != name]
        meeting = [one.id for one in others if overlap(tidy_paths(paths), one.paths)]
        asked = self.ground.ask(name, *paths, ttl_ms=ttl)
        assert [one.reservation.id for one in asked.in_the_way] == meeting
        assert (asked.reservation is None) == bool(meeting)

    @rule(name=AGENTS, paths=PATHS)
    def give_back(self, name: str, paths: list[str]) -> None:
        self.ground.comes(name)
        self.ground.give_back(name, *paths)
        given = {path for path in paths if not path.startswith("!")}
        assert not [one for one in self.ground.live() if one.agent_id == name and given & set(one.paths)]

    @rule(name=AGENTS)
    def comes(self, name: str) -> None:
        self.ground.comes(name)

    @rule(name=AGENTS)
    def goes(self, name: str) -> None:
        self.ground.goes(name)
        assert all(one.agent_id != name for one in self.ground.live())

    @rule(ms=st.sampled_from([500, 1_000, RULES.lease_ms, TTL_MS]))
    def later(self, ms: int) -> None:
        self.ground.later(ms)

    @invariant()
    def no_path_is_kept_for_two(self) -> None:
        found = self.ground.live()
        for at, one in enumerate(found):
            for other in found[:at]:
                assert one.agent_id == other.agent_id or not overlap(one.paths, other.paths)


TestReserving = Reserving.TestCase
TestReserving.settings = settings(stateful_step_count=25)

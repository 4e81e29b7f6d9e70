"""Which connection makes room: silent strangers first, somebody known who is being answered never."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from handrail.protocol.http.connections import DESCRIPTORS, HEADS_BYTES, RESERVED, HttpConnections, State, welcome


class Line:
    """A connection that knows whether it was cut."""

    def __init__(self, among: HttpConnections) -> None:
        self.is_cut = False
        among.open(self)

    def give_way(self) -> None:
        self.is_cut = True


def asking(among: HttpConnections) -> Line:
    """Somebody known who is being answered."""
    line = Line(among)
    among.ask(line)
    among.welcome(line)
    return line


def idle(among: HttpConnections) -> Line:
    line = asking(among)
    among.rest(line)
    return line


def stranger(among: HttpConnections) -> Line:
    """Somebody who was answered, and has not shown who they are."""
    line = Line(among)
    among.ask(line)
    among.rest(line)
    return line


def test_the_longest_silent_stranger_makes_room() -> None:
    among = HttpConnections(10, 3)
    first, second, third, fourth = (Line(among) for _ in range(4))
    assert [line.is_cut for line in (first, second, third, fourth)] == [True, False, False, False]


def test_a_stranger_who_was_refused_makes_room_for_one_who_has_said_nothing_yet() -> None:
    among = HttpConnections(10, 3)
    refused = [stranger(among) for _ in range(3)]
    new = Line(among)
    assert (refused[0].is_cut, new.is_cut) == (True, False)


def test_strangers_take_only_each_others_places() -> None:
    among = HttpConnections(10, 3)
    known = [idle(among) for _ in range(5)]
    for _ in range(50):
        stranger(among)
    assert among.strangers == 3
    assert not any(line.is_cut for line in known)


def test_a_full_house_takes_from_the_known_who_are_idle_and_never_from_those_being_answered() -> None:
    among = HttpConnections(6, 3)
    answered = [asking(among) for _ in range(3)]
    resting = [idle(among) for _ in range(3)]
    newer = asking(among)
    assert [line.is_cut for line in (*answered, *resting, newer)] == [False] * 3 + [True, False, False] + [False]
    for _ in range(2):
        asking(among)
    assert among.count(State.ASKING) == 6
    late = Line(among)
    assert late.is_cut, "when everybody is being answered, the new one goes"
    assert among.count(State.ASKING) == 6


def test_who_is_known_stays_known_between_requests() -> None:
    among = HttpConnections(10)
    line = idle(among)
    among.ask(line)
    assert among.count(State.ASKING) == 1
    among.close(line)
    among.rest(line)
    assert sum(among.count(state) for state in State) == 0


def test_half_sent_heads_are_bounded_together() -> None:
    among = HttpConnections(100, 50)
    lines = [Line(among) for _ in range(40)]
    small = Line(among)
    among.add_to_head(small, 10)
    for line in lines:
        among.add_to_head(line, HEADS_BYTES // 20)
    assert sum(not line.is_cut for line in lines) == 20
    assert not small.is_cut
    for line in lines:
        among.close(line)
    for line in (again := [Line(among) for _ in range(20)]):
        among.add_to_head(line, HEADS_BYTES // 20 - 10)
    assert not any(line.is_cut for line in again), "what is gone does not count"


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_numbers_hold(seed: int) -> None:
    rolled = random.Random(seed)
    among = HttpConnections(12, 5)
    lines: list[Line] = []
    for _ in range(400):
        lines = [line for line in lines if not line.is_cut]
        step = rolled.choice(("open", "open", "ask", "welcome", "rest", "close", "head"))
        if step == "open" or not lines:
            lines.append(Line(among))
        elif step == "head":
            among.add_to_head(rolled.choice(lines), rolled.randrange(HEADS_BYTES))
        else:
            getattr(among, step)(line := rolled.choice(lines))
            lines = [one for one in lines if step != "close" or one is not line]
        alive = [line for line in lines if not line.is_cut]
        assert sum(among.count(state) for state in State) == len(alive) <= 12
        assert among.strangers <= 5 or step == "rest"


def test_a_request_without_a_connection_of_ours_is_welcome_too() -> None:
    welcome({})
    welcome({"state": None})


@pytest.mark.parametrize(
    ("limits", "left"),
    [("256 4096", 4096 - RESERVED), ("100 100", 50), ("256 9000", DESCRIPTORS - RESERVED)],
)
def test_descriptors_are_asked_for_as_far_as_the_system_gives_them(limits: str, left: int) -> None:
    soft, hard = limits.split()
    code = (
        "import resource; from handrail.protocol.http.connections import room_for_connections as room;"
        "print(room(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    shell = f'ulimit -Sn {soft}; ulimit -Hn {hard} || exit 9; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if done.returncode == 9:
        pytest.skip("this machine's limit is lower")
    room, now = map(int, done.stdout.split())
    assert room == left
    assert now == min(DESCRIPTORS, int(hard))

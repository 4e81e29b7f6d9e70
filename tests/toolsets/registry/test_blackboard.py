"""The tools of boards as agents call them: shapes, pages, bounds of a reply, waiting."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.board.board import VALUE
from handrail.domain.reply_size import LONG_REPLY, REPLY
from handrail.kernel.errors import BoardConflict, InvalidParams
from handrail.operation import Effect
from handrail.protocol.wire import encode
from handrail.toolsets.registry.blackboard import OPERATIONS
from tests.toolsets.registry.boards import BY_NAME, Boards

EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> Boards:
    return Boards(tmp_path)


def keys(page: dict[str, Any]) -> list[str]:
    return [entry["key"] for entry in page["entries"]]


def size(answer: Any) -> int:
    return len(encode(answer))


def test_an_entry_has_exactly_the_documents_members_and_who_set_it(desk: Boards) -> None:
    now = desk.clock.now_ms()
    shown = desk.put("plan:next", {"a": [1]}, tags=["x"], ttl_ms=60_000)
    assert shown == {
        "key": "plan:next",
        "value": {"a": [1]},
        "tags": ["x"],
        "createdAt": now,
        "updatedAt": now,
        "expiresAt": now + 60_000,
        "version": 1,
        "setBy": "ada",
    }
    assert desk.ask("bb_get", key="plan:next") == {"key": "plan:next", "entry": shown}


def test_a_key_without_a_board_is_the_same_as_with_the_default_one(desk: Boards) -> None:
    assert desk.put("note")["key"] == "default:note"
    assert desk.ask("bb_get", key="default:note")["entry"]["version"] == 1
    assert desk.ask("bb_watch")["events"][0]["key"] == "default:note"
    assert desk.ask("bb_delete", key="note")["deleted"] is True


def test_nothing_is_a_value_too(desk: Boards) -> None:
    desk.put("x", None)
    assert desk.ask("bb_get", key="x")["entry"]["value"] is None
    assert desk.ask("bb_get", key="y")["entry"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"value": 1},
        {"key": "x"},
        {"key": "", "value": 1},
        {"key": "x", "value": 1, "ttl_ms": 0},
        {"key": "x", "value": 1, "ttl_ms": 24 * 60 * 60 * 1000 + 1},
        {"key": "x", "value": 1, "expected_version": -1},
        {"key": "x", "value": 1, "tags": [str(n) for n in range(17)]},
        {"key": "x", "value": "v" * VALUE},
        {"key": "x", "value": 1, "other": 1},
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_set(desk: Boards, arguments: dict[str, Any]) -> None:
    refusal = desk.refused("bb_set", **arguments)
    assert isinstance(refusal, InvalidParams)
    assert refusal.hint
    assert desk.store.position() == 0


def test_of_two_who_saw_the_same_one_is_refused_and_shown_what_is_there(desk: Boards) -> None:
    seen = desk.put("lock", None)["version"]
    desk.put("lock", "ada", expected_version=seen)
    refusal = desk.refused("bb_set", "ben", key="lock", value="ben", expected_version=seen)
    assert isinstance(refusal, BoardConflict)
    assert refusal.details["entry"]["value"] == "ada"
    assert "ada" in refusal.hint
    assert refusal.details["entry"]["version"] == 2
    assert isinstance(desk.refused("bb_delete", "ben", key="lock", expected_version=seen), BoardConflict)
    assert desk.ask("bb_delete", "ben", key="lock", expected_version=2)["previous"]["value"] == "ada"


def test_a_query_narrows_by_all_that_is_said(desk: Boards) -> None:
    desk.put("plan:a", tags=["x", "y"])
    desk.put("plan:ab", tags=["x"])
    desk.put("plan:b", tags=["x", "y"])
    desk.put("other:a", tags=["x", "y"])
    assert keys(desk.ask("bb_query")) == ["other:a", "plan:a", "plan:ab", "plan:b"]
    assert keys(desk.ask("bb_query", namespace="plan")) == ["plan:a", "plan:ab", "plan:b"]
    assert keys(desk.ask("bb_query", namespace="plan", prefix="a")) == ["plan:a", "plan:ab"]
    assert keys(desk.ask("bb_query", prefix="plan:a", tags=["y"])) == ["plan:a"]
    assert keys(desk.ask("bb_query", prefix="", after="")) == keys(desk.ask("bb_query"))
    assert keys(desk.ask("bb_query", tags=["y", "x"])) == ["other:a", "plan:a", "plan:b"]
    assert keys(desk.ask("bb_query", keys=["plan:b", "other:a", "plan:zzz"])) == ["other:a", "plan:b"]
    assert keys(desk.ask("bb_query", namespace="plan", keys=["b", "plan:a"], tags=["x"])) == ["plan:a", "plan:b"]
    assert isinstance(desk.refused("bb_query", namespace="plan", prefix="other:"), InvalidParams)


def test_a_board_that_is_named_tells_from_where_to_watch_it(desk: Boards) -> None:
    desk.put("plan:a")
    desk.put("plan:b", ttl_ms=1)
    desk.clock.advance(1)
    page = desk.ask("bb_query", namespace="plan")
    assert (keys(page), page["latest_version"]) == (["plan:a"], 2)
    assert desk.ask("bb_query", prefix="plan:")["latest_version"] == 2
    assert "latest_version" not in desk.ask("bb_query")
    desk.put("plan:c")
    told = desk.ask("bb_watch", namespace="plan", start_version=page["latest_version"])
    assert [(event["kind"], event["key"]) for event in told["events"]] == [("expire", "plan:b"), ("set", "plan:c")]


def test_pages_follow_each_other_without_a_limit_of_the_callers(desk: Boards) -> None:
    for n in range(60):
        desk.put(f"plan:{n:02}", n)
    page = desk.ask("bb_query", namespace="plan")
    seen = keys(page)
    assert (len(seen), page["total"]) == (25, 60)
    while "next" in page:
        page = desk.ask("bb_query", namespace="plan", after=page["next"])
        seen += keys(page)
    assert seen == [f"plan:{n:02}" for n in range(60)]
    assert len(keys(desk.ask("bb_query", namespace="plan", limit=500))) == 60


def test_a_page_stays_small_unless_asked_and_its_values_are_whole(desk: Boards) -> None:
    for n in range(20):
        desk.put(f"plan:{n:02}", "v" * 1000)
    page = desk.ask("bb_query", namespace="plan")
    assert 0 < size(page) < EIGHT_KB
    assert 0 < len(page["entries"]) < 20
    assert page["total"] == 20
    assert page["next"] == keys(page)[-1]
    assert {entry["value"] for entry in page["entries"]} == {"v" * 1000}
    assert len(desk.ask("bb_query", namespace="plan", limit=20)["entries"]) == 20


def test_an_entry_that_is_longer_than_a_page_still_comes_and_lets_others_follow(desk: Boards) -> None:
    desk.put("plan:a", "v" * (VALUE - 2))
    desk.put("plan:b")
    page = desk.ask("bb_query", namespace="plan")
    assert (keys(page), page["next"]) == (["plan:a"], "plan:a")
    assert keys(desk.ask("bb_query", namespace="plan", after="plan:a")) == ["plan:b"]
    assert len(desk.ask("bb_get", key="plan:a")["entry"]["value"]) == VALUE - 2


def test_a_limit_does_not_make_a_reply_without_end(desk: Boards) -> None:
    for n in range(20):
        desk.put(f"plan:{n:02}", "v" * 60_000)
    page = desk.ask("bb_query", namespace="plan", limit=500)
    assert len(page["entries"]) == LONG_REPLY // 60_200
    assert page["next"] == keys(page)[-1]


def test_what_is_set_or_refused_does_not_repeat_a_long_value(desk: Boards) -> None:
    shown = desk.put("plan:a", "v" * 50_000)
    assert "value" not in shown
    assert shown["valueBytes"] == 50_002
    assert size(desk.ask("bb_delete", key="plan:a")) < EIGHT_KB


def test_watching_goes_on_from_where_it_was(desk: Boards) -> None:
    for n in range(120):
        desk.put("plan:x", n)
    seen, start = [], 0
    while (told := desk.ask("bb_watch", namespace="plan", start_version=start))["events"]:
        assert size(told) < EIGHT_KB
        seen += [event["version"] for event in told["events"]]
        assert told["next_version"] == seen[-1]
        assert told["latest_version"] == 120
        start = told["next_version"]
    assert seen == list(range(1, 121))
    assert told["next_version"] == 120
    assert len(desk.ask("bb_watch", namespace="plan", limit=500)["events"]) == 120


def test_a_default_page_of_changes_ends_at_its_bytes(desk: Boards) -> None:
    for n in range(30):
        desk.put("plan:x", str(n) * 1000)
    told = desk.ask("bb_watch", namespace="plan")
    assert len(encode(told["events"])) <= REPLY + 2
    assert told["next_version"] == told["events"][-1]["version"] < 30


def test_retention_is_the_servers_and_is_said(tmp_path: Path) -> None:
    desk = Boards(tmp_path, event_history=3)
    for n in range(5):
        desk.put("plan:x", n)
    told = desk.ask("bb_watch", namespace="plan")
    assert [event["version"] for event in told["events"]] == [3, 4, 5]
    assert (told["truncated_before"], told["next_version"], told["latest_version"]) == (3, 5, 5)
    assert "truncated_before" not in Boards(tmp_path / "all").ask("bb_watch", namespace="plan")


def test_a_watcher_that_waits_hears_of_a_change(desk: Boards) -> None:
    heard: list[Any] = []

    def wait() -> None:
        heard.append(desk.ask("bb_watch", "ben", namespace="plan", wait_ms=25_000))

    waiting = threading.Thread(target=wait)
    waiting.start()
    desk.put("other:x")
    desk.put("plan:x", "news")
    waiting.join(20)
    assert not waiting.is_alive()
    assert [event["entry"]["value"] for event in heard[0]["events"]] == ["news"]


def test_a_watcher_that_waits_in_vain_is_told_so_and_can_go_on(desk: Boards) -> None:
    assert desk.ask("bb_watch", namespace="plan", start_version=4, wait_ms=1) == {
        "events": [],
        "next_version": 4,
        "latest_version": 0,
    }


def test_only_what_changes_something_is_no_reading() -> None:
    reading = {name for name, operation in BY_NAME.items() if operation.effect is Effect.READ}
    assert reading == {"bb_get", "bb_query", "bb_watch"}
    assert len(OPERATIONS) == 5


def test_an_agent_that_is_known_is_who_set_it(desk: Boards) -> None:
    agent = desk.call("agent_register", name="ada", runtime="codex")["id"]
    assert desk.put("x", agent_id=agent)["setBy"] == agent


def test_every_example_holds_here(desk: Boards, tmp_path: Path) -> None:
    from tests.examples import shows

    for number, (operation, example) in enumerate((op, ex) for op in OPERATIONS for ex in op.examples):
        own = Boards(tmp_path / str(number))
        for tool, arguments in example.given:
            own.ask(tool, **arguments)
        if example.refused is not None:
            assert isinstance(own.refused(operation.name, **example.request), example.refused)
        else:
            answer = msgspec.json.decode(encode(own.ask(operation.name, **example.request)))
            assert shows(example.response, answer), (example.title, answer)


def test_a_long_value_that_was_replaced_is_not_repeated(desk: Boards) -> None:
    desk.put("plan:big", "x" * 60_000)
    desk.put("plan:big", "small")
    (change,) = desk.ask("bb_watch", namespace="plan", start_version=1)["events"]
    assert change["entry"]["value"] == "small"
    assert change["previous"]["valueBytes"] == 60_002
    assert "value" not in change["previous"]


def test_that_an_entry_expires_is_nobodys_doing(desk: Boards) -> None:
    """Whoever looks at the board next has not written it: it is no progress of theirs, and nothing for them to undo."""
    desk.put("x", 1, ttl_ms=1000)
    desk.clock.advance(1001)
    assert [change["kind"] for change in desk.ask("bb_watch")["events"]] == ["set", "expire"]
    assert [(event.kind, event.actor) for event in desk.store.feed()][-1] == ("bb.expired", "handrail")

"""Threads and messages as the page lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.overview import messages as module
from handrail.domain.overview.messages import Threads, thread_page, threads
from handrail.kernel.errors import MessageNotFound
from tests.domain.overview.crewed import Crewed
from tests.toolsets.plan.correspondents import PERSON


def listed(desk: Crewed, workflow_id: str | None = None) -> Threads:
    return desk.look(lambda unit: threads(unit, workflow_id, "ann"))


def test_the_persons_threads_come_first_and_all_are_there(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    anna, ben = desk.register("Anna", "Ben")
    asked = desk.send(anna, "human", "Which one?", subject="The choice")
    desk.wait()
    desk.send(ben, "human", "Look at this", requires_ack=True)
    desk.wait()
    desk.send(anna, ben, "How many?", subject="The retry")
    desk.wait()
    desk.send("human", anna, "The first", reply_to_id=asked)
    found = listed(desk).threads
    assert [(row.subject, row.correspondents, row.unread, row.count, row.own) for row in found] == [
        ("The choice", ["Anna"], 1, 2, True),
        ("Look at this", ["Ben"], 1, 1, True),
        ("The retry", ["Anna", "Ben"], 0, 1, False),
    ]
    assert (found[0].last.sender, found[0].last.recipient, found[0].last.body) == ("ann", "Anna", "The first")


def test_a_thread_in_the_order_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    (anna,) = desk.register("Anna")
    first = desk.send(anna, "human", {"which": [1, 2]})
    for number in range(3):
        desk.wait()
        desk.send("human", anna, f"answer {number}", reply_to_id=first)
    thread = listed(desk).threads[0].id
    page = desk.look(lambda unit: thread_page(unit, thread))
    assert [message.body for message in page.messages][1:] == ["answer 0", "answer 1", "answer 2"]
    assert '"which"' in page.messages[0].body, "an object is written as JSON"
    monkeypatch.setattr(module, "PAGE", 2)
    page = desk.look(lambda unit: thread_page(unit, thread))
    assert ([message.body for message in page.messages], page.more) == (["answer 1", "answer 2"], 2)
    before = page.messages[0].created_at
    page = desk.look(lambda unit: thread_page(unit, thread, before))
    assert ([message.body for message in page.messages][1:], page.more) == (["answer 0"], 0)


def test_long_bodies_do_not_make_an_answer_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    (anna,) = desk.register("Anna")
    first = desk.send(anna, "human", "x" * 3000)
    desk.wait()
    desk.send(anna, "human", "y" * 3000, reply_to_id=first)
    row = listed(desk).threads[0]
    assert len(row.last.body) == module.PREVIEW
    monkeypatch.setattr(module, "PAGE_CHARS", 4000)
    page = desk.look(lambda unit: thread_page(unit, row.id))
    assert ([message.body[0] for message in page.messages], page.more) == (["y"], 1)


def test_threads_about_one_workflow(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    anna, ben = desk.register("Anna", "Ben")
    desk.send(anna, ben, "about it", task_id="task_1")
    desk.send(anna, ben, "about nothing")
    assert [row.subject for row in listed(desk, plan).threads] == ["about it"]
    assert len(listed(desk).threads) == 2


def test_what_was_taken_back_is_not_listed(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    (anna,) = desk.register("Anna")
    desk.send("human", anna, "never mind")

    desk.store.undo(PERSON)
    assert listed(desk).threads == []


def test_a_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    (anna,) = desk.register("Anna")
    for number in range(5):
        desk.send(anna, "human", f"thing {number}")
        desk.wait()
    monkeypatch.setattr(module, "THREADS", 2)
    found = listed(desk)
    assert ([row.subject for row in found.threads], found.more) == (["thing 4", "thing 3"], 3)


def test_an_unknown_thread_is_refused(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    with pytest.raises(MessageNotFound):
        desk.look(lambda unit: thread_page(unit, "thr_9"))

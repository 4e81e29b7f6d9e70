"""The screens beside the graph, in a browser: timeline, table, board, and the lists. None of these tests changes the
store they share: what would be written is answered in its place.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.page.conftest import Seen
from tests.page.rich import Facts

LISTS = {
    "timeline": "Not taken yet",
    "tasks": "Survey what is stored",
    "board": "Waits for tasks",
    "gates": "through page",
    "decisions": "Which clock orders changes?",
    "agents": "heartbeat",
    "milestones": "tasks are over",
    "reviews": "Looked at",
    "messages": "Who keeps drafts?",
    "events": "task.claimed",
    "boards": "leader",
    "versions": "Version 2",
}
HOSTILE = "<img src=x onerror=alert(1)>"
MANY = 5000


def at(facts: Facts, tab: str) -> str:
    return f"/#/w/{facts.workflow}/{tab}"


@pytest.mark.parametrize("tab", LISTS)
def test_a_screen_shows_what_is_there_and_fits_a_phone(phone: Any, rich: Facts, tab: str) -> None:
    phone.goto(at(rich, tab))
    phone.locator("#main").get_by_text(LISTS[tab]).first.wait_for()
    told = phone.locator("#main").inner_text()
    assert [word for word in ("undefined", "[object", "Try again") if word in told] == []
    assert phone.evaluate("document.getElementById('main').scrollWidth") <= 390
    assert phone.locator("#main img").count() == 0


def test_the_steps_of_a_run_say_which_of_them_waits(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.run}/pipeline")
    waits = page.locator(".steps .entry", has=page.locator(".s-waiting"))
    waits.wait_for()
    assert "a person decides" in waits.inner_text()
    page.get_by_role("button", name="Pause").click()
    page.locator("#main").get_by_role("button", name="Pause").click()
    page.get_by_text("Nothing is written yet.").wait_for()


# -- the timeline -----------------------------------------------------------------------------------------------------


def test_a_bar_tells_its_facts_and_opens_the_inspector(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "timeline"))
    bar = page.locator(".tl-row .tl-bar.s-failed").first
    bar.wait_for()
    assert "failed" in bar.get_attribute("title")
    assert bar.locator("svg").count() == 1, "the state is told by more than a colour"
    bar.click()
    page.wait_for_url(re.compile("task="))
    page.locator("#drawer").wait_for()


def test_arrow_keys_go_from_bar_to_bar_and_only_one_is_a_stop(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "timeline"))
    page.locator(".tl-bar").first.wait_for()
    assert page.locator('.tl-row .tl-bar[tabindex="0"]').count() == 1
    page.locator('.tl-row .tl-bar[tabindex="0"]').focus()
    row = "document.activeElement.closest('.tl-row').getAttribute('aria-label')"
    first = page.evaluate(row)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(row) != first
    page.keyboard.press("ArrowUp")
    assert page.evaluate(row) == first


def test_rows_and_window_are_in_the_address(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "timeline"))
    page.get_by_role("button", name="group", exact=True).click()
    page.locator(".tl-name", has_text="storage").wait_for()
    page.get_by_role("button", name="10 min").click()
    page.wait_for_url(re.compile("rows=group&window=10"))
    assert page.get_by_role("button", name="10 min").get_attribute("aria-pressed") == "true"


def test_idle_stretches_are_squashed_and_lanes_keep_bars_apart(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "timeline"))
    found = page.evaluate(
        """async () => {
          const { stretches, scale, lanes, ticks } = await import("./timeline_scale.js");
          const hour = 3600e3;
          const bar = (task, from, to, kind = "work") => ({ task_id: task, attempt: 1, kind, from, to });
          const wait = bar("c", 9 * hour, 20 * hour, "queue");
          const bars = [bar("a", 0, hour), bar("b", hour / 2, hour), wait, bar("c", 20 * hour, 21 * hour)];
          const axis = scale(stretches(bars, 0, 21 * hour, true));
          const count = lanes(bars, 12);
          return {
            pieces: axis.pieces.length, whole: scale(stretches(bars, 0, 21 * hour, false)).pieces.length,
            begin: axis.at(0), gap: axis.at(10 * hour), later: axis.at(20 * hour), end: axis.at(21 * hour),
            count, lanes: bars.map((each) => each.lane), strip: bars[2].strip, ticks: ticks(axis, 8).length,
          };
        }"""
    )
    assert (found["pieces"], found["whole"]) == (2, 1)
    assert [found[name] for name in ("begin", "gap", "later", "end")] == pytest.approx([0, 0.49, 0.51, 1])
    assert (found["count"], found["lanes"], found["strip"]) == (2, [0, 1, 0, 0], True)
    assert 2 <= found["ticks"] <= 9


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_table_filters_sorts_and_opens_by_keys(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "tasks"))
    page.get_by_role("button", name="failed first").click()
    page.locator("tbody:not([hidden]) tr[data-id]:first-child", has_text="Index the words").wait_for()
    assert page.get_by_role("columnheader", name="State").get_attribute("aria-sort") == "ascending"
    page.get_by_role("searchbox", name="Filter").fill("logical")
    page.locator("tr[data-id]:first-child:last-child", has_text="Logical clocks").wait_for()
    page.locator("table.tasks").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"task={rich.tasks['Logical clocks']}"))
    page.get_by_role("searchbox", name="Filter").fill("no such task anywhere")
    page.get_by_text("No task is like that.").wait_for()


def test_of_five_thousand_rows_only_the_seen_are_drawn(page: Any, rich: Facts) -> None:
    def many(route: Any) -> None:
        document = route.fetch().json()
        like = document["tasks"][0]
        document["tasks"] = [
            {**like, "id": f"t{n}", "name": f"Task {n}", "sequence": n, "needs": []} for n in range(MANY)
        ]
        route.fulfill(json=document)

    page.route(re.compile(rf"/api/workflows/{rich.workflow}$"), many)
    page.goto(at(rich, "tasks"))
    page.locator("tr[data-id]").first.wait_for()
    assert page.locator("tr[data-id]").count() < 100
    page.locator("table.tasks").focus()
    page.keyboard.press("End")
    last = page.locator(f"#task-t{MANY - 1}")
    last.wait_for()
    place, box = last.bounding_box(), page.locator(".tasks-box").bounding_box()
    assert place["y"] + place["height"] <= box["y"] + box["height"] + 1, "the last row can be scrolled to"
    assert page.locator("tr[data-id]").count() < 100


# -- the lists --------------------------------------------------------------------------------------------------------


def test_what_took_a_decisions_place_is_one_press_away(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "decisions"))
    page.get_by_role("button", name="what took its place").first.click()
    assert "accepted" in page.evaluate("document.activeElement.innerText")
    page.get_by_role("searchbox", name="Search decisions").fill("nothing says this")
    page.get_by_text("No such decision is noted.").wait_for()


def test_a_lost_agent_is_told_in_words_and_a_refused_release_keeps_what_was_written(
    page: Any, rich: Facts, seen: Seen
) -> None:
    seen.expected = ("409",)
    posted: list[Any] = []

    def refuse(route: Any) -> None:
        posted.append(json.loads(route.request.post_data))
        error = {"code": "CLAIM_HELD", "message": "Somebody else has it.", "hint": "Look again.", "details": {}}
        route.fulfill(status=409, json={"error": error})

    page.route(re.compile(r"/api/tasks/[^/]+/release$"), refuse)
    page.goto(at(rich, "agents"))
    lost = page.locator(".entry", has=page.locator(".pill.s-failed"))
    lost.get_by_text("lost", exact=True).wait_for()
    told = lost.inner_text()
    assert [words for words in ("heartbeat", "last action", "lease ended") if words not in told] == []
    lost.get_by_role("button", name="Release").click()
    lost.get_by_role("textbox").fill("it is gone")
    lost.get_by_role("button", name="Release").click()
    lost.get_by_text("Somebody else has it. Look again.").wait_for()
    assert lost.get_by_role("textbox").input_value() == "it is gone"
    assert posted == [{"reason": "it is gone", "agent_id": rich.lost}]


def test_an_event_has_an_address_of_its_own(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "events"))
    page.locator(".events summary").nth(3).click()
    page.locator(".events details[open] pre").wait_for()
    page.locator(".events details[open]").get_by_role("button", name="Link to this event").click()
    page.locator(".entry.chosen").wait_for()
    assert page.locator(".entry.chosen").count() == 1
    number = page.locator(".entry.chosen code").first.inner_text()
    assert f"seq={number.removeprefix('#')}" in page.url
    page.reload()
    page.locator(".entry.chosen", has_text=number).wait_for()


def test_a_thread_opens_and_what_agents_wrote_stays_text(page: Any, rich: Facts) -> None:
    page.route(re.compile(r"/api/messages/[^/]+/read$"), lambda route: route.fulfill(json={}))
    page.goto("/#/messages")
    page.get_by_role("button", name="May I drop old notes?").click()
    page.get_by_role("button", name="Answer").wait_for()
    assert HOSTILE in page.locator("#main").inner_text()
    assert page.locator("#main img").count() == 0
    page.get_by_role("button", name="All threads").click()
    page.get_by_role("button", name="Who keeps drafts?").wait_for()


def test_rows_are_patched_in_place_and_never_under_somebodys_hands(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "versions"))
    page.locator(".entry").first.wait_for()
    found = page.evaluate(
        """async () => {
          const { keyed } = await import("./listing.js");
          const { h } = await import("./dom.js");
          const list = h("ol");
          document.getElementById("main").append(list);
          const draw = (item) => h("li", {}, h("button", {}, item.text), item.writes && h("textarea"));
          const show = (...items) => keyed(list, items, (item) => item.id, draw);
          show({ id: 1, text: "one" }, { id: 2, text: "two" }, { id: 3, text: "three", writes: true });
          const [, two, three] = list.children;
          two.querySelector("button").focus();
          show({ id: 2, text: "two" }, { id: 3, text: "changed", writes: true }, { id: 4, text: "four" });
          const kept = list.children[0] === two && document.activeElement === two.firstChild;
          show({ id: 4, text: "four" }, { id: 2, text: "TWO" });
          return {
            kept, written: three.firstChild.textContent, told: [...list.children].map((node) => node.textContent),
            focus: document.activeElement.textContent,
          };
        }"""
    )
    assert found == {"kept": True, "written": "three", "told": ["four", "TWO"], "focus": "TWO"}

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
    "board": "Blocked",
    "gates": "via page",
    "decisions": "Which clock orders changes?",
    "agents": "heartbeat",
    "milestones": "tasks finished",
    "reviews": "What the agent did: Kept until somebody says",
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
    assert re.search(r"waiting \d", waits.inner_text())
    skipped = page.locator(".steps details", has_text="2 skipped")
    assert "Tasks Review" not in page.locator(".steps").inner_text()
    skipped.locator("summary").click()
    assert "Tasks Review, Human Reviews Tasks" in skipped.inner_text()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("This cannot be empty.").wait_for()


def test_the_documents_of_a_run_can_be_read(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.run}/pipeline")
    page.get_by_role("button", name="request.md").click()
    page.get_by_role("dialog").locator(".paper .p-head, .paper div").first.wait_for()
    page.keyboard.press("Escape")
    page.goto(f"/#/w/{rich.ended_run}/gates")
    approved = page.locator(".entry", has_text="approve").first
    assert "/design.md" in approved.inner_text()
    approved.get_by_role("button", name="Read the current version").click()
    page.get_by_role("dialog").get_by_text("the version asked about had the hash").wait_for()
    assert "Human Reviews Design" in approved.inner_text()


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
    page.locator(".tl-row .tl-bar").first.wait_for()  # the legend has some too
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
    page.get_by_role("button", name="Group", exact=True).click()
    page.locator(".tl-name", has_text="storage").wait_for()
    page.get_by_role("button", name="10 min").click()
    page.wait_for_url(re.compile("rows=group&window=10"))
    page.get_by_role("button", name="10 min", pressed=True).wait_for()  # the address is written before it is drawn


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
          const short = [bar("d", 0, 1), bar("e", 2, 3), bar("f", 4, 5)];
          const tight = lanes(short, 2, 100);
          return {
            tight, short: short.map((each) => each.lane),
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
    assert (found["tight"], found["short"]) == (2, [0, 1, 2]), "short bars stand apart, and the third finds no room"


def test_the_shortest_bar_can_be_hit_and_none_lies_upon_another(phone: Any, rich: Facts) -> None:
    moment = 1_800_000_000_000
    like = {"agent": "a", "agent_id": "a", "kind": "work", "status": "completed", "group": None, "phase": None}

    def bars(route: Any) -> None:
        at = [moment, *(moment + 1000 * n for n in range(30)), moment + 3600_000]
        made = [
            like | {"task_id": f"t{n}", "name": f"T{n}", "attempt": 1, "from": one, "to": one}
            for n, one in enumerate(at)
        ]
        rows = {"agents": [{"id": "a", "name": "a"}], "groups": [], "phases": []}
        route.fulfill(json={"bars": made, "gates": [], "rows": rows, "more": 0})

    phone.route("**/timeline", bars)
    phone.goto(at(rich, "timeline"))
    phone.get_by_role("button", name="Skip idle time").click()
    phone.get_by_role("button", name="Skip idle time", pressed=False).wait_for()
    phone.locator(".tl-row .tl-bar").first.wait_for()
    boxes = [bar.bounding_box() for bar in phone.locator(".tl-row .tl-bar").all()]
    assert min(box["width"] for box in boxes) >= 6
    beside = [(one, other) for one in boxes for other in boxes if one is not other and one["y"] == other["y"]]
    assert all(
        one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"] for one, other in beside
    )
    phone.locator(".tl-name", has_text=f"{32 - len(boxes)} more").wait_for()


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_table_filters_sorts_and_opens_by_keys(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "tasks"))
    page.get_by_role("button", name="Failed first").click()
    page.locator("tbody:not([hidden]) tr[data-id]:first-child", has_text="Index the words").wait_for()
    assert page.get_by_role("columnheader", name="State").get_attribute("aria-sort") == "ascending"
    page.keyboard.press("/")
    page.keyboard.type("logical")
    page.locator("tr[data-id]:first-child:last-child", has_text="Logical clocks").wait_for()
    page.locator("table.tasks").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"task={rich.tasks['Logical clocks']}"))
    page.get_by_role("combobox", name="Search").fill("no such task anywhere")
    page.get_by_text("No matching tasks.").wait_for()
    page.get_by_role("button", name="no such task anywhere").click()
    page.locator("tr[data-id]").nth(5).wait_for()
    assert page.get_by_role("combobox", name="Search").input_value() == ""


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


def test_of_many_tasks_those_that_are_not_over_come_first(page: Any, rich: Facts) -> None:
    states = ["completed", "pending", "in_progress", "failed"]

    def many(route: Any) -> None:
        document = route.fetch().json()
        like = document["tasks"][0]
        document["tasks"] = [
            {**like, "id": f"t{n}", "name": f"Task {n}", "sequence": n, "needs": [], "status": states[n % 4]}
            for n in range(80)
        ]
        route.fulfill(json=document)

    page.route(re.compile(rf"/api/workflows/{rich.workflow}$"), many)
    page.goto(at(rich, "tasks"))
    page.locator("tr[data-id]").first.wait_for()
    names = page.locator("tr[data-id] td.c-name > span").all_inner_texts()
    assert [names[place] for place in (0, 20, 40, 60)] == ["Task 3", "Task 2", "Task 1", "Task 0"]
    page.get_by_role("button", name="Failed first").click()
    page.locator("tbody:not([hidden]) tr[data-id]:first-child", has_text="Task 0").wait_for()


def test_on_a_phone_a_row_says_who_has_it_and_a_long_name_keeps_its_end(phone: Any, rich: Facts) -> None:
    phone.goto(at(rich, "tasks"))
    row = phone.locator(f"#task-{rich.tasks['Editor keeps drafts']}")
    row.wait_for()
    assert re.search(r"builder.*ago", row.inner_text(), re.DOTALL)
    long = next(name for name in rich.tasks if len(name) > 60)
    shown = phone.locator(f"#task-{rich.tasks[long]} td.c-name > span").first
    assert shown.get_attribute("title") == long
    assert re.fullmatch(r".+….+", shown.inner_text())
    assert long.endswith(shown.inner_text().rpartition("…")[2])


def test_a_narrow_table_gives_up_columns_and_never_the_name(page: Any, rich: Facts) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto(at(rich, "tasks") + f"?task={rich.tasks['Merge two histories']}")
    page.locator(".inspector").wait_for()
    row = page.locator(f"#task-{rich.tasks['Survey what is stored']}")
    assert row.locator(".c-name").bounding_box()["width"] > 200
    assert page.locator("th.c-updated").is_visible()
    assert page.locator(".c-group:visible").count() == 0
    assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.tasks-box'))") <= 0
    page.keyboard.press("Escape")
    page.locator("#drawer").wait_for(state="hidden")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator("th.c-group").wait_for()


def test_the_clock_of_a_failed_task_stops(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "tasks"))
    failed = page.locator(f"#task-{rich.tasks['Index the words']}")
    failed.wait_for()
    assert failed.locator(".c-took").inner_text() == "5 min"


def test_all_of_a_card_opens_its_task(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "board"))
    card = page.locator(".card", has_text="Merge two histories")
    card.locator(".small-facts").click(force=True)  # the link covers the card
    page.locator("#drawer h2", has_text="Merge two histories").wait_for()


def test_a_card_of_the_board_says_that_it_waits_for_a_person(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "board"))
    page.locator(".card", has_text="Migrate old notes").locator(".s-waiting[title='waits for you']").wait_for()
    assert page.locator(".card .s-waiting").count() == 1


# -- the lists --------------------------------------------------------------------------------------------------------


def test_what_took_a_decisions_place_is_one_press_away(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "decisions"))
    page.get_by_role("button", name="see what replaced it").first.click()
    assert "accepted" in page.evaluate("document.activeElement.innerText")
    assert "Not chosen: wall clocks; vector clocks" in page.evaluate("document.activeElement.innerText")
    page.get_by_role("searchbox", name="Search decisions").fill("nothing says this")
    page.get_by_text("No decisions found.").wait_for()


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
    lost = page.locator(".entry", has=page.locator(".pill.s-lost"))
    lost.get_by_text("lost", exact=True).wait_for()
    told = lost.inner_text()
    assert told.index("Release") < told.index("lease ended"), "it stands beside its task"
    assert [words for words in ("heartbeat", "last action", "lease ended") if words not in told] == []
    lost.get_by_role("button", name="Release").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("it is gone")
    dialog.get_by_role("button", name="Release").click()
    dialog.get_by_text("Somebody else has it. Look again.").wait_for()
    assert dialog.get_by_role("textbox").input_value() == "it is gone"
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
    page.locator("#main").get_by_role("button", name="Reply").wait_for()
    assert HOSTILE in page.locator("#main").inner_text()
    assert page.locator("#main img").count() == 0
    page.get_by_role("button", name="All threads").click()
    page.get_by_role("button", name="Who keeps drafts?").wait_for()
    page.get_by_role("button", name="May I drop old notes?").click()
    page.locator("#main").get_by_role("link", name="task").click()
    page.locator("#drawer h2", has_text="Migrate old notes").wait_for()


def test_an_agent_that_has_gone_is_no_alarm_and_a_late_one_is_not_paused(page: Any, rich: Facts) -> None:
    def crew(route: Any) -> None:
        document = route.fetch().json()
        changed = zip(document["agents"], ("gone", "late", "ok"), strict=False)
        document["agents"] = [agent | {"tier": tier, "status": "idle", "tasks": []} for agent, tier in changed]
        route.fulfill(json=document)

    page.route("**/api/agents*", crew)
    page.goto(at(rich, "agents"))
    pills = page.locator(".entry .pill")
    pills.first.wait_for()
    assert [text.strip() for text in pills.all_inner_texts()] == ["gone", "late", "idle"]
    assert page.locator(".entry .pill:is(.s-failed, .s-lost)").count() == 0
    assert page.locator(".entry .i-paused").count() == 0


def test_a_version_says_how_many_more_tasks_it_brought(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "versions"))
    first = page.locator(".entry", has_text="Version 1")
    first.wait_for()
    assert re.search(r"\d+ added: .* and \d+ more", first.inner_text())


def test_rows_are_patched_in_place_and_never_under_somebodys_hands(page: Any, rich: Facts) -> None:
    page.goto(at(rich, "versions"))
    page.locator(".entry").first.wait_for()
    found = page.evaluate(
        """async () => {
          const { h, keyed } = await import("./dom.js");
          const list = h("ol");
          document.getElementById("main").append(list);
          const draw = (item) => h("li", {}, h("button", {}, item.text), item.writes && h("textarea"));
          const show = (...items) => keyed(list, items, draw);
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

"""The graph, the inspector and the changes of a task in a browser: looking, travelling, filtering; also on a phone."""

from __future__ import annotations

import json
from typing import Any

from tests.page import rich_texts as texts
from tests.page.rich import Facts
from tests.page.test_shell import wait_for_text

FAILED = "Index the words"
BEFORE, AFTER = "Move search to its own module", "List that updates itself"


def open_graph(page: Any, rich: Facts, params: str = "") -> None:
    page.goto(f"/#/w/{rich.workflow}/graph?{params}")
    page.locator(".node").first.wait_for()


def box(page: Any, rich: Facts, name: str) -> Any:
    return page.locator(f'.node[data-id="{rich.tasks[name]}"]')


def looks(page: Any, rich: Facts, name: str) -> set[str]:
    return set(str(box(page, rich, name).get_attribute("class")).split())


def level(page: Any) -> str:
    return str(page.locator(".graph-frame").get_attribute("class")).removeprefix("graph-frame ")


# -- the graph --------------------------------------------------------------------------------------------------------


def test_each_box_says_its_name_and_how_it_stands(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    assert page.locator(".node").count() >= len(rich.tasks)
    assert str(box(page, rich, FAILED).get_attribute("aria-label")).startswith(f"{FAILED}, failed")
    assert "s-failed" in looks(page, rich, FAILED)
    page.get_by_role("button", name="failed 1").wait_for()


def test_arrows_travel_along_the_lines_and_enter_opens(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    assert page.locator('.node[tabindex="0"]').count() == 1
    box(page, rich, BEFORE).focus()
    for key, name in (("ArrowRight", FAILED), ("ArrowRight", AFTER), ("ArrowLeft", FAILED)):
        page.keyboard.press(key)
        page.wait_for_function("id => document.activeElement.dataset.id === id", arg=rich.tasks[name])
    assert page.locator('.node[tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    wait_for_text(page, ".inspector h2", FAILED)
    assert f"task={rich.tasks[FAILED]}" in page.url


def test_what_is_chosen_dims_all_but_its_lineage(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    box(page, rich, FAILED).click()
    page.locator(".node.chosen").wait_for()
    assert not {"dim"} & (looks(page, rich, BEFORE) | looks(page, rich, AFTER))
    assert "dim" in looks(page, rich, "Keep keys")
    page.keyboard.press("Escape")
    page.locator(".node.dim").first.wait_for(state="detached")


def test_a_filter_dims_and_the_address_keeps_it(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    page.get_by_role("button", name="failed 1").click()
    page.locator(".node.dim").first.wait_for()
    assert page.locator(".node:not(.dim)").count() == 1
    page.reload()
    page.locator(".node.dim").first.wait_for()
    assert page.locator(".node:not(.dim)").count() == 1
    open_graph(page, rich, "q=sync")
    page.wait_for_function("document.querySelectorAll('.node:not(.dim)').length === 2")


def test_words_come_with_the_zoom(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    page.locator(".graph-frame").hover()
    for _ in range(8):
        page.mouse.wheel(0, 400)
    page.locator(".graph-frame.far").wait_for()
    assert page.locator(".node text:visible").count() == 0
    page.keyboard.press("f")
    page.locator(".graph-frame.middle .node text:visible").first.wait_for()
    for _ in range(3):
        page.mouse.wheel(0, -400)
    page.locator(".graph-frame.near .node .at-near .under").first.wait_for()


def test_a_drag_moves_and_chooses_nothing(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    start = box(page, rich, FAILED).bounding_box()
    page.mouse.move(start["x"] + 20, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(start["x"] + 80, start["y"] + 50, steps=4)
    page.mouse.up()
    page.wait_for_function(
        "([id, x]) => Math.abs(document.querySelector(`[data-id='${id}']`).getBoundingClientRect().x - x) < 8",
        arg=[rich.tasks[FAILED], start["x"] + 60],
    )
    assert "task=" not in page.url


def test_groups_open_in_place_and_close_again(page: Any, rich: Facts) -> None:
    open_graph(page, rich, "groups=1")
    group = page.locator(".node.group").first
    group.wait_for()
    groups, boxes = page.locator(".node.group").count(), page.locator(".node").count()
    assert "/" in str(group.get_attribute("aria-label"))
    group.click()
    page.locator(".graph-tools .chip").wait_for()
    page.wait_for_function("count => document.querySelectorAll('.node.group').length === count", arg=groups - 1)
    assert page.locator(".node").count() > boxes
    page.locator(".graph-tools .chip").click()
    page.wait_for_function("count => document.querySelectorAll('.node.group').length === count", arg=groups)


def test_news_repaint_one_box_and_draw_nothing_anew(page: Any, rich: Facts) -> None:
    task = rich.tasks["Keep keys"]
    news: list[dict[str, Any]] = []
    drawings: list[str] = []

    def feed(route: Any) -> None:
        told = "".join(f"data: {json.dumps(one)}\n\n" for one in news)
        route.fulfill(content_type="text/event-stream", body="event: hello\ndata: {}\n\n" + told)

    page.route("**/api/feed*", feed)
    page.on("request", lambda request: drawings.append(request.url) if "/graph?" in request.url else None)
    open_graph(page, rich)
    row = page.evaluate("id => fetch('/api/tasks/' + id).then((answer) => answer.json())", task)["task"]
    page.locator(f'.node.s-completed[data-id="{task}"]').evaluate("node => node.setAttribute('data-was', 'here')")
    drawn = len(drawings)
    changed = row | {"status": "failed"}
    news.append({"position": 10**9, "topics": ["tasks"], "workflows": [], "tasks": [changed], "streams": []})

    page.locator(f'.node.s-failed[data-was][data-id="{task}"]').wait_for()
    page.get_by_role("button", name="failed 2").wait_for()
    assert len(drawings) == drawn


# -- the inspector and the changes ------------------------------------------------------------------------------------


def test_the_inspector_says_why_and_travels(page: Any, rich: Facts) -> None:
    open_graph(page, rich, f"task={rich.tasks[AFTER]}")
    wait_for_text(page, ".inspector", f'waits for "{FAILED}", which failed')
    page.locator(".inspector .task-chips .chip").filter(has_text=FAILED).click()
    wait_for_text(page, ".inspector h2", FAILED)
    wait_for_text(page, ".inspector", "Out of memory")
    page.get_by_label("Close (Esc)").click()
    page.locator("#drawer").wait_for(state="hidden")


def test_a_task_whose_agent_is_lost_can_be_released_with_a_reason(page: Any, rich: Facts) -> None:
    open_graph(page, rich, f"task={rich.tasks['Write down the protocol']}")
    wait_for_text(page, ".inspector", "lost its lease")
    page.locator(".inspector").get_by_role("button", name="Release").click()
    page.locator(".inspector").get_by_role("button", name="Release").click()
    wait_for_text(page, ".inspector", "Nothing is written yet.")


def test_the_changes_are_shown_line_by_line_and_side_by_side(page: Any, rich: Facts) -> None:
    open_graph(page, rich, f"task={rich.tasks[texts.LOG]}")
    page.get_by_role("button", name="Changes", exact=True).click()
    page.locator(".diff-lines .line-in").first.wait_for()
    assert "diff=1" in page.url
    assert page.locator(".diff-lines.split").count() == 0
    page.get_by_role("button", name="Side by side", exact=True).click()
    page.locator(".diff-lines.split").first.wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog.diff-over[open]").wait_for(state="detached")
    page.wait_for_function("!location.hash.includes('diff')")
    assert page.locator("#drawer").is_visible()


# -- on a phone -------------------------------------------------------------------------------------------------------


def test_on_a_phone_the_graph_begins_where_it_can_be_read(phone: Any, rich: Facts) -> None:
    open_graph(phone, rich)
    phone.locator(".graph-frame:not(.far) .node text:visible").first.wait_for()
    assert level(phone) != "far"
    for params in (f"task={rich.tasks[FAILED]}", f"task={rich.tasks[texts.LOG]}&diff=1"):
        open_graph(phone, rich, params)
        phone.locator(".diff details" if "diff" in params else ".inspector h3").first.wait_for()
        assert phone.evaluate("document.documentElement.scrollWidth") == 390
        widths = "[...document.querySelectorAll('#drawer, dialog[open]')].map((part) => part.scrollWidth)"
        assert all(width <= 390 for width in phone.evaluate(widths)), params

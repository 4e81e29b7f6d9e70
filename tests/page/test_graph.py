"""The graph, the inspector and the changes of a task in a browser: looking, travelling, filtering; also on a phone."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.page import rich_texts as texts
from tests.page.rich import Facts
from tests.page.test_shell import wait_for_text

FAILED = "Index the words"
BEFORE, AFTER = "Move search to its own module", "List that updates itself"
STUCK = "Write down the protocol"
HUGE, ADDED = "src/a/folder/with/a/long/name/within/another/one/generated_client.py", 3000


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


def test_a_task_closed_before_its_drawer_came_asks_for_nothing(page: Any, rich: Facts) -> None:
    held: list[Any] = []
    page.route("**/inspector.js", lambda asked: held.append(asked))  # noqa: PLW0108 - it must carry attributes
    open_graph(page, rich)
    with page.expect_request("**/inspector.js"):
        box(page, rich, FAILED).click()
    page.locator(".node.chosen").wait_for()
    page.keyboard.press("Escape")
    page.locator(".node.dim").first.wait_for(state="detached")
    with page.expect_response("**/inspector.js"):
        held[0].continue_()
    box(page, rich, BEFORE).click()
    page.locator("#drawer h2", has_text=BEFORE).wait_for()  # what was asked for in vain would have been asked by now


def test_a_filter_dims_and_the_address_keeps_it(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    page.get_by_role("button", name="failed 1").click()
    page.locator(".node.dim").first.wait_for()
    assert page.locator(".node:not(.dim)").count() == 1
    page.reload()
    page.locator(".node.dim").first.wait_for()
    assert page.locator(".node:not(.dim)").count() == 1
    open_graph(page, rich, "q=notes")
    page.wait_for_function("() => document.querySelectorAll('.node:not(.dim)').length === 3")


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


def test_the_map_is_there_only_while_something_is_out_of_view(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    page.wait_for_function("() => document.querySelector('.graph-frame g').hasAttribute('transform')")
    assert page.locator(".minimap").count() == 0
    page.locator(".graph-frame").hover()
    for _ in range(4):
        page.mouse.wheel(0, -400)
    page.locator(".minimap").wait_for()
    assert page.locator(".minimap .s-failed").count() == 1
    page.keyboard.press("f")
    page.locator(".minimap").wait_for(state="hidden")


def test_a_box_whose_task_is_not_known_yet_shows_its_name(page: Any, rich: Facts) -> None:
    """A plan that grows between two answers: the drawing has a task that the rows do not have."""
    task = rich.tasks[FAILED]

    def without(route: Any) -> None:
        document = route.fetch().json()
        document["tasks"] = [row for row in document["tasks"] if row["id"] != task]
        route.fulfill(json=document)

    page.route(re.compile(rf"/api/workflows/{rich.workflow}$"), without)
    open_graph(page, rich)
    page.locator(f'.node[data-id="{task}"] text:visible', has_text="Index").first.wait_for()


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


def test_what_is_stuck_and_what_waits_for_a_person_is_marked_and_in_the_legend(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    assert "s-lost" in looks(page, rich, STUCK)
    assert "asks" in looks(page, rich, "Migrate old notes")
    page.locator(".graph-legend .s-waiting", has_text="waits for you 1").wait_for()
    page.locator(".graph-legend .s-lost").click()
    page.locator(".node.dim").first.wait_for()
    assert "dim" not in looks(page, rich, STUCK)
    assert page.locator(".node:not(.dim)").count() == page.locator(".node.s-lost").count()


def test_a_task_with_open_subtasks_is_not_called_ready(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    label = page.locator(f'[data-id="{rich.tasks["Encrypt at rest"]}"]').get_attribute("aria-label")
    assert label == "Encrypt at rest, waits for subtasks"
    page.goto(f"/#/w/{rich.workflow}/board")
    page.locator(".lane", has_text="Blocked").get_by_text("Encrypt at rest").wait_for()
    assert page.locator(".lane", has_text="Ready").get_by_text("Encrypt at rest").count() == 0


def test_the_graph_and_the_table_say_states_in_the_same_words(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    told = page.locator(".graph-legend .button").all_inner_texts()
    page.goto(f"/#/w/{rich.workflow}/tasks")
    page.locator("tr[data-id]").first.wait_for()
    in_table = page.get_by_role("group", name="State").get_by_role("button").all_inner_texts()
    assert set(in_table) - {"All"} <= set(told)


def test_groups_that_do_not_fit_open_where_work_is_and_can_be_read(page: Any, rich: Facts) -> None:
    """A chain of forty groups is wider than the window: all of it at once could not be read."""
    running = rich.tasks[STUCK]

    def chain(route: Any) -> None:
        document = route.fetch().json()
        tasks = [[task] for task in list(rich.tasks.values()) if task != running]
        groups = [*tasks[:20], [running], *tasks[20:]]
        like = {"kind": "group", "w": 210.0, "h": 56.0, "y": 0.0, "on_critical": False}
        document["nodes"] = [
            {**like, "id": f"g{n}", "group": f"lane:{n}", "label": f"Lane {n}", "tasks": one, "x": 400.0 * n}
            for n, one in enumerate(groups)
        ]
        route.fulfill(json=document | {"edges": [], "grouped": True, "width": 400.0 * len(groups), "height": 56.0})

    page.route("**/graph?*", chain)
    open_graph(page, rich, "groups=1")
    name = page.locator('.node[data-id="g20"] .under:visible')
    name.wait_for()
    place = name.bounding_box()
    assert place["height"] > 9, "the count can be read"
    assert 0 < place["x"] < 1440, "what is under way is in view"
    page.keyboard.press("f")
    page.locator(".graph-frame:not(.far)").wait_for()


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


def test_names_without_spaces_take_two_lines_as_well(page: Any, rich: Facts) -> None:
    open_graph(page, rich)
    lines = page.evaluate(
        """async () => {
          const { twoLines } = await import("./measure.js");
          return [twoLines("用户界面的多语言支持与测试", 130, 17), twoLines("Move search to its own module", 134, 17)];
        }"""
    )
    assert "".join(lines[0]) == "用户界面的多语言支持与测试"
    assert lines[1] == ["Move search to", "its own module"]


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
    wait_for_text(page, "dialog", "This cannot be empty.")
    assert page.get_by_role("dialog").get_by_role("button", name="Release", exact=True).is_disabled()


def test_the_changes_are_shown_line_by_line_and_side_by_side(page: Any, rich: Facts) -> None:
    open_graph(page, rich, f"task={rich.tasks[texts.LOG]}")
    page.get_by_role("button", name="Changes", exact=True).click()
    page.locator(".diff-lines .line-in").first.wait_for()
    assert "diff=1" in page.url
    assert page.locator(".diff-lines.split").count() == 0
    page.get_by_role("button", name="Side by side", exact=True).click()
    page.locator(".diff-lines.split").first.wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Side by side"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("2")  # what lies below a dialog hears no key, wherever the focus is
    page.keyboard.press("Escape")
    page.locator("dialog.diff-over[open]").wait_for(state="detached")
    assert "/graph" in page.url
    page.wait_for_function("() => !location.hash.includes('diff')")
    assert page.locator("#drawer").is_visible()


def huge_change(route: Any) -> None:
    """A very long file, which comes only when it is asked for, a binary one and a short one."""
    lines = "\n".join(f"+line {n}" for n in range(ADDED))
    like = {"old_path": None, "status": "modified", "removed": 0, "binary": False, "in_scope": None, "patch": None}
    long = like | {"path": HUGE, "added": ADDED}
    if "file=" in route.request.url:
        long["patch"] = f"@@ -0,0 +1,{ADDED} @@\n{lines}\n"
    binary = like | {"path": "logo.png", "added": 0, "binary": True}
    short = like | {"path": "notes.py", "added": 1, "patch": "@@ -0,0 +1 @@\n+short\n"}
    about = {"task_id": "", "is_open": False, "base": None, "added": ADDED + 1, "removed": 0, "note": None, "more": 0}
    route.fulfill(json=about | {"files": [long] if long["patch"] else [long, binary, short]})


def test_a_huge_file_is_one_click_away_and_comes_in_chunks(page: Any, rich: Facts) -> None:
    page.route(re.compile(r"/diff(\?|$)"), huge_change)
    open_graph(page, rich, f"task={rich.tasks[texts.LOG]}&diff=1")
    page.locator(".diff details[open]", has_text="notes.py").locator(".line-in").wait_for()
    assert page.locator(".diff details[open]").count() == 1, (
        "the others leave the long one folded, and it them unfolded"
    )
    binary = page.locator(".diff summary", has_text="logo.png").inner_text()
    assert "binary" in binary
    assert "+0" not in binary
    long = page.locator(".diff details", has_text="generated_client.py")
    long.locator("summary").click()
    long.locator(".line-in").first.wait_for()
    assert long.locator("tr").count() == 500
    long.get_by_role("button", name="500 more lines").click()
    assert long.locator("tr").count() == 1000
    long.get_by_role("button", name=re.compile("All 2,001 remaining lines")).click()
    page.wait_for_function("() => document.querySelectorAll('.diff .line-in').length === 3001")
    assert long.get_by_role("button", name=re.compile("lines")).count() == 0


def test_what_changed_nothing_offers_no_changes(page: Any, rich: Facts) -> None:
    open_graph(page, rich, f"task={rich.tasks['Survey what is stored']}")
    wait_for_text(page, ".inspector h3", "Attempts")
    assert page.get_by_role("button", name="Changes", exact=True).count() == 0
    page.locator(".inspector").get_by_role("button", name="Events").click()
    page.locator(".events summary", has_text="task.claimed").first.wait_for()
    others = page.locator(".events summary").filter(has_not_text="Survey what is stored")
    assert others.filter(has_text="“").count() == 0, "events of no other task"
    page.get_by_role("button", name="Survey what is stored").click()
    page.locator(".events summary", has_text="Index the words").first.wait_for()


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


def test_on_a_phone_the_tools_of_the_graph_take_one_line(phone: Any, rich: Facts) -> None:
    phone.goto(f"/#/w/{rich.workflow}/graph")
    phone.locator(".graph-tools .button").first.wait_for()
    tops = {round(tool.bounding_box()["y"]) for tool in phone.locator(".graph-tools > *").all() if tool.is_visible()}
    assert len(tops) == 1


def test_on_a_phone_a_long_name_keeps_its_end(phone: Any, rich: Facts) -> None:
    phone.route(re.compile(r"/diff(\?|$)"), huge_change)
    open_graph(phone, rich, f"task={rich.tasks[texts.LOG]}&diff=1")
    name = phone.locator(".diff .path").first
    name.wait_for()
    assert name.get_attribute("title") == HUGE
    assert re.fullmatch(r"src/.+….+\.py", name.inner_text())
    assert name.bounding_box()["height"] < 30, "one line"


def test_on_a_phone_what_lies_below_the_inspector_is_out_of_reach(phone: Any, rich: Facts) -> None:
    open_graph(phone, rich, f"task={rich.tasks[FAILED]}")
    phone.locator(".inspector h3").first.wait_for()
    inert = "[...document.querySelectorAll('body > [inert]')].map((part) => part.id)"
    assert set(phone.evaluate(inert)) >= {"top", "needs", "tabs", "main"}
    wraps = """() => {
      const [first, ...rest] = document.querySelectorAll(".inspector .acts .button");
      return rest.filter((button) => Math.abs(button.offsetTop - first.offsetTop) > 2).length;
    }"""
    assert phone.evaluate(wraps) == 0, "the icons stand beside the button"
    phone.get_by_label("Close (Esc)").click()
    phone.locator("#drawer").wait_for(state="hidden")
    assert phone.evaluate(inert) == []

"""The shell in a browser: home, search, the drawer, keys, Needs you, signing in; at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.page.conftest import Seen
from tests.page.desk import Desk, at_a_desk
from tests.page.rich import Facts
from tests.page.serving import Served
from tests.process.peer import handrail_serve

HOSTILE = "<img src=x onerror=alert(1)>"


def text_of(page: Any, selector: str) -> str:
    return str(page.locator(selector).first.text_content())


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.textContent.trim()"))


def wait_for_text(page: Any, selector: str, text: str) -> None:
    page.locator(selector).filter(has_text=text).first.wait_for()


# -- looking around ---------------------------------------------------------------------------------------------------


def test_home_shows_what_waits_and_filters_it(page: Any, rich: Facts) -> None:
    page.goto("/")
    page.locator(f'.flow[data-id="{rich.workflow}"]').wait_for()
    wait_for_text(page, ".connection", "live")
    assert page.title().startswith(f"({page.locator('.need').count()}) ")

    chip = page.locator(".chips").get_by_role("button", name="Waits for you")
    shown = page.locator(".flow .pill").filter(has_text="waits for you")
    count = shown.count()
    assert 0 < count < page.locator(".flow").count()
    chip.click()
    page.locator(f'.flow[data-id="{rich.workflow}"]').wait_for(state="detached")
    assert page.locator(".flow").count() == shown.count() == count, "a chip finds what the pills say"
    assert "show=waits_for_you" in page.url

    page.get_by_role("button", name="All").click()
    page.keyboard.press("/")
    page.keyboard.type("the site")
    page.locator(f'.flow[data-id="{rich.workflow}"]').wait_for(state="detached")
    assert page.locator(f'.flow[data-id="{rich.site}"]').is_visible()


def test_closed_workflows_are_shown_when_asked_for(page: Any, rich: Facts) -> None:
    page.goto("/")
    page.get_by_role("button", name="Show 1 closed").click()
    page.locator(f'.flow[data-id="{rich.done}"]').wait_for()
    page.get_by_role("button", name="Hide closed").click()
    page.locator(f'.flow[data-id="{rich.done}"]').wait_for(state="detached")


def test_search_finds_a_task_and_the_drawer_gives_the_focus_back(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/tasks")
    wait_for_text(page, "h1", "Notes without a net")
    page.keyboard.press("/")
    page.keyboard.type("logical")
    page.locator("#found [role=option]").first.wait_for()
    page.keyboard.press("Enter")
    wait_for_text(page, "#drawer", "Logical clocks")
    page.wait_for_function("() => document.activeElement.id === 'drawer'")
    assert f"task={rich.tasks['Logical clocks']}" in page.url

    page.keyboard.press("Escape")
    page.locator("#drawer").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.id") == "search"


def test_keys_lead_through_the_page(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/graph")
    wait_for_text(page, "h1", "Notes without a net")
    wait_for_text(page, ".connection", "live")
    page.keyboard.press("3")
    page.wait_for_url("**/tasks")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.locator(".flow").first.wait_for()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.className") == "flow"
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")


def test_the_browsers_way_back_undoes_one_step_after_the_other(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/tasks")
    page.locator(f"#task-{rich.tasks['Logical clocks']}").click()
    page.locator("#drawer h2", has_text="Logical clocks").wait_for()
    page.keyboard.press("4")
    page.locator(".board").wait_for()
    page.go_back()
    page.locator("table.tasks").wait_for()
    assert page.locator("#drawer").is_visible()
    page.go_back()
    page.locator("#drawer").wait_for(state="hidden")


def test_an_unknown_workflow_is_said_and_the_way_back_shown(page: Any, rich: Facts, seen: Seen) -> None:
    seen.expected = ("404",)
    page.goto(f"/#/w/{rich.run}/graph")
    page.locator("#phases a").first.wait_for()
    page.evaluate("location.hash = '#/w/wf_nothing/graph'")
    wait_for_text(page, "#main h2", "There is no workflow wf_nothing.")
    assert [page.locator(part).is_hidden() for part in ("#tabs", "#phases", ".switcher")] == [True, True, True]
    page.keyboard.press("1")
    assert page.url.endswith("#/w/wf_nothing/graph"), "no key leads to a tab that is not there"
    page.locator("#main").get_by_role("link", name="All workflows").click()
    page.locator(".flow").first.wait_for()
    assert page.locator("#tabs").is_visible()


@pytest.mark.parametrize(
    "cut", [lambda rich: rich.workflow[:-4], lambda rich: f"{rich.workflow}.", lambda _: "without a net"]
)
def test_an_address_that_is_nearly_right_offers_what_was_meant(
    page: Any, rich: Facts, seen: Seen, cut: Callable[[Facts], str]
) -> None:
    seen.expected = ("404",)
    page.goto(f"/#/w/{quote(cut(rich))}/tasks")
    page.locator("#main").get_by_role("link", name="Notes without a net").click()
    page.locator("#tabs a[aria-current]").wait_for()
    assert f"/w/{rich.workflow}" in page.url


@pytest.mark.parametrize("place", ["%E0%A4%A", "constructor", "w/%E0%A4%A/graph"])
def test_an_address_that_leads_nowhere_leaves_the_way_back(page: Any, seen: Seen, place: str) -> None:
    seen.expected = ("404",)
    page.goto(f"/#/{place}")
    page.locator("#main").get_by_role("link", name="All workflows").click()
    page.locator(".flow").first.wait_for()


def test_the_theme_is_kept_and_given_back_to_the_system(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_label("Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_how_long_ago_is_told_in_the_largest_unit_that_fits(page: Any) -> None:
    page.goto("/")
    told = page.evaluate(
        """async () => {
          const { ago } = await import("./dom.js");
          return [10, 89, 59 * 60 + 40, 23.6 * 3600, 40 * 3600].map((seconds) => ago(Date.now() - seconds * 1000));
        }"""
    )
    assert told == ["just now", "1 min ago", "1 h ago", "1 d ago", "2 d ago"]


def test_text_of_agents_stays_text(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/tasks")
    wait_for_text(page, "#needs", HOSTILE)
    assert page.locator("img").count() == 0


def test_a_count_in_the_top_bar_is_shown_whole_or_not_at_all(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/tasks")
    page.locator("#top .counts span").first.wait_for()
    for width in (1440, 1280, 1180):
        page.set_viewport_size({"width": width, "height": 800})
        cut = page.evaluate(
            """() => {
              const room = document.querySelector("#top .counts").getBoundingClientRect();
              const counts = [...document.querySelectorAll("#top .counts span")];
              const boxes = counts.map((one) => one.getBoundingClientRect());
              return boxes.filter((box) => box.top < room.bottom && box.right > room.right + 1).length;
            }"""
        )
        assert cut == 0, width


def test_on_a_phone_nothing_scrolls_sideways(phone: Any, rich: Facts) -> None:
    phone.goto(f"/#/w/{rich.workflow}/graph")
    phone.locator("#tabs a").first.wait_for()
    for tab in [str(link.get_attribute("href")) for link in phone.locator("#tabs a").all()]:
        phone.goto("/" + tab)
        phone.locator("#tabs a[aria-current]").wait_for()
        assert phone.evaluate("document.documentElement.scrollWidth") == 390, tab
    buttons = phone.locator("#needs .button").all()
    assert buttons
    assert all(button.bounding_box()["height"] >= 40 for button in buttons)


# -- deciding ---------------------------------------------------------------------------------------------------------


def test_a_key_alone_decides_nothing_and_a_rejection_needs_a_reason(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.goto("/")
    page.locator('[data-answer="reject"]').first.wait_for()
    page.keyboard.press("a")
    assert focused(page) == "Approve…"
    page.keyboard.press("d")
    assert focused(page) == "Reject…"
    page.keyboard.press("Enter")
    reject = page.get_by_role("dialog").get_by_role("button", name="Reject", exact=True)
    wait_for_text(page, "dialog", "a reason is required")
    assert reject.is_disabled()
    assert page.evaluate("document.activeElement.ariaLabel") == "Overall comment"
    page.keyboard.type("No.")
    assert reject.is_enabled()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert focused(page) == "Reject…"
    assert asked == []


@pytest.fixture
def desk(browser: Any, tmp_path: Path) -> Iterator[Desk]:
    with at_a_desk(browser, tmp_path) as one:
        yield one


def test_approving_takes_a_second_step_opens_the_gate_and_reaches_every_tab(desk: Desk) -> None:
    page, gate = desk.page, desk.facts.gate
    other = page.context.new_page()  # takes the feed over, and tells the first
    other.goto("/")
    other.locator(f'[data-gate="{gate}"]').wait_for()
    wait_for_text(other, ".connection", "live")
    page.locator(f'[data-gate="{gate}"] [data-answer="approve"]').click()
    dialog = page.get_by_role("dialog")
    page.locator(".paper-line").first.wait_for()
    known = desk.read(f"/api/gates/{gate}")
    assert known["content_hash"][:8] in str(dialog.text_content())
    assert known["path"] in str(dialog.text_content())
    dialog.get_by_role("button", name="Approve", exact=True).click()
    page.locator(f'[data-gate="{gate}"]').wait_for(state="detached")
    other.locator(f'[data-gate="{gate}"]').wait_for(state="detached")
    other.close()
    wait_for_text(page, ".connection", "live")
    answered = desk.read(f"/api/gates/{gate}")
    assert (answered["answer"], answered["channel"]) == ("approve", "page")


def test_a_document_that_changed_is_shown_again_with_what_was_written(desk: Desk) -> None:
    page, gate = desk.page, desk.facts.gate
    document = desk.document()
    document.write_text(document.read_text() + "\n```sh and what else stands here\nls\n```\n")
    page.evaluate("globalThis.setInterval = () => 0")  # else the dialog's own look may come first
    page.locator(f'[data-gate="{gate}"]').get_by_role("button", name="Read").click()
    send = page.get_by_role("dialog").get_by_role("button", name="Reject", exact=True)
    page.locator(".paper-line").nth(2).wait_for()
    assert send.is_disabled()
    shown = page.locator(".paper-line > span").all()
    assert all(line.is_visible() for line in shown if str(line.text_content()).strip()), (
        "what is approved is shown whole"
    )
    page.locator(".paper-line").nth(2).click()
    page.keyboard.type("Which change?")

    document.write_text(document.read_text() + "\nOne more line.\n")
    send.click()
    wait_for_text(page, "dialog .notice", "Nothing was answered")
    wait_for_text(page, ".paper-line.changed", "One more line.")
    assert page.locator(".paper-line.changed").count() < page.locator(".paper-line").count()
    remark = page.get_by_label("Overall comment")
    assert str(remark.input_value()).startswith("line 3: Which change?")

    send.click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.locator('[data-kind="decision"]').wait_for(state="detached")
    gates = desk.read(f"/api/workflows/{desk.facts.run}/gates")["gates"]
    (answered,) = [row for row in gates if row["answer"] == "reject"]
    assert answered["feedback"].startswith("line 3: Which change?")


# -- signing in -------------------------------------------------------------------------------------------------------


def test_who_is_not_signed_in_sees_only_the_form(browser: Any, served: Served, seen: Seen) -> None:
    seen.expected = ("401", "403")
    context = browser.new_context(base_url=served.url)
    page = context.new_page()
    seen.watch(page)
    page.goto("/")
    page.get_by_label("Code or token").fill("a wrong one")
    page.keyboard.press("Enter")
    page.get_by_role("alert").locator(".notice").wait_for()
    assert page.locator("#needs").is_hidden()
    assert page.locator("#tabs").is_hidden()
    context.close()


def test_another_device_gets_a_link_that_works_once(browser: Any, page: Any, served: Served) -> None:
    page.goto("/")
    page.locator(".flow").first.wait_for()
    page.keyboard.press("?")
    page.get_by_role("button", name="Sign in another device").click()
    link = page.get_by_label("Sign-in link").input_value()
    other = browser.new_context()
    there = other.new_page()
    there.goto(link)
    there.locator(".flow").first.wait_for()
    other.close()


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_an_agent_that_waits_goes_on_the_moment_a_person_decides(desk: Desk, word: str) -> None:
    page, facts = desk.page, desk.facts
    path = str(desk.read(f"/api/gates/{facts.gate}")["path"])
    call = {"workspace": path.rpartition("/")[0], "wait_ms": 25_000, "take_over": True}
    with handrail_serve(facts.project, "--toolsets", "pipeline", env={"HOME": str(facts.home)}) as agent:
        agent.initialize()
        agent.send(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "pipeline_next_action", "arguments": call},
            }
        )
        page.locator(f'[data-gate="{facts.gate}"] [data-answer="{word}"]').click()
        dialog = page.get_by_role("dialog")
        if word == "reject":
            dialog.get_by_role("textbox").fill("Say how it fails.")
        dialog.get_by_role("button", name=word.capitalize(), exact=True).click()
        answered = agent.reply()["result"]["structuredContent"]
    assert not answered.get("still_waiting")
    told = msgspec.json.encode(answered).decode()
    assert ("Say how it fails." in told) == (word == "reject"), "the next agent hears why"


def test_the_report_of_a_workflow_can_be_kept(page: Any, rich: Facts) -> None:
    page.goto(f"/#/w/{rich.workflow}/tasks")
    page.locator("table.tasks").wait_for()
    page.keyboard.press("?")
    with page.expect_download() as kept:
        page.get_by_role("dialog").get_by_role("link", name="md").click()
    assert kept.value.suggested_filename == f"report-{rich.workflow}.md"
    assert Path(kept.value.path()).read_text(encoding="utf-8").startswith("# ")

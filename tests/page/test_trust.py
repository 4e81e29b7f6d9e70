"""Whether a person may trust what the page shows: all of a text, who is signed in, what is live, what was decided."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.conftest import Seen
from tests.page.desk import Desk, at_a_desk
from tests.page.rich import Facts
from tests.page.serving import Served

PROOF = "localStorage.getItem('handrail.proof')"


@pytest.fixture
def desk(browser: Any, tmp_path: Path) -> Iterator[Desk]:
    with at_a_desk(browser, tmp_path) as one:
        yield one


def says(page: Any, selector: str, text: str) -> Any:
    found = page.locator(selector).filter(has_text=text).first
    found.wait_for()
    return found


def dot(page: Any, state: str) -> None:
    page.locator(f'.connection[data-state="{state}"]').wait_for()


# -- what is approved is seen, all of it ------------------------------------------------------------------------------


def test_a_document_is_read_line_by_line_whoever_ended_them_and_hides_nothing(desk: Desk) -> None:
    page = desk.page
    text = "# One\r\ntwo\rthree\u2028four\u2029five \u202egnp.exe\nsix\u200b\U000e0041\U0001f469\u200d\U0001f4bb"
    desk.document().write_bytes(text.encode())
    desk.need().get_by_role("button", name="Read").click()
    page.locator(".paper-line").nth(5).wait_for()
    lines = [str(line.text_content()) for line in page.locator(".paper-line > span").all()]
    assert lines == ["One", "two", "three", "four", "five U+202Egnp.exe", "sixU+200B U+E0041\U0001f469\u200d\U0001f4bb"]
    assert page.locator(".hidden-code").first.is_visible()
    assert page.locator(".paper-line[tabindex='0']").count() == 1, "Tab stops once in a document"
    page.keyboard.press("End")
    assert "six" in str(page.evaluate("document.activeElement.textContent"))


def test_an_empty_document_is_called_empty(desk: Desk) -> None:
    desk.document().write_text("")
    desk.need().get_by_role("button", name="Read").click()
    says(desk.page, ".paper", "is empty or too long to show")


def test_hidden_characters_are_shown_wherever_text_is_drawn(page: Any) -> None:
    page.goto("/")
    made = page.evaluate(
        """async () => {
          const { h, svg } = await import("/dom.js");
          const node = h("p", { title: "a\\u202eb", aria: { label: "c\\u2066d" } }, "plain", "x\\ufeffy");
          return [node.textContent, node.title, node.getAttribute("aria-label"), svg("text", "e\\u200ff").textContent];
        }"""
    )
    assert made == ["plainxU+FEFFy", "a[U+202E]b", "c[U+2066]d", "e[U+200F]f"]


def test_approving_shows_the_document_first_and_a_second_press_approves(desk: Desk) -> None:
    page = desk.page
    desk.need().locator('[data-answer="approve"]').click()
    dialog = page.get_by_role("dialog")
    page.locator(".paper-line").first.wait_for()
    assert page.evaluate("document.activeElement.className").startswith("paper-line")
    assert desk.read(f"/api/gates/{desk.facts.gate}")["status"] == "open"
    dialog.get_by_role("button", name="Approve", exact=True).click()
    dialog.wait_for(state="detached")
    assert desk.read(f"/api/gates/{desk.facts.gate}")["answer"] == "approve"


def test_an_open_dialog_hears_that_somebody_else_decided(desk: Desk) -> None:
    page = desk.page
    desk.need().get_by_role("button", name="Read").click()
    page.locator(".paper-line").first.wait_for()
    other = page.context.new_page()
    other.goto("/")
    other.locator(f'[data-gate="{desk.facts.gate}"] [data-answer="approve"]').click()
    other.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).click()
    says(page, "dialog .notice", "answered “approve”")
    assert page.locator("dialog .notice").count() == 1
    foot = page.locator("dialog footer button")
    assert [button.text_content() for button in foot.all() if button.is_enabled()] == ["Close"]
    page.keyboard.press("Enter")  # Close has the focus
    page.get_by_role("dialog").wait_for(state="detached")


def test_an_open_dialog_hears_that_its_document_changed(desk: Desk) -> None:
    page = desk.page
    desk.need().get_by_role("button", name="Read").click()
    page.locator(".paper-line").first.wait_for()
    page.get_by_label("Overall comment").fill("Mine.")
    desk.document().write_text(desk.document().read_text() + "\nA late line.\n")
    says(page, "dialog .notice", "The document has changed")
    page.get_by_role("button", name="Read the current version").click()
    says(page, ".paper-line.changed", "A late line.")
    assert page.get_by_label("Overall comment").input_value() == "Mine."


# -- who is signed in -------------------------------------------------------------------------------------------------


def test_the_proof_leaves_the_address_and_who_lacks_it_signs_in_and_finds_the_draft(desk: Desk) -> None:
    page = desk.page
    assert "proof" not in page.url
    proof = page.evaluate(PROOF)
    assert len(proof) > 20
    assert proof not in page.content()
    headers = {"x-handrail-proof": proof, "origin": desk.served.url.rstrip("/")}
    made = page.request.post("/api/links", data={}, headers=headers).json()

    desk.need().locator('[data-answer="reject"]').click()
    page.get_by_role("dialog").get_by_role("textbox").fill("Say how it fails.")
    page.evaluate("localStorage.removeItem('handrail.proof')")
    reject = page.get_by_role("dialog").get_by_role("button", name="Reject", exact=True)
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Enter")  # the button has the focus
    page.get_by_label("Code or token").fill(made["url"])
    assert page.locator("dialog").count() == 0
    assert page.locator("#needs").is_hidden()
    page.keyboard.press("Enter")
    says(page, "dialog .notice", "signed out before this was sent")
    assert page.get_by_role("dialog").get_by_role("textbox").input_value() == "Say how it fails."
    assert page.evaluate(PROOF) not in (None, proof)
    reject.click()
    page.get_by_role("dialog").wait_for(state="detached")
    assert desk.read(f"/api/gates/{desk.facts.gate}")["feedback"] == "Say how it fails."


def test_a_link_that_was_used_says_so_and_leaves_the_address(browser: Any, signed_in: Any, served: Served) -> None:
    assert signed_in, "the link has been used by now"
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.link)
    says(page, ".sign-in .notice", "already used")
    assert "token" not in page.url
    assert page.locator(".sign-in code").first.is_visible()
    context.close()


def test_the_bell_says_whether_it_rings_and_what_it_cannot(page: Any) -> None:
    page.goto("/")
    bell = page.get_by_label("Notify me of new decisions")
    assert bell.get_attribute("aria-pressed") == "false"
    bell.click()
    says(page, '#tools [aria-pressed="true"]', "sound only")
    bell.click()
    page.locator('#tools [aria-pressed="false"]').wait_for()


# -- what is live -----------------------------------------------------------------------------------------------------


def test_silence_is_not_called_live(desk: Desk) -> None:
    page = desk.page
    page.clock.install()
    page.reload()
    dot(page, "live")
    desk.served.terminal.process.send_signal(signal.SIGSTOP)
    try:
        page.clock.run_for(14_000)
        dot(page, "reconnecting")
    finally:
        desk.served.terminal.process.send_signal(signal.SIGCONT)
    page.clock.run_for(3_000)
    dot(page, "live")


def test_what_could_not_be_loaded_is_tried_again_by_itself(page: Any, rich: Facts, seen: Seen) -> None:
    seen.expected = ("ERR_FAILED",)
    page.goto("/")
    dot(page, "live")
    page.route("**/api/workflows/**", lambda route: route.abort())
    page.evaluate(f"location.hash = '#/w/{rich.workflow}/tasks'")
    says(page, "#main", "Try again")
    page.unroute("**/api/workflows/**")
    says(page, "h1", "Notes without a net")
    dot(page, "live")


def test_an_address_that_is_none_is_said(page: Any) -> None:
    page.goto("/#/blah")
    says(page, "#main h2", "There is no page at #/blah")
    page.locator("#main").get_by_role("link", name="All workflows").click()
    page.locator(".flow").first.wait_for()


# -- on a phone -------------------------------------------------------------------------------------------------------


def test_on_a_phone_answers_stay_in_sight_and_what_is_cut_is_counted(browser: Any, tmp_path: Path) -> None:
    with at_a_desk(browser, tmp_path, viewport={"width": 390, "height": 844}, has_touch=True) as desk:
        page = desk.page
        rows = page.locator("#needs .need").count()
        more = page.locator("#needs .below")
        more.wait_for()
        hidden = int(str(more.text_content()).strip("+").partition(" ")[0])
        assert 0 < hidden < rows
        page.evaluate("document.getElementById('needs').scrollTo(0, 1e6)")
        more.wait_for(state="hidden")
        desk.document().write_text("\n".join(f"line {number}" for number in range(300)))
        desk.need().get_by_role("button", name="Read").click()
        page.locator(".paper-line").nth(200).wait_for()
        page.locator("dialog").evaluate("node => node.scrollTo(0, 0)")
        approve = page.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).bounding_box()
        assert approve["y"] + approve["height"] <= 844
        assert page.evaluate("document.documentElement.scrollWidth") == 390

"""`python -m tests.page.pictures`: takes the pictures of the page that the docs show, from what `handrail demo` leaves.

The demo is played in a moment, with a clock that is told the time, so that its work looks as long as such work is; the
page is a real `handrail up`, and the browser a real Chromium. `--only NAME` takes one picture, `--folder` puts them
elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from handrail.demo.acts import perform
from handrail.demo.stage import clear, prepared
from handrail.domain.journal.journal import LOOKING
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.records import Query
from handrail.outside.world import RandomIds
from handrail.store.store import Store
from handrail.surfaces.cli.begin.demo import Terminal
from handrail.wiring import LazyLedger
from tests.own_store import own_store
from tests.page.serving import serving

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
STORY_MS, BEAT_MS = 86 * 60_000, 70_000
"""How long ago the demo seems to have begun, and what passes with each of its pauses."""
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PATIENCE_MS = 20_000
SHOWS = "#main, #drawer, dialog"
"""Where a picture's text is waited for: what needs the person has words of every screen."""
SCALE = 1.5
"""Pixels for each of the page's: sharp where docs show them, and not heavy to fetch."""


class Told(Terminal):
    """The demo's stage where nobody watches: a pause is a minute on its clock, and the gate is opened."""

    def __init__(self, clock: FixedClock, until_ms: int) -> None:
        super().__init__(speed=0, headless=True)
        self._clock = clock
        self._until_ms = until_ms

    def beat(self) -> None:
        self._clock.advance(min(BEAT_MS, max(0, self._until_ms - self._clock.now_ms())))


class Shown(NamedTuple):
    """What there is to take pictures of."""

    project: Path
    home: Path
    plan: str
    """The workflow that is under way."""
    run: str
    """The one that waits at its gate."""
    task: str
    """A task with a change in its journal."""


class Picture(NamedTuple):
    """One picture: where the browser goes, what it waits for, and how it looks."""

    name: str
    address: Callable[[Shown], str]
    waits_for: str
    scheme: str = "light"
    size: dict[str, int] = DESK
    presses: str = ""
    """The button that is pressed before that, by its text."""


TAKEN = (
    Picture("home", lambda _: "#/", "Every language"),
    Picture("graph", lambda shown: f"#/w/{shown.plan}/graph", "cut without blanks"),
    Picture("inspector-dark", lambda shown: f"#/w/{shown.plan}/graph?task={shown.task}", "words/reading.py", "dark"),
    Picture("gate", lambda shown: f"#/w/{shown.run}/gates", "Design: guess the language", presses="Read and decide"),
    Picture("timeline", lambda shown: f"#/w/{shown.plan}/timeline", "count by language"),
    Picture("tasks", lambda shown: f"#/w/{shown.plan}/tasks", "count by language"),
    Picture("agents", lambda _: "#/agents", "Cleo"),
    Picture("phone", lambda _: "#/", "Every language", "light", PHONE),
)


def played(ground: Any) -> Shown:
    """The demo, played into the ground's own store."""
    now_ms = time.time_ns() // 1_000_000
    clock = FixedClock(now_ms - STORY_MS)

    def opened() -> Store:
        return own_store(ground.project, ground.home, clock=clock, ids=RandomIds(clock))

    with contextlib.redirect_stdout(io.StringIO()):
        perform(ground, Told(clock, now_ms), LazyLedger(opened))
    store = opened()
    try:
        return store.run(LOOKING, lambda unit: _found(unit, ground))
    finally:
        store.engine.close()


def _found(unit: Any, ground: Any) -> Shown:
    newest = unit.select(Workflow, Query((), ("-created_at", "-id"), 10))
    plan = next(one.id for one in newest if one.name == "Every language")
    run = next(one.id for one in newest if unit.get(PipelineRun, one.id) is not None)
    (task,) = unit.select(Task, Query((("workflow_id", plan), ("name", "read any encoding"))))
    return Shown(ground.project, ground.home, plan, run, task.id)


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from tests.page.conftest import BROWSER, QUIET

    with sync_playwright() as playwright:
        as_root = ("--no-sandbox",) if os.name == "posix" and os.geteuid() == 0 else ()
        browser = playwright.chromium.launch(executable_path=BROWSER, args=[*QUIET, *as_root])
        yield browser
        browser.close()


def take(browser: Any, url: str, cookies: Any, shown: Shown, picture: Picture, folder: Path) -> None:
    context = browser.new_context(
        storage_state=cookies,
        viewport=picture.size,
        color_scheme=picture.scheme,
        reduced_motion="reduce",
        device_scale_factor=SCALE,
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{url}{picture.address(shown)}")
    if picture.presses:
        page.get_by_role("button", name=picture.presses).first.click()
    page.locator(SHOWS).get_by_text(picture.waits_for).filter(visible=True).first.wait_for()
    page.locator('.connection[data-state="live"]').wait_for()
    page.evaluate("() => document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => done())))")
    page.screenshot(path=folder / f"{picture.name}.png")
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[picture.name for picture in TAKEN])
    parser.add_argument("--folder", type=Path, default=PICTURES)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with prepared() as ground:
        try:
            shown = played(ground)
            with serving(shown.project, shown.home) as served, browsing() as browser:
                context = browser.new_context()
                context.new_page().goto(served.link)
                cookies = context.storage_state()
                for picture in TAKEN:
                    if given.only is None or picture.name in given.only:
                        take(browser, served.url, cookies, shown, picture, given.folder)
                        sys.stdout.write(f"{given.folder / picture.name}.png\n")
        finally:
            clear(ground)


if __name__ == "__main__":
    main()

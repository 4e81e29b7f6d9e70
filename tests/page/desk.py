"""A store of one test's own, served, with a signed-in page on it: for tests that change what they look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.page.conftest import PATIENCE_MS
from tests.page.rich import Facts, build
from tests.page.serving import Served, serving


class Desk:
    """What such a test works with."""

    def __init__(self, page: Any, facts: Facts, served: Served) -> None:
        self.page = page
        self.facts = facts
        self.served = served

    def document(self) -> Path:
        return self.facts.project / str(self.read(f"/api/gates/{self.facts.gate}")["path"])

    def read(self, path: str) -> Any:
        return self.page.request.get(self.served.url.rstrip("/") + path).json()

    def need(self) -> Any:
        """The row of the gate that waits."""
        return self.page.locator(f'[data-gate="{self.facts.gate}"]')


@contextmanager
def at_a_desk(browser: Any, folder: Path, **how: Any) -> Iterator[Desk]:
    facts = build(folder)
    with serving(facts.project, folder / "home") as served:
        context = browser.new_context(base_url=served.url, **how)
        context.set_default_timeout(PATIENCE_MS)
        desk = Desk(context.new_page(), facts, served)
        desk.page.goto(served.link)
        desk.need().wait_for()
        yield desk
        context.close()

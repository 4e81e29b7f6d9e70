"""One browser and one server for the tests of the page; a fresh context, signed in, for each test. Both end with this
folder: the browser's driver keeps an event loop in its thread, in which no other test could run one.

Every test also holds the page to this: nothing in the browser's console but what the test expects, and nothing asked
of any other address. Where there is no browser the tests are skipped with one line that says what to install.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.rich import Facts, build
from tests.page.serving import Served, serving

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
QUIET = ("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync")
PATIENCE_MS = 20_000


def browser_path() -> str | None:
    named = os.environ.get("UI_BROWSER_PATH")
    return named or next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


BROWSER = browser_path()  # looked up before any test hides the environment


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser is enough: all its tests run in one worker."""
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("page"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no browser: the page's tests need chromium or google-chrome on the PATH")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        as_root = ("--no-sandbox",) if os.name == "posix" and os.geteuid() == 0 else ()
        browser = playwright.chromium.launch(executable_path=BROWSER, args=[*QUIET, *as_root])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """A store with something of everything; the tests that share it change nothing of it."""
    return build(tmp_path_factory.mktemp("rich"))


@pytest.fixture(scope="package")
def served(rich: Facts) -> Iterator[Served]:
    with serving(rich.project, rich.home) as up:
        yield up


@pytest.fixture(scope="package")
def signed_in(browser: Any, served: Served) -> Any:
    """The cookies of somebody who came by the terminal's link."""
    context = browser.new_context()
    context.new_page().goto(served.link)
    state = context.storage_state()
    context.close()
    return state


class Seen:
    """What the browser said while a test ran."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.addresses: set[str] = set()
        self.refused: list[str] = []
        """What was asked for in vain, for the message of a test that fails."""
        self.expected: tuple[str, ...] = ()
        """Parts of the complaints that the test provokes."""

    def watch(self, page: Any) -> None:
        page.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.addresses.add(request.url))
        page.on(
            "response",
            lambda answer: self.refused.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None,
        )

    def unexpected(self) -> list[str]:
        return [error for error in self.errors if not any(part in error for part in self.expected)]


@pytest.fixture
def seen(served: Served) -> Iterator[Seen]:
    seen = Seen()
    yield seen
    assert seen.unexpected() == [], seen.refused
    foreign = {url for url in seen.addresses if not url.startswith((served.url, "data:", "blob:"))}
    assert foreign == set()


@pytest.fixture
def page(browser: Any, served: Served, signed_in: Any, seen: Seen) -> Iterator[Any]:
    """The page, signed in, on a desk."""
    yield from opened(browser, served, signed_in, seen, viewport={"width": 1440, "height": 900})


@pytest.fixture
def phone(browser: Any, served: Served, signed_in: Any, seen: Seen) -> Iterator[Any]:
    """The page, signed in, on a phone."""
    yield from opened(browser, served, signed_in, seen, viewport={"width": 390, "height": 844}, has_touch=True)


def opened(browser: Any, served: Served, signed_in: Any, seen: Seen, **how: Any) -> Iterator[Any]:
    context = browser.new_context(storage_state=signed_in, base_url=served.url, **how)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    seen.watch(page)
    yield page
    context.close()

"""How soon the page shows a plan, and how soon it shows a change, each beside a floor measured in the same run.

Paint: from the start of the navigation to the first frame with boxes of the plan in it. The floor is a static copy of
what the page then shows, boxes, style and all, from a file server that does nothing else: no script, no data to fetch.
Update: from the commit of a change to the first frame that shows it. The floor is the moment at which a plain reader of
the same feed has the same event. Ratios are what counts; both sides share the machine.
"""

from __future__ import annotations

import http.client
import http.server
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tests.page.conftest import BROWSER, QUIET
from tests.page.rich import Facts, build_many
from tests.page.rich_stage import Agent, Stage
from tests.page.serving import Served, serving
from tests.page.weights import FIRST_SCREENS, SCRIPTS, first_paint, weight

SIZES, QUICK_SIZES = (200, 1_000, 5_000), (200,)
ROUNDS, QUICK_ROUNDS = 7, 2
UPDATES = 5
"""Changes that are made and looked for in each round."""
PATIENCE_MS = 60_000
JS_BYTES = 60_000
"""What the scripts may weigh, as they are, that a screen needs before it is first shown."""
STATIC = Path("src/handrail/surfaces/web/static")
VIEW = {"width": 1440, "height": 900}
BOX, COUNT = ".graph-frame .box", "#top .number"
"""Where a plan is seen, and where its count of finished tasks."""
WATCH_PAINT = f"""
window.painted = new Promise((done) => {{
  const look = () => document.querySelector({BOX!r})
    ? requestAnimationFrame(() => done(performance.now()))
    : requestAnimationFrame(look);
  requestAnimationFrame(look);
}});
"""
WATCH_COUNT = """
(wanted) => new Promise((done) => {
  const node = document.querySelector("#top");
  const look = () => {
    const shown = node.querySelector(".number");
    if (shown === null || !shown.textContent.startsWith(wanted + "/")) return false;
    requestAnimationFrame(() => done(performance.timeOrigin + performance.now()));
    return true;
  };
  if (look()) return;
  const watch = new MutationObserver(() => { if (look()) watch.disconnect(); });
  watch.observe(node, { subtree: true, childList: true, characterData: true });
})
"""


class Times(NamedTuple):
    """Milliseconds of ours and of the floor, in the same rounds."""

    ours: list[float]
    floor: list[float]

    def row(self, name: str) -> str:
        ours, floor = statistics.median(self.ours), statistics.median(self.floor)
        return f"| {name} | {ours:,.0f} ms | {floor:,.0f} ms | {ours / floor:.2f} |"


def now_ms() -> float:
    return time.time_ns() / 1e6


# -- a static copy ----------------------------------------------------------------------------------------------------


class _Files(http.server.ThreadingHTTPServer):
    """A file server for a handful of files in memory."""

    def __init__(self, files: dict[str, tuple[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Giving)
        self.files = files


class _Giving(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, _Files)
        kind, data = self.server.files.get(self.path, ("text/plain", b""))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@contextmanager
def copied(page: Any) -> Iterator[str]:
    """The address of a copy of what a page shows now: its elements and style, without its scripts."""
    html = page.evaluate(
        """() => {
          const copy = document.documentElement.cloneNode(true);
          copy.querySelectorAll("script, link[rel=modulepreload]").forEach((node) => node.remove());
          return "<!doctype html>" + copy.outerHTML;
        }"""
    )
    files = {"/": ("text/html; charset=utf-8", html.encode())}
    files |= {f"/{sheet.name}": ("text/css", sheet.read_bytes()) for sheet in STATIC.glob("*.css")}
    server = _Files(files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- paint ------------------------------------------------------------------------------------------------------------


def painted(browser: Any, address: str, cookies: Any) -> float:
    """Milliseconds to the first frame with the plan in it, in a browser context that has seen nothing before."""
    context = browser.new_context(storage_state=cookies, viewport=VIEW)
    context.add_init_script(WATCH_PAINT)
    page = context.new_page()
    page.goto(address, wait_until="commit")
    taken = float(page.evaluate("window.painted"))
    context.close()
    return taken


def paint(browser: Any, up: Served, cookies: Any, facts: Facts, rounds: int) -> Times:
    address = f"{up.url}#/w/{facts.workflow}/graph"
    context = browser.new_context(storage_state=cookies, viewport=VIEW)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(BOX, timeout=PATIENCE_MS)
    times = Times([], [])
    with copied(page) as floor:
        context.close()
        for _ in range(rounds + 1):
            times.ours.append(painted(browser, address, cookies))
            times.floor.append(painted(browser, floor, None))
    return Times(times.ours[1:], times.floor[1:])  # the first of each warms the machine


# -- update -----------------------------------------------------------------------------------------------------------


class Reader(threading.Thread):
    """A plain reader of the feed: notes when each position arrived, and does nothing with it."""

    def __init__(self, url: str, cookies: Any) -> None:
        super().__init__(daemon=True)
        host = urlsplit(url)
        self._connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=PATIENCE_MS / 1000)
        cookie = "; ".join(f"{one['name']}={one['value']}" for one in cookies["cookies"])
        self._connection.request("GET", "/api/feed", headers={"cookie": cookie, "accept": "text/event-stream"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._came = threading.Condition()
        self._at: dict[int, float] = {}

    def run(self) -> None:
        try:
            for line in self._answer:
                if line.startswith(b"data:"):
                    at, document = now_ms(), msgspec.json.decode(line[5:])
                    with self._came:
                        self._at[int(document["position"])] = at
                        self._came.notify_all()
        except (OSError, ValueError, AttributeError):  # closed at the end
            return

    def heard(self, position: int) -> float:
        """When the first news at this position or a later one was there."""
        with self._came:
            found = self._came.wait_for(lambda: any(at >= position for at in self._at), PATIENCE_MS / 1000)
            assert found, "the feed is silent"
            return min(when for at, when in self._at.items() if at >= position)


def update(browser: Any, up: Served, cookies: Any, facts: Facts, rounds: int) -> Times:
    """A task is completed, again and again; when does the count on top say so, and when is the event there at all?"""
    context = browser.new_context(storage_state=cookies, viewport=VIEW)
    page = context.new_page()
    page.goto(f"{up.url}#/w/{facts.workflow}/graph")
    page.wait_for_selector(BOX, timeout=PATIENCE_MS)
    reader = Reader(up.url, cookies)
    reader.start()
    stage = Stage(facts.project, facts.home, minutes=0)
    agent = Agent(stage, "bench", "codex")
    finished = int(page.inner_text(COUNT).partition("/")[0].replace(",", ""))
    times = Times([], [])
    for number in range(rounds * UPDATES):
        task = agent.call("workflow_next_tasks", workflow_id=facts.workflow, limit=1)["tasks"][0]["id"]
        agent.call("task_update_status", id=task, status="in_progress")
        finished += 1
        page.evaluate(f"(wanted) => {{ window.seen = ({WATCH_COUNT})(wanted); }}", str(finished))
        agent.call("task_update_status", id=task, status="completed", outcome="Done")
        committed, position = now_ms(), stage.handrail.ledger.position()
        shown = float(page.evaluate("window.seen"))
        if number:  # the first warms both up
            times.ours.append(max(0.1, shown - committed))
            times.floor.append(max(0.1, reader.heard(position) - committed))
    stage.close()
    context.close()
    return times


# -- all of it --------------------------------------------------------------------------------------------------------


def run(sizes: Sequence[int], rounds: int) -> None:
    from playwright.sync_api import sync_playwright

    print(f"Scripts: {weight(SCRIPTS):,} bytes in all; before a first screen, of {JS_BYTES:,}:")
    for screen in FIRST_SCREENS:
        verdict = "within" if first_paint(screen) <= JS_BYTES else "OVER"
        print(f"{screen}: {first_paint(screen):,}, {verdict} the budget.")
    print(flush=True)
    print("| | page | floor | ratio |\n|---|---|---|---|", flush=True)
    as_root = ("--no-sandbox",) if os.name == "posix" and os.geteuid() == 0 else ()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=[*QUIET, *as_root])
        for size in sizes:
            facts = build_many(Path(folder) / str(size), size)
            with serving(facts.project, facts.home) as up:
                context = browser.new_context()
                context.new_page().goto(up.link)
                cookies = context.storage_state()
                context.close()
                print(paint(browser, up, cookies, facts, rounds).row(f"first paint, {size:,} tasks"), flush=True)
                print(update(browser, up, cookies, facts, rounds).row(f"update, {size:,} tasks"), flush=True)
        browser.close()

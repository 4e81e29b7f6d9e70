"""Every link resolves, to its heading too; no page is out of reach; pages stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.surfaces import docs
from handrail.surfaces.schemas import kind_of
from tests.docs.pages import DOCS, PAGES, ROOT, anchors, blocks_and_prose, links, read, relative

LINKED = [*PAGES, ROOT / "CHANGELOG.md"]
PAGE_LINES = 200
GENERATED_LINES = 250
LONG = {
    "docs/benchmarks.md": "measurements, one section a subject",
    "docs/clients.md": "a recording of each client at work ends it",
    "docs/commands.md": "generated: every command in one place",
    "docs/guides.md": "the whole format in one place",
    "docs/security.md": "every promise with its test in one table",
}
"""Pages that are longer, and why."""
OUTSIDE = {
    "docs/comparison.md": 60,
}
"""How many links to the outside a page may have: its sources. Others have none."""


def problems_of(page: Path, text: str) -> list[str]:
    problems = []
    for target in links(blocks_and_prose(page, text)[1]):
        if re.match(r"[a-z]+:", target):
            if not target.startswith("https://"):
                problems.append(f"{target} is not https")
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if path != page and not path.exists():
            problems.append(f"{target} is not there")
        elif anchor and anchor not in anchors(text if path == page else path.read_text(encoding="utf-8")):
            problems.append(f"{target}: no such heading")
    return problems


@pytest.mark.parametrize("page", LINKED, ids=relative)
def test_every_link_resolves(page: Path) -> None:
    assert problems_of(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["[a](nothing.md)", "![a](nothing.png)", "[a](tools.md#nothing)", "# A\n[a](#b)", "[a](http://example.org)"]
)
def test_a_link_that_leads_nowhere_is_noticed(text: str) -> None:
    assert problems_of(DOCS / "made-up.md", text)


@pytest.mark.parametrize(
    "text",
    [
        "[a](tools.md#guide)",
        "# A b, `c_d`\n[a](#a-b-c_d)",
        "`[a](nothing.md)`",
        "```\n[a](nothing.md)\n```",
        "# A\n# A\n[x](#a-1)",
    ],
)
def test_a_link_that_leads_somewhere_passes(text: str) -> None:
    assert problems_of(DOCS / "made-up.md", text) == []


@pytest.mark.parametrize("page", LINKED, ids=relative)
def test_few_links_lead_outside(page: Path) -> None:
    outside = {target for target in links(read(page)[1]) if target.startswith("https://")}
    assert len(outside) <= OUTSIDE.get(relative(page), 0), sorted(outside)


def reached_from(begin: list[Path]) -> set[Path]:
    reached: set[Path] = set()
    waiting = list(begin)
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        waiting += [
            (page.parent / target.partition("#")[0]).resolve()
            for target in links(read(page)[1])
            if not re.match(r"[a-z]+:", target) and not target.startswith("#")
        ]
    return reached


def test_no_page_is_out_of_reach() -> None:
    reached = reached_from([ROOT / "README.md", DOCS / "README.md"])
    assert sorted(relative(page) for page in PAGES if page not in reached) == []


def test_the_index_names_every_page_that_is_not_of_a_toolset() -> None:
    named = {(DOCS / target).resolve() for target in links(read(DOCS / "README.md")[1])}
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name != "tools" and page != DOCS / "README.md"}
    assert sorted(relative(page) for page in pages - named) == []


def test_a_page_out_of_reach_would_be_noticed() -> None:
    assert reached_from([DOCS / "states.md"]) == {DOCS / "states.md"}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=relative)
def test_a_page_is_short(page: Path) -> None:
    most = GENERATED_LINES if str(page.relative_to(DOCS)) in docs.PAGES else PAGE_LINES
    assert len(page.read_text(encoding="utf-8").splitlines()) <= most or relative(page) in LONG


def test_there_is_a_page_for_every_toolset_and_no_other() -> None:
    assert {f"tools/{page.name}" for page in (DOCS / "tools").glob("*.md")} == {
        name for name in docs.PAGES if name.startswith("tools/")
    }


def test_an_argument_is_shown_with_what_it_may_be() -> None:
    assert kind_of({"enum": ["a", "b"]}) == "one of `a`, `b`"
    assert kind_of({"type": "array", "items": {"enum": ["a"]}}) == "list of one of `a`"
    assert kind_of({"type": "integer", "minimum": 1, "maximum": 9, "default": 3}) == "integer, 1 to 9, else `3`"
    assert kind_of({"type": "object", "properties": {"a": {}, "b": {}}}) == "object of `a`, `b`"
    assert kind_of({"anyOf": [{"type": "string"}, {"type": "integer"}]}) == "string or integer"

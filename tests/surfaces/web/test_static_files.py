"""The page's own files: exact names, known kinds, nothing else of the disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.surfaces.web.static_files import FOLDER, SAFEGUARDS, StaticFiles, is_unchanged
from tests.page.weights import (
    FIRST_SCREENS,
    IMPORTED,
    IMPORTED_LATER,
    MARKUP,
    SCRIPTS,
    begun,
    first_paint,
    needed_by,
    shell,
    weight,
)


@pytest.fixture
def files(tmp_path: Path) -> StaticFiles:
    (tmp_path / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (tmp_path / "app.js").write_text("export const a = 1", encoding="utf-8")
    (tmp_path / "base.css").write_text(":root {}", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not for everybody", encoding="utf-8")
    (tmp_path / "secret.py").write_text("x", encoding="utf-8")
    (tmp_path / "folder.js").mkdir()
    return StaticFiles(tmp_path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/static/app.js", "text/javascript; charset=utf-8"),
        ("/base.css", "text/css; charset=utf-8"),
    ],
)
def test_a_file_is_served_under_its_name(files: StaticFiles, path: str, kind: str) -> None:
    file = files.find(path)
    assert file is not None
    assert file.kind == kind


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/static",
        "/static/",
        "/notes.txt",
        "/secret.py",
        "/folder.js",
        "/APP.JS",
        "/app.js/",
        "//app.js",
        "/./app.js",
        "/static/../app.js",
        "/../web/app.py",
        "/static/static/app.js",
        "app.js",
        "/app.js\0",
        "/app.js%00",
    ],
)
def test_no_other_path_finds_anything(files: StaticFiles, path: str) -> None:
    assert files.find(path) is None


def test_what_changes_on_disk_later_is_not_looked_at(files: StaticFiles, tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("changed", encoding="utf-8")
    (tmp_path / "late.js").write_text("late", encoding="utf-8")
    found = files.find("/app.js")
    assert found is not None
    assert found.data == b"export const a = 1"
    assert files.find("/late.js") is None


def test_a_browser_that_has_the_file_is_told_so(files: StaticFiles) -> None:
    one, other = files.find("/app.js"), files.find("/base.css")
    assert one is not None
    assert other is not None
    for tags in (one.etag, f"W/{one.etag}", f'"x", {one.etag}', "*"):
        assert is_unchanged(one, tags)
    for tags in ("", '"x"', other.etag):
        assert not is_unchanged(one, tags)


def test_the_policy_lets_no_foreign_script_style_frame_or_form_in() -> None:
    policy = dict(SAFEGUARDS)[b"content-security-policy"].decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == rules["trusted-types"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy


def test_the_page_itself_keeps_to_that_policy() -> None:
    """Neither a script nor a style within the markup, and nothing from elsewhere: the browser would refuse it."""
    for file in sorted(FOLDER.glob("*.html")):
        text = file.read_text(encoding="utf-8")
        for banned in (" style=", "<style", " onclick=", " onload=", "://", "javascript:"):
            assert banned not in text.replace("http://www.w3.org/", ""), f"{file.name}: {banned}"
        assert "<script>" not in text


# -- how much of it there is ------------------------------------------------------------------------------------------

FIRST_PAINT_BYTES = 60_000
"""Scripts, as they are, that a browser needs before it shows a screen for the first time."""
ALL_BYTES = 165_000
"""All scripts together. A ceiling at what there is: it goes down, never up without a reason."""
LONGEST = 300


@pytest.mark.parametrize("screen", FIRST_SCREENS)
def test_a_first_screen_needs_few_scripts(screen: str) -> None:
    needed = shell() | needed_by([screen])
    assert {"app.js", "dom.js", "live.js", screen} <= needed, "imports are followed"
    assert first_paint(screen) <= FIRST_PAINT_BYTES, {name: weight([name]) for name in needed}


def test_all_scripts_together_stay_below_their_ceiling() -> None:
    assert weight(SCRIPTS) <= ALL_BYTES
    assert [name for name, text in SCRIPTS.items() if len(text.splitlines()) > LONGEST] == []


def test_what_the_page_loads_ahead_is_what_it_needs() -> None:
    """A preload of what nobody imports is a waste, and one that is missing a step more before the first paint."""
    preloaded = set(re.findall(r'rel="modulepreload" href="(\w+\.js)"', MARKUP))
    assert preloaded == shell() - begun()
    for screen, first in (("graph", "graph.js"), ("home", "home.js")):
        named = re.search(rf'\["?{screen}"[^\]]*\]|push\("{screen}"[^)]*\)', SCRIPTS["ahead.js"])
        assert named is not None
        ahead = {f"{name}.js" for name in re.findall(r'"(\w+)"', named.group())}
        assert ahead == needed_by([first]) - shell()


def test_every_script_that_is_imported_is_there_and_every_one_is_used() -> None:
    named = {name for text in SCRIPTS.values() for name in (*IMPORTED.findall(text), *IMPORTED_LATER.findall(text))}
    assert named <= set(SCRIPTS)
    tabs = set(re.findall(r"(\w+): \"[A-Z]", SCRIPTS["app.js"]))  # screens are imported by the name of their tab
    by_tab = {f"{tab}.js" for tab in tabs} | {"lists.js"}
    assert set(SCRIPTS) - named - shell() <= by_tab

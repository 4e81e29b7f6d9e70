"""HTML built from parts: whatever is not made here is text, and text stays text. No template, no string that is trusted
because somebody remembered to escape it.

The look of a report: one sheet, light and dark, for a screen and for paper.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

_KEPT = frozenset("\n\t")
_EMPTY = frozenset(("meta", "br", "rect", "path", "line", "circle", "polyline"))
"""Elements that hold nothing."""


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


Part = str | Iterable["Part"] | None
"""Text, markup, several of them, or nothing."""


def readable(text: str) -> str:
    """A text without letters that cannot be seen: those could turn a line around or end what they stand in."""
    return "".join(letter if letter.isprintable() or letter in _KEPT else " " for letter in text)


def text(value: str) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(readable(value), quote=True))


def joined(parts: Part) -> Html:
    if parts is None:
        return Html("")
    if isinstance(parts, str):
        return text(parts)
    return Html("".join(joined(part) for part in parts))


def tag(name: str, /, *parts: Part, **attributes: str | float | bool | None) -> Html:
    """One element. A trailing `_` of an attribute's name is left out, another `_` is a hyphen; None and False leave the
    attribute out, True writes its name alone."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY:
        return Html(f"<{name}{written}>" if name in ("meta", "br") else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(parts)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(readable(shown), quote=True)}"'


SHEET = """
:root{color-scheme:light dark;--bg:#fff;--panel:#f6f7f9;--line:#d9dde3;--text:#1b2027;--muted:#586170;--accent:#2457c5;
--ok:#1a7f43;--run:#1f5fc4;--wait:#8f5b00;--bad:#c0262d;--idle:#5c6675;
--ok-soft:#e3f4e9;--run-soft:#e4edfc;--wait-soft:#fcf0d8;--bad-soft:#fde8e8;--idle-soft:#eceff3}
@media (prefers-color-scheme:dark){:root{--bg:#12151a;--panel:#1a1f26;--line:#323a45;--text:#e6e9ee;--muted:#9ba6b5;
--accent:#8ab0ff;--ok:#5fce8b;--run:#82b1ff;--wait:#f0b95a;--bad:#ff8b8b;--idle:#a3adba;
--ok-soft:#16301f;--run-soft:#172844;--wait-soft:#37290f;--bad-soft:#421c1f;--idle-soft:#252b34}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1080px;padding:32px 20px 64px;background:var(--bg);color:var(--text);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:24px;line-height:1.25;margin:0 0 8px;overflow-wrap:anywhere}
h2{font-size:16px;margin:36px 0 10px;padding-bottom:6px;border-bottom:1px solid var(--line)}
p{margin:6px 0;overflow-wrap:anywhere}
.muted{color:var(--muted)}
.mono,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12.5px}
.quote{white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0;padding:8px 12px;border-left:3px solid var(--line);
background:var(--panel);border-radius:0 6px 6px 0}
.pill{display:inline-block;padding:1px 8px;border-radius:999px;white-space:nowrap;font-size:12px;font-weight:600;
color:var(--state);background:var(--state-soft)}
.s-completed{--state:var(--ok);--state-soft:var(--ok-soft)}
.s-in_progress,.s-planning{--state:var(--run);--state-soft:var(--run-soft)}
.s-paused,.s-waiting,.s-open{--state:var(--wait);--state-soft:var(--wait-soft)}
.s-failed{--state:var(--bad);--state-soft:var(--bad-soft)}
.s-ready,.s-pending,.s-blocked,.s-skipped,.s-abandoned,.s-answered,.s-withdrawn{--state:var(--idle);--state-soft:var(--idle-soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:0}
.facts div{padding:10px 12px;background:var(--panel);border:1px solid var(--line);border-radius:6px}
.facts dt{color:var(--muted);font-size:12px}
.facts dd{margin:0;font-size:18px;font-weight:600}
.facts dd+dd{font-size:12px;font-weight:400;color:var(--muted)}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:6px;background:var(--panel);padding:12px}
.plan svg{max-width:100%;height:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:6px 10px 6px 0;border-bottom:1px solid var(--line)}
th{color:var(--muted);font-size:12px;font-weight:600;white-space:nowrap}
td{overflow-wrap:anywhere;unicode-bidi:isolate}
td.number,th.number{text-align:right;padding-right:20px;font-variant-numeric:tabular-nums;white-space:nowrap}
td.when,td.who{white-space:nowrap}
td.who{max-width:180px;overflow:hidden;text-overflow:ellipsis}
.detail td{padding-top:0}
details{margin:0}
summary{cursor:pointer;color:var(--accent);font-size:12px}
ul{margin:4px 0;padding-left:18px}
li{overflow-wrap:anywhere}
svg{display:block}
svg text{fill:var(--text);font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
svg .small{font-size:11px;fill:var(--muted)}
svg .box{fill:var(--state-soft);stroke:var(--state);stroke-width:1}
svg .box.critical{stroke-width:2.5}
svg .edge{fill:none;stroke:var(--idle);stroke-width:1.2;opacity:.6}
svg .edge.critical{stroke:var(--accent);stroke-width:2;opacity:1}
svg .grid{stroke:var(--line);stroke-width:1}
svg .work{fill:var(--state)}
svg .queue{fill:var(--idle);opacity:.25}
svg .pause{fill:var(--wait);opacity:.45}
svg .person{fill:var(--wait)}
footer{margin-top:48px;color:var(--muted);font-size:12px}
@media print{body{max-width:none;padding:0;font-size:11px}.wide{overflow:visible;padding:4px}
.wide svg{max-width:100%;height:auto}
h2{break-after:avoid}tr,.facts div{break-inside:avoid}details>*{display:block}summary{display:none}}
@media (max-width:600px){body{padding:16px 12px 48px}th.wide-only,td.wide-only{display:none}}
"""

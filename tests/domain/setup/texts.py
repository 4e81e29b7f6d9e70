"""Configurations as people leave them, for property tests: comments, tabs, CRLF, commas at the end, no last newline."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

names = st.sampled_from(["mcpServers", "servers", "mcp", "hooks", "Stop", "other", "a b", "ü", "$schema", "//", '"'])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-999, 999),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text(max_size=6),
    st.sampled_from(["// no comment", "/* nor this */", "a,}", '"', "\\", "{"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
servers = st.dictionaries(st.sampled_from(["one", "two", "three"]), st.fixed_dictionaries({"command": st.text()}))
groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.fixed_dictionaries({"command": st.text(max_size=4)}), max_size=2)}),
    max_size=2,
)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """An object with servers and hooks of others in it, or not."""
    whole = dict(draw(st.dictionaries(names.filter(lambda name: name not in ("mcpServers", "hooks")), values)))
    if draw(st.booleans()):
        whole["mcpServers"] = draw(servers)
    if draw(st.booleans()):
        whole["hooks"] = draw(st.dictionaries(st.sampled_from(["Stop", "Notification"]), groups, max_size=2))
    return whole


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """A configuration written in somebody's own way."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["", "  ", "\t", "    "]))
    tidy = draw(st.booleans())
    bom = draw(st.sampled_from(["", "", "", "\ufeff"]))
    if tidy:
        text = json.dumps(draw(configurations()), indent=unit or None, ensure_ascii=False).replace("\n", end)
    else:
        text = _written(draw, draw(configurations()), end, unit, 0)
    return bom + text + draw(st.sampled_from(["", end, end + end, f" // done{end}", " /* done */"]))


def _gap(draw: st.DrawFn, end: str, unit: str, depth: int) -> str:
    return draw(
        st.sampled_from(
            [
                "",
                " ",
                end + unit * depth,
                f" // it's {{a}} comment,{end}{unit * depth}",
                f"/* a, {end} b */",
                end + end + unit,
            ]
        )
    )


def _written(draw: st.DrawFn, value: Any, end: str, unit: str, depth: int) -> str:
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    parts: list[str] = []
    inner = depth + 1
    for key in value:
        name = ""
        if isinstance(value, dict):
            name = json.dumps(key) + draw(st.sampled_from([":", ": ", " : "]))
        item = value[key] if isinstance(value, dict) else key
        parts.append(
            _gap(draw, end, unit, inner)
            + name
            + _written(draw, item, end, unit, inner)
            + draw(st.sampled_from(["", "", " ", f" // note{end}"]))
        )
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    text = ",".join(parts) + comma + _gap(draw, end, unit, depth)
    return f"{{{text}}}" if isinstance(value, dict) else f"[{text}]"


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """A TOML file with comments, tables and servers of others."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    top = st.sampled_from(
        ["# a comment", "", 'model = "x" # why', "\tcount = 3", "list = [", 'words = """', "dotted.key = true"]
    )
    lines = draw(st.lists(top, max_size=4, unique=True))
    closed = {"list = [": ['  "[mcp_servers.handrail]",', "]"], 'words = """': ["[mcp_servers.handrail]", '"""']}
    text: list[str] = []
    for line in lines:
        text += [line, *closed.get(line, [])]
    tables = ["[mcp_servers.other]", "[profiles.x]", "[[list_of]]", "  [spaced]"]
    for table in draw(st.lists(st.sampled_from(tables), unique=True, max_size=3)):
        text += [table, 'command = "c" # keep', *draw(st.lists(st.sampled_from(["", "# end"]), max_size=2))]
    return end.join(text) + draw(st.sampled_from(["", end, end * 2]))

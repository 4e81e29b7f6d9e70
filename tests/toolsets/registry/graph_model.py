"""Graphs as a plain reference has them: nested dictionaries, copied whole at every change. Written from what the tools
promise, not from `domain/graphs`; nothing here is fast, shared or kept.

A document is `{"name", "nodes": {id: {label, attributes}}, "edges": {id: {from, to, label, weight, attributes}},
"metadata"}`, in which what is empty is left out of nodes and edges.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

Doc = dict[str, Any]
Op = dict[str, Any]
GRAPH_INVALID, PATCH_FAILED = "GRAPH_INVALID", "PATCH_FAILED"


class Wrong(Exception):  # noqa: N818 - a refusal
    """What the reference refuses, by its code."""

    def __init__(self, code: str = GRAPH_INVALID) -> None:
        super().__init__(code)
        self.code = code


def same(one: Any, other: Any) -> bool:
    """Equal as JSON has it: true is not 1, and 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def tidy(member: Doc) -> Doc:
    """A node or an edge without what is empty."""
    return {name: value for name, value in member.items() if value not in ("", {}) and value is not None}


def by_ends(source: str, target: str, label: str = "") -> str:
    return f"{source}->{target}" + (f"#{label}" if label else "")


def shown(answer: Doc) -> Doc:
    """The document of a graph as tools and addresses show it."""
    nodes = {node["id"]: tidy({"label": node["label"], "attributes": node["attributes"]}) for node in answer["nodes"]}
    edges = {}
    for edge in answer["edges"]:
        key = edge.get("id") or by_ends(edge["from"], edge["to"], edge.get("label", ""))
        edges[key] = tidy({name: value for name, value in edge.items() if name != "id"})
    return {"name": answer["name"], "nodes": nodes, "edges": edges, "metadata": answer["metadata"]}


# -- changes ----------------------------------------------------------------------------------------------------------


def mutated(graph: Doc, operations: Iterable[Op], fixed: Iterable[str] = ()) -> Doc:
    """The graph after all changes. The nodes in `fixed` keep their ids."""
    work = copy.deepcopy(graph)
    for operation in operations:
        _change(work, operation, fixed)
    return work


def failing(graph: Doc, operations: Iterable[Op], fixed: Iterable[str] = ()) -> list[int]:
    """The numbers of those changes that cannot be done, when each is tried after those before it that can."""
    found = []
    for number, operation in enumerate(operations):
        try:
            graph = mutated(graph, [operation], fixed)
        except Wrong:
            found.append(number)
    return found


def _change(graph: Doc, op: Op, fixed: Iterable[str]) -> None:
    nodes, edges = graph["nodes"], graph["edges"]
    match op["op"]:
        case "add_node":
            _must(op["id"] not in nodes)
            nodes[op["id"]] = tidy({"label": op.get("label", ""), "attributes": dict(op.get("attributes", {}))})
        case "remove_node":
            _must(op["id"] in nodes)
            del nodes[op["id"]]
            graph["edges"] = {key: edge for key, edge in edges.items() if op["id"] not in (edge["from"], edge["to"])}
        case "rename_node":
            _rename(graph, op, fixed)
        case "add_edge":
            edge = tidy({name: op.get(name) for name in ("from", "to", "label")})
            _put_edge(graph, op.get("id") or by_ends(op["from"], op["to"], op.get("label", "")), edge)
        case "remove_edge":
            del edges[_meant(graph, op)]
        case "set_node_attribute":
            _must(op["id"] in nodes)
            _set(nodes[op["id"]], op["key"], op["value"])
        case "set_edge_attribute":
            edge = edges[_meant(graph, op)]
            if op["key"] == "weight":
                _must(op["value"] is None or (isinstance(op["value"], int | float) and op["value"] is not True))
                edge.pop("weight", None)
                edge.update(tidy({"weight": op["value"]}))
            else:
                _set(edge, op["key"], op["value"])
        case "patch_metadata":
            _must(not set(op.get("set", {})) & set(op.get("unset", ())))
            graph["metadata"].update(op.get("set", {}))
            for key in op.get("unset", ()):
                graph["metadata"].pop(key, None)
        case "rewrite":
            _rewrite(graph, op)


def _must(is_so: bool) -> None:
    if not is_so:
        raise Wrong


def _set(member: Doc, key: str, value: Any) -> None:
    attributes = {**member.get("attributes", {}), key: value}
    if value is None:
        del attributes[key]
    member.pop("attributes", None)
    if attributes:
        member["attributes"] = attributes


def _rename(graph: Doc, op: Op, fixed: Iterable[str]) -> None:
    old, new = op["id"], op.get("new_id") or op["id"]
    _must(old in graph["nodes"])
    _must(new == old or (new not in graph["nodes"] and old not in fixed))
    node = graph["nodes"][old]
    if op.get("label") is not None:
        node.pop("label", None)
        node.update(tidy({"label": op["label"]}))
    graph["nodes"] = {new if key == old else key: one for key, one in graph["nodes"].items()}
    edges = {}
    for key, edge in graph["edges"].items():
        ends = {name: new if edge[name] == old else edge[name] for name in ("from", "to")}
        named = key == by_ends(edge["from"], edge["to"], edge.get("label", ""))
        edges[by_ends(ends["from"], ends["to"], edge.get("label", "")) if named else key] = {**edge, **ends}
    graph["edges"] = edges


def _put_edge(graph: Doc, key: str, edge: Doc) -> None:
    _must(edge["from"] in graph["nodes"] and edge["to"] in graph["nodes"] and key not in graph["edges"])
    graph["edges"][key] = edge


def _meant(graph: Doc, op: Op) -> str:
    """The one edge that is named by its id, or by its ends and, where one is given, its label."""
    if op.get("id") is not None:
        _must(op["id"] in graph["edges"])
        return str(op["id"])
    fitting = [
        key
        for key, edge in graph["edges"].items()
        if (edge["from"], edge["to"]) == (op["from"], op["to"])
        and (not op.get("label") or edge.get("label", "") == op["label"])
    ]
    _must(len(fitting) == 1)
    return str(fitting[0])


def _rewrite(graph: Doc, op: Op) -> None:
    node, parts = op["node"], op.get("parts", [])
    _must(node in graph["nodes"])
    around = {key: edge for key, edge in graph["edges"].items() if node in (edge["from"], edge["to"])}
    into = [edge for edge in around.values() if edge["to"] == node]
    out = [edge for edge in around.values() if edge["from"] == node]
    for key in around:
        del graph["edges"][key]
    new: list[Doc] = []
    if op["rule"] == "reroute_avoid":
        _must(not parts and not op.get("edges"))
        new = [{**before, "to": after["to"]} for before in into for after in out]
    else:
        _must(bool(parts) and not (op["rule"] == "split_parallel" and op.get("edges")))
        del graph["nodes"][node]
        for part in parts:
            _change(graph, {"op": "add_node", **part}, ())
        inner = op.get("edges", [])
        for edge in inner:
            _must({edge["from"], edge["to"]} <= {part["id"] for part in parts})
            _change(graph, {"op": "add_edge", **edge}, ())
        firsts = [part["id"] for part in parts if part["id"] not in {edge["to"] for edge in inner}]
        lasts = [part["id"] for part in parts if part["id"] not in {edge["from"] for edge in inner}]
        new = [{**edge, "to": part} for part in firsts for edge in into]
        new += [{**edge, "from": part} for part in lasts for edge in out]
    for edge in new:
        ends = {edge["from"], edge["to"]}
        if len(ends) == 2 and ends <= graph["nodes"].keys():
            graph["edges"].setdefault(by_ends(edge["from"], edge["to"], edge.get("label", "")), edge)


# -- rules ------------------------------------------------------------------------------------------------------------


def broken(graph: Doc) -> set[str]:
    """The rules of its own metadata that a graph breaks."""
    said, edges = graph["metadata"], list(graph["edges"].values())
    found = set()
    if said.get("dag") is True and is_circular({(edge["from"], edge["to"]) for edge in edges}):
        found.add("dag")
    if said.get("require_labels") is True and any(not node.get("label") for node in graph["nodes"].values()):
        found.add("require_labels")
    for rule, end in (("max_in_degree", "to"), ("max_out_degree", "from")):
        most = said.get(rule)
        if most is not None and max(Counter(edge[end] for edge in edges).values(), default=0) > most:
            found.add(rule)
    return found


def is_circular(ways: set[tuple[str, str]]) -> bool:
    """Whether some way leads back: looked for by taking away all that lead to a dead end."""
    while ways:
        left = {(source, target) for source, target in ways if any(start == target for start, _ in ways)}
        if left == ways:
            return True
        ways = left
    return False


# -- patches ----------------------------------------------------------------------------------------------------------


def patched(graph: Doc, operations: Iterable[Op]) -> Doc:
    """What a JSON Patch makes of a document. Graphs have no arrays."""
    whole = {"": copy.deepcopy(graph)}
    for op in operations:
        way = ["", *_names(op["path"])]
        match op["op"]:
            case "add":
                _holder(whole, way)[way[-1]] = copy.deepcopy(op["value"])
            case "remove":
                _taken(whole, way)
            case "replace":
                _found(whole, way)
                _holder(whole, way)[way[-1]] = copy.deepcopy(op["value"])
            case "move":
                source = ["", *_names(op["from"])]
                if len(way) > len(source) and way[: len(source)] == source:
                    raise Wrong(PATCH_FAILED)
                moved = _taken(whole, source)
                _holder(whole, way)[way[-1]] = moved
            case "copy":
                _holder(whole, way)[way[-1]] = copy.deepcopy(_found(whole, ["", *_names(op["from"])]))
            case "test":
                if not same(_found(whole, way), op["value"]):
                    raise Wrong(PATCH_FAILED)
    return whole[""]


def _names(pointer: str) -> list[str]:
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


def _found(whole: Doc, way: list[str]) -> Any:
    here: Any = whole
    for name in way:
        if not isinstance(here, dict) or name not in here:
            raise Wrong(PATCH_FAILED)
        here = here[name]
    return here


def _holder(whole: Doc, way: list[str]) -> Doc:
    here = _found(whole, way[:-1])
    if not isinstance(here, dict):
        raise Wrong(PATCH_FAILED)
    return here


def _taken(whole: Doc, way: list[str]) -> Any:
    _found(whole, way)
    return _holder(whole, way).pop(way[-1])


def merged(value: Any, patch: Any) -> Any:
    """RFC 7386, as its own pseudocode has it."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(value) if isinstance(value, dict) else {}
    for name, member in patch.items():
        if member is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), member)
    return result


_SCALARS: Callable[[Any], bool] = lambda said: (  # noqa: E731 - a shape among shapes
    isinstance(said, dict) and all(isinstance(value, str | int | float) for value in said.values())
)
_MEMBER: dict[str, Callable[[Any], bool]] = {"label": lambda value: isinstance(value, str), "attributes": _SCALARS}
_EDGE: dict[str, Callable[[Any], bool]] = {
    **_MEMBER,
    "from": lambda value: isinstance(value, str),
    "to": lambda value: isinstance(value, str),
    "weight": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def read(document: Any) -> Doc:
    """The graph that a patched document describes, if it describes one."""
    whole: Doc = {"name": "", "nodes": {}, "edges": {}, "metadata": {}}
    _is(isinstance(document, dict) and document.keys() <= whole.keys())
    whole |= document
    _is(isinstance(whole["name"], str) and _SCALARS(whole["metadata"]))
    for part, shape, needed in (("nodes", _MEMBER, set()), ("edges", _EDGE, {"from", "to"})):
        members = whole[part]
        _is(isinstance(members, dict))
        for member in members.values():
            _is(isinstance(member, dict) and needed <= member.keys() <= shape.keys())
            _is(all(shape[name](value) for name, value in member.items()))
    _must(all({edge["from"], edge["to"]} <= whole["nodes"].keys() for edge in whole["edges"].values()))
    for part in ("nodes", "edges"):
        whole[part] = {key: tidy(member) for key, member in whole[part].items()}
    return whole


def _is(shape: bool) -> None:
    if not shape:
        raise Wrong(PATCH_FAILED)

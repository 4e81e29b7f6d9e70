"""What agents try with graphs: changes and patches that mostly fit what is there, and sometimes do not."""

from __future__ import annotations

import contextlib
from typing import Any

import hypothesis.strategies as st

from tests.toolsets.registry.graph_model import Doc, Op, Wrong, by_ends, mutated

VALUES: st.SearchStrategy[Any] = st.sampled_from([1, True, 1.0, "x", 2.5])
LABELS = ("a", "b", "c", "d", "e", "f")
NEW = ("n0", "n1", "n2")


@st.composite
def changes(draw: st.DrawFn, graph: Doc, *, plan: bool, most: int = 3) -> list[Op]:
    """Changes, one after the other, each drawn for what those before it make of the graph."""
    drawn = []
    for _ in range(draw(st.integers(1, most))):
        drawn.append(draw(_change(graph, plan)))
        with contextlib.suppress(Wrong):
            graph = mutated(graph, drawn[-1:])
    return drawn


@st.composite
def _change(draw: st.DrawFn, graph: Doc, plan: bool) -> Op:
    nodes = st.sampled_from([*graph["nodes"], *graph["nodes"], *graph["nodes"], "n0"])
    edge = st.sampled_from(sorted(graph["edges"])) if graph["edges"] else st.just("none")
    label = _free(graph)
    made = draw(
        st.sampled_from(
            [
                *("add_node", "add_edge", "add_edge", "remove_edge", "remove_node", "rename_node", "attribute"),
                *(("part_of",) if plan else ("edge_attribute", "own_edge")),
                *("metadata", "rewrite"),
            ]
        )
    )
    match made:
        case "add_node":
            known = {"sequence": draw(st.integers(0, 3))} if plan else {"k": draw(VALUES)}
            return {"op": made, "id": draw(st.sampled_from(NEW)), "label": draw(_free(graph)), "attributes": known}
        case "add_edge":
            return {"op": made, "from": draw(nodes), "to": draw(nodes)}
        case "part_of":
            return {"op": "add_edge", "from": draw(nodes), "to": draw(nodes), "label": "part_of"}
        case "own_edge":
            own = draw(st.sampled_from(["e1", "e2"]))
            return {"op": "add_edge", "id": own, "from": draw(nodes), "to": draw(nodes), "label": own}
        case "remove_edge":
            key = draw(edge)
            found = graph["edges"].get(key)
            if found is None or draw(st.booleans()):
                return {"op": made, "id": key}
            return {"op": made, "from": found["from"], "to": found["to"], "label": found.get("label", "")}
        case "remove_node":
            return {"op": made, "id": draw(nodes)}
        case "rename_node":
            anew = {"new_id": draw(st.sampled_from(NEW))} if draw(st.integers(0, 3)) == 0 else {}
            return {"op": made, "id": draw(nodes), "label": draw(label), **anew}
        case "attribute":
            return {"op": "set_node_attribute", "id": draw(nodes), **draw(_attribute(plan))}
        case "edge_attribute":
            name = draw(st.sampled_from(["weight", "k"]))
            value = draw(st.sampled_from([1, 2.5, None, True]))
            return {"op": "set_edge_attribute", "id": draw(edge), "key": name, "value": value}
        case "metadata":
            return draw(_metadata(plan))
        case _:
            return draw(_rewrite(graph, plan))


def _free(graph: Doc) -> st.SearchStrategy[str]:
    """A label, mostly one that nothing has."""
    taken = {node.get("label") for node in graph["nodes"].values()}
    free = [label for label in (*LABELS, "g", "h", "i") if label not in taken]
    return st.sampled_from([*free, *free, *LABELS])


def _attribute(plan: bool) -> st.SearchStrategy[Op]:
    if not plan:
        return st.builds(lambda key, value: {"key": key, "value": value}, st.sampled_from("kl"), VALUES | st.none())
    known = [("priority", 0), ("priority", 1), ("priority", None), ("description", "Do it"), ("description", None)]
    known += [("sequence", 2), ("sequence", None), ("status", "done"), ("colour", "red"), ("priority", 5000)]
    return st.sampled_from([{"key": key, "value": value} for key, value in known])


def _metadata(plan: bool) -> st.SearchStrategy[Op]:
    said: list[Op] = [{"set": {"dag": True}}, {"unset": ["dag"]}]
    if not plan:
        said += [{"set": {"max_in_degree": 1}}, {"unset": ["max_in_degree", "require_labels"]}]
        said += [{"set": {"max_out_degree": 2, "require_labels": True}}, {"set": {"dag": True}, "unset": ["dag"]}]
    return st.sampled_from([{"op": "patch_metadata", **one} for one in said])


@st.composite
def _rewrite(draw: st.DrawFn, graph: Doc, plan: bool) -> Op:
    rule = draw(st.sampled_from(["split_parallel", "inline_subgraph", "reroute_avoid"]))
    op: Op = {"op": "rewrite", "rule": rule, "node": draw(st.sampled_from([*graph["nodes"], "n0"]))}
    if rule != "reroute_avoid" or draw(st.integers(0, 4)) == 0:
        said = {"attributes": {"sequence": 1}} if plan else {}
        op["parts"] = [{"id": key, "label": label, **said} for key, label in zip(NEW[1:], ("e", "f"), strict=True)]
    if rule == "inline_subgraph":
        op["edges"] = [{"from": "n1", "to": "n2"}]
    return op


@st.composite
def patches(draw: st.DrawFn, graph: Doc, *, plan: bool) -> list[Op]:
    """A JSON Patch, RFC 6902."""
    return [draw(_patch(graph, plan)) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def _patch(draw: st.DrawFn, graph: Doc, plan: bool) -> Op:
    node = f"/nodes/{draw(st.sampled_from([*graph['nodes'], 'n0']))}"
    fresh = f"/nodes/{draw(st.sampled_from(NEW))}"
    source, target = (
        draw(st.sampled_from(sorted(graph["nodes"]) or ["n0"])),
        draw(st.sampled_from([*graph["nodes"], "n0"])),
    )
    way = f"/edges/{draw(st.sampled_from(sorted(graph['edges']) or ['none']))}"
    label = draw(_free(graph))
    name, known = ("sequence", 3) if plan else ("k", draw(VALUES))
    forms: list[Op] = [
        {"op": "add", "path": fresh, "value": {"label": label, "attributes": {name: known}}},
        {"op": "add", "path": f"/edges/{by_ends(source, target)}", "value": {"from": source, "to": target}},
        {"op": "add", "path": f"{node}/attributes/{name}", "value": known},
        {"op": "replace", "path": f"{node}/label", "value": label},
        {"op": "remove", "path": way},
        {"op": "remove", "path": node},
        {"op": "remove", "path": f"{node}/label"},
        {"op": "move", "from": node, "path": fresh},
        {"op": "copy", "from": f"{node}/label", "path": f"{fresh}/label"},
        {"op": "test", "path": f"{node}/label", "value": label},
        {"op": "replace", "path": "/metadata", "value": {}}
        if not plan
        else {"op": "test", "path": "/nodes/n9", "value": 1},
        {"op": "add", "path": "/metadata/dag", "value": True},
        {"op": "add", "path": fresh, "value": {"labels": label}},
        {"op": "replace", "path": f"{node}/attributes/{name}", "value": None},
        {"op": "remove", "path": f"{way}/from"},
    ]
    return draw(st.sampled_from(forms))


@st.composite
def merges(draw: st.DrawFn, graph: Doc, *, plan: bool) -> Doc:
    """A merge patch, RFC 7386."""
    node = draw(st.sampled_from([*graph["nodes"], *NEW]))
    source, target = draw(st.sampled_from([*graph["nodes"], "n0"])), draw(st.sampled_from([*graph["nodes"], "n0"]))
    name, known = ("sequence", 3) if plan else ("k", draw(VALUES))
    label = draw(_free(graph))
    edges = [{by_ends(source, target): {"from": source, "to": target}}, {by_ends(source, target): None}, {}]
    nodes: list[Doc] = [
        {node: {"label": label}},
        {node: {"attributes": {name: known}}},
        {node: {"label": label, "attributes": {name: known, "l": None}}},
        {node: None},
        {},
    ]
    patch: Doc = {"nodes": draw(st.sampled_from(nodes)), "edges": draw(st.sampled_from(edges))}
    if draw(st.integers(0, 5)) == 0:
        patch |= draw(st.sampled_from([{"metadata": {"dag": None}}, {"nodes": 7}, {"more": {}}]))
    return patch

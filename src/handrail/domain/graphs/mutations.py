"""Changes to a graph, applied one after the other: each reports what it did, and whether anything changed. Pure.

If one change cannot be made, all are refused; the given graph is never modified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from handrail.domain.graphs.graph import Edge, Graph, Label, Node, NodeId, Scalar, check_sound, edge_id
from handrail.kernel.errors import GraphInvalid

MOST_OPERATIONS = 200
Name = Annotated[str, Meta(min_length=1, max_length=200)]
EdgeKey = Annotated[str, Meta(min_length=1, max_length=1000)]


class Applied(msgspec.Struct, frozen=True):
    """A change that was applied."""

    op: str
    description: str
    changed: bool


class Mutated(NamedTuple):
    """The graph after all changes, and what each did."""

    graph: Graph
    applied: list[Applied]


class _Op(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    """One change."""


class AddNode(_Op, frozen=True, kw_only=True, tag="add_node"):
    id: NodeId
    label: Label = ""
    attributes: dict[str, Scalar] = {}


class RemoveNode(_Op, frozen=True, kw_only=True, tag="remove_node"):
    """Removes the node, and every edge from and to it."""

    id: NodeId


class RenameNode(_Op, frozen=True, kw_only=True, tag="rename_node"):
    """Another label, another id, or both. Edges follow a new id."""

    id: NodeId
    new_id: NodeId | None = None
    label: Label | None = None


class AddEdge(_Op, frozen=True, kw_only=True, tag="add_edge", rename={"source": "from", "target": "to"}):
    source: NodeId
    target: NodeId
    id: EdgeKey | None = None
    label: Label = ""
    weight: float | None = None
    attributes: dict[str, Scalar] = {}


class RemoveEdge(_Op, frozen=True, kw_only=True, tag="remove_edge", rename={"source": "from", "target": "to"}):
    """By its id, or by its ends and label."""

    id: EdgeKey | None = None
    source: NodeId | None = None
    target: NodeId | None = None
    label: Label = ""


class SetNodeAttribute(_Op, frozen=True, kw_only=True, tag="set_node_attribute"):
    """null removes the attribute."""

    id: NodeId
    key: Name
    value: Scalar | None


class SetEdgeAttribute(
    _Op, frozen=True, kw_only=True, tag="set_edge_attribute", rename={"source": "from", "target": "to"}
):
    """null removes the attribute; the key `weight` is the edge's weight."""

    key: Name
    value: Scalar | None
    id: EdgeKey | None = None
    source: NodeId | None = None
    target: NodeId | None = None
    label: Label = ""


class PatchMetadata(_Op, frozen=True, kw_only=True, tag="patch_metadata"):
    set: dict[Name, Scalar] = {}
    unset: list[Name] = []


class ReplacingNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the nodes that replace another."""

    id: NodeId
    label: Label = ""
    attributes: dict[str, Scalar] = {}


class InnerEdge(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """An edge between two parts."""

    source: NodeId
    target: NodeId
    label: Label = ""


class Rewrite(_Op, frozen=True, kw_only=True, tag="rewrite"):
    """Several changes that belong together.

    split_parallel: `parts` replace `node` side by side. inline_subgraph: `parts`, with `edges` between them, replace
    it; edges into it lead to their first nodes, and edges out of it come from their last ones. reroute_avoid: paths
    bypass `node`, which stays but has no edges.
    """

    rule: Annotated[str, Meta(pattern="^(split_parallel|inline_subgraph|reroute_avoid)$")]
    node: NodeId
    parts: list[ReplacingNode] = []
    edges: list[InnerEdge] = []


Mutation = (
    AddNode
    | RemoveNode
    | RenameNode
    | AddEdge
    | RemoveEdge
    | SetNodeAttribute
    | SetEdgeAttribute
    | PatchMetadata
    | Rewrite
)


msgspec.json.Decoder(Mutation)  # makes the type known to msgspec before several threads convert


def mutation_from(document: Any) -> Mutation:
    """The change that an object describes. Raises GraphInvalid if it describes none."""
    try:
        read: Mutation = msgspec.convert(document, Mutation)
    except msgspec.ValidationError as wrong:
        named = document.get("op") if isinstance(document, dict) else None
        hint = _FORMS.get(named, "") if isinstance(named, str) else ""
        raise GraphInvalid(
            f"this is no change: {wrong}", hint=hint or f"op is one of {', '.join(_FORMS)}", rule="operation"
        ) from None
    return read


_FORMS = {
    "add_node": "add_node {id, label, attributes}",
    "remove_node": "remove_node {id}",
    "rename_node": "rename_node {id, label, new_id}",
    "add_edge": "add_edge {from, to, label, id, weight, attributes}",
    "remove_edge": "remove_edge {from, to, label}, or {id}",
    "set_node_attribute": "set_node_attribute {id, key, value}; null takes it away",
    "set_edge_attribute": "set_edge_attribute {from, to, key, value}, or {id, key, value}; null takes it away",
    "patch_metadata": "patch_metadata {set, unset}",
    "rewrite": "rewrite {rule: split_parallel | inline_subgraph | reroute_avoid, node, parts, edges}",
}
"""The form of each change, for hints."""


def mutate(graph: Graph, mutations: Sequence[Mutation]) -> Mutated:
    """The graph after these changes, in order. Raises GraphInvalid, naming the change that cannot be made."""
    draft = _Draft(graph)
    applied = []
    for index, mutation in enumerate(mutations):
        name = type(mutation).__struct_config__.tag
        try:
            description, changed = _DOES[type(mutation)](draft, mutation)
        except GraphInvalid as refusal:
            raise GraphInvalid(
                f"operation {index} ({name}): {refusal.message}",
                hint=refusal.hint,
                **{**refusal.details, "index": index, "op": name},
            ) from None
        applied.append(Applied(str(name), description, changed))
    result = draft.graph()
    if result != graph:
        check_sound(result)
    return Mutated(result, applied)


def failures_among(graph: Graph, mutations: Mapping[int, Mutation]) -> dict[int, GraphInvalid]:
    """The changes that cannot be made, by number. Each is tried on top of the earlier ones that can."""
    failed: dict[int, GraphInvalid] = {}
    done: list[Mutation] = []
    draft = _Draft(graph)
    for number, mutation in mutations.items():
        try:
            _DOES[type(mutation)](draft, mutation)
        except GraphInvalid as refusal:
            failed[number] = refusal
            draft = _Draft(graph)  # the failed change may have been made in part
            for one in done:
                _DOES[type(one)](draft, one)
        else:
            done.append(mutation)
    return failed


Done = tuple[str, bool]
"""What a change did, in words, and whether anything changed."""


class _Draft:
    """A graph being changed, with its edges indexed by their ends."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.nodes = dict(graph.nodes)
        self.edges = dict(graph.edges)
        self.metadata = dict(graph.metadata)
        self._ends: dict[str, dict[str, None]] | None = None

    def graph(self) -> Graph:
        return Graph(name=self._graph.name, nodes=self.nodes, edges=self.edges, metadata=self.metadata)

    def node(self, key: str) -> Node:
        found = self.nodes.get(key)
        if found is None:
            raise GraphInvalid(f"there is no node {key}", hint="add it first, or name one that is there", node=key)
        return found

    def edge(self, op: RemoveEdge | SetEdgeAttribute) -> str:
        """The id of the edge that a change refers to."""
        key = op.id
        if key is None:
            if op.source is None or op.target is None:
                raise GraphInvalid("no edge is named", hint="give its id, or from and to")
            between = [one for one in self.at(op.source) if _leads(self.edges[one], op.source, op.target)]
            wanted = [one for one in between if not op.label or self.edges[one].label == op.label]
            if len(wanted) > 1:
                raise GraphInvalid(
                    f"{len(wanted)} edges lead from {op.source} to {op.target}", hint=f"give an id: {', '.join(wanted)}"
                )
            key = wanted[0] if wanted else edge_id(op.source, op.target, op.label)
        if key not in self.edges:
            raise GraphInvalid(f"there is no edge {key}", hint="edges are named by id, or by from and to", edge=key)
        return key

    def at(self, node: str) -> list[str]:
        """The edges from and to a node."""
        if self._ends is None:
            self._ends = {}
            for key, edge in self.edges.items():
                self._note(key, edge)
        return list(self._ends.get(node, ()))

    def put_edge(self, key: str, edge: Edge) -> None:
        self.edges[key] = edge
        if self._ends is not None:
            self._note(key, edge)

    def drop_edge(self, key: str) -> Edge:
        edge = self.edges.pop(key)
        if self._ends is not None:
            for end in (edge.source, edge.target):
                self._ends.get(end, {}).pop(key, None)
        return edge

    def _note(self, key: str, edge: Edge) -> None:
        assert self._ends is not None
        for end in (edge.source, edge.target):
            self._ends.setdefault(end, {})[key] = None

    def new_node(self, key: str, node: Node) -> None:
        if key in self.nodes:
            raise GraphInvalid(f"a node {key} is already there", hint="give the new one an id of its own", node=key)
        self.nodes[key] = node

    def new_edge(self, edge: Edge, key: str | None = None) -> str:
        for end in (edge.source, edge.target):
            self.node(end)
        key = key or edge_id(edge.source, edge.target, edge.label)
        if key in self.edges:
            raise GraphInvalid(f"an edge {key} is already there", hint="give the new one an id of its own", edge=key)
        self.put_edge(key, edge)
        return key


def _leads(edge: Edge, source: str, target: str) -> bool:
    return edge.source == source and edge.target == target


def _add_node(draft: _Draft, op: AddNode) -> Done:
    draft.new_node(op.id, Node(label=op.label, attributes=op.attributes))
    return f"added node {op.id}", True


def _remove_node(draft: _Draft, op: RemoveNode) -> Done:
    draft.node(op.id)
    gone = [draft.drop_edge(key) for key in draft.at(op.id)]
    del draft.nodes[op.id]
    return f"removed node {op.id} and {len(gone)} edges", True


def _rename_node(draft: _Draft, op: RenameNode) -> Done:
    node = draft.node(op.id)
    changed = False
    if op.label is not None and op.label != node.label:
        node = draft.nodes[op.id] = msgspec.structs.replace(node, label=op.label)
        changed = True
    if op.new_id is None or op.new_id == op.id:
        return f"labelled node {op.id}", changed
    if op.new_id in draft.nodes:
        raise GraphInvalid(f"a node {op.new_id} is already there", hint="choose another id", node=op.new_id)
    draft.nodes = {(op.new_id if key == op.id else key): one for key, one in draft.nodes.items()}
    for key in draft.at(op.id):
        edge = draft.drop_edge(key)
        ends = {name: op.new_id for name in ("source", "target") if getattr(edge, name) == op.id}
        moved = msgspec.structs.replace(edge, **ends)
        named_by_ends = key == edge_id(edge.source, edge.target, edge.label)
        draft.new_edge(moved, None if named_by_ends else key)
    return f"renamed node {op.id} to {op.new_id}", True


def _add_edge(draft: _Draft, op: AddEdge) -> Done:
    edge = Edge(source=op.source, target=op.target, label=op.label, weight=op.weight, attributes=op.attributes)
    return f"added edge {draft.new_edge(edge, op.id)}", True


def _remove_edge(draft: _Draft, op: RemoveEdge) -> Done:
    key = draft.edge(op)
    draft.drop_edge(key)
    return f"removed edge {key}", True


def _set_node_attribute(draft: _Draft, op: SetNodeAttribute) -> Done:
    node = draft.node(op.id)
    attributes = _with_attribute(node.attributes, op.key, op.value)
    draft.nodes[op.id] = msgspec.structs.replace(node, attributes=attributes)
    return f"{_set_or_took(op.value)} {op.key} of node {op.id}", not _is_same_json(attributes, node.attributes)


def _set_edge_attribute(draft: _Draft, op: SetEdgeAttribute) -> Done:
    key = draft.edge(op)
    edge = draft.edges[key]
    if op.key == "weight":
        if op.value is not None and (isinstance(op.value, bool) or not isinstance(op.value, int | float)):
            raise GraphInvalid("a weight is a number", hint="give one, or null for none", edge=key)
        changed = msgspec.structs.replace(edge, weight=None if op.value is None else float(op.value))
    else:
        changed = msgspec.structs.replace(edge, attributes=_with_attribute(edge.attributes, op.key, op.value))
    draft.put_edge(key, changed)
    return f"{_set_or_took(op.value)} {op.key} of edge {key}", changed != edge


def _patch_metadata(draft: _Draft, op: PatchMetadata) -> Done:
    both = sorted(set(op.set) & set(op.unset))
    if both:
        raise GraphInvalid(f"{both[0]} is both set and unset", hint="decide on one")
    before = dict(draft.metadata)
    draft.metadata |= op.set
    for key in op.unset:
        draft.metadata.pop(key, None)
    named = ", ".join([*op.set, *op.unset]) or "nothing"
    return f"patched metadata: {named}", not _is_same_json(before, draft.metadata)


def _rewrite(draft: _Draft, op: Rewrite) -> Done:
    draft.node(op.node)
    into = [draft.edges[key] for key in draft.at(op.node) if draft.edges[key].target == op.node]
    out = [draft.edges[key] for key in draft.at(op.node) if draft.edges[key].source == op.node]
    for key in draft.at(op.node):
        draft.drop_edge(key)
    if op.rule == "reroute_avoid":
        if op.parts or op.edges:
            raise GraphInvalid("reroute_avoid takes no parts", hint="it only leads ways around the node", node=op.node)
        for before in into:
            for after in out:
                _bridge(draft, msgspec.structs.replace(before, target=after.target))
        return f"led ways around {op.node}", bool(into or out)
    return _replace_by_parts(draft, op, into, out)


def _replace_by_parts(draft: _Draft, op: Rewrite, into: Sequence[Edge], out: Sequence[Edge]) -> Done:
    """Puts the parts of a rewrite in the node's place: all side by side, or connected by their own edges."""
    if not op.parts:
        raise GraphInvalid(f"{op.rule} needs parts", hint="name the nodes that take its place", node=op.node)
    if op.rule == "split_parallel" and op.edges:
        raise GraphInvalid("parts that stand side by side have no edges", hint="inline_subgraph takes edges too")
    del draft.nodes[op.node]
    for part in op.parts:
        draft.new_node(part.id, Node(label=part.label, attributes=part.attributes))
    names = {part.id for part in op.parts}
    for edge in op.edges:
        if not {edge.source, edge.target} <= names:
            raise GraphInvalid(
                f"the edge from {edge.source} to {edge.target} leaves the parts", hint="edges are between the parts"
            )
        draft.new_edge(Edge(source=edge.source, target=edge.target, label=edge.label))
    led_to = {edge.target for edge in op.edges}
    led_from = {edge.source for edge in op.edges}
    for part in op.parts:
        for before in into if part.id not in led_to else ():
            _bridge(draft, msgspec.structs.replace(before, target=part.id))
        for after in out if part.id not in led_from else ():
            _bridge(draft, msgspec.structs.replace(after, source=part.id))
    return f"put {', '.join(sorted(names))} where {op.node} stood", True


def _bridge(draft: _Draft, edge: Edge) -> None:
    """Adds an edge unless there already is one like it. Ignores an edge from a node to itself."""
    if edge.source in draft.nodes and edge.target in draft.nodes and edge.source != edge.target:
        key = edge_id(edge.source, edge.target, edge.label)
        if key not in draft.edges:
            draft.put_edge(key, edge)


_DOES: dict[type[Any], Callable[[_Draft, Any], Done]] = {
    AddNode: _add_node,
    RemoveNode: _remove_node,
    RenameNode: _rename_node,
    AddEdge: _add_edge,
    RemoveEdge: _remove_edge,
    SetNodeAttribute: _set_node_attribute,
    SetEdgeAttribute: _set_edge_attribute,
    PatchMetadata: _patch_metadata,
    Rewrite: _rewrite,
}


def _with_attribute(attributes: dict[str, Scalar], key: str, value: Scalar | None) -> dict[str, Scalar]:
    rest = {name: known for name, known in attributes.items() if name != key}
    return rest if value is None else {**attributes, key: value}


def _is_same_json(one: dict[str, Scalar], other: dict[str, Scalar]) -> bool:
    """Whether two sets of attributes are the same JSON, where true is not 1."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _set_or_took(value: Scalar | None) -> str:
    return "took away" if value is None else "set"

"""Compares trees, entry by entry. Names, modes and contents only: who changed what is up to `comparison.py`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from handrail.outside.atomic_files import drop_file
from handrail.outside.tracking.private_index import ARGUMENTS, PrivateIndex, names
from handrail.outside.tracking.state import Large

EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
NO_MODE = "000000"
SIMILAR = "-M50%"
RENAMES_TRIED = "-l1000"
"""How many files are compared pair by pair; above that only identical ones are recognised as moved."""
TREES = ("diff-tree", "-r", "-z", "--no-ext-diff", "--no-textconv", "--no-abbrev", "--no-commit-id")
PLAIN = (*TREES, "--raw", "--no-renames", "--ignore-submodules=none")


class TreeEntry(NamedTuple):
    """A file in a tree, or kept outside of it: identified by blob id, by fingerprint, or by both."""

    mode: str
    oid: str | None
    print: str | None = None
    raw: str | None = None
    """The id of its bytes, if they are known besides."""

    @classmethod
    def of_large(cls, large: Large) -> TreeEntry:
        return cls(large.mode, large.oid, large.print, large.raw)

    @property
    def is_stored(self) -> bool:
        return self.print is None


Entries = dict[bytes, TreeEntry | None]
Pair = tuple[TreeEntry | None, TreeEntry | None]
Pairs = dict[bytes, Pair]


class LineCounts(NamedTuple):
    """Line counts of one file; None for binary ones."""

    added: int | None
    removed: int | None


class Detail(NamedTuple):
    """Line counts by path, and renames as (old, new, similarity)."""

    lines: dict[bytes, LineCounts]
    renames: list[tuple[bytes, bytes, int]]


def is_same(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """True if both are known to be the same file."""
    if one is None or other is None:
        return one is other
    if one.mode != other.mode:
        return False
    if one.print is not None and other.print is not None:
        return one.print == other.print
    ids = [{entry.oid, entry.raw} - {None} for entry in (one, other)]
    return not ids[0].isdisjoint(ids[1])


class TreeQuery:
    """A running query for every path with different entries in two trees or commits. Several may run at once; `pairs`
    waits for the answer."""

    def __init__(self, private: PrivateIndex, one: str, other: str) -> None:
        self._call = private.start(*PLAIN, one, other) if one != other else None

    def pairs(self) -> Pairs:
        return dict(_pairs(self._call.output())) if self._call is not None else {}

    def stop(self) -> None:
        if self._call is not None:
            self._call.stop()


def differing(private: PrivateIndex, one: str, other: str) -> Pairs:
    """Every path with different entries in two trees or commits."""
    return TreeQuery(private, one, other).pairs()


def _pairs(output: bytes) -> Iterator[tuple[bytes, Pair]]:
    words = names(output)
    for facts, path in zip(words[0::2], words[1::2], strict=True):
        yield path, parse_facts(facts)


def parse_facts(facts: bytes) -> Pair:
    """Parses `:mode mode oid oid status` of a raw diff."""
    old_mode, new_mode, old, new = facts[1:].decode().split(" ")[:4]
    return (
        None if old_mode == NO_MODE else TreeEntry(old_mode, old),
        None if new_mode == NO_MODE else TreeEntry(new_mode, new),
    )


def in_index(private: PrivateIndex, index: str) -> Entries:
    """Everything an index holds. Needs no objects: a kept index can be read when its trees are gone."""
    found: Entries = {}
    for line in names(private.git("ls-files", "-s", "-z", index=index)):
        facts, path = line.split(b"\t", 1)
        mode, oid, stage = facts.decode().split(" ")
        if stage == "0":
            found[path] = TreeEntry(mode, oid)
    return found


def differing_indexes(private: PrivateIndex, one: str, other: str) -> Pairs:
    before, after = in_index(private, one), in_index(private, other)
    pairs = {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys()}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def in_tree(private: PrivateIndex, tree: str, paths: Sequence[bytes]) -> Entries:
    """The entries of some paths."""
    found: Entries = dict.fromkeys(paths)
    for start in range(0, len(paths), ARGUMENTS):
        chosen = [os.fsdecode(path) for path in paths[start : start + ARGUMENTS]]
        for line in names(private.git("ls-tree", "-r", "-z", "--full-tree", tree, "--", *chosen)):
            facts, path = line.split(b"\t", 1)
            mode, _, oid = facts.decode().split(" ")
            if path in found:
                found[path] = TreeEntry(mode, oid)
    return found


def with_large(private: PrivateIndex, pairs: Pairs, trees: tuple[str, str], large: tuple[Entries, Entries]) -> Pairs:
    """The same pairs, adding the files that are in no tree. `large` are those of either side."""
    touched = sorted(large[0].keys() | large[1].keys())
    if not touched:
        return pairs
    found = dict(pairs)
    missing = [path for path in touched if path not in pairs]
    same_in_both = in_tree(private, trees[0], missing) if missing else {}
    for path in touched:
        stored = pairs.get(path) or (same_in_both[path], same_in_both[path])
        pair = (large[0].get(path, stored[0]), large[1].get(path, stored[1]))
        if is_same(*pair):
            found.pop(path, None)
        else:
            found[path] = pair
    return found


def tree_with(private: PrivateIndex, tree: str, changed: Mapping[bytes, TreeEntry | None]) -> str:
    """Writes a copy of a tree with some entries replaced to the private store."""
    algorithm = private.repository.algorithm
    index = f"{private.state.folder}/basis.{os.getpid()}"
    nothing = "0" * len(EMPTY_TREE[algorithm])
    given = bytearray()
    for path, entry in sorted(changed.items()):
        facts = f"0 {nothing}" if entry is None else f"{entry.mode} {entry.oid}"
        given += facts.encode() + b"\t" + path + b"\0"
    try:
        private.git("read-tree", tree, index=index)
        private.git("update-index", "-z", "--index-info", index=index, given=bytes(given))
        return private.git("write-tree", "--missing-ok", index=index).strip().decode()
    finally:
        for left in (index, f"{index}.lock"):
            drop_file(left)


def detail(private: PrivateIndex, one: str, other: str, paths: Collection[bytes]) -> Detail:
    """Line counts and renames between two trees, among some paths."""
    if not paths or one == other:
        return Detail({}, [])
    chosen = [os.fsdecode(path) for path in sorted(paths)] if len(paths) <= ARGUMENTS else []
    arguments = (*TREES, "--raw", "--numstat", SIMILAR, RENAMES_TRIED, "--ignore-submodules=none")
    words = private.git(*arguments, one, other, "--", *chosen).split(b"\0")
    found = Detail({}, [])
    position = 0
    while position < len(words) - 1:
        word = words[position]
        if word.startswith(b":") and b"\t" not in word:
            position += _rename(words, position, found)
        else:
            position += _count(words, position, found)
    return found


def _rename(words: list[bytes], position: int, found: Detail) -> int:
    status = words[position].rsplit(b" ", 1)[-1]
    if status[:1] not in (b"R", b"C"):
        return 2
    found.renames.append((words[position + 1], words[position + 2], int(status[1:] or 100)))
    return 3


def _count(words: list[bytes], position: int, found: Detail) -> int:
    added, removed, path = words[position].split(b"\t", 2)
    lines = LineCounts(None, None) if added == b"-" else LineCounts(int(added), int(removed))
    if path:
        found.lines[path] = lines
        return 1
    old, new = words[position + 1], words[position + 2]
    found.lines[new] = lines
    found.lines[old] = LineCounts(None, None) if lines.added is None else LineCounts(0, 0)
    return 3

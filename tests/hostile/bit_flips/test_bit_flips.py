"""Bits flip in a store's file, in every kind of place: tables, indexes, the ledger, the schema itself. `verify` finds
each one that is live, and says what is lost and how it comes back; doing what it says brings it back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.outside.machine_key import machine_key
from handrail.store.origin import adopt_file
from handrail.store.rebuild import rebuild_file
from tests.hostile.bit_flips.full_store import full_ground
from tests.hostile.bit_flips.live_bytes import live_spans
from tests.hostile.program import HOME, handrail
from tests.store.ground import VERSION, sqlite_ground

LEDGER = ("event", "stream")
SAMPLE = 90
"""Flips in the normal suite; in the torture every live byte has one."""


class Flip(NamedTuple):
    """One bit, and what it belongs to."""

    at: int
    bit: int
    part: str
    name: str

    def of(self, raw: bytes) -> bytes:
        changed = bytearray(raw)
        changed[self.at] ^= 1 << self.bit
        return bytes(changed)


class Victim:
    """A store with something in every column, as bytes."""

    def __init__(self, folder: Path, each: int = 3, *, own: bool = False) -> None:
        """`own`: one that the program's user recognises."""
        self.path = folder / "whole.db"
        ground = full_ground(self.path, each)
        self.events = [event.hash for event in ground.store.feed(limit=10_000)]
        ground.close()
        if own:
            adopt_file(self.path, machine_key(HOME), lapse=False)
        self.raw = self.path.read_bytes()
        connection = apsw.Connection(str(self.path))
        roots = {root: (kind, name) for root, kind, name in connection.execute(_ROOTS)}
        self.content = dump(connection)
        connection.close()
        self.live = [
            (at, *roots.get(span.root, ("schema", "schema")))
            for span in live_spans(self.raw, [*roots])
            for at in range(span.begin, span.end)
        ]

    def flips(self, chance: random.Random, count: int | None = None) -> Iterator[Flip]:
        """Flips in this many live bytes, of every part equally often; or one in each live byte."""
        parts: dict[str, list[tuple[int, str]]] = {}
        for at, kind, name in self.live:
            part = "ledger" if name in LEDGER else kind
            parts.setdefault(part, []).append((at, name))
        assert set(parts) == {"table", "index", "ledger", "schema"}
        for part, places in parts.items():
            chosen = places if count is None else chance.sample(places, count // len(parts))
            for at, name in chosen:
                yield Flip(at, chance.randrange(8), part, name)


_ROOTS = "SELECT rootpage, type, name FROM sqlite_schema WHERE rootpage > 0"


def dump(connection: apsw.Connection) -> list[Any]:
    """Everything that a reader of the tables could see."""
    names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found: list[Any] = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    for name in names:
        found += connection.execute(f"SELECT * FROM {name}").fetchall()
    return found


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Victim:
    return Victim(tmp_path_factory.mktemp("victim"))


def put_file(path: Path, raw: bytes) -> Path:
    for ending in ("", "-wal", "-shm", ".gate"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(raw)
    path.chmod(0o600)
    return path


def is_found(path: Path) -> bool:
    """Whether `verify` complains, or nobody can open the file any more."""
    try:
        ground = sqlite_ground(path)
    except StoreUnusable as refusal:
        return bool(refusal.hint)
    try:
        return bool(ground.store.verify())
    finally:
        ground.close()


def is_unaffected(path: Path, victim: Victim, flip: Flip) -> bool:
    """Whether everything reads as it did: the bit means nothing. What is in an index nobody reads as such."""
    if flip.part == "index":
        return False
    connection = apsw.Connection(str(path))
    try:
        return dump(connection) == victim.content
    finally:
        connection.close()


def unseen(victim: Victim, folder: Path, flips: Iterator[Flip]) -> tuple[list[Flip], int]:
    path, missed, count = folder / "flipped.db", [], 0
    for flip in flips:
        count += 1
        put_file(path, flip.of(victim.raw))
        if not is_found(path) and not is_unaffected(path, victim, flip):
            missed.append(flip)
    return missed, count


def test_a_sound_store_is_called_sound(victim: Victim) -> None:
    assert not is_found(victim.path)
    assert len(victim.live) > 50_000


def test_a_flipped_bit_is_found(victim: Victim, tmp_path: Path) -> None:
    missed, count = unseen(victim, tmp_path, victim.flips(random.Random(22), SAMPLE))
    assert (missed, count) == ([], SAMPLE // 4 * 4)


@pytest.mark.torture
def test_a_flipped_bit_in_any_live_byte_is_found(tmp_path: Path) -> None:
    victim = Victim(tmp_path, each=1)
    missed, count = unseen(victim, tmp_path, victim.flips(random.Random(22)))
    print(f"{count - len(missed)} of {count} flips found")
    assert missed == []


def test_what_is_not_in_the_ledger_comes_back_from_it(victim: Victim, tmp_path: Path) -> None:
    """Tables and indexes are made anew, with the events as they were; a damaged ledger is refused."""
    path, outcomes = tmp_path / "store.db", {"rebuilt": 0, "refused": 0}
    for number, flip in enumerate(victim.flips(random.Random(5), 24)):
        put_file(path, flip.of(victim.raw))
        kept = tmp_path / f"kept_{number}.db"
        try:
            rebuild_file(path, kept, version=VERSION, tell=lambda *_: None)
        except StoreUnusable:
            assert flip.part in ("ledger", "schema"), flip
            assert path.read_bytes() == flip.of(victim.raw)
            assert not kept.exists()
            outcomes["refused"] += 1
            continue
        assert flip.part != "ledger", flip
        assert kept.read_bytes() == flip.of(victim.raw)
        ground = sqlite_ground(path)
        assert ground.store.verify() == []
        assert [event.hash for event in ground.store.feed(limit=10_000)] == victim.events
        ground.close()
        outcomes["rebuilt"] += 1
    assert outcomes["rebuilt"] >= 12
    assert outcomes["refused"] >= 6


@pytest.fixture(scope="module")
def own_victim(tmp_path_factory: pytest.TempPathFactory) -> Victim:
    return Victim(tmp_path_factory.mktemp("own"), own=True)


@pytest.fixture
def project(tmp_path: Path, own_victim: Victim) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    put_file(folder / ".handrail" / "handrail.db", own_victim.raw)
    return folder


def cells_of(victim: Victim, name: str) -> list[int]:
    return [at for at, _, owner in victim.live if owner == name]


def in_cells(victim: Victim, name: str, word: bytes) -> int:
    """Where a word is in the cells of one table or index."""
    own = set(cells_of(victim, name))
    at = victim.raw.find(word)
    while at >= 0 and at not in own:
        at = victim.raw.find(word, at + 1)
    assert at >= 0, (name, word)
    return at


def test_the_program_says_what_is_lost_and_brings_it_back(project: Path, own_victim: Victim, tmp_path: Path) -> None:
    store, backup = project / ".handrail" / "handrail.db", tmp_path / "backup.db"
    assert handrail(project, "db", "backup", str(backup)).returncode == 0

    row = Flip(in_cells(own_victim, "fact", b"subject of fact 2"), 0, "table", "fact")
    put_file(store, row.of(own_victim.raw))
    told = handrail(project, "db", "verify")
    assert told.returncode == 1
    assert "fact fact_2: ledger and table disagree about subject" in told.stdout
    assert "lost: nothing; the ledger is whole" in told.stdout
    assert "handrail db rebuild" in told.stdout
    assert handrail(project, "db", "rebuild", "--yes").returncode == 0
    assert not is_found(store)

    event = Flip(in_cells(own_victim, "event", b'"said":"made"') + 9, 1, "ledger", "event")
    put_file(store, event.of(own_victim.raw))
    told = handrail(project, "db", "verify")
    assert told.returncode == 1
    assert "was changed after it was written" in told.stdout
    assert "handrail db restore BACKUP" in told.stdout
    refused = handrail(project, "db", "rebuild", "--yes")
    assert refused.returncode == 1
    assert "the ledger itself is damaged" in refused.stderr
    assert handrail(project, "db", "restore", str(backup), "--yes").returncode == 0
    assert not is_found(store)


def test_the_quick_check_finds_an_index_and_the_newest_events(project: Path, own_victim: Victim) -> None:
    store = project / ".handrail" / "handrail.db"
    for name, word in (("fact_subject", b"subject of fact 2"), ("event", b'"said":"made"')):
        put_file(store, Flip(in_cells(own_victim, name, word) + 9, 1, "", name).of(own_victim.raw))
        told = handrail(project, "db", "check")
        assert told.returncode == 1, name
        assert "handrail db verify" in told.stdout or "handrail db restore BACKUP" in told.stdout


def test_a_store_that_cannot_be_opened_is_replaced_by_a_backup_and_kept(project: Path, own_victim: Victim) -> None:
    store, backup, broken = project / ".handrail" / "handrail.db", own_victim.path, b"\0" * 64
    put_file(store, broken + own_victim.raw[64:])
    told = handrail(project, "db", "verify")
    assert told.returncode == 1
    assert "handrail db restore BACKUP" in told.stderr
    assert handrail(project, "db", "restore", str(backup), "--yes").returncode == 0
    assert not is_found(store)
    assert Path(f"{store}.before-restore").read_bytes() == broken + own_victim.raw[64:]

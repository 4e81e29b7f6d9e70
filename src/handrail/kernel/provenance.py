"""Whether something was made on this machine: marks and words keyed with a secret that never leaves it, and what a
store's file itself gives away. Pure: files are read by `outside/store_files.py` and, for hooks, `hooks/provenance.py`.

A store's mark is kept in the store, under a name that each machine has for itself; it says that this machine made the
store or that its user trusted it. A word vouches for one text within one marked store: a copy of it proves nothing in
another store, nor on another machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

try:
    from _blake2 import blake2b  # takes a tenth of hashlib's time to load
except ImportError:
    from hashlib import blake2b

KEY_BYTES = 32
NONCE_DIGITS = 32
MARK_PREFIX = "made_on:"
SIDE_FILES = ("", "-wal", "-journal", "-shm")
"""The endings of a store and of what SQLite keeps beside it. Handrail's own files there (`.gate`, `.hooks`, `-search`)
are of no use to a stranger: a lock without content, and notes that name the store's mark."""
WAL_MODE = b"\x02\x02"
"""What a database's header says, from byte 18 on, if it keeps a write-ahead log instead of a rollback journal."""
MAGIC = b"SQLite format 3\0"
FILE_TYPE, ORDINARY = 0o170000, 0o100000
"""The bits of a mode that tell what a file is."""
HEADER = 20
"""How many bytes of a database `signs` needs."""


class MachineKey:
    """This machine's secret, and what it proves."""

    __slots__ = ("_key", "mark_name")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.mark_name = f"{MARK_PREFIX}{self._mac('name', '')[:16]}"
        """Where a store keeps the mark of this machine, among those of others."""

    def mark(self, nonce: str, what: str = "store") -> str:
        """The mark of a new store, or of something else; `nonce` is random."""
        return f"{nonce}:{self._mac(what, nonce)}"

    def is_mark(self, text: str | None, what: str = "store") -> bool:
        nonce, _, mac = (text or "").partition(":")
        return len(nonce) == NONCE_DIGITS and mac == self._mac(what, nonce)

    def word(self, mark: str | None, what: str) -> str:
        """Vouches for a text in the store with this mark; empty without a mark, which vouches for nothing."""
        return self._mac("word", f"{(mark or '')[:NONCE_DIGITS]}\0{what}") if self.is_mark(mark) else ""

    def holds(self, mark: str | None, what: str, word: str) -> bool:
        return bool(word) and word == self.word(mark, what)

    def seal(self, text: str) -> str:
        """Vouches for a text wherever it is kept: this machine wrote it, and nobody has changed it."""
        return self._mac("seal", text)

    def _mac(self, purpose: str, text: str) -> str:
        # BLAKE2 has a key of its own.
        said = text.encode("utf-8", "surrogatepass")
        return str(blake2b(said, digest_size=32, key=self._key, person=purpose.encode()).hexdigest())


def key_of(content: bytes) -> MachineKey | None:
    """The key that a file contains; None if it holds no key."""
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        return None
    return MachineKey(key) if len(key) == KEY_BYTES else None


class FileFacts:
    """What is known of one file of a store without opening the store."""

    __slots__ = ("ending", "is_plain", "mode", "name", "size", "uid")

    def __init__(self, store: str, ending: str, *, uid: int, mode: int, size: int) -> None:
        """`mode` is that of the file itself, not of what a link leads to."""
        self.name = store + ending
        self.ending = ending
        self.uid, self.size = uid, size
        self.mode = mode & 0o7777
        self.is_plain = mode & FILE_TYPE == ORDINARY


class Sign:
    """Something that a store of this user on this machine does not have."""

    __slots__ = ("kind", "what")

    def __init__(self, kind: str, what: str) -> None:
        self.kind = kind
        """tracked, owner, mode, link or journal."""
        self.what = what

    @property
    def may_be_trusted(self) -> bool:
        """Whether a person can agree to it; otherwise only removing the file helps."""
        return self.kind not in ("link", "journal")


def signs(found: Iterable[FileFacts], *, uid: int | None, header: bytes, tracked: str | None) -> Iterator[Sign]:
    """What speaks against a store, given the facts about its files. `uid` is None where files have no owners. Nothing
    for what is no database: it is refused as that when it is opened."""
    files = list(found)
    if (header and not header.startswith(MAGIC)) or any(not file.ending and not file.is_plain for file in files):
        return
    if tracked is not None:
        yield Sign("tracked", f"git tracks {tracked}, so it came with the repository or goes with it")
    for file in files:
        if file.ending and not file.is_plain:
            yield Sign("link", f"{file.name} is no ordinary file")
        elif uid is not None and file.uid != uid:
            yield Sign("owner", f"{file.name} belongs to another user ({file.uid})")
        elif uid is not None and file.mode & 0o077:
            yield Sign("mode", f"{file.name} is open to other users of this machine (mode {file.mode:o})")
        if file.ending == "-journal" and file.size and _keeps_no_journal(files, header):
            yield Sign("journal", f"{file.name} would be written into the store, which keeps no such file")


def _keeps_no_journal(files: list[FileFacts], header: bytes) -> bool:
    """Whether a database has a write-ahead log, and more in it than the one page that is written, with a journal, while
    it is being made."""
    filled = any(not file.ending and file.size > int.from_bytes(header[16:18], "big") for file in files)
    return filled and header[18:20] == WAL_MODE


def tracked_in(index: bytes, path: bytes) -> str | None:
    """The name under which git's index has a store at `path`, or a file beside it; None if it has none."""
    if index[:4] != b"DIRC":
        return None
    is_newest = index[4:8] == b"\0\0\0\4"
    names = _names_of_version_4(index, path) if is_newest else _names_found(index, path)
    return next((name.decode(errors="replace") for name in names if _belongs(name, path)), None)


def _belongs(name: bytes, path: bytes) -> bool:
    return name.startswith(path) and name[len(path) :].decode(errors="replace") in SIDE_FILES


def _names_found(index: bytes, path: bytes) -> Iterator[bytes]:
    """Entries that begin with a path. Before each name stands its length, in versions 2 and 3."""
    place = index.find(path)
    while place >= 0:
        name = index[place : index.find(b"\0", place)]
        lengths = [int.from_bytes(index[place - back : place - back + 2], "big") & 0xFFF for back in (2, 4)]
        if min(len(name), 0xFFF) in lengths:
            yield name
        place = index.find(path, place + 1)


def _names_of_version_4(index: bytes, path: bytes) -> Iterator[bytes]:
    """Entries up to those that begin with a path. Each name is told by what it shares with the one before; names are in
    order, and a hash has 20 bytes, or 32 in newer repositories."""
    for fixed in (62, 74):
        place, name = 12, b""
        try:
            for _ in range(int.from_bytes(index[8:12], "big")):
                flags = int.from_bytes(index[place + fixed - 2 : place + fixed], "big")
                place += fixed + (2 if flags & 0x4000 else 0)
                dropped, place = _number(index, place)
                end = index.index(b"\0", place)
                name = name[: len(name) - dropped] + index[place:end]
                if flags & 0xFFF != min(len(name), 0xFFF):
                    break  # hashes of the other length
                place = end + 1
                yield name
                if name[: len(path)] > path:
                    return
        except (ValueError, IndexError):
            continue


def _number(index: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and the place after it."""
    byte = index[place]
    value = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = index[place]
        value = ((value + 1) << 7) + (byte & 0x7F)
    return value, place + 1

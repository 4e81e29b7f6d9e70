"""Marks, words and signs: what proves that this machine made something, and what speaks against a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.provenance import FileFacts, MachineKey, key_of, signs, tracked_in

KEY, OTHER = MachineKey(b"k" * 32), MachineKey(b"o" * 32)
NONCE, ANOTHER = "0" * 32, "1" * 32
STORE = b".handrail/handrail.db"


def test_a_mark_is_one_machines() -> None:
    mark = KEY.mark(NONCE)
    assert KEY.is_mark(mark)
    assert not OTHER.is_mark(mark)
    assert KEY.mark_name != OTHER.mark_name
    for changed in (None, "", mark[:-1], f"{ANOTHER}:{mark.partition(':')[2]}", f"{NONCE}:", KEY.mark("0" * 31)):
        assert not KEY.is_mark(changed)
    assert not KEY.is_mark(mark, "snapshots")


def test_a_word_holds_for_one_text_in_one_store_on_one_machine() -> None:
    mark = KEY.mark(NONCE)
    word = KEY.word(mark, "token\0read")
    assert KEY.holds(mark, "token\0read", word)
    assert not KEY.holds(mark, "token\0decide", word)
    assert not KEY.holds(KEY.mark(ANOTHER), "token\0read", word)
    assert not OTHER.holds(OTHER.mark(NONCE), "token\0read", word)
    for none in (None, "", OTHER.mark(NONCE)):
        assert KEY.word(none, "x") == ""
        assert not KEY.holds(none, "x", "")


@given(st.binary(max_size=80))
def test_only_thirty_two_bytes_are_a_key(content: bytes) -> None:
    assert key_of(content) is None or len(content.strip()) == 64


def fact(ending: str = "", *, uid: int = 7, mode: int = 0o100600, size: int = 1) -> FileFacts:
    return FileFacts("s.db", ending, uid=uid, mode=mode, size=size)


WAL = b"SQLite format 3\0" + b"\x10\0" + b"\2\2"
STORE_ITSELF = FileFacts("s.db", "", uid=7, mode=0o100600, size=8192)


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (fact(), []),
        (fact(mode=0o100640), ["mode"]),
        (fact(mode=0o100602), ["mode"]),
        (fact(uid=8), ["owner"]),
        (fact(uid=8, mode=0o100644), ["owner"]),
        (fact("-wal", mode=0o120777), ["link"]),
        (fact("-wal", uid=8), ["owner"]),
        (fact("-journal"), ["journal"]),
        (fact("-journal", size=0), []),
    ],
)
def test_what_speaks_against_a_file(found: FileFacts, kinds: list[str]) -> None:
    files = [STORE_ITSELF, found] if found.ending else [found]
    assert [sign.kind for sign in signs(files, uid=7, header=WAL, tracked=None)] == kinds
    assert [sign.kind for sign in signs(files, uid=7, header=WAL, tracked="x")] == ["tracked", *kinds]


def test_a_store_that_is_just_being_made_may_have_a_journal() -> None:
    for size, header in ((0, b""), (4096, WAL), (8192, WAL[:-2] + b"\1\1")):
        assert list(signs([fact(size=size), fact("-journal")], uid=7, header=header, tracked=None)) == []


def test_what_is_no_database_is_refused_as_that() -> None:
    assert list(signs([fact(mode=0o100644)], uid=7, header=b"somebody's notes", tracked="x")) == []
    assert list(signs([fact(mode=0o040755)], uid=7, header=b"", tracked="x")) == []
    assert list(signs([fact(mode=0o100644)], uid=7, header=b"", tracked=None)) != []


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
@pytest.mark.parametrize("name", [None, "handrail.db", "handrail.db-wal", "handrail.db-journal", "handrail.db_no"])
def test_what_git_tracks_is_found_in_its_index(tmp_path: Path, version: int, hashes: str, name: str | None) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", f"--object-format={hashes}")
    git("config", "index.version", str(version))
    (tmp_path / ".handrail").mkdir()
    others = ["a.py", "z.py", ".handrail/config.toml", ".handrail/handrail.d", "x/.handrail/handrail.db"]
    for file in (*others, *([f".handrail/{name}"] if name is not None else [])):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).write_text(file, encoding="utf-8")
    git("add", "-f", ".")
    index = (tmp_path / ".git" / "index").read_bytes()
    assert index[7] == version
    is_ours = name is not None and not name.endswith("_no")
    assert tracked_in(index, STORE) == (f".handrail/{name}" if is_ours else None)


@given(st.binary(max_size=300), st.sampled_from([2, 3, 4]))
def test_any_index_is_read_to_its_end(rest: bytes, version: int) -> None:
    tracked_in(b"DIRC" + version.to_bytes(4, "big") + rest, STORE)

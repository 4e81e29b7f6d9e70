"""The index of what can be searched: its ranking, what it follows, and everything that may happen to its file."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.search.words import forms_in, understood
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import NothingToUndo
from handrail.kernel.ids import CountingIds
from handrail.outside import search_index
from handrail.outside.file_lock import FileLock
from handrail.outside.search_index import WEIGHTS, SearchHits, SearchIndex, SearchQuery, with_index
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from tests.store.records import ANNA, checkpoint, put, remove, task, workflow

WORDS = ("queue", "importer", "connection", "retry", "disk", "cache", "token", "merge")


def new_store(clock: FixedClock | None = None) -> Store:
    return Store(MemoryEngine(), clock=clock or FixedClock(), ids=CountingIds())


@pytest.fixture
def store() -> Store:
    made = new_store()
    put(made, workflow(name="Ship it", source_content="imports survive a lost connection", repository_path="/a"))
    put(made, task(name="Choose a queue", description="one that retryLimit fits"))
    put(made, checkpoint("cp_1", type="decision", summary="a queue of our own", detail={"why": "no daemon"}))
    put(made, checkpoint("cp_2", sequence=2, type="error", summary="the queue lost a message"))
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "handrail.db-search"


def asked(store: Store, path: Path | None, typed: str, **narrowed: Any) -> SearchHits:
    def work(index: SearchIndex) -> SearchHits:
        index.catch_up(store.feed)
        return index.search(SearchQuery(understood(typed), **narrowed))

    return with_index(path, work)


def keys(store: Store, path: Path | None, typed: str, **narrowed: Any) -> set[str]:
    return {hit.key for hit in asked(store, path, typed, **narrowed).hits}


class Counting:
    """A feed that notes what it is asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read = 0

    def __call__(self, *, after: int, limit: int) -> Any:
        page = self._store.feed(after=after, limit=limit)
        self.read += len(page)
        return page


# -- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("queue", {"task_1", "cp_1", "cp_2"}),
        ("queue -message", {"task_1", "cp_1"}),
        ("queue daemon", {"cp_1"}),
        ('"lost connection"', {"wf_1"}),
        ('"lost a message"', {"cp_2"}),
        ("retrylimit", {"task_1"}),
        ("limit", {"task_1"}),
        ("retryLim*", {"task_1"}),
        ("mess*", {"cp_2"}),
        ("zebra", set()),
        ("Ship", {"wf_1"}),
    ],
)
def test_words_are_found(store: Store, file: Path, typed: str, found: set[str]) -> None:
    assert keys(store, file, typed) == found
    assert asked(store, file, typed).complete


def test_where_no_text_has_all_of_it_those_with_some_are_found(store: Store, file: Path) -> None:
    found = asked(store, file, "queue zebra -message")
    assert not found.complete
    assert {hit.key for hit in found.hits} == {"task_1", "cp_1"}


def test_a_search_can_be_narrowed(store: Store, file: Path) -> None:
    put(store, workflow("wf_2", name="Another queue", repository_path="/b"))
    put(store, checkpoint("cp_9", sequence=9, workflow_id="wf_2", summary="a queue elsewhere"))
    assert keys(store, file, "queue", kind="decision") == {"cp_1"}
    assert keys(store, file, "queue", kind="finding") == {"cp_2"}
    assert keys(store, file, "queue", workflow="wf_2") == {"wf_2", "cp_9"}
    assert keys(store, file, "queue", repository="/b") == {"wf_2", "cp_9"}
    assert keys(store, file, "queue", repository="/c") == set()
    limited = asked(store, file, "queue", limit=2)
    assert (len(limited.hits), limited.total) == (2, 5)


def test_time_narrows_by_when_a_text_was_written(file: Path) -> None:
    clock = FixedClock(1000)
    store = new_store(clock)
    put(store, task("task_1", name="old queue"))
    clock.advance(1000)
    put(store, task("task_2", name="new queue"))
    put(store, task("task_1", name="old queue", status="completed"))
    assert keys(store, file, "queue", since_ms=2000) == {"task_2"}
    assert keys(store, file, "queue", since_ms=1000) == {"task_1", "task_2"}


@given(st.text(max_size=30) | st.text(st.sampled_from("ab\"*-^:(){}+,\0'é数 "), min_size=1, max_size=15))
def test_nothing_that_is_typed_is_an_error(typed: str) -> None:
    question = None
    with contextlib.suppress(Exception):
        question = understood(typed)
    if question is not None:
        with_index(None, lambda index: index.search(SearchQuery(question)))


# -- the ranking ------------------------------------------------------------------------------------------------------


def plain_bm25(texts: dict[str, tuple[str, str]], wanted: Sequence[str]) -> dict[str, float]:
    """BM25 as the books have it, with weights for columns, over every text that has all words."""
    counted = {}
    for key, (title, body) in texts.items():
        forms = [forms_in(title)[0], forms_in(body)[0], [*forms_in(title)[1], *forms_in(body)[1]]]
        counted[key] = [Counter(column) for column in forms]
    lengths = {key: sum(map(Counter.total, columns)) for key, columns in counted.items()}
    average = sum(lengths.values()) / len(lengths)
    scores = {}
    for key, columns in counted.items():
        if all(any(word in column for column in columns) for word in wanted):
            scores[key] = 0.0
            for word in wanted:
                holding = sum(any(word in column for column in others) for others in counted.values())
                rarity = max(math.log((len(texts) - holding + 0.5) / (holding + 0.5)), 1e-6)
                often = sum(weight * column[word] for weight, column in zip(WEIGHTS, columns, strict=True))
                scores[key] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * lengths[key] / average))
    return scores


LINES = st.lists(st.sampled_from([*WORDS, "retryQueue", "disk_cache"]), min_size=1, max_size=8).map(" ".join)


@given(
    st.lists(st.tuples(LINES, LINES), min_size=2, max_size=12), st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)
)
def test_the_order_is_bm25(lines: list[tuple[str, str]], wanted: list[str]) -> None:
    wanted = list(dict.fromkeys(wanted))
    store = new_store()
    texts = {f"wf_{number:02}": line for number, line in enumerate(lines)}
    for key, (title, body) in texts.items():
        put(store, workflow(key, name=title, source_content=body))
    expected = plain_bm25(texts, wanted)
    found = asked(store, None, " ".join(wanted), limit=100)
    if not found.complete:
        assert not expected
        return
    assert {hit.key: hit.score for hit in found.hits} == pytest.approx(expected)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def test_a_title_counts_more_than_a_text() -> None:
    store = new_store()
    put(store, workflow("wf_1", name="some words here", source_content="the queue"))
    put(store, workflow("wf_2", name="the queue", source_content="some words here"))
    for number in range(3, 9):
        put(store, workflow(f"wf_{number}", name="nothing of it", source_content="at all"))
    assert [hit.key for hit in asked(store, None, "queue").hits] == ["wf_2", "wf_1"]


# -- what it follows --------------------------------------------------------------------------------------------------


def content(index: SearchIndex) -> Any:
    """Everything in an index, however it got there."""
    run = index._connection.execute
    run("INSERT INTO words (words) VALUES ('integrity-check')")
    run("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, words, instance)")
    documents = {
        number: place
        for number, *place in run(
            "SELECT d.id, source, key, part, kind, workflow, repository, d.at, row "
            "FROM document d JOIN kept ON kept = kept.id"
        )
    }
    words = sorted(
        (documents[number], term, column, offset) for term, number, column, offset in run("SELECT * FROM vocabulary")
    )
    run("DROP TABLE temp.vocabulary")
    found = [index.search(SearchQuery(understood(word), limit=1000)) for word in WORDS]
    kept = sorted(run("SELECT source, key, at, row FROM kept"))
    return words, kept, [[(hit.key, hit.document, hit.score) for hit in one.hits] for one in found]


def built_anew(store: Store) -> Any:
    def work(index: SearchIndex) -> Any:
        index.catch_up(store.feed)
        return content(index)

    return with_index(None, work)


class Step:
    """Writes to a store, chosen by numbers."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.store = new_store(self.clock)
        self.there: dict[str, Any] = {}

    def take(self, what: int, which: int, words: str) -> None:
        self.clock.advance(1000)
        if what == 0:
            self._put(workflow(name=words, source_content=words[::-1]))
        elif what == 1:
            self._put(task(f"task_{which}", name=f"{words} {which}", description=words))
        elif what == 2:
            self._put(checkpoint(f"cp_{which}", sequence=which, summary=words, type=("error", "decision")[which % 2]))
        elif what == 3:
            self._put(task(f"task_{which}", name=f"x {which}", outcome=words, status="completed"))
        elif what == 4 and self.there:
            remove(self.store, self.there.pop(sorted(self.there)[which % len(self.there)]))
        else:
            with contextlib.suppress(NothingToUndo):
                self.store.undo(ANNA)
                self.there = {}  # what stands is not known any more; it is put again before it is removed

    def _put(self, record: Any) -> None:
        put(self.store, record)
        self.there[record.id] = record


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3), LINES, st.booleans()), max_size=25)


@given(STEPS)
def test_an_index_that_followed_equals_one_built_anew(steps: list[tuple[int, int, str, bool]]) -> None:
    world = Step()

    def follow(index: SearchIndex) -> None:
        for what, which, words, look in steps:
            world.take(what, which, words)
            if look:
                index.catch_up(world.store.feed)
        index.catch_up(world.store.feed)
        assert content(index) == built_anew(world.store)

    with_index(None, follow)


def test_what_is_undone_or_removed_leaves(store: Store, file: Path) -> None:
    put(store, task("task_7", name="a mistake"))
    assert keys(store, file, "mistake") == {"task_7"}
    store.undo(ANNA)
    assert keys(store, file, "mistake") == set()
    remove(store, checkpoint("cp_1", type="decision", summary="a queue of our own", detail={"why": "no daemon"}))
    assert keys(store, file, "queue") == {"task_1", "cp_2"}
    store.undo(ANNA)
    assert keys(store, file, "daemon") == {"cp_1"}


def test_only_what_is_new_is_read(store: Store, file: Path) -> None:
    asked(store, file, "queue")
    feed = Counting(store)
    with_index(file, lambda index: index.catch_up(feed))
    assert feed.read == 1, "the event it stands at, and no other"
    put(store, task("task_7", name="one more"))
    with_index(file, lambda index: index.catch_up(feed))
    assert feed.read == 3


def test_a_long_way_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "PAGE", 2)
    monkeypatch.setattr(search_index, "PAGES", 2)
    store = new_store()
    for number in range(9):
        put(store, task(f"task_{number}", name=f"queue {number}"))
    told: list[int] = []

    def work(index: SearchIndex) -> SearchHits:
        index.catch_up(store.feed, told.append)
        return index.search(SearchQuery(understood("queue")))

    assert with_index(None, work).total == 9
    assert told == [2, 4, 6, 8]


# -- what may happen to its file --------------------------------------------------------------------------------------


def test_the_file_is_its_owners_alone(store: Store, file: Path) -> None:
    file.touch(0o644)
    asked(store, file, "queue")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def damaged(file: Path, how: str) -> None:
    match how:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "no database":
            file.write_bytes(b"something else entirely\n" * 400)
        case "cut short":
            os.truncate(file, file.stat().st_size // 2)
        case "overwritten":
            data = bytearray(file.read_bytes())
            data[4096:] = os.urandom(len(data) - 4096)
            file.write_bytes(data)
        case "another's":
            file.unlink()
            with contextlib.closing(apsw.Connection(str(file))) as other:
                other.execute("CREATE TABLE theirs (x)")
        case "another format":
            with contextlib.closing(apsw.Connection(str(file))) as old:
                old.execute("PRAGMA user_version = 999")
        case "a table more":
            with contextlib.closing(apsw.Connection(str(file))) as odd:
                odd.execute("CREATE TRIGGER t AFTER INSERT ON kept BEGIN DELETE FROM kept; END")
        case "rows that are none":
            with contextlib.closing(apsw.Connection(str(file))) as odd:
                odd.execute("UPDATE kept SET row = 'nonsense'")


@pytest.mark.parametrize(
    "how",
    [
        "gone",
        "empty",
        "no database",
        "cut short",
        "overwritten",
        "another's",
        "another format",
        "a table more",
        "rows that are none",
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_built_anew(store: Store, file: Path, how: str) -> None:
    asked(store, file, "queue")
    damaged(file, how)
    put(store, task("task_1", name="Choose a queue", description="another word"))
    assert keys(store, file, "queue") == {"task_1", "cp_1", "cp_2"}
    feed = Counting(store)
    with_index(file, lambda index: index.catch_up(feed))
    assert feed.read == 1, "it is a sound file again"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE stand SET position = 'x'",
        "UPDATE stand SET position = 1.5",
        "UPDATE stand SET position = 9223372036854775807",
        "UPDATE stand SET position = -1",
        "DELETE FROM stand",
        "INSERT INTO stand VALUES (0, '', '')",
        "UPDATE stand SET store = 'another'",
        "DELETE FROM document",
        "DELETE FROM kept",
        "UPDATE document SET part = 7",
        "UPDATE document SET part = 'z'",
        "UPDATE document SET at = 'never'",
        "UPDATE kept SET source = 'nonsense' WHERE key = 'cp_1'",
        "UPDATE kept SET row = '{}'",
        "UPDATE kept SET row = '[1]'",
        """UPDATE kept SET row = '{"name": 5, "summary": 5, "description": 5, "type": "error"}'""",
    ],
)
def test_rows_that_make_no_sense_are_built_anew(store: Store, file: Path, change: str) -> None:
    sound = asked(store, file, "queue")
    with contextlib.closing(apsw.Connection(str(file))) as odd:
        odd.execute(change)
    assert asked(store, file, "queue") == sound
    put(store, task("task_1", name="Choose a queue", description="another word"))
    assert keys(store, file, "another word") == {"task_1"}


def test_a_moment_without_a_date_is_the_last_that_has_one(store: Store, file: Path) -> None:
    asked(store, file, "queue")
    with contextlib.closing(apsw.Connection(str(file))) as odd:
        odd.execute("UPDATE document SET at = 99999999999999999")
    assert {hit.at for hit in asked(store, file, "queue").hits} == {search_index.LAST_MS}


def test_an_index_of_no_known_ledger_is_not_believed(store: Store, file: Path) -> None:
    """It may have come with a repository."""
    other = new_store()
    put(other, task("task_9", name="a planted queue"))
    asked(other, file, "queue")
    with contextlib.closing(apsw.Connection(str(file))) as planted:
        planted.execute("UPDATE stand SET position = 0, hash = ''")
    assert keys(store, file, "queue") == {"task_1", "cp_1", "cp_2"}


def test_a_mistake_of_our_own_is_seen(store: Store, file: Path) -> None:
    asked(store, file, "queue")

    def mistaken(_: SearchIndex) -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        with_index(file, mistaken)


def test_a_link_is_not_followed(store: Store, file: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    file.symlink_to(precious)
    assert keys(store, file, "daemon") == {"cp_1"}
    assert precious.read_text(encoding="utf-8") == "mine"


def test_where_no_file_can_be_kept_the_answer_is_right_all_the_same(store: Store, tmp_path: Path) -> None:
    assert keys(store, tmp_path / "no" / "such" / "folder", "daemon") == {"cp_1"}
    assert keys(store, tmp_path, "daemon") == {"cp_1"}, "a folder is no file"


def test_another_ledger_is_noticed(store: Store, file: Path) -> None:
    asked(store, file, "queue")
    other = new_store()
    put(other, task("task_5", name="quite another queue"))
    assert keys(other, file, "queue") == {"task_5"}, "shorter"
    for number in range(6, 12):
        put(other, task(f"task_{number}", name=f"queue {number}"))
    assert len(keys(other, file, "queue")) == 7
    assert keys(store, file, "queue") == {"task_1", "cp_1", "cp_2"}
    assert keys(other, file, "daemon") == set(), "longer"
    assert keys(new_store(), file, "queue") == set(), "empty"


def test_two_searches_at_once_wait_for_each_other(store: Store, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, in_the_way = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []
    real = FileLock._wait_for_lock

    def watched(lock: FileLock) -> None:
        in_the_way.set()  # only who has to wait gets here
        real(lock)

    def slow(index: SearchIndex) -> None:
        begun.set()
        go_on.wait(20)
        index.catch_up(store.feed)
        order.append("first")

    def quick(index: SearchIndex) -> None:
        order.append("second")
        assert index._execute("SELECT count(*) FROM kept").get == 4, "the first has done the work"

    monkeypatch.setattr(FileLock, "_wait_for_lock", watched)
    first = threading.Thread(target=with_index, args=(file, slow))
    first.start()
    assert begun.wait(20)
    second = threading.Thread(target=with_index, args=(file, quick))
    second.start()
    assert in_the_way.wait(20)
    assert order == []
    go_on.set()
    first.join(20)
    second.join(20)
    assert order == ["first", "second"]


def test_who_waits_too_long_answers_from_memory(store: Store, file: Path) -> None:
    def inner(index: SearchIndex) -> set[str]:
        assert index._connection.filename == ""
        index.catch_up(store.feed)
        return {hit.key for hit in index.search(SearchQuery(understood("daemon"))).hits}

    def outer(index: SearchIndex) -> set[str]:
        assert index._connection.filename == str(file)
        return with_index(file, inner, patience_s=0)

    assert with_index(file, outer) == {"cp_1"}


def test_a_file_thrown_away_while_it_is_used_harms_nobody(store: Store, file: Path) -> None:
    def work(index: SearchIndex) -> set[str]:
        index.catch_up(store.feed)
        file.unlink()
        return {hit.key for hit in index.search(SearchQuery(understood("daemon"))).hits}

    assert with_index(file, work) == {"cp_1"}
    assert keys(store, file, "daemon") == {"cp_1"}


KILLED = """
import os, signal, sys
from pathlib import Path
from handrail.outside import search_index
from tests.outside.test_search_index import many

search_index.PAGE, search_index.PAGES = 10, 2
left = int(sys.argv[2])
store = many()

def feed(*, after, limit):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return store.feed(after=after, limit=limit)

search_index.with_index(Path(sys.argv[1]), lambda index: index.catch_up(feed))
"""


def many() -> Store:
    store = new_store()
    for number in range(95):
        put(store, task(f"task_{number}", name=f"queue {number}", description=WORDS[number % len(WORDS)]))
    return store


@pytest.mark.parametrize("pages", [0, 1, 2, 3, 7])
def test_a_search_that_was_killed_leaves_what_the_next_goes_on_with(file: Path, pages: int) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", KILLED, str(file), str(pages)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    store = many()
    feed = Counting(store)

    def work(index: SearchIndex) -> Any:
        index.catch_up(feed)
        return content(index)

    assert with_index(file, work) == built_anew(store)
    kept = pages // 2 * 20
    assert feed.read == 95 - kept + (1 if kept else 0)

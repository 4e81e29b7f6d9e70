"""What somebody put into Handrail's schema on a server is named; what belongs to an extension is not looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import psycopg
import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.store.verification import check_sound
from tests.store.ground import Ground, postgres_ground
from tests.store.records import put, workflow

STRANGERS = {
    "a trigger": (
        """CREATE FUNCTION sly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER quiet BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION sly()""",
        "trigger quiet on event is not part of a store",
        "DROP FUNCTION sly() CASCADE",
    ),
    "a function": (
        "CREATE FUNCTION length(bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "function length is not part of a store",
        "DROP FUNCTION length(bigint)",
    ),
    "a rule": (
        "CREATE RULE twice AS ON INSERT TO gate DO ALSO NOTHING",
        "rule twice on gate is not part of a store",
        "DROP RULE twice ON gate",
    ),
    "a view": ("CREATE VIEW peek AS SELECT 1", "view peek is not part of a store", "DROP VIEW peek"),
    "a table": ("CREATE TABLE more (x text)", "table more is not part of a store", "DROP TABLE more"),
    "a policy": (
        "CREATE POLICY mine ON task USING (true); ALTER TABLE task ENABLE ROW LEVEL SECURITY",
        "row security on task is not part of a store",
        "DROP POLICY mine ON task; ALTER TABLE task DISABLE ROW LEVEL SECURITY",
    ),
    "a column": (
        "ALTER TABLE task ADD COLUMN more text",
        "column more of task is not as Handrail makes it",
        "ALTER TABLE task DROP COLUMN more",
    ),
    "a default": (
        "ALTER TABLE task ALTER COLUMN name SET DEFAULT 'x'",
        "column name of task is not as Handrail makes it",
        "ALTER TABLE task ALTER COLUMN name DROP DEFAULT",
    ),
    "a missing index": (
        "DROP INDEX task_order",
        "index task_order of task is missing",
        "CREATE INDEX task_order ON task (workflow_id, sequence, id)",
    ),
    "another index": (
        "CREATE UNIQUE INDEX narrow ON workflow (name)",
        "index narrow of workflow is not as Handrail makes it",
        "DROP INDEX narrow",
    ),
    "a constraint": (
        "ALTER TABLE task ADD CONSTRAINT tidy CHECK (name <> 'x')",
        "constraint tidy on task is not part of a store",
        "ALTER TABLE task DROP CONSTRAINT tidy",
    ),
}


@pytest.fixture(scope="module")
def own(new_schema: Callable[[], contextlib.AbstractContextManager[str]]) -> Iterator[Ground]:
    """A store whose schema is changed and put right again."""
    with new_schema() as address:
        ground = postgres_ground(address)
        put(ground.store, workflow())
        yield ground
        ground.close()


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_whatever_is_not_the_schema_is_named(own: Ground, stranger: tuple[str, str, str]) -> None:
    statement, named, back = stranger
    assert own.engine.check() == []
    with psycopg.connect(own.address, autocommit=True) as connection:
        connection.execute(statement)
        try:
            assert named in own.engine.check()
            assert named in own.store.verify()
            with pytest.raises(StoreUnusable, match="is not sound"):
                check_sound(own.engine, lambda *_: None)
        finally:
            connection.execute(back)
    assert own.engine.check() == []


def test_what_belongs_to_an_extension_is_not_looked_at(own: Ground) -> None:
    with psycopg.connect(own.address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")  # the one that comes with the server of the tests
        try:
            assert own.engine.check() == []
        finally:
            connection.execute("DROP EXTENSION vector")

"""What is shown of a server's address: never a password, however it was written; and which addresses are not used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from handrail.kernel.errors import StoreAway, StoreUnusable
from handrail.store.addresses import read, shown_server
from handrail.store.marks import moved
from handrail.store.open_engine import holds_password, shown_address
from handrail.store.postgres_connections import Connections

HIDDEN = "postgresql://…"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:pw@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://u:p%40w@h/d", "postgresql://u@h/d"),
        ("postgresql://u:p:w@h/d", "postgresql://u@h/d"),
        ("postgresql:///leak?host=/sock&user=me&password=hunter@2", "postgresql:///leak?host=/sock&user=me"),
        ("postgresql:///d?pass%77ord=hunter2&host=/s", "postgresql:///d?host=/s"),
        ("postgresql://h/d?sslpassword=pw&sslmode=require", "postgresql://h/d?sslmode=require"),
        ("postgresql://h/d?password=pw", "postgresql://h/d"),
        ("postgresql://u:pw@[::1]:5432,%2Fsock/d?options=-csearch_path%3Dx", None),
        ("postgres://h/d", "postgres://h/d"),
        ("postgresql://h/d?user=me@cloud", "postgresql://h/d?user=me@cloud"),
        ("postgresql://u:@h/d", "postgresql://u@h/d"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str | None) -> None:
    expected = address.replace(":pw@", "@") if shown is None else shown
    assert shown_address(address, Path("/p")) == expected
    assert holds_password(address, Path("/p")) == (address != expected)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:sec/ret@localhost/db",
        "postgresql://u:12/ret@localhost/db",
        "postgresql://u:12/re?t@localhost/db",
        "postgresql://u:p@ss:w0rd@localhost",
        "postgresql://u:p@ss@localhost/db",
        "postgresql://u:sec?ret@localhost/db",
        "postgresql://h?password=hunter@2",
        "postgresql://u:pw",
        "postgresql://h/d?secret",
        "postgresql://h/d?nonsense=1",
        "postgresql://h/d?host=a=b",
        "postgresql://u:p w@h/d",
        "postgresql://u:p\x1bw@h/d",
    ],
)
def test_what_may_have_been_meant_otherwise_is_not_used_and_not_shown(address: str) -> None:
    assert shown_server(address) == HIDDEN
    with pytest.raises(StoreUnusable, match="cannot be read") as refused:
        Connections(address)
    assert "percent-encode" in refused.value.hint


def test_a_secret_that_stands_in_the_rest_too_hides_all_of_it() -> None:
    assert shown_server("postgresql://hunter2:hunter2@h/d") == HIDDEN
    assert shown_server("postgresql://u:hunter2@h/d?application_name=hunter%32") == HIDDEN
    assert shown_server("postgresql://u@h/d?password=h%75nter2&host=hunter2") == HIDDEN


def test_an_address_of_something_else_is_not_shown_either() -> None:
    assert shown_address("mysql://u:hunter2@h/d", Path("/p")) == "mysql://…"
    assert shown_address("POSTGRESQL://u:hunter2@h/d", Path("/p")) == "POSTGRESQL://…"


ODD = st.text(alphabet="ab1:/?@&=%,[].", max_size=6)


@given(ODD, ODD)
def test_the_password_that_libpq_finds_is_never_shown(first: str, second: str) -> None:
    address = f"postgresql://u:s3cr3t{first}@h/d?{second}&password=t0ps3cr3t{first}"
    for spelled in (address, address.replace("u:s3cr3t", "s3cr3t")):
        shown = shown_server(spelled)
        assert "t0ps3cr3t" not in shown
        try:
            used = conninfo_to_dict(spelled)
        except ProgrammingError:
            continue
        if used.get("password"):
            assert str(used["password"]) not in shown
        if read(spelled) is not None and "password" in used:
            assert used["password"] in read(spelled).secrets  # type: ignore[union-attr]


def test_what_the_driver_says_is_not_repeated_where_it_holds_the_password() -> None:
    connections = Connections("postgresql://u:hunter2@h/d?host=/nowhere/hunter%32")
    with pytest.raises(StoreAway, match="does not answer") as refused:
        connections.connect()
    assert "hunter2" not in refused.value.message


def test_the_hint_of_a_moved_store_can_be_typed() -> None:
    refusal = moved("postgresql:///d?host=/my sock&options=-csearch_path%3Dx", "/a b/new.db")
    assert "--db 'postgresql:///d?host=/my sock&options=-csearch_path%3Dx'" in refusal.hint
    assert 'db = "/a b/new.db"' in refusal.hint


def test_the_location_of_a_server_is_an_address_that_leads_there() -> None:
    connections = Connections("postgresql://me:hunter2@/d?host=/sock&options=-csearch_path%3Dx")
    assert connections.location == "postgresql://me@/d?host=/sock&options=-csearch_path%3Dx"

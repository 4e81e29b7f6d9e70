"""Addresses: what is written is what is meant, every id has one address, and anything else teaches the forms."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from handrail.domain.registry.addresses import (
    BOARDS,
    FORMS,
    GRAPHS,
    LONGEST,
    LONGEST_ID,
    Address,
    begins_with,
    board,
    child_logs,
    graph,
    graph_version,
    parse,
    run_events,
    snapshot,
)
from handrail.kernel.errors import ResourceNotFound

WRITTEN = {
    "sc://graphs/wf_1": graph("wf_1"),
    "sc://graphs/wf_1@v12": graph_version("wf_1", 12),
    "sc://snapshots/wf_1/v3": snapshot("wf_1", "v3"),
    "sc://runs/wf_1/events": run_events("wf_1"),
    "sc://children/ag_1/logs": child_logs("ag_1"),
    "sc://blackboard/plan": board("plan"),
    "sc://graphs/a%2Fb%40v1": graph("a/b@v1"),
    "sc://blackboard/%C3%A9t%C3%A9%20%25": board("été %"),
}
IDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=LONGEST_ID)


@pytest.mark.parametrize(("uri", "address"), WRITTEN.items())
def test_an_address_is_read_as_it_is_written(uri: str, address: Address) -> None:
    assert parse(uri) == address
    assert address.uri == uri


def test_every_kind_has_an_example_and_a_form() -> None:
    assert {address.kind for address in WRITTEN.values()} == set(FORMS)


@given(IDS, IDS, st.integers(1, 2**53))
def test_every_id_has_an_address_and_every_address_one_meaning(name: str, other: str, version: int) -> None:
    addresses = [
        graph(name),
        graph_version(name, version),
        snapshot(name, other),
        run_events(name),
        child_logs(name),
        board(name),
    ]
    for address in addresses:
        if len(address.uri) <= LONGEST:
            assert parse(address.uri) == address
    assert len({address.uri for address in addresses}) == len(addresses)


def test_what_means_the_same_is_understood() -> None:
    assert parse("sc://graphs/%77f_1@v007") == graph_version("wf_1", 7)
    assert parse("sc://blackboard/team@home board") == board("team@home board")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "sc://",
        "wf_1",
        "handrail://inbox/ag_1",
        "SC://graphs/wf_1",
        "sc://graphs",
        "sc://graphs/",
        "sc://graphs/wf_1/",
        "sc://graphs/wf_1/events",
        "sc://graphs/wf_1@",
        "sc://graphs/wf_1@v",
        "sc://graphs/wf_1@v0",
        "sc://graphs/wf_1@v-1",
        "sc://graphs/wf_1@v1.5",
        "sc://graphs/wf_1@v²",
        "sc://graphs/wf_1@v99999999999999999999",
        "sc://graphs/wf_1@2",
        "sc://graphs/@v1",
        "sc://snapshots/wf_1",
        "sc://snapshots/wf_1/",
        "sc://snapshots//v1",
        "sc://snapshots/wf_1/v1/x",
        "sc://runs/wf_1",
        "sc://runs/events",
        "sc://runs//events",
        "sc://runs/wf_1/events/",
        "sc://children/ag_1",
        "sc://children/ag_1/events",
        "sc://children/logs",
        "sc://blackboard/",
        "sc://blackboard/a/b",
        "sc://blackboard/%FF",
        "sc://blackboard/a%00b",
        "sc://blackboard/\ud800",
        "sc://blackboard/" + "x" * (LONGEST_ID + 1),
        "sc://nothing/x",
    ],
)
def test_anything_else_is_refused_and_shown_the_forms(uri: str) -> None:
    with pytest.raises(ResourceNotFound) as refused:
        parse(uri)
    assert all(form in refused.value.hint for form in FORMS.values())


@given(st.text(max_size=60).map(lambda rest: f"sc://{rest}"))
def test_no_text_is_too_strange(uri: str) -> None:
    try:
        address = parse(uri)
    except ResourceNotFound:
        return
    assert parse(address.uri) == address


def test_how_an_id_must_begin_for_a_prefix() -> None:
    assert begins_with("", GRAPHS) == ""
    assert begins_with("sc://gr", GRAPHS) == ""
    assert begins_with("sc://graphs/wf_1", GRAPHS) == "wf_1"
    assert begins_with("sc://graphs/wf_1@v", GRAPHS) == "wf_1"
    assert begins_with("sc://graphs/a%2", GRAPHS) == "a"
    assert begins_with("sc://graphs/wf_1", BOARDS) is None
    assert begins_with("handrail://", GRAPHS) is None

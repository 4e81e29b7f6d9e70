"""Which server answers under which path, and the rules that settings make."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest

from handrail.domain.crew.tokens import issue, meant, revoke
from handrail.http_wiring import VIEWS, TokenDesk, Views, guard_of, parse_address
from handrail.kernel.errors import SettingInvalid
from handrail.kernel.ledger import Actor
from handrail.operation import HttpAddress
from handrail.outside.token_files import note_revocation
from handrail.protocol.http.guard import LookupFailed
from handrail.protocol.server import Server
from handrail.settings import Settings
from handrail.wiring import LazyLedger, WorkPlace, ledger_at

ADDRESS = HttpAddress("127.0.0.1", 1, "/mcp")
GUIDE = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]


@pytest.fixture
def views(tmp_path: Path) -> Views:
    place = WorkPlace(project=tmp_path, home=tmp_path, environ={})
    return Views(place, Settings(dynamic=True), ADDRESS)


def names(server: Server | None) -> list[str]:
    assert server is not None
    return [str(tool["name"]) for tool in server.offer.tools.published()]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        ("localhost:0", "localhost", 0),
        ("[::1]:8765", "[::1]", 8765),
        ("box.example:65535", "box.example", 65535),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8765",
        ":8765",
        "localhost",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:²",
        "localhost:80 ",
        "::1:8765",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        parse_address(text)
    assert refused.value.hint
    assert "127.0.0.1:8765" in refused.value.hint


def test_one_path_is_one_server(views: Views) -> None:
    assert views.server_for("/mcp") is views.server_for("/mcp")
    assert views.server_for("/mcp/") is views.server_for("/mcp")
    assert views.server_for("/mcp/x/guide") is not views.server_for("/mcp")


def test_a_path_names_toolsets_in_place_of_the_profiles(views: Views) -> None:
    dynamic = ["toolset_list", "toolset_enable"]
    assert [name for name in names(views.server_for("/mcp/x/guide")) if name not in dynamic] == GUIDE
    both = names(views.server_for("/mcp/x/guide,introspection"))
    assert {*GUIDE, "mcp_info"} <= set(both)


def test_a_readonly_view_lists_and_calls_no_tool_that_changes_anything(views: Views) -> None:
    whole, view = views.server_for("/mcp"), views.server_for("/mcp/readonly")
    assert whole is not None
    assert view is not None
    reads = [tool["name"] for tool in whole.offer.tools.published() if tool["annotations"].get("readOnlyHint") is True]
    assert names(view) == reads
    assert "toolset_enable" not in reads
    assert view.offer.methods is not None
    assert names(views.server_for("/mcp/readonly/x/guide")) == [*GUIDE, "toolset_list"]


def test_turning_a_toolset_on_in_one_view_leaves_the_others_alone(views: Views) -> None:
    small, other = views.server_for("/mcp/x/guide"), views.server_for("/mcp/readonly/x/guide")
    assert small is not None
    before = names(other)
    from tests.protocol.toy import Client

    client = Client(small)
    client.initialize()
    client.ask("tools/call", {"name": "toolset_enable", "arguments": {"toolsets": ["introspection"]}})
    assert "mcp_info" in names(small)
    assert [note["method"] for note in client.heard] == ["notifications/tools/list_changed"]
    assert names(other) == before


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/other",
        "/mcp/x",
        "/mcp/x/",
        "/mcp/x/nope",
        "/mcp/x/guide/more",
        "/mcp/nope",
        "/mcp/readonly/readonly",
        "/mcp/readonly/nope",
        "mcp",
        "/mcpreadonly",
        "/mcpx/guide",
    ],
)
def test_a_path_that_names_no_view_has_no_server(views: Views, path: str) -> None:
    assert views.server_for(path) is None


def test_views_are_bounded_in_number_and_those_there_are_stay(views: Views) -> None:
    first = views.server_for("/mcp")
    orders = itertools.permutations(("guide", "introspection", "workflow", "checkpoint", "repository"))
    made = [views.server_for(f"/mcp/x/{','.join(order)}") for order in orders]
    assert sum(server is not None for server in made) == VIEWS - 1
    assert views.server_for("/mcp") is first


def test_a_path_without_a_server_is_told_what_would_be_right(views: Views) -> None:
    assert "/mcp/x/TOOLSET" in views.why_not("/other")
    assert "did you mean guide?" in views.why_not("/mcp/x/guid")
    assert "toolsets here: " in views.why_not("/mcp/readonly/x/bt")
    for number, order in enumerate(itertools.permutations(("guide", "introspection", "workflow", "checkpoint"))):
        views.server_for(f"/mcp/x/{','.join(order)}")
        views.server_for(f"/mcp/readonly/x/{','.join(order)}")
        views.server_for(f"/mcp/x/repository,{','.join(order[: number % 3 + 1])}")
    assert views.server_for("/mcp/x/repository") is None
    assert "use /mcp" in views.why_not("/mcp/x/repository")


def test_modules_turned_on_for_the_whole_are_not_in_a_view_that_names_its_toolsets(tmp_path: Path) -> None:
    place = WorkPlace(project=tmp_path, home=tmp_path, environ={})
    views = Views(place, Settings(profile="workflowlookup", enable=("mcp-introspection",)), ADDRESS)
    assert names(views.server_for("/mcp")) == [*GUIDE, "mcp_info", "mcp_capabilities"]
    assert names(views.server_for("/mcp/x/guide")) == GUIDE
    assert names(views.server_for("/mcp/readonly")) == [*GUIDE, "mcp_info", "mcp_capabilities"]


def test_other_spellings_of_one_view_take_no_place_of_another(views: Views) -> None:
    for number in range(1, VIEWS + 10):
        views.server_for(f"/mcp{'/' * number}/x/guide")
        views.server_for("/mcp/x/" + ",".join(["guide"] * number))
    assert views.server_for("/mcp/readonly") is not None


def test_many_who_ask_at_once_get_one_server(views: Views) -> None:
    got: list[Server | None] = []
    threads = [threading.Thread(target=lambda: got.append(views.server_for("/mcp/x/guide"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, got))) == 1


def test_the_settings_name_the_hosts_beside_loopback() -> None:
    guard = guard_of(Settings(allow_hosts=("box.example",)), "T")
    token = {"authorization": "Bearer T"}
    assert guard.check({"host": "box.example:80", **token}) is None
    assert guard.check({"host": "localhost", **token}) is None
    assert guard.check({"host": "other.example", **token}) is not None
    assert guard.check({"host": "box.example"}) is not None


def test_a_host_name_may_be_written_in_any_case() -> None:
    guard = guard_of(Settings(allow_hosts=("Box.Example",)), "T")
    assert guard.check({"host": "box.example", "authorization": "Bearer T"}) is None


# -- tokens -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> WorkPlace:
    return WorkPlace(project=tmp_path, home=tmp_path, environ={})


def desk_at(place: WorkPlace, settings: Settings) -> tuple[TokenDesk, LazyLedger]:
    ledger = ledger_at(place, settings)
    return TokenDesk(place, settings, ledger), ledger


def made(ledger: LazyLedger, *rights: str) -> str:
    return ledger.run(Actor("ann", "cli"), lambda unit: issue(unit, "bot", rights, "secret")).text


def test_a_token_of_the_store_stands_for_its_name_and_rights(place: WorkPlace) -> None:
    desk, ledger = desk_at(place, Settings())
    text = made(ledger, "read", "write")
    found = desk.find(text)
    assert found is not None
    assert (found.name, found.rights, found.agent_id, found.barred) == ("bot", ("read", "write"), None, None)
    assert desk.find(f"{text}x") is None


def test_a_token_that_only_decides_is_told_what_it_is_for(place: WorkPlace) -> None:
    desk, ledger = desk_at(place, Settings())
    found = desk.find(made(ledger, "decide"))
    assert found is not None
    assert found.barred is not None
    assert "signs its owner in to the page" in found.barred
    assert "--rights read,write" in found.barred


def test_a_token_made_through_one_store_is_found_through_another_on_the_same_data(place: WorkPlace) -> None:
    _, ledger = desk_at(place, Settings())
    text = made(ledger, "read")
    other, _ = desk_at(place, Settings())
    assert other.find(text) is not None
    ledger.run(Actor("ann", "cli"), lambda unit: revoke(unit, meant(unit, "bot")))
    assert other.find(text) is None


def test_a_strangers_token_makes_no_store(place: WorkPlace) -> None:
    desk, _ = desk_at(place, Settings())
    assert desk.find("hr_01_secret") is None
    assert list(place.project.iterdir()) == []


def test_a_store_that_cannot_be_asked_is_no_answer_and_is_not_named_to_strangers(place: WorkPlace) -> None:
    desk, _ = desk_at(place, Settings(db="postgresql://ann:password@127.0.0.1:1/handrail"))
    with pytest.raises(LookupFailed) as failed:
        desk.find("hr_01_secret")
    assert "STORE_AWAY" in str(failed.value)
    assert "127.0.0.1" not in str(failed.value)
    assert "password" not in str(failed.value)


def test_only_what_has_a_tokens_form_is_looked_up(place: WorkPlace) -> None:
    desk, ledger = desk_at(place, Settings())
    assert desk.has_form(made(ledger, "read"))
    for other in ("", "T", "tok_1", "hr_01", "hr_01_\u00e9"):
        assert not desk.has_form(other)


def test_the_mark_changes_when_a_token_is_revoked_on_this_machine(place: WorkPlace) -> None:
    desk, _ = desk_at(place, Settings())
    before = desk.mark()
    assert desk.mark() == before
    note_revocation(place.home, "tok_1")
    assert desk.mark() != before


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/x/guide,workflow", "/mcp/readonly"])
def test_who_may_only_read_gets_the_read_only_view_of_the_same_path(views: Views, path: str) -> None:
    read_only = path if "readonly" in path else path.replace("/mcp", "/mcp/readonly", 1)
    assert views.server_for(path, read_only=True) is views.server_for(read_only)
    assert views.server_for("/other", read_only=True) is None
    assert views.server_for("/mcp") is not views.server_for("/mcp", read_only=True)

"""Profiles, toolsets, flags, and the names tools answer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from handrail.catalog import ANNOUNCED, ENABLE_FLAGS, PROFILES, TOOLSETS, whole_catalog
from handrail.kernel.errors import ToolsetUnknown
from handrail.operation import Operation, Toolset
from handrail.selection import Selection, published, select


def chosen(**options: Any) -> Selection:
    return select(**{"profile": "solo", "toolsets": (), "enable": (), "dynamic": False, **options})


def test_the_default_profile_has_what_it_can_of_solo() -> None:
    selection = chosen()
    assert selection.names == ("introspection", "guide", "journal", "context", "orchestration")
    assert selection.missing == ()


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_can_be_chosen_and_says_what_it_lacks(profile: str) -> None:
    selection = chosen(profile=profile)
    assert ("introspection" in selection.names) is (profile != "workflowlookup")
    announced = {name for names in ANNOUNCED.values() for name in names}
    assert set(selection.missing) <= announced


def test_the_lookup_profile_is_exactly_the_four_guide_tools() -> None:
    names = [entry.name for entry in published(chosen(profile="workflowlookup"))]
    assert names == ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]


def test_toolsets_take_the_profiles_place_in_the_order_given() -> None:
    assert chosen(toolsets=("guide", "introspection")).names == ("guide", "introspection")
    assert chosen(toolsets=("guide", "guide")).names == ("guide",)


def test_a_family_names_its_toolsets_together() -> None:
    built = [toolset.name for toolset in TOOLSETS if toolset.family == "plan"]
    assert len(built) == 10
    assert list(chosen(toolsets=("plan",)).names) == built
    registry = chosen(toolsets=("registry",))
    assert list(registry.names) == [toolset.name for toolset in TOOLSETS if toolset.family == "registry"]
    assert list(registry.missing) == list(ANNOUNCED["registry"])
    with pytest.raises(ToolsetUnknown) as refused:
        chosen(toolsets=("registry", "bt"))
    assert refused.value.details["missing"] == ["bt"]


@pytest.mark.parametrize("flag", ENABLE_FLAGS)
def test_every_module_that_a_flag_names_is_there(flag: str) -> None:
    selection = chosen(toolsets=("guide",), enable=(flag, flag))
    assert selection.names == ("guide", ENABLE_FLAGS[flag])


@pytest.mark.parametrize(("name", "says"), [("bt", "bt is not in this version"), ("gide", "did you mean guide?")])
def test_a_toolset_that_is_not_there_is_refused_by_name(name: str, says: str) -> None:
    with pytest.raises(ToolsetUnknown) as refused:
        chosen(toolsets=(name,))
    assert says in refused.value.message
    assert "guide" in refused.value.hint


def test_an_unknown_profile_is_refused_with_the_nearest() -> None:
    with pytest.raises(ToolsetUnknown, match="did you mean solo"):
        chosen(profile="sole")


@pytest.mark.parametrize("flag", ENABLE_FLAGS)
def test_every_flag_adds_its_module_or_says_that_it_is_missing(flag: str) -> None:
    selection = chosen(profile="workflowlookup", enable=(flag,))
    toolset = ENABLE_FLAGS[flag]
    assert (toolset in selection.names) != (toolset in selection.missing)
    assert selection.names[0] == "guide"


def test_the_flag_of_a_module_that_is_on_changes_nothing() -> None:
    assert chosen(enable=("mcp-introspection",)) == chosen()


def test_dynamic_adds_its_two_tools_at_the_end() -> None:
    names = [entry.name for entry in published(chosen(dynamic=True))]
    assert names[-2:] == ["toolset_list", "toolset_enable"]


def two_with_one_name() -> tuple[Toolset, Toolset, Callable[[str], list[Operation[Any, Any]]]]:
    guide = next(operation for operation in whole_catalog() if operation.name == "workflow_list")
    plan = Toolset(name="workflow", family="plan", purpose="plans")
    of = {"guide": [guide], "workflow": [msgspec.structs.replace(guide, toolset=plan)]}
    return guide.toolset, plan, of.__getitem__


def test_the_toolset_listed_first_keeps_a_shared_name() -> None:
    guide, plan, operations = two_with_one_name()
    assert [entry.name for entry in published(Selection((guide, plan)), operations)] == [
        "workflow_list",
        "plan_workflow_list",
    ]
    assert [entry.name for entry in published(Selection((plan, guide)), operations)] == [
        "workflow_list",
        "guide_workflow_list",
    ]
    assert [entry.name for entry in published(Selection((plan,)), operations)] == ["workflow_list"]


def test_an_unknown_module_and_the_dynamic_toolset_by_name_are_refused() -> None:
    with pytest.raises(ToolsetUnknown, match="did you mean bulk"):
        chosen(enable=("bulc",))
    with pytest.raises(ToolsetUnknown, match="--dynamic"):
        chosen(toolsets=("dynamic",))

"""What the composition root tells every call about where it is made, and clients about what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.catalog import PROFILES
from handrail.wiring import WorkPlace, assemble, build_server, settings_at, store_address


@pytest.mark.parametrize(
    ("given", "shared"),
    [
        ({}, False),
        ({"db": "own.db"}, False),
        ({"db": ".handrail/../own.db"}, False),
        ({"db": "../ours.db"}, True),
        ({"db": "/srv/ours.db"}, True),
        ({"db": "postgresql://host/db"}, True),
        ({"global_store": True}, True),
    ],
)
def test_a_store_outside_the_project_is_taken_to_be_shared(
    tmp_path: Path, given: dict[str, object], shared: bool
) -> None:
    place = WorkPlace(project=tmp_path / "project", home=tmp_path / "home", environ={})
    here = assemble(place, settings_at(place, given)).call.here
    assert (here.repository, here.shared) == (str(tmp_path / "project"), shared)


def test_a_project_in_the_home_folder_has_the_global_store_for_its_own(tmp_path: Path) -> None:
    place = WorkPlace(project=tmp_path, home=tmp_path, environ={})
    assert assemble(place, settings_at(place, {})).call.here.shared


def test_the_global_store_is_in_the_home_folder(tmp_path: Path) -> None:
    place = WorkPlace(project=tmp_path / "project", home=tmp_path / "home", environ={})
    chosen = settings_at(place, {"global_store": True})
    assert store_address(place, chosen) == str(tmp_path / "home" / ".handrail" / "handrail.db")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_resources_are_declared_where_there_are_some(tmp_path: Path, profile: str, stateless: bool) -> None:
    """For an empty list clients would still add tools of their own. `workflowlookup` is its document's server, which
    declares them."""
    place = WorkPlace(project=tmp_path / "project", home=tmp_path / "home", environ={})
    offer = build_server(assemble(place, settings_at(place, {"profile": profile}))).offer
    has_some = offer.resources is not None and bool(offer.resources.templates())
    declared = "resources" in offer.capabilities(stateless=stateless)
    assert declared is (has_some or profile == "workflowlookup")
    assert has_some is (profile in ("team", "orchestrator", "all"))

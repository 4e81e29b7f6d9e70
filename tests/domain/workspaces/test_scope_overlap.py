"""Where scopes meet, found quickly: always exactly what `overlap` says, and for plain paths without asking it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.scope import overlap
from handrail.domain.workspaces.scope_overlap import Reach

NAMES = st.sampled_from(["src", "auth", "api", "a.py", "b.py", "UserAuth", ".env", "café", "[id]", "x y"])
AREAS = st.one_of(
    NAMES,
    st.builds("{}/".format, NAMES),
    st.builds("{}/{}".format, NAMES, NAMES),
    st.builds("/{}/{}".format, NAMES, NAMES),
    st.builds("{}/{}/{}".format, NAMES, NAMES, NAMES),
    st.builds("./{}/{}/".format, NAMES, NAMES),
    st.builds("!{}/{}".format, NAMES, NAMES),
    st.builds("{}\\{}".format, NAMES, NAMES),
    st.builds("{}/**/{}".format, NAMES, NAMES),
    st.builds("{}/*.py".format, NAMES),
    st.sampled_from(
        ["*.py", "**", "*", ".", "/", "./", "!", "", "  ", "**/api", "/*.py", "a//b", "?.py", "/src", "!**"]
    ),
)
LISTS = st.lists(AREAS, max_size=5)


@given(LISTS, LISTS)
def test_it_finds_what_overlap_finds_and_nothing_else(one: list[str], other: list[str]) -> None:
    assert Reach(one).near(Reach(other)).meetings() == overlap(one, other)


@given(LISTS, LISTS)
def test_the_first_meeting_is_the_one_that_is_told(one: list[str], other: list[str]) -> None:
    found = overlap(one, other)
    assert Reach(one).meets(Reach(other)) == (found[0] if found else None)
    assert not found or Reach(one).near(Reach(other)).pairs > 0


@pytest.mark.parametrize("areas", [[], [""], ["  "], ["!src/"], ["!"]])
def test_what_declares_nothing_claims_nothing(areas: list[str]) -> None:
    assert not Reach(areas).claims
    assert Reach(areas).meets(Reach(["**"])) is None


def test_plain_paths_and_names_that_differ_need_no_closer_look() -> None:
    here = Reach([f"src/part{number}/code.py" for number in range(500)])
    there = Reach([f"lib/part{number}/code{number}.py" for number in range(500)] + ["readme.md", "lib/*.c"])
    assert here.near(there).pairs == 0
    assert here.meets(there) is None


def test_one_path_among_many_is_found_with_the_folder_above_it() -> None:
    here = Reach([f"src/part{number}/code.py" for number in range(500)])
    met = here.meets(Reach(["lib/", "src/part7"]))
    assert met is not None
    assert (met.area, met.other, met.path) == ("src/part7/code.py", "src/part7", "src/part7/code.py")

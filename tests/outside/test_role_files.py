"""Roles in files: whose wins, what is refused, and that nothing outside the project is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.kernel.errors import InvalidFlow, PlaceUnusable
from handrail.outside.role_files import ROLE_BYTES, RoleFiles


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".handrail" / "agents").mkdir(parents=True)
    (root / "agents").mkdir()
    return root


def write(project: Path, place: str, text: str | bytes = "# Mine\n") -> Path:
    file = project / place
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_the_bundled_role_is_used_where_the_project_has_none(tmp_path: Path) -> None:
    role = RoleFiles(tmp_path / "nowhere").role("architect")
    assert role.source == "bundled"
    assert role.text.startswith("# Architect\n")


def test_the_projects_own_wins_and_the_one_among_its_handrail_files_first(project: Path) -> None:
    second = write(project, "agents/architect.md", "# Second\n")
    assert RoleFiles(project).role("architect") == ("architect", "project", str(second), "# Second\n")
    first = write(project, ".handrail/agents/architect.md", "# First\n")
    assert RoleFiles(project).role("architect") == ("architect", "project", str(first), "# First\n")


def test_the_next_call_sees_an_edit(project: Path) -> None:
    roles = RoleFiles(project)
    write(project, "agents/architect.md", "one")
    assert roles.role("architect").text == "one"
    write(project, "agents/architect.md", "two")
    assert roles.role("architect").text == "two"


def test_a_team_may_add_agents_of_its_own(project: Path) -> None:
    write(project, ".handrail/agents/security-auditor.md", "# Auditor\n")
    assert RoleFiles(project).role("security-auditor").text == "# Auditor\n"
    assert "security-auditor" in RoleFiles(project).names()
    assert "architect" in RoleFiles(project).names()


def test_front_matter_byte_order_marks_and_carriage_returns_do_not_reach_the_prompt(project: Path) -> None:
    raw = b"\xef\xbb\xbf---\r\nname: architect\r\ntools: [Read]\r\n---\r\n\r\n# Mine\r\n\r\n---\r\nrest\r\n"
    write(project, "agents/architect.md", raw)
    assert RoleFiles(project).role("architect").text == "\n# Mine\n\n---\nrest\n"


def test_an_agent_that_nobody_described_is_refused_with_the_nearest_name(project: Path) -> None:
    with pytest.raises(InvalidFlow) as refused:
        RoleFiles(project).role("architekt")
    assert refused.value.message == "there is no agent architekt; did you mean architect?"
    assert ".handrail/agents/architekt.md" in refused.value.hint


@pytest.mark.parametrize(
    "name", ["", "..", "../secret", "a/b", "a\\b", ".hidden", "a..b", "a\0b", "a\n", "é", "x" * 101]
)
def test_a_name_that_could_be_a_path_is_refused(project: Path, name: str) -> None:
    write(project, "secret.md")
    with pytest.raises(InvalidFlow, match="is not an agent's name"):
        RoleFiles(project).role(name)


def refusal(project: Path) -> str:
    with pytest.raises(PlaceUnusable) as refused:
        RoleFiles(project).role("architect")
    assert refused.value.hint
    return refused.value.message


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x" * (ROLE_BYTES + 1), f"is larger than {ROLE_BYTES} bytes"),
        (b"\xff\xfe", "is not UTF-8"),
        (b" \n", "is empty"),
        (b"---\nname: x\n---\n", "is empty"),
    ],
    ids=["too large", "not UTF-8", "blank", "front matter only"],
)
def test_a_file_that_cannot_be_used_is_refused_and_ours_does_not_take_its_place(
    project: Path, content: bytes, why: str
) -> None:
    write(project, ".handrail/agents/architect.md", content)
    write(project, "agents/architect.md", "# Good\n")
    assert refusal(project) == f".handrail/agents/architect.md {why}"


def test_a_file_of_the_largest_size_is_read(project: Path) -> None:
    write(project, "agents/architect.md", b"x" * ROLE_BYTES)
    assert len(RoleFiles(project).role("architect").text) == ROLE_BYTES


def test_a_link_that_leads_out_of_the_project_is_not_followed(project: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    (project / "agents" / "architect.md").symlink_to(secret)
    assert refusal(project) == "agents/architect.md leads out of the project"


def test_a_folder_that_is_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "architect.md").write_text("secret", encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    (project / "agents").symlink_to(elsewhere)
    assert refusal(project) == "agents/architect.md leads out of the project"


def test_a_link_within_the_project_is_followed(project: Path) -> None:
    write(project, "shared.md", "# Shared\n")
    (project / "agents" / "architect.md").symlink_to("../shared.md")
    assert RoleFiles(project).role("architect").text == "# Shared\n"


def test_links_to_nothing_in_circles_folders_and_pipes_are_refused(project: Path) -> None:
    place = project / "agents" / "architect.md"
    place.symlink_to("missing.md")
    assert "symbolic link to nothing" in refusal(project)
    place.unlink()
    place.symlink_to("architect.md")
    assert "leads in a circle" in refusal(project)
    place.unlink()
    place.mkdir()
    assert "is a folder, not a regular file" in refusal(project)
    place.rmdir()
    os.mkfifo(place)
    assert "is a pipe, not a regular file" in refusal(project)

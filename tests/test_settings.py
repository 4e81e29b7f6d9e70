"""Where a setting may come from, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import SettingInvalid
from handrail.settings import Settings, load_settings, setting_fields


def load(project: Path, environ: dict[str, str] | None = None, **given: Any) -> Settings:
    return load_settings(given=given, environ=environ or {}, project=project)


def configure(project: Path, text: str) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "config.toml").write_text(text, encoding="utf-8")


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    assert load(tmp_path).profile == "solo"
    configure(tmp_path, 'profile = "team"\n')
    assert load(tmp_path).profile == "team"
    assert load(tmp_path, {"HANDRAIL_PROFILE": "forge"}).profile == "forge"
    assert load(tmp_path, {"HANDRAIL_PROFILE": "forge"}, profile="all").profile == "all"


def test_texts_become_what_the_setting_is(tmp_path: Path) -> None:
    environ = {
        "HANDRAIL_TOOLSETS": "guide, introspection",
        "HANDRAIL_DYNAMIC": "true",
        "HANDRAIL_MAX_MESSAGE_BYTES": "2048",
    }
    settings = load(tmp_path, environ)
    assert settings.toolsets == ("guide", "introspection")
    assert settings.dynamic is True
    assert settings.max_message_bytes == 2048


def test_a_list_in_the_file_is_a_list(tmp_path: Path) -> None:
    configure(tmp_path, 'toolsets = ["guide"]\n')
    assert load(tmp_path).toolsets == ("guide",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('profil = "team"', "did you mean profile"),
        ("dynamic = 7", "dynamic"),
        ("max_message_bytes = 3", "max_message_bytes"),
        ("profile =", "not valid TOML"),
    ],
)
def test_a_wrong_line_in_the_file_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    configure(tmp_path, text)
    with pytest.raises(SettingInvalid) as refused:
        load(tmp_path)
    assert says in refused.value.message


def test_other_variables_with_our_prefix_are_left_alone(tmp_path: Path) -> None:
    assert load(tmp_path, {"HANDRAIL_TEST_PG": "x", "HANDRAIL_NO_SKIPS": "1"}) == Settings()


def test_every_setting_explains_itself() -> None:
    assert [field.name for field in setting_fields()] == list(Settings.__struct_fields__)
    assert all(field.description.endswith(".") for field in setting_fields())


def test_a_nearer_profile_takes_the_place_of_farther_toolsets(tmp_path: Path) -> None:
    configure(tmp_path, 'toolsets = ["guide"]\n')
    assert load(tmp_path, profile="team").toolsets == ()
    assert load(tmp_path, {"HANDRAIL_PROFILE": "team"}).toolsets == ()
    assert load(tmp_path, {"HANDRAIL_PROFILE": "team"}, toolsets="guide").toolsets == ("guide",)


def test_modules_from_every_source_add_up(tmp_path: Path) -> None:
    configure(tmp_path, 'enable = ["tx"]\n')
    assert load(tmp_path, {"HANDRAIL_ENABLE": "bulk,tx"}, enable=["locks"]).enable == ("tx", "bulk", "locks")

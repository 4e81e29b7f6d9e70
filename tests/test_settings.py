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
        ("foo = 1", "there is no setting foo"),
        ('approvals = "nobody"', "approvals must be agent or human, not nobody"),
        ("dynamic = 7", "dynamic"),
        ("max_message_bytes = 3", "max_message_bytes"),
        ("profile =", "not valid TOML"),
        ("enable = 3", "enable[0] must be a string, not an integer"),
        ("toolsets = 3", "toolsets must be a list, not 3"),
    ],
)
def test_a_wrong_line_in_the_file_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    configure(tmp_path, text)
    with pytest.raises(SettingInvalid) as refused:
        load(tmp_path)
    assert says in refused.value.message
    assert "config.toml" in refused.value.message


@pytest.mark.parametrize(
    ("environ", "given", "message"),
    [
        ({"HANDRAIL_DURABLE": "maybe"}, {}, "durable must be true or false, not maybe (the environment)"),
        ({}, {"dynamic": "7"}, "dynamic must be true or false, not 7 (the command line)"),
        (
            {"HANDRAIL_MAX_MESSAGE_BYTES": "4 MB"},
            {},
            "max_message_bytes must be an integer, not 4 MB (the environment)",
        ),
        ({}, {"max_message_bytes": "3"}, "max_message_bytes must be at least 1024 (the command line)"),
        ({"HANDRAIL_DURABLE": "maybe"}, {"durable": "no way"}, "true or false, not no way (the command line)"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words_that_teach(
    tmp_path: Path, environ: dict[str, str], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingInvalid) as refused:
        load(tmp_path, environ, **given)
    assert message in refused.value.message
    assert "`" not in refused.value.message
    assert refused.value.hint in [field.description for field in setting_fields()]


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


def test_a_check_has_at_least_one_word(tmp_path: Path) -> None:
    configure(tmp_path, "[checks]\ntests = []\n")
    with pytest.raises(SettingInvalid, match="must have at least 1 entry"):
        load(tmp_path)

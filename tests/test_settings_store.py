"""Which store is meant when several places say so: the nearest counts, and one place may not say two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.kernel.errors import SettingInvalid
from handrail.settings import Settings, load_settings


def load(folder: Path, *, given: dict[str, object] | None = None, config: str = "", **environ: str) -> Settings:
    (folder / ".handrail").mkdir(exist_ok=True)
    (folder / ".handrail" / "config.toml").write_text(config, encoding="utf-8")
    return load_settings(given=given or {}, environ=environ, project=folder)


def chosen(settings: Settings) -> tuple[str, bool]:
    return settings.db, settings.global_store


def test_the_global_store_is_chosen_from_anywhere(tmp_path: Path) -> None:
    assert chosen(load(tmp_path)) == ("", False)
    assert chosen(load(tmp_path, given={"global_store": True})) == ("", True)
    assert chosen(load(tmp_path, given={"global_store": "true"})) == ("", True)
    assert chosen(load(tmp_path, HANDRAIL_GLOBAL_STORE="1")) == ("", True)
    assert chosen(load(tmp_path, config="global_store = true")) == ("", True)


def test_the_nearer_of_file_and_global_store_counts(tmp_path: Path) -> None:
    assert chosen(load(tmp_path, given={"global_store": True}, HANDRAIL_DB="x.db")) == ("", True)
    assert chosen(load(tmp_path, given={"db": "x.db"}, HANDRAIL_GLOBAL_STORE="true")) == ("x.db", False)
    assert chosen(load(tmp_path, config='db = "x.db"', HANDRAIL_GLOBAL_STORE="true")) == ("", True)
    assert chosen(load(tmp_path, config="global_store = true", HANDRAIL_DB="x.db")) == ("x.db", False)
    assert chosen(load(tmp_path, config="global_store = true", HANDRAIL_GLOBAL_STORE="false")) == ("", False)
    assert chosen(load(tmp_path, config='db = "x.db"', HANDRAIL_GLOBAL_STORE="0")) == ("x.db", False)
    assert chosen(load(tmp_path, given={"db": ""}, config="global_store = true")) == ("", False)


def test_both_in_one_place_are_refused_with_the_way_out(tmp_path: Path) -> None:
    for case in (
        {"given": {"db": "x.db", "global_store": True}},
        {"config": 'db = "x.db"\nglobal_store = true'},
        {"HANDRAIL_DB": "x.db", "HANDRAIL_GLOBAL_STORE": "TRUE"},
    ):
        with pytest.raises(SettingInvalid, match=r"cannot be both db and the global one") as refused:
            load(tmp_path, **case)
        assert "--global" in refused.value.hint


def test_a_value_that_is_neither_true_nor_false_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="global_store"):
        load(tmp_path, HANDRAIL_GLOBAL_STORE="perhaps", HANDRAIL_DB="x.db")

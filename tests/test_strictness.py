"""Which settings a project's file may choose on its own, and what counts as stricter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import SettingInvalid
from handrail.settings import Settings, file_layer, load_settings, setting_default, setting_fields, value_of
from handrail.strictness import CAUTIONS, Agreed, Heard, Obeyed, Waiting, ascii_json, mark_of, waiting_text


def said(project: Path, text: str) -> Path:
    (project / ".handrail").mkdir(exist_ok=True)
    (project / ".handrail" / "config.toml").write_text(text, encoding="utf-8")
    return project


def load(project: Path, agreed: Agreed | None = None, **given: Any) -> Settings:
    return load_settings(given=given, environ={}, project=project, agreed=agreed)


def trusting(project: Path, **values: Any) -> Agreed:
    root = str(project)
    return Agreed(project=root, marks={name: mark_of(root, name, value) for name, value in values.items()})


def test_every_setting_says_what_the_file_may_do() -> None:
    assert list(CAUTIONS) == list(Settings.__struct_fields__)
    assert {field.name: field.caution for field in setting_fields()} == CAUTIONS


def test_only_what_has_an_order_is_heard_when_stricter() -> None:
    for name, caution in CAUTIONS.items():
        assert caution.heard is not Heard.WHEN_STRICTER or caution.obeyed is Obeyed.STRICTER, name
        assert caution.heard is not Heard.WHEN_TRUSTED or caution.obeyed is Obeyed.TRUSTED, name


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "max_message_bytes": st.integers(1024, 10**6),
    "snapshot_days": st.integers(0, 3650),
    "snapshot_count": st.integers(0, 1000),
    "check_timeout_s": st.floats(1, 3600),
    "identity": st.sampled_from(["open", "strict"]),
    "approvals": st.sampled_from(["agent", "human"]),
    "reservations": st.sampled_from(["warn", "ask", "deny"]),
    "own_flows": st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    "max_children": st.integers(0, 5),
    "budget": st.dictionaries(st.sampled_from(["hard_money", "soft_tokens"]), st.floats(0, 9)),
    "prices": st.dictionaries(st.sampled_from(["*", "a", "b"]), st.floats(0, 9)),
}


def test_the_laws_below_are_about_all_of_them() -> None:
    assert set(VALUES) == {name for name, caution in CAUTIONS.items() if caution.obeyed is Obeyed.STRICTER}


@pytest.mark.parametrize("name", VALUES)
@given(st.data())
def test_what_both_demand_is_demanded_whoever_is_first(name: str, data: st.DataObject) -> None:
    """Idempotent and associative; alike in either order, and never weaker than one of the two."""
    one, two, three = (data.draw(VALUES[name]) for _ in range(3))
    stricter = CAUTIONS[name].stricter
    plain = set if name == "own_flows" else lambda value: value
    assert stricter(one, one) == one
    assert plain(stricter(one, two)) == plain(stricter(two, one))
    assert plain(stricter(stricter(one, two), three)) == plain(stricter(one, stricter(two, three)))
    assert plain(stricter(stricter(one, two), one)) == plain(stricter(one, two))


@given(VALUES["prices"], VALUES["prices"], st.sampled_from("abc"))
def test_no_model_becomes_cheaper(one: dict[str, float], two: dict[str, float], model: str) -> None:
    both = CAUTIONS["prices"].stricter(one, two)
    price = [prices.get(model, prices.get("*", 0.0)) for prices in (one, two, both)]
    assert price[2] >= max(price[:2])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[checks]\nx = ["x"]', "checks"),
        ('http = "0.0.0.0:1"', "http"),
        ('allow_hosts = ["x"]', "allow_hosts"),
        ('allow_hosts = "x,y"', "allow_hosts"),
        ('own_flows = ["x"]', "own_flows"),
        ("check_timeout_s = 301", "check_timeout_s"),
        ("max_message_bytes = 5000000", "max_message_bytes"),
        ("snapshot_days = 29", "snapshot_days"),
        ("snapshot_count = 0", "snapshot_count"),
    ],
)
def test_what_runs_reaches_or_loosens_waits(tmp_path: Path, text: str, name: str) -> None:
    project = said(tmp_path, text)
    assert getattr(load(project), name) == setting_default(name)
    layer = file_layer(project, Agreed())
    assert [one.name for one in layer.waiting] == [name]
    asked = layer.waiting[0].said
    agreed = trusting(project, **{name: asked})
    if CAUTIONS[name].obeyed is Obeyed.STRICTER:
        agreed = Agreed(limits={name: asked})
    assert getattr(load(project, agreed), name) == asked
    assert file_layer(project, agreed).waiting == ()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('approvals = "human"', "approvals", "human"),
        ('identity = "strict"', "identity", "strict"),
        ("check_timeout_s = 5", "check_timeout_s", 5.0),
        ("max_children = 2", "max_children", 2),
        ("[budget]\nhard_money = 3", "budget", {"hard_money": 3.0}),
        ("[prices]\nx = 3", "prices", {"x": 3.0}),
        ("snapshot_days = 31", "snapshot_days", 31),
        ('profile = "team"', "profile", "team"),
        ('http = "127.0.0.1:8765"', "http", "127.0.0.1:8765"),
        ('approvals = "agent"', "approvals", "agent"),
    ],
)
def test_what_restricts_or_does_no_harm_is_followed_at_once(tmp_path: Path, text: str, name: str, value: Any) -> None:
    project = said(tmp_path, text)
    assert getattr(load(project), name) == value
    assert file_layer(project, Agreed()).waiting == ()


def test_agreement_is_to_one_value_of_one_setting_in_one_project(tmp_path: Path) -> None:
    project = said(tmp_path, '[checks]\nx = ["x"]')
    assert load(project, trusting(project, checks={"x": ["x"]})).checks == {"x": ("x",)}
    for other in (
        trusting(project, checks={"x": ["x", ""]}),
        trusting(project, checks={"y": ["x"]}),
        trusting(project, http={"x": ["x"]}),
        msgspec.structs.replace(trusting(tmp_path / "other", checks={"x": ["x"]}), project=str(project)),
    ):
        assert load(project, other).checks == {}


@pytest.mark.parametrize("text", ["", 'approvals = "agent"\n', 'profile = "solo"\n'])
def test_what_was_agreed_to_is_not_weakened_by_the_file(tmp_path: Path, text: str) -> None:
    project, agreed = said(tmp_path, text), Agreed(limits={"approvals": "human"})
    assert load(project, agreed).approvals == "human"
    assert [(one.name, one.in_force) for one in file_layer(project, agreed).waiting] == [("approvals", "human")]
    with pytest.raises(SettingInvalid):
        load(project, agreed, approvals="agent")


def test_what_a_person_typed_needs_no_trust(tmp_path: Path) -> None:
    project = said(tmp_path, 'http = "0.0.0.0:1"\nglobal_store = true\n')
    assert load(project, http="0.0.0.0:2").http == "0.0.0.0:2"
    assert type(load(project, global_store=True)) is Settings
    assert type(load(project)) is not Settings
    assert type(load(project, trusting(project, global_store=True))) is Settings


def test_a_wrong_value_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    project = said(tmp_path, "own_flows = 3\n")
    with pytest.raises(SettingInvalid, match="own_flows"):
        load(project)
    assert value_of("own_flows", 3) is None


def test_nothing_that_is_shown_controls_a_terminal() -> None:
    assert ascii_json(["\x1b[2J\u202e\x9b\n"]) == '["\\u001b[2J\\u202e\\x9b\\n"]'
    assert waiting_text(Waiting("http", "\u202e", "")) == 'http = "\\u202e"'
    assert waiting_text(Waiting("approvals", None, "human")) == "approvals = nothing any more"

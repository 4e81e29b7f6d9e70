"""Templates as text: what is a variable, what is not, what values make of it, and which templates are sound."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.work.plan import PlanTask
from handrail.domain.work.template import Template
from handrail.domain.work.templates import (
    LIST_LIMITS,
    TEXT_LIMITS,
    Blueprint,
    Variable,
    blueprint_of,
    fill,
    read_blueprint,
    task_entry,
    templated,
    unused_variables,
)
from handrail.kernel.errors import InvalidParams, InvalidPlan, InvalidTemplate, MissingVariables


def task(name: str = "build", description: str = "", **more: object) -> PlanTask:
    return PlanTask(name, description, 1, **more)  # type: ignore[arg-type]


def blueprint(*tasks: PlanTask, variables: tuple[Variable, ...] = (), description: str | None = None) -> Blueprint:
    return read_blueprint("t", description, tasks, variables)


def described(text: str, **values: str) -> str:
    return fill(blueprint(task(description=text)), values).tasks[0].description


# -- what a variable is -----------------------------------------------------------------------------------------------


def test_a_variable_is_filled_in_with_and_without_blanks() -> None:
    assert described("{{x}} {{ x }} {{\tx\n}}", x="v") == "v v v"


def test_variables_stand_in_every_text_of_a_task() -> None:
    given_task = task(
        "n{{v}}",
        "d{{v}}",
        parallel_group="g{{v}}",
        depends_on=["o{{v}}"],
        parent="p{{v}}",
        files_likely_affected=["f{{v}}.py"],
        requires=["r{{v}}"],
        acceptance=["a{{v}}"],
    )
    (done,) = fill(Blueprint("t", None, (given_task,), (Variable("v"),)), {"v": "1"}).tasks
    assert done == task(
        "n1",
        "d1",
        parallel_group="g1",
        depends_on=["o1"],
        parent="p1",
        files_likely_affected=["f1.py"],
        requires=["r1"],
        acceptance=["a1"],
    )


def test_values_are_not_filled_in_again() -> None:
    assert described("{{a}}{{b}}", a="{{b}}", b="{{a}}") == "{{b}}{{a}}"


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (r"\{{x}}", "{{x}}"),
        (r"\\{{x}}", "\\v"),
        (r"\\\{{x}}", "\\{{x}}"),
        (r"${{ secrets.KEY }}".replace("{{", r"\{{"), "${{ secrets.KEY }}"),
        (r"a\b {x} }} { {x}", r"a\b {x} }} { {x}"),
        (r"\{{{x}}", "{{{x}}"),
        ("{{x}}}", "v}"),
        (r"\{{\{{x}}", "{{{{x}}"),
    ],
)
def test_a_backslash_makes_braces_mean_themselves(text: str, becomes: str) -> None:
    assert fill(blueprint(task(description=f"{text}{{{{x}}}}")), {"x": "v"}).tasks[0].description == f"{becomes}v"


@pytest.mark.parametrize("text", ["{{", "{{}}", "{{a b}}", "{{1}}", "{{ .Values.x }}", "{{x}", "{{{x}}}", "{{größe}}"])
def test_braces_that_are_no_variable_are_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(InvalidTemplate) as refused:
        blueprint(task(description=f"see {text}"))
    assert f'description of task "build" has "{text}"' in refused.value.message
    assert r"\{{" in refused.value.hint


@given(st.text(alphabet="\\{} xy_-é", max_size=30))
def test_a_text_that_was_no_template_comes_out_as_it_was_but_for_its_variables(text: str) -> None:
    source = task(description=text)
    (kept,) = templated([source])
    made = blueprint(kept)
    names = [variable.name for variable in made.variables]
    filled = fill(made, {name: f"<{name}>" for name in names}).tasks[0].description
    for name in names:
        filled = filled.replace(f"<{name}>", "@")
    expected = re.sub(r"\{\{(\s*[A-Za-z_][A-Za-z0-9_-]*\s*\}\})?", lambda met: "@" if met[1] else met[0], text)
    assert filled == expected


# -- which templates are sound ----------------------------------------------------------------------------------------


def test_what_is_used_and_not_declared_becomes_required() -> None:
    made = blueprint(task("{{b}}"), task("x", "{{a}}"), description="{{c}}", variables=(Variable("a", "said"),))
    assert made.variables == (Variable("a", "said"), Variable("c"), Variable("b"))
    assert made.variables[1].must_be_given


def test_what_is_declared_and_not_used_is_named() -> None:
    made = blueprint(task("{{a}}"), variables=(Variable("a"), Variable("b")))
    assert unused_variables(made) == ["b"]


def test_a_template_is_held_to_the_rules_of_plans() -> None:
    for tasks, said in (
        ((task("{{a}}"), task("{{ a }}")), 'two tasks are named "{{a}}"'),
        ((task("one", depends_on=["two"]),), 'depends on "two"'),
        ((task("one", depends_on=["one"]),), "depends on itself"),
        ((task("{{a}}", depends_on=["b"]), task("b", depends_on=["{{ a }}"])), "wait for each other: {{a}} → b"),
        ((), "no tasks"),
    ):
        with pytest.raises(InvalidTemplate) as refused:
            blueprint(*tasks)
        assert said in refused.value.message


def test_a_variable_is_declared_once() -> None:
    with pytest.raises(InvalidTemplate, match="declared twice"):
        blueprint(task(), variables=(Variable("a"), Variable("a")))


def test_a_reference_with_a_variable_is_only_checked_when_it_is_filled_in() -> None:
    made = blueprint(task("one"), task("two", depends_on=["{{first}}"], parent="{{whole}}"))
    (_, two) = fill(made, {"first": "one", "whole": ""}).tasks
    assert (two.depends_on, two.parent) == (["one"], None)


# -- values -----------------------------------------------------------------------------------------------------------


def test_every_missing_variable_is_named_with_its_description() -> None:
    made = blueprint(task("{{a}} {{b}} {{c}} {{d}}"), variables=(Variable("a", "the first"), Variable("d", default="")))
    with pytest.raises(MissingVariables) as refused:
        fill(made, {"c": "x"})
    assert "a (the first), b" in refused.value.message
    assert refused.value.details["missing"] == [
        {"name": "a", "description": "the first"},
        {"name": "b", "description": ""},
    ]


def test_defaults_apply_and_what_is_not_required_may_be_nothing() -> None:
    variables = (Variable("a", default="A"), Variable("b", required=False), Variable("c", required=False, default="C"))
    made = blueprint(task("x", "{{a}}|{{b}}|{{c}}"), variables=variables)
    assert fill(made, {}).tasks[0].description == "A||C"
    assert fill(made, {"a": "1", "b": "2", "c": ""}).tasks[0].description == "1|2|"


def test_a_variable_the_template_does_not_have_is_refused_with_the_one_that_was_meant() -> None:
    made = blueprint(task("{{feature}}"))
    with pytest.raises(InvalidParams, match="no variable featur; did you mean feature"):
        fill(made, {"featur": "x"})


def test_an_entry_that_comes_out_empty_is_left_out_and_a_name_that_does_is_refused() -> None:
    optional = (Variable("v", required=False),)
    made = blueprint(task("x", acceptance=["{{v}}", "kept"], parallel_group="{{v}}"), variables=optional)
    (done,) = fill(made, {}).tasks
    assert (done.acceptance, done.parallel_group) == (["kept"], None)
    with pytest.raises(InvalidPlan, match="has no name"):
        fill(blueprint(task("{{v}}"), variables=optional), {"v": " "})


def test_what_grows_too_long_is_refused_before_it_is_made() -> None:
    with pytest.raises(InvalidPlan, match="a name has 201 characters; at most 200 fit"):
        fill(blueprint(task("{{v}}")), {"v": "x" * 201})
    many = blueprint(*(task(f"t{number}", "{{v}}") for number in range(100)))
    with pytest.raises(InvalidPlan, match="the plan has more than"):
        fill(many, {"v": "x" * 100_000})
    bomb = blueprint(task("x", "{{v}}" * 40_000))
    with pytest.raises(InvalidPlan, match="a description has 4000000000 characters"):
        fill(bomb, {"v": "x" * 100_000})


def test_a_long_row_of_backslashes_costs_nothing() -> None:
    text = "\\" * 200_000
    assert described(text) == text


def test_the_limits_are_those_of_plans() -> None:
    properties = msgspec.json.schema(PlanTask)["$defs"]["PlanTask"]["properties"]
    longest = {name: member.get("maxLength") for name, member in properties.items()}
    for name in ("parallel_group", "parent"):
        longest[name] = properties[name]["anyOf"][0]["maxLength"]
    assert {name: longest[name] for name in TEXT_LIMITS} == TEXT_LIMITS
    assert {name: properties[name]["items"]["maxLength"] for name in LIST_LIMITS} == LIST_LIMITS


def test_a_template_comes_back_from_its_record_as_it_was() -> None:
    made = blueprint(
        task("{{a}}", depends_on=["b"], priority=3), task("b"), variables=(Variable("a", "d", False, "x"),)
    )
    record = Template(
        id="tmpl_1",
        name=made.name,
        description=made.description,
        tasks=[task_entry(one) for one in made.tasks],
        variables=[msgspec.to_builtins(one) for one in made.variables],
        created_at=0,
    )
    assert record.tasks[1] == {"name": "b", "description": "", "sequence": 1}
    assert blueprint_of(record) == made

"""The templates that come with Handrail, and the one their page shows: sound, explained, and applicable with their
required variables alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.work.plan import check_plan
from handrail.domain.work.templates import FileTemplate, fill, unused_variables
from handrail.outside.template_files import TemplateFiles, standard_templates
from handrail.outside.user_files import UserFolder

NOWHERE = Path("/nonexistent")
PAGE = Path(__file__).parent.parent / "docs" / "templates.md"
BUNDLED = TemplateFiles(standard_templates(home=NOWHERE, project=NOWHERE)).entries()


def test_feature_bugfix_and_refactor_come_along() -> None:
    assert [entry.id for entry in BUNDLED] == ["file:bugfix", "file:feature", "file:refactor"]
    assert all(entry.source == "bundled" for entry in BUNDLED)


@pytest.mark.parametrize("entry", BUNDLED, ids=lambda entry: entry.stem)
def test_a_bundled_template_can_be_applied(entry: FileTemplate) -> None:
    assert isinstance(entry, FileTemplate)
    blueprint = entry.blueprint
    assert blueprint.name == entry.stem
    assert all(variable.description for variable in blueprint.variables)
    assert unused_variables(blueprint) == []
    needed = {variable.name: "the answer" for variable in blueprint.variables if variable.must_be_given}
    assert needed
    filled = fill(blueprint, needed)
    check_plan(filled.tasks)
    assert "the answer" in str(filled.description)
    assert "{{" not in str(filled)


def test_the_example_of_the_page_is_a_template(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "endpoint.yaml").write_text(text, encoding="utf-8")
    (entry,) = TemplateFiles([UserFolder("project", tmp_path)]).entries()
    assert isinstance(entry, FileTemplate)
    filled = fill(entry.blueprint, {"path": "/orders/{id}"})
    check_plan(filled.tasks)
    assert filled.description == "Add GET /orders/{id} to the API"
    assert "use {{braces}};" in filled.tasks[1].description
